import CredmgrMessages
import CredmgrText

/// Options that a user may try for entering a secret. credmgr accepts no secrets on the command line, because other
/// users can see them in the process list, and the shell saves them.
enum SecretOption {
  private static let words = [
    "auth", "authorization", "bearer", "code", "cookie", "cred", "creds", "jwt", "key", "otp", "pass", "pat", "pin",
    "pw", "pwd",
  ]
  private static let parts = [
    "apikey", "credential", "passcode", "passphrase", "passwd", "password", "secret", "token",
  ]

  /// Whether an unknown option's value may be a secret, judging by the option's name. A name that ends with a word like
  /// `file` refers to a file.
  static func isMeant(by option: String) -> Bool {
    let name = option.prefix { $0 != "=" && $0 != ":" }
    guard name.hasPrefix("-") else { return false }
    // The letters after a short option may be its value.
    if !name.hasPrefix("--") { return ["-p", "-P", "-u", "-k", "-t", "-s"].contains { name.hasPrefix($0) } }
    let pieces = name.lowercased().split { "-_.".contains($0) }.map(String.init)
    guard let last = pieces.last else { return false }
    if pieces.count > 1, nearMiss(last, among: ["file", "files", "path"]) != nil { return false }
    let joined = pieces.joined()
    return pieces.contains { words.contains($0) || nearMiss($0, among: parts) != nil }
      || parts.contains { joined.firstPlace(of: $0) != nil }
  }

  /// Returns the option's name without what may be a secret typed directly after it: `--token…` for `--tokenVALUE`.
  static func shown(_ option: String) -> String {
    let places = parts.compactMap { option.lowercased().firstPlace(of: $0)?.upperBound }
    guard let end = places.min(), end < option.endIndex else { return option }
    return option[..<end] + "…"
  }

  /// Whether an argument clearly contains a secret: a password or a secret parameter in a URL.
  static func isIn(_ argument: String) -> Bool {
    if withoutPasswords(argument) != argument { return true }
    guard argument.firstPlace(of: "://") != nil, let query = argument.firstIndex(of: "?") else { return false }
    return argument[query...].dropFirst().split { "&#".contains($0) }.contains { isMeant(by: "--" + $0) }
  }

  /// Returns the command's option for reading such a secret from elsewhere; empty if the command prompts for it or
  /// needs none.
  static func instead(of option: String, in command: Command) -> [String] {
    func has(_ name: String) -> Bool { command.options.contains { $0.name == name } }
    let isToken = option.lowercased().firstPlace(of: "token") != nil
    if isToken, has("--initial-access-token-file") { return ["--initial-access-token-file", "-"] }
    if has("--client-secret-file") { return ["--client-secret-file", "-"] }
    return has("--with-token") ? ["--with-token"] : []
  }
}

extension CommandError {
  /// Returns the error for a secret on the command line, without repeating it.
  static func secretOption(_ option: String, of command: Command) -> CommandError {
    let instead = SecretOption.instead(of: option, in: command)
    let again = Remedy(parts: [.without(option, instead: instead)])
    let end: Remedy =
      if instead.last == "-" {
        " to read it from standard input; replace \"-\" with a file name to read that file"
      } else if !instead.isEmpty {
        " to read it from standard input"
      } else if command.options.contains(where: { $0.name == "--passphrase-file" }) {
        " to be prompted, or use \"--passphrase-file FILE\""
      } else {
        ""
      }
    let shown = SecretOption.shown(option)
    return .usage("unknown option \"\(shown)\": credmgr takes no secrets from the command line", hint: again + end)
  }
}

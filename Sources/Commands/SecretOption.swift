import Text

/// Options that somebody may type because a secret is wanted. The command line takes none: other users see it in the
/// list of processes, and the shell keeps it.
enum SecretOption {
  private static let words = [
    "auth", "authorization", "bearer", "code", "cookie", "cred", "creds", "jwt", "key", "otp", "pass", "pat", "pin",
    "pw", "pwd",
  ]
  private static let parts = [
    "apikey", "credential", "passcode", "passphrase", "passwd", "password", "secret", "token",
  ]

  /// Whether the value of an option that no command has may be a secret, by the option's name. A name that ends with
  /// something like `file` names a file.
  static func isMeant(by option: String) -> Bool {
    let name = option.prefix { $0 != "=" }
    guard name.hasPrefix("-") else { return false }
    // What follows one letter may be the value itself.
    if !name.hasPrefix("--") { return ["-p", "-P", "-u", "-k", "-t", "-s"].contains { name.hasPrefix($0) } }
    let pieces = name.lowercased().split { "-_.".contains($0) }.map(String.init)
    guard let last = pieces.last else { return false }
    if pieces.count > 1, nearMiss(last, among: ["file", "files", "path"]) != nil { return false }
    let joined = pieces.joined()
    return pieces.contains { words.contains($0) || nearMiss($0, among: parts) != nil }
      || parts.contains { joined.firstPlace(of: $0) != nil }
  }

  /// Whether an argument has a secret in it that need not be asked for: a password in a URL, or a parameter of one.
  static func isIn(_ argument: String) -> Bool {
    if withoutPasswords(argument) != argument { return true }
    guard argument.firstPlace(of: "://") != nil, let query = argument.firstIndex(of: "?") else { return false }
    return argument[query...].dropFirst().split { "&#".contains($0) }.contains { isMeant(by: "--" + $0) }
  }

  /// The option of a command that takes such a secret from elsewhere; empty where the command asks for it by itself, or
  /// does without.
  static func instead(of option: String, in command: Command) -> [String] {
    func has(_ name: String) -> Bool { command.options.contains { $0.name == name } }
    let isToken = option.lowercased().firstPlace(of: "token") != nil
    if isToken, has("--initial-access-token-file") { return ["--initial-access-token-file", "-"] }
    if has("--client-secret-file") { return ["--client-secret-file", "-"] }
    return has("--with-token") ? ["--with-token"] : []
  }
}

extension CommandError {
  /// Refuses a secret on the command line without repeating it.
  static func secretOption(_ option: String, of command: Command) -> CommandError {
    let instead = SecretOption.instead(of: option, in: command)
    let again = Remedy(parts: [.without(option, instead: instead)])
    let end: Remedy =
      if instead.last == "-" {
        ", which reads it from standard input; a file's name in the place of \"-\" reads it from there"
      } else if !instead.isEmpty {
        ", which reads it from standard input"
      } else if command.options.contains(where: { $0.name == "--passphrase-file" }) {
        ", which asks for the passphrase; \"--passphrase-file FILE\" reads it from a file"
      } else {
        ""
      }
    return .usage("no secret is taken from the command line, so there is no option \"\(option)\"", hint: again + end)
  }
}

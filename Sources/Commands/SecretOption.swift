import CredmgrCredentialManager
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

  /// Returns an unknown word as far as it is certainly a name, because a value may follow directly: `--token…` for
  /// `--tokenVALUE`. `known` are the possible names.
  static func shown(_ word: String, among known: [String]) -> String {
    let name = String(word.prefix { !"=: ".contains($0) })
    if name.hasPrefix("-"), !name.hasPrefix("--") { return String(name.prefix(2)) }
    if nearMiss(name, among: known) != nil { return name }
    let dashes = name.prefix { $0 == "-" }.prefix(2)
    let text = name[dashes.endIndex...]
    let end = dashes.isEmpty ? nil : endOfSecretName(in: text)
    if end == nil, isName(text), dashes.isEmpty || isOption(name) { return name }
    let shown = name[..<(end ?? known.filter(name.hasPrefix).map(\.endIndex).max() ?? dashes.endIndex)]
    return shown.endIndex < name.endIndex ? shown + "…" : name
  }

  /// Returns the end of the first word for a secret, after nothing but names: of `token` in `my-tokenVALUE`; `nil`
  /// without such a word.
  private static func endOfSecretName(in text: Substring) -> String.Index? {
    func follows(_ place: String.Index) -> Bool { isName(text[..<place] + "a") }
    for piece in text.split(maxSplits: 2, whereSeparator: "-_".contains) where follows(piece.startIndex) {
      let length = (words + parts).filter(piece.hasPrefix).map(\.count).max()
      if let length { return text.index(piece.startIndex, offsetBy: length) }
    }
    return parts.compactMap { text.firstPlace(of: $0) }.filter { follows($0.lowerBound) }.map(\.upperBound).min()
  }

  /// Whether an option exists in a command of credmgr or in many programs, or is too short for a value.
  private static func isOption(_ name: String) -> Bool {
    let usual = ["config", "debug", "force", "format", "output", "profile", "quiet", "silent", "verbose"]
    return name.count < 7 || usual.contains(String(name.dropFirst(2)))
      || (Command.common + Command.all.flatMap(\.options)).contains { $0.name == name }
  }

  /// Whether a text is empty or a usual name of a variable, unlike most secrets.
  static func isVariable(_ text: some StringProtocol) -> Bool {
    text.count <= 32 && text.utf8.allSatisfy { (0x41...0x5A).contains($0) || $0 == UInt8(ascii: "_") }
  }

  /// Whether a text consists of a few short words in lowercase, unlike most secrets.
  private static func isName(_ text: some StringProtocol) -> Bool {
    let words = text.split(omittingEmptySubsequences: false, whereSeparator: "-_".contains)
    return words.count <= 3
      && words.allSatisfy { (1...12).contains($0.count) && $0.allSatisfy { $0.isASCII && $0.isLowercase } }
  }

  /// Whether an argument clearly contains a secret: a password or a secret parameter in a URL.
  static func isIn(_ argument: String) -> Bool {
    if withoutPasswords(argument) != argument { return true }
    guard argument.firstPlace(of: "://") != nil, let query = argument.firstIndex(where: "?#".contains) else {
      return false
    }
    return argument[query...].dropFirst().split { "&#".contains($0) }.contains { isMeant(by: "--" + $0) }
  }

  /// Returns the name in `NAME=VALUE` whose value may be a secret; `nil` if the operand is another word.
  static func secretName(of operand: String) -> Substring? {
    guard let sign = operand.firstIndex(of: "="), isMeant(by: "--" + operand[..<sign]),
      operand[..<sign].utf8.allSatisfy({ $0.isLetterOrDigit || "-_".utf8.contains($0) })
    else { return nil }
    return operand[..<sign]
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

extension Command {
  /// Throws if an operand looks like an option, or like a secret with its name. `--` from a text editor may be a dash.
  func check(operand: String) throws(CommandError) {
    if operand.unicodeScalars.first.map(Self.isDash) == true || SecretOption.secretName(of: operand) != nil {
      throw .unsafeOperand(operand, self)
    }
  }

  fileprivate static func isDash(_ scalar: Unicode.Scalar) -> Bool {
    (0x2010...0x2015).contains(scalar.value) || scalar.value == 0x2212
  }
}

extension Context {
  /// Throws if a new name is a key, because every command would show it. `owners` are the providers of the key, if they
  /// are known.
  func requireNoKey(in name: String?, called what: String, of owners: [String] = []) throws(CommandError) {
    guard let name, case let owners = owners.isEmpty ? source.ownersOfKey(in: name) : owners, !owners.isEmpty else {
      return
    }
    throw .usage(
      "invalid \(what): it looks like a key of \(owners.map(titled).joined(separator: " or "))",
      hint: "make a new key, because your shell may store this one, and enter it at the prompt of \"credmgr login\"")
  }
}

extension CommandError {
  static func unsafeOperand(_ operand: String, of command: Command) -> Message {
    if let name = SecretOption.secretName(of: operand) {
      return Message("credmgr takes no secrets from the command line, such as \"\(name)=…\"")
    }
    let option = "--" + String(operand.unicodeScalars.drop { Command.isDash($0) || $0 == "-" })
    let shown = SecretOption.shown(option, among: command.options.map(\.name))
    return Message("the option \"\(shown)\" must begin with \"--\", not with a dash")
  }

  /// Returns the message for a secret on the command line, without repeating it.
  static func secretOption(_ option: String, of command: Command) -> Message {
    let instead = SecretOption.instead(of: option, in: command)
    let isOfClient = option.lowercased().firstPlace(of: "client") != nil && instead == ["--with-token"]
    let again: Remedy =
      isOfClient
      ? "\(credmgr: "add-provider", "ID", "--replace", "--client-secret-file", "-")"
      : Remedy(parts: [.without(option, instead: instead)])
    let end: Remedy =
      if instead.last == "-" || isOfClient {
        " to read it from standard input; replace \"-\" with a file name to read that file"
      } else if !instead.isEmpty {
        " to read it from standard input"
      } else if command.options.contains(where: { $0.name == "--passphrase-file" }) {
        " to be prompted, or use \"--passphrase-file FILE\""
      } else {
        ""
      }
    let shown = SecretOption.shown(option, among: command.options.map(\.name))
    return Message("unknown option \"\(shown)\": credmgr takes no secrets from the command line", hint: again + end)
  }
}

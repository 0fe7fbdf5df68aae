/// The words that users of other programs type, and what they mean here.
enum SimilarWords {
  /// Words that only group the commands of other programs, as in `gh auth login`.
  private static let groups = ["auth", "account", "accounts", "config", "provider"]

  /// Returns the words of the command that the first words mean, and how many words those are; `nil` if they mean none.
  static func command(for words: [String]) -> (meant: [String], count: Int)? {
    guard let first = words.first else { return nil }
    if first == "provider", words.count > 1, ["list", "ls", "show", "search", "find"].contains(words[1]) {
      return (["search", "find"].contains(words[1]) ? ["providers", "--search"] : ["providers"], 2)
    }
    if words.count > 1, groups.contains(first),
      let meant = Command.named(words[1]).map({ [$0.name] }) ?? command(for: words[1])
    {
      return (meant, 2)
    }
    return command(for: first).map { ($0, 1) }
  }

  /// Returns the words of the command that a word means; `nil` if it means none.
  static func command(for word: String) -> [String]? {
    switch word {
    case "ls", "account", "accounts", "credentials", "keys", "secrets", "whoami", "who", "ps": ["list"]
    case "init", "new", "add", "configure", "config", "create", "register": ["setup"]
    case "signin", "sign-in", "auth", "authenticate", "connect": ["login"]
    case "signout", "sign-out", "revoke", "disconnect": ["logout"]
    case "get", "get-token", "print", "cat", "access-token", "key", "password": ["token"]
    case "show", "info", "st": ["status"]
    case "run", "env": ["exec"]
    case "curl", "api", "fetch": ["request"]
    case "switch", "select", "default": ["use"]
    case "rm", "remove", "delete": ["remove-provider"]
    case "renew", "refresh-token": ["refresh"]
    case "test", "verify-token": ["validate"]
    case "logs", "history", "audit": ["log"]
    case "search", "find": ["providers", "--search"]
    case "migrate", "move": ["import"]
    case "diagnose", "troubleshoot": ["doctor"]
    case "lint": ["check"]
    case "mock": ["simulate"]
    case "kubectl", "kubernetes": ["kubectl-credential"]
    case "docker", "docker-setup": ["docker-credential", "setup"]
    case "git", "setup-git": ["git-setup"]
    case "lock", "unlock", "backup", "restore", "export", "protect", "rotate", "verify": ["vault", word]
    default: nil
    }
  }

  /// Returns the option of the command that an unknown option means; `nil` if it means none.
  static func option(for name: String, of command: Command) -> String? {
    let meant: String? =
      switch name {
      case "--as", "--name": "--account"
      case "--dir", "--directory", "--folder", "--path": "--in"
      case "--force": "--replace"
      case "--device", "--device-code": "--grant=device_code"
      default: nil
      }
    let option = meant.map { String($0.prefix { $0 != "=" }) }
    return command.options.contains { $0.name == option } ? meant : nil
  }

  /// Returns the operation of the vault that a word means; `nil` if it means none.
  static func vaultOperation(for word: String) -> String? {
    switch word {
    case "check", "test", "fsck": "verify"
    case "open", "unseal": "unlock"
    case "close", "seal": "lock"
    case "show", "info", "ls", "list": "status"
    case "rekey", "rotate-key": "rotate"
    case "copy", "save": "backup"
    case "dump", "move": "export"
    case "load", "read": "import"
    case "passwd", "password", "passphrase": "protect"
    default: nil
    }
  }
}

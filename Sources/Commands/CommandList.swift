extension Command {
  /// All commands, in the order of the help.
  static let all: [Command] = [
    .addProvider, .providers, .check, .simulate, .login, .token, .header, .request, .exec, .status, .use, .refresh,
    .validate, .logout, .gitCredential, .gitSetup, .dockerCredential,
    .kubectlCredential, .vault, .log, .completion,
  ]

  /// What only other programs call, and nobody is told about.
  static let hidden: [Command] = [.redirect]

  static let account = Option("--account", value: "NAME", "the account; otherwise the default one")
  static let json = Option("--json", "print JSON, whose fields stay as they are")
}

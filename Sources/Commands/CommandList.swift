extension Command {
  /// Commands that belong together: a paragraph of the help, and a page of the manual.
  package struct Group: Sendable {
    /// The name of the page behind `credmgr-`.
    package let name: String
    package let title: String
    package let commands: [Command]
  }

  /// All commands, in the order of the help.
  package static let groups = [
    Group(name: "providers", title: "providers", commands: [.providers, .addProvider, .check, .simulate]),
    Group(name: "accounts", title: "accounts", commands: [.login, .status, .use, .refresh, .validate, .logout]),
    Group(name: "tokens", title: "what a token is used for", commands: [.token, .header, .request, .exec]),
    Group(
      name: "helpers", title: "other programs",
      commands: [.gitSetup, .gitCredential, .dockerCredential, .kubectlCredential]),
    Group(name: "vault", title: "the vault", commands: [.vault, .log]),
    Group(name: "setup", title: "this machine", commands: [.doctor, .completion]),
  ]

  /// All commands.
  package static let all = groups.flatMap(\.commands)

  /// What only other programs call, and nobody is told about.
  static let hidden: [Command] = [.redirect]

  static let account = Option("--account", value: "NAME", "the account; otherwise the default one")
  static let json = Option("--json", "print JSON, whose fields stay as they are")
}

extension Command {
  /// A section of the help, and a page of the manual.
  package struct Group: Sendable {
    package let name: String
    package let title: String
    package let commands: [Command]

    package var page: String { "credmgr-" + name }
  }

  package static let groups = [
    Group(
      name: "providers", title: "providers", commands: [.providers, .addProvider, .removeProvider, .check, .simulate]),
    Group(
      name: "accounts", title: "accounts",
      commands: [.login, .import, .list, .status, .use, .refresh, .validate, .logout, .share]),
    Group(name: "tokens", title: "using tokens", commands: [.token, .header, .request, .exec]),
    Group(
      name: "helpers", title: "git, docker and kubectl",
      commands: [.gitSetup, .gitCredential, .dockerCredential, .kubectlCredential]),
    Group(name: "vault", title: "vault", commands: [.vault, .log]),
    Group(name: "setup", title: "setup", commands: [.setup, .doctor, .completion]),
  ]

  package static let all = groups.flatMap(\.commands)

  static let hidden: [Command] = [.redirect]

  /// Returns one command without creating the others: building the complete table takes longer than finding a token.
  static func named(_ name: String) -> Command? {
    switch name {
    case "add-provider": .addProvider
    case "remove-provider": .removeProvider
    case "providers": .providers
    case "check": .check
    case "simulate": .simulate
    case "login": .login
    case "import": .import
    case "list": .list
    case "token": .token
    case "header": .header
    case "request": .request
    case "exec": .exec
    case "status": .status
    case "use": .use
    case "refresh": .refresh
    case "validate": .validate
    case "logout": .logout
    case "share": .share
    case "git-credential": .gitCredential
    case "git-setup": .gitSetup
    case "docker-credential": .dockerCredential
    case "kubectl-credential": .kubectlCredential
    case "vault": .vault
    case "log": .log
    case "setup": .setup
    case "doctor": .doctor
    case "completion": .completion
    case "redirect": .redirect
    default: nil
    }
  }

  static let account = Option("--account", value: "NAME", "account to use (default: the default account)")
  static let json = Option("--json", "print JSON with stable field names")
}

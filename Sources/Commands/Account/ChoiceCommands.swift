import CredentialManager
import JSON
import Platform

extension Command {
  static let use = Command(
    name: "use", operands: "ID ACCOUNT", operandCount: 2...2,
    summary: "Set the default account of a provider, or the one for a remote or a folder",
    options: [
      Option("--for", value: "URL", "use it for remotes with this URL, or below it: https://HOST/OWNER"),
      Option("--in", value: "FOLDER", "use it in this folder and below it"),
    ],
    notes: [
      "With both options, both have to fit. The rules stand in the file accounts.yaml in the configuration's folder.",
      "\"credmgr status --why\" says which account is used here.",
    ],
    examples: [
      ("credmgr use github work", "wherever no rule says otherwise"),
      ("credmgr use github work --for https://github.com/octo", "for the repositories of an owner"),
      ("credmgr use github work --in ~/work", "below a folder"),
    ]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = invocation.operands[1]
    let remote = invocation.value("--for").map(RemoteAddress.written)
    if let remote { _ = try address(remote, form: "OWNER") }
    let folder: String? = if let text = invocation.value("--in") { try writtenFolder(text, context) } else { nil }
    try requireAccount(name, of: provider, context)
    if remote == nil, folder == nil {
      try manager(context.source.accounts(.readWrite).select(name, provider: provider))
      context.tell("\"\(name)\" is the default account of \"\(provider)\"")
    } else {
      try manager(context.source.addRule(provider: provider, account: name, remote: remote, folder: folder))
      let conditions = (remote.map { " for \($0)" } ?? "") + (folder.map { " in \($0)" } ?? "")
      context.tell("\"\(name)\" is the account of \"\(provider)\"\(conditions)")
    }
  }

  private static func requireAccount(_ name: String, of provider: String, _ context: Context) throws(CommandError) {
    guard let accounts = try manager(context.source.accountsIfAny()) else {
      throw CommandError(.loginNeeded(provider: provider, account: name, .noCredential))
    }
    _ = try manager(accounts.resolve(name, provider: provider))
  }

  /// A folder as the file has it: absolute, or from the home folder on.
  private static func writtenFolder(_ text: String, _ context: Context) throws(CommandError) -> String {
    guard !text.isEmpty else {
      throw .usage("\"\" is no folder", hint: "\"--in .\" is the folder here, \"--in ~/work\" one of yours")
    }
    let here = try system(Path.currentDirectory())
    var text = text
    // A shell leaves the tilde of `--in=~/work` and of '~/work' alone.
    if text == "~" || text.hasPrefix("~/"), let home = context.home.person { text = home + text.dropFirst() }
    let path = Path.resolved(text) ?? Path.joining(here, text)
    guard let home = context.home.person, path.hasPrefix(home + "/") else { return path }
    return "~" + path.dropFirst(home.count)
  }

  private struct Choice {
    let provider: String?
    let account: String
    let reason: String
    let sentence: String
    let rule: AccountRule?
  }

  static func whichAccount(of provider: String?, _ invocation: Invocation, _ context: Context) throws(CommandError) {
    let choices: [Choice]
    if let text = invocation.value("--for") {
      choices = [try choice(for: text, provider, context)]
    } else {
      let accounts = try provider == nil ? manager(context.source.accountsIfAny()?.accounts(of: nil) ?? []) : []
      let providers = provider.map { [$0] } ?? Set(accounts.map(\.provider)).sorted()
      if providers.isEmpty { context.tell("nobody is logged in anywhere") }
      let repository = RepositoryContext(environment: context.environment)
      choices = try providers.map { provider throws(CommandError) in
        try choice(context.choice(nil, of: provider, remotes: repository.remotes), of: provider, context)
      }
    }
    try context.output(
      choices.map { "\($0.provider.map { $0 + "  " } ?? "")\($0.account)  (\($0.sentence))\n" }.joined(),
      orJSON: .array(choices.map(json)))
  }

  private static func address(_ text: String, form: String) throws(CommandError) -> RemoteAddress {
    if let address = RemoteAddress(text) { return address }
    // It may have a password in it.
    throw .usage(
      "the value of \"--for\" is no remote's URL", hint: "URLs are written https://HOST/\(form), or git@HOST:OWNER/NAME"
    )
  }

  private static func choice(for text: String, _ provider: String?, _ context: Context) throws(CommandError) -> Choice {
    let address = try address(text, form: "OWNER/NAME")
    let claim = try manager(context.source.claim(of: address.host, for: .git))
    guard let provider = provider ?? claim?.provider else {
      let pattern = HostLoginPattern(
        origin: "https://" + address.host, username: username(in: text), takesSchemes: true)
      guard let login = try manager(context.source.hostLogin(pattern)) else {
        throw .failed("no provider claims \"\(address.host)\", and nothing is stored for it", status: .loginNeeded)
      }
      return Choice(
        provider: nil, account: login.username ?? "", reason: "stored", sentence: "stored for https://\(address.host)",
        rule: nil)
    }
    if let claim, let username = username(in: text), let name = try context.accountName(forUsername: username, claim) {
      return try choice(AccountChoice(name, .username), of: provider, context)
    }
    return try choice(context.choice(nil, of: provider, remotes: { [address] }), of: provider, context)
  }

  /// The user name in `https://octo@host/…`; that of SSH, `git@host:…`, is no account's.
  private static func username(in url: String) -> String? {
    guard let start = url.firstPlace(of: "://")?.upperBound, url.hasPrefix("http"),
      let at = url[start...].prefix(while: { $0 != "/" }).lastIndex(of: "@")
    else { return nil }
    return String(url[start..<at].prefix { $0 != ":" })
  }

  private static func choice(
    _ choice: AccountChoice?, of provider: String, _ context: Context
  ) throws(CommandError) -> Choice {
    if let choice { try requireAccount(choice.name, of: provider, context) }
    let choice = if let choice { choice } else { try manager(context.source.standardChoice(of: provider)) }
    let rule: AccountRule? = if case .rule(let rule) = choice.reason { rule } else { nil }
    let (reason, sentence) =
      switch choice.reason {
      case .option: ("option", "named")
      case .username: ("user-name", "the user name in the URL")
      case .environment: ("environment", "CREDMGR_ACCOUNT says so")
      case .selected: ("default", "the default account; no rule is for here")
      case .only: ("only", "the only account")
      case .rule(let rule): ("rule", "\(rule.place.source.name):\(rule.place.line): \(rule.condition)")
      }
    return Choice(provider: provider, account: choice.name, reason: reason, sentence: sentence, rule: rule)
  }

  private static func json(_ choice: Choice) -> JSONValue {
    [
      "provider": .optional(choice.provider), "account": .string(choice.account), "reason": .string(choice.reason),
      "rule": choice.rule.map { rule in
        [
          "file": .string(rule.place.source.name), "line": .integer(Int64(rule.place.line)),
          "condition": .string(rule.condition),
        ]
      } ?? .null,
    ]
  }
}

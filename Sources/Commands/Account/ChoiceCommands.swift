import CredmgrCredentialManager
import CredmgrJSON

extension Command {
  static func requireAccount(_ name: String, of provider: String, _ context: Context) throws(CommandError) {
    guard let accounts = try manager(context.source.accountsIfAny()) else {
      throw CommandError(.loginNeeded(provider: provider, account: name, .noCredential))
    }
    _ = try manager(accounts.resolve(name, provider: provider))
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
      if providers.isEmpty { context.tell("not logged in to any provider") }
      let repository = RepositoryContext(environment: context.environment)
      choices = try providers.map { provider throws(CommandError) in
        try choice(context.choice(nil, of: provider, remotes: repository.remotes), of: provider, context)
      }
    }
    try context.output(
      choices.map { "\($0.provider.map { $0 + "  " } ?? "")\($0.account)  (\($0.sentence))\n" }.joined(),
      orJSON: .array(choices.map(json)))
  }

  static func address(_ text: String, form: String) throws(CommandError) -> RemoteAddress {
    if let address = RemoteAddress(text) { return address }
    // Do not repeat the value, because it may contain a password.
    throw .usage(
      "the value of \"--for\" is not the URL of a remote",
      hint: "use a form like https://HOST/\(form) or git@HOST:OWNER/NAME"
    )
  }

  private static func choice(for text: String, _ provider: String?, _ context: Context) throws(CommandError) -> Choice {
    let address = try address(text, form: "OWNER/NAME")
    let username = username(in: text)
    let claims = try manager(context.source.claims(of: address.host, for: .git))
    let claim = try context.claim(
      among: claims.filter { $0.provider == provider ?? $0.provider }, username: username
    ) { [address] }
    let pattern = HostLoginPattern(origin: "https://" + address.host, username: username, takesSchemes: true)
    guard let provider = provider ?? claim?.provider else {
      guard let login = try manager(context.source.hostLogin(pattern)) else {
        throw .failed("no provider or stored password for \"\(address.host)\"", status: .loginNeeded)
      }
      return Choice(
        provider: nil, account: login.username ?? "", reason: "stored", sentence: "stored for https://\(address.host)",
        rule: nil)
    }
    let choice =
      if let claim, claim.provider == provider {
        try context.choice(username: username, claim, stored: pattern) { [address] }
      } else {
        try context.choice(nil, of: provider) { [address] }
      }
    return try self.choice(choice, of: provider, context)
  }

  /// Returns the user name of `https://octo@host/…`; `nil` for SSH, because `git@host:…` names no account.
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
      case .option: ("option", "named by \"--account\"")
      case .username: ("user-name", "the user name in the URL")
      case .environment: ("environment", "set by CREDMGR_ACCOUNT")
      case .selected: ("default", "the default account; no rule matches")
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

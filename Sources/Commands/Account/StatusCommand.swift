import CredentialManager
import JSON
import OAuth
import Platform
import Text

extension Command {
  static let status = Command(
    name: "status", operands: "[ID]", operandCount: 0...1,
    summary: "Show accounts, scopes, expiry, and what happens next",
    options: [
      Option("--why", "which account is used here, and why"),
      Option("--for", value: "URL", "which account is used for a remote's URL, and why"), json,
    ],
    examples: [
      ("credmgr status", "everybody who is logged in"),
      ("credmgr status github --json", "for a program"),
      ("credmgr status --for https://github.com/octo/notes", "whom git takes for this repository"),
    ]
  ) { invocation, context throws(CommandError) in
    let provider: String? = if let text = invocation.operands.first { try context.provider(text) } else { nil }
    if invocation.has("--why") || invocation.has("--for") { return try whichAccount(of: provider, invocation, context) }
    let vault = try manager(context.source.accountsIfAny())
    let accounts = try manager(vault?.accounts(of: provider) ?? [])
    let now = context.clock.now()
    let states = try manager(vault?.states(of: accounts, at: now) ?? [])
    var selected: [String: String] = [:]
    for provider in Set(accounts.map(\.provider)) { selected[provider] = try manager(vault?.selected(for: provider)) }
    let interrupted = try manager(context.source.interruptedExchanges())
    if accounts.isEmpty {
      try context.reportDamagedRecords(provider, without: accounts)
      if let provider, let unknown = context.unknown(provider) { throw CommandError(unknown) }
    }
    if context.isJSON {
      let rows = zip(accounts, states).map { account, state in
        let isInterrupted = interrupted.contains { $0.provider == account.provider && $0.account == account.name }
        let isDefault = selected[account.provider] == account.name
        return json(account, state, isDefault: isDefault, isInterrupted: isInterrupted)
      }
      try context.output(.array(rows))
      return try context.reportDamagedRecords(provider, without: accounts)
    }
    if accounts.isEmpty {
      context.tell(provider.map { "nobody is logged in to \"\($0)\"" } ?? "nobody is logged in anywhere")
    }
    let style = Style(1)
    let columns = Terminal.outputColumns
    var text = ""
    for (account, state) in zip(accounts, states) {
      let isDefault = selected[account.provider] == account.name
      text += style.bold("\(account.provider)  \(account.name)") + (isDefault ? "  (default)" : "") + "\n"
      text += Layout.table(details(account.credential, state, at: now, style), width: columns)
    }
    try context.output(text)
    for exchange in interrupted where provider == nil || provider == exchange.provider {
      context.tell(Notice.interrupted(exchange).sentence(now: now))
    }
    try context.reportDamagedRecords(provider, without: accounts)
  }

  private static func details(
    _ credential: Credential, _ state: AccountState, at now: Moment, _ style: Style
  ) -> [(left: String, right: String)] {
    var rows: [(left: String, right: String)] = [
      ("grant", credential.isGiven ? "none: the token was given" : credential.grant.rawValue)
    ]
    if let identity = credential.identity { rows.append(("identity", identity)) }
    let scope = credential.grantedScope ?? credential.requestedScope
    if !scope.isEmpty { rows.append(("scope", scope.joined(separator: " "))) }
    let withheld = credential.withheldScope
    if !withheld.isEmpty { rows.append(("not granted", withheld.joined(separator: " "))) }
    rows.append(("token", expiry(credential.expiresAt, now)))
    if credential.refreshToken != nil {
      let expiry = expiry(credential.refreshTokenExpiresAt, now)
      rows.append(("refresh token", state.isRefreshRefused ? "refused by the provider" : expiry))
    }
    // Parts of it are the provider's words.
    rows = rows.map { ($0.left, Message.visible($0.right)) }
    rows.append(("next", state.loginReason == nil ? state.sentence : style.red(state.sentence)))
    return rows
  }

  private static func expiry(_ moment: Moment?, _ now: Moment) -> String {
    guard let moment else { return "no expiry known" }
    return moment > now ? "expires in \(duration(moment - now))" : "expired \(duration(now - moment)) ago"
  }

  static func json(
    _ account: Account, _ state: AccountState, isDefault: Bool, isInterrupted: Bool
  ) -> JSONValue {
    let credential = account.credential
    return [
      "provider": .string(account.provider), "account": .string(account.name), "default": .boolean(isDefault),
      "identity": .optional(credential.identity),
      "grant": .string(credential.isGiven ? "given" : credential.grant.rawValue),
      "scope": .array((credential.grantedScope ?? credential.requestedScope).map(JSONValue.string)),
      "withheld_scope": .array(credential.withheldScope.map(JSONValue.string)),
      "obtained_at": .string(credential.obtainedAt.text),
      "expires_at": .optional(credential.expiresAt?.text),
      "refresh_token": .boolean(credential.refreshToken != nil),
      "refresh_token_expires_at": .optional(credential.refreshTokenExpiresAt?.text),
      "state": .string(state.names.state), "next": .string(state.names.next), "interrupted": .boolean(isInterrupted),
    ]
  }
}

extension AccountState {
  fileprivate var isRefreshRefused: Bool {
    if case .refused = self { return true }
    return switch loginReason {
    case .refreshRefused, .refreshInterrupted: true
    default: false
    }
  }

  fileprivate var names: (state: String, next: String) {
    switch self {
    case .usable: ("usable", "valid")
    case .expiring: ("expiring", "refresh")
    case .ending: ("ending", "valid")
    case .refused: ("refused", "valid")
    case .refreshable: ("refreshable", "refresh")
    case .loggingIn: ("logging_in", "login")
    case .expired: ("expired", "login")
    }
  }

  fileprivate var sentence: String {
    switch self {
    case .usable: "the token is handed out as it is"
    case .ending: "the token is handed out until it expires; then a login is needed"
    case .refused: "the token is handed out as long as it is valid; then a login is needed"
    case .expiring, .refreshable: "the token is refreshed when it is asked for"
    case .loggingIn: "a login is under way"
    case .expired: "a login is needed"
    }
  }
}

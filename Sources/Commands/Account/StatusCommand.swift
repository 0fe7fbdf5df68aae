import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

extension Command {
  static let status = Command(
    name: "status", operands: "[ID]", operandCount: 0...1,
    summary: "Show accounts with their scopes and expiry",
    options: [
      Option("--why", "show which account is used in this directory, and why"),
      Option("--for", value: "URL", "show which account is used for a remote's URL, and why"), json,
    ],
    examples: [
      ("credmgr status", "Show all accounts"),
      ("credmgr status github --json", "Print the accounts of a provider as JSON"),
      ("credmgr status --for https://github.com/octo/notes", "Show which account git uses for a repository"),
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
        return json(account, state, isDefault: isDefault, isInterrupted: isInterrupted, at: now)
      }
      try context.output(.array(rows))
      return try context.reportDamagedRecords(provider, without: accounts)
    }
    if accounts.isEmpty {
      context.tell("not logged in to " + (provider.map(context.titled) ?? "any provider"))
      context.tell(
        hint: provider.map { "\(credmgr: "login", $0)" } ?? "\(credmgr: "providers") to see where you can log in")
    }
    let style = Style(1)
    let columns = Terminal.outputColumns
    var text = ""
    for (account, state) in zip(accounts, states) {
      let isDefault = selected[account.provider] == account.name
      text += style.bold("\(account.provider)  \(account.name)") + (isDefault ? "  (default)" : "") + "\n"
      text += Layout.table(details(account.credential, state, at: now, style: style), width: columns)
    }
    try context.output(text)
    for exchange in interrupted where provider == nil || provider == exchange.provider {
      context.tell(Notice.interrupted(exchange).sentence(now: now, titled: context.titled))
    }
    try context.reportDamagedRecords(provider, without: accounts)
  }

  private static func details(
    _ credential: Credential, _ state: AccountState, at now: Moment, style: Style
  ) -> [(left: String, right: String)] {
    var rows: [(left: String, right: String)] = [credential.kind]
    let names = credential.variables.keys.sorted()
    if credential.grant.traits.typed != nil, !names.isEmpty { rows.append(("fields", names.joined(separator: ", "))) }
    if let identity = credential.identity { rows.append(("identity", identity)) }
    if let earlier = credential.earlierIdentity {
      rows.append(("identity", "not verified; it was \(quoted(earlier)) before"))
    }
    let scope = credential.grantedScope ?? credential.requestedScope
    if !scope.isEmpty { rows.append(("scope", scope.joined(separator: " "))) }
    let withheld = credential.withheldScope
    if !withheld.isEmpty { rows.append(("not granted", withheld.joined(separator: " "))) }
    rows.append(("token", expiry(credential.expiresAt, now)))
    if credential.endsSoon(at: now) { rows.append(("warning", "make a new key, then log in again with it")) }
    if credential.refreshToken != nil {
      let expiry = expiry(credential.refreshTokenExpiresAt, now)
      rows.append(("refresh token", state.isRefreshRefused ? "refused by the provider" : expiry))
    }
    // The provider supplied parts of this text.
    rows = rows.map { ($0.left, Message.visible($0.right)) }
    rows.append(("state", state.loginReason == nil ? state.sentence : style.red(state.sentence)))
    return rows
  }

  private static func expiry(_ moment: Moment?, _ now: Moment) -> String {
    guard let moment else { return "expiry unknown" }
    return moment > now ? "expires in \(duration(moment - now))" : "expired \(duration(now - moment)) ago"
  }

  static func json(
    _ account: Account, _ state: AccountState, isDefault: Bool, isInterrupted: Bool, at now: Moment
  ) -> JSONValue {
    let credential = account.credential
    return [
      "provider": .string(account.provider), "account": .string(account.name), "default": .boolean(isDefault),
      "identity": .optional(credential.identity), "earlier_identity": .optional(credential.earlierIdentity),
      "grant": .string(credential.isGiven ? "given" : credential.grant.rawValue),
      "kind": .string(credential.kindName), "ends_soon": .boolean(credential.endsSoon(at: now)),
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

extension Credential {
  /// The kind of credential: `oauth` for a token that a provider issued.
  fileprivate var kindName: String {
    guard grant.traits.typed != nil else { return isGiven ? "token" : "oauth" }
    return isGiven ? "personal_access_token" : grant.rawValue
  }

  fileprivate var kind: (left: String, right: String) {
    guard grant.traits.typed != nil else { return ("grant", isGiven ? "none (existing token)" : grant.rawValue) }
    return ("kind", isGiven ? "personal access token" : grant.traits.kind)
  }

  /// Whether a key of the user expires within 14 days. Only the user can replace it.
  func endsSoon(at now: Moment) -> Bool {
    guard isTyped, let expiresAt else { return false }
    return expiresAt > now && expiresAt - now <= .days(14)
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
    case .usable: "ready to use"
    case .ending, .refused: "ready to use until it expires; then log in again"
    case .expiring, .refreshable: "refreshed at the next use"
    case .loggingIn: "login in progress"
    case .expired: "log in again"
    }
  }
}

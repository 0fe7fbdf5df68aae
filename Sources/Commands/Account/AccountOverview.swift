import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrJSON
import CredmgrOAuth
import CredmgrText

/// The accounts of one provider, or of all, for `status` and `list`.
struct AccountOverview {
  struct Row {
    let account: Account
    let state: AccountState
    let isDefault: Bool
    let isInterrupted: Bool
    let now: Moment
  }

  let provider: String?
  let now: Moment
  let rows: [Row]
  let interrupted: [Interruption]
  let logins: [StoredLogin]

  init(of provider: String?, _ context: Context) throws(CommandError) {
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
    logins = try StoredLogin.all(of: provider, context)
    (self.provider, self.now, self.interrupted) = (provider, now, interrupted)
    rows = zip(accounts, states).map { account, state in
      Row(
        account: account, state: state, isDefault: selected[account.provider] == account.name,
        isInterrupted: interrupted.contains { $0.provider == account.provider && $0.account == account.name },
        now: now)
    }
  }

  func tellIfEmpty(_ context: Context) {
    guard rows.isEmpty, logins.isEmpty else { return }
    context.tell("not logged in to " + (provider.map(context.titled) ?? "any provider"))
    // An interrupted login has its own hint.
    if !own.isEmpty { return }
    guard let provider else {
      let added = (try? context.source.accountsIfAny()?.addedProviders()) ?? []
      return context.tell(
        hint: added.count == 1
          ? "\(credmgr: "login", added[0])" : "\(credmgr: "setup") to log in to a provider")
    }
    context.noCredential(provider, nil).hints.first.map { context.tell(hint: $0) }
  }

  /// The interrupted exchanges of this provider, or of all.
  private var own: [Interruption] { interrupted.filter { provider == nil || provider == $0.provider } }

  func tellInterrupted(_ context: Context) {
    for exchange in own {
      StandardError.tell(notice: Notice.interrupted(exchange).message(now: now, titled: context.titled))
    }
  }

  func reportDamagedRecords(_ context: Context) throws(CommandError) {
    try context.reportDamagedRecords(provider, without: rows.map(\.account))
  }
}

extension Credential {
  /// The granted authorization details (RFC 9396, 7), or else the requested ones.
  var details: AuthorizationDetails? { grantedDetails ?? requestedDetails }

  var detailsJSON: JSONValue { details.flatMap { try? JSONValue.parse(Array($0.text.utf8)) } ?? .null }
}

extension AccountOverview.Row {
  /// The state in words for a list.
  var words: String {
    let doubt = account.credential.isUnverified && !state.needsLogin ? ", not verified" : ""
    return state.words + doubt + (account.credential.endedKey(at: now).map { ", " + $0 } ?? "")
  }

  var json: JSONValue {
    let credential = account.credential
    return [
      "provider": .string(account.provider), "account": .string(account.name), "default": .boolean(isDefault),
      "identity": .optional(credential.identity), "earlier_identity": .optional(credential.earlierIdentity),
      "subject": .optional(credential.subject), "vault": .optional(credential.vault),
      "grant": .string(credential.isGiven ? "given" : credential.grant.rawValue),
      "kind": .string(credential.kindName), "ends_soon": .boolean(credential.endsSoon(at: now)),
      "key_expires_at": .optional(credential.endOfKey?.text),
      "verified": .boolean(!credential.isUnverified),
      "scope": .array((credential.grantedScope ?? credential.requestedScope).map(JSONValue.string)),
      "withheld_scope": .array(credential.withheldScope.map(JSONValue.string)),
      "authorization_details": credential.detailsJSON,
      "obtained_at": .string(credential.obtainedAt.text),
      "expires_at": .optional(credential.expiresAt?.text),
      "refresh_token": .boolean(credential.refreshToken != nil),
      "refresh_token_expires_at": .optional(credential.refreshTokenExpiresAt?.text),
      "state": .string(state.names.state), "next": .string(state.names.next), "interrupted": .boolean(isInterrupted),
    ]
  }
}

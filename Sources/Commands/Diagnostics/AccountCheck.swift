import CredmgrCredentialManager
import CredmgrMessages
import CredmgrText

extension Doctor {
  mutating func checkAccounts(_ vault: Accounts) {
    let accounts: [Account]
    let now = context.clock.now()
    let states: [AccountState]
    do {
      accounts = try vault.accounts(of: nil)
      states = try vault.states(of: accounts, at: now)
    } catch { return tell(error, as: .accounts) }
    func find(_ isMeant: (AccountState) -> Bool) -> (names: [String], logins: [Remedy], count: Int) {
      let found = zip(accounts, states).filter { isMeant($1) }.map(\.0)
      let shown = found.prefix(Self.shown)
      let names = shown.map { "\(quoted($0.name)) at \(context.titled($0.provider))" }
      let more = found.count > Self.shown ? ["and \(found.count - Self.shown) more"] : []
      let logins: [Remedy] = shown.map { "\(credmgr: "login", $0.provider, "--account", $0.name)" }
      return (names + more, logins, found.count)
    }
    let ended = find { ![nil, .loginUnderWay].contains($0.loginReason) }
    if ended.count == 1 {
      let text = "the token of \(ended.names[0]) has expired and cannot be refreshed"
      problem(.accounts, .loginNeeded(text).with(hints: ended.logins))
    } else if ended.count > 1 {
      let text = "\(ended.count) tokens have expired and cannot be refreshed"
      problem(.accounts, Message(text, items: ended.names, hints: ended.logins, status: .loginNeeded))
    }
    let doubtful = find { if case .doubtful = $0 { true } else { false } }
    if doubtful.count == 1 {
      let text = "the provider refused to refresh the expired token of \(doubtful.names[0])"
      problem(.accounts, .loginNeeded(text).with(hints: doubtful.logins))
    } else if doubtful.count > 1 {
      let text = "the providers refused to refresh \(doubtful.count) expired tokens"
      problem(.accounts, Message(text, items: doubtful.names, hints: doubtful.logins, status: .loginNeeded))
    }
    let refused = find { if case .refused = $0 { true } else { false } }
    if refused.count == 1 {
      let text = "the provider refuses to refresh the token of \(refused.names[0])"
      note(.accounts, text + "; it still works until it expires", hints: refused.logins)
    } else if refused.count > 1 {
      let text = "the providers refuse to refresh \(refused.count) tokens, which still work until they expire"
      note(.accounts, text, items: refused.names, hints: refused.logins)
    }
    // An expired key that is itself the credential is a problem, not a note.
    for (account, state) in zip(accounts, states) where account.credential.endsSoon(at: now) && !state.needsLogin {
      let left = account.credential.endOfKey.map { $0 - now } ?? .zero
      let expiry = left > .zero ? "expires in \(duration(left))" : "expired \(duration(.zero - left)) ago"
      note(
        .accounts, "the key of \(quoted(account.name)) at \(context.titled(account.provider)) \(expiry)",
        hint: "make a new key, then \(credmgr: "login", account.provider, "--account", account.name)")
    }
    // Most other providers cannot say whether a key is valid.
    for account in accounts where account.credential.isUnverified {
      guard (try? context.load(account.provider).descriptor)?.endpoints[.identity] != nil else { continue }
      let option = accountOption(account.name)
      note(
        .accounts, "\(context.titled(account.provider)) has not confirmed the key or token of \(quoted(account.name))",
        hint: "\(credmgr: ["validate", account.provider] + option)")
    }
    for exchange in (try? context.source.interruptedExchanges()) ?? [] {
      note(.accounts, exchange.words(now: now, titled: context.titled), hint: exchange.remedy)
    }
    let text = value("CREDMGR_ACCOUNT") ?? ""
    if let fault = AccountChoice.fault(in: text) { return problem(.accounts, .malformedAccounts(fault)) }
    let named = AccountChoice.named(in: text)
    let unknown = named.first { named in
      !accounts.contains { $0.name == named.name && $0.provider == named.provider ?? $0.provider }
    }
    if let unknown {
      let place = unknown.provider.map(context.titled) ?? "any provider"
      problem(
        .accounts, "CREDMGR_ACCOUNT names \(quoted(unknown.name)), which is not an account at \(place)",
        hints: "\(run: "unset", "CREDMGR_ACCOUNT")")
    } else if ended.count + doubtful.count == 0 {
      let count = accounts.count == 1 ? "1 account" : "\(accounts.count) accounts"
      ok(.accounts, accounts.isEmpty ? "not logged in to any provider" : count)
    }
  }
}

import CredentialManager
import Text

extension Doctor {
  mutating func checkAccounts(_ vault: Accounts) {
    let accounts: [Account]
    let refused: [Bool]
    do {
      accounts = try vault.accounts(of: nil)
      refused = try vault.areRefreshesRefused(accounts)
    } catch { return tell(error, as: .accounts) }
    let now = context.clock.now()
    let ended = zip(accounts, refused).filter { account, isRefused in
      !account.credential.isUsable(at: now) && (isRefused || !account.credential.isRefreshable(at: now))
    }.map(\.0)
    if !ended.isEmpty {
      let names = ended.prefix(Self.shown).map { "\(quoted($0.name)) at \(quoted($0.provider))" }.joined(
        separator: ", ")
      let whose = names + (ended.count > Self.shown ? " and \(ended.count - Self.shown) more" : "")
      let text = ended.count == 1 ? "the token of \(whose) has" : "the tokens of \(whose) have"
      let logins: [Remedy] = ended.prefix(Self.shown).map { "\(credmgr: "login", $0.provider, "--account", $0.name)" }
      problem(.accounts, .loginNeeded(text + " expired, and cannot be refreshed").with(hints: logins))
    }
    for exchange in (try? context.source.interruptedExchanges()) ?? [] {
      note(.accounts, exchange.words(now: now), hint: exchange.remedy)
    }
    if let name = value("CREDMGR_ACCOUNT"), !accounts.contains(where: { $0.name == name }) {
      problem(
        .accounts, "CREDMGR_ACCOUNT names \(quoted(name)), who is logged in nowhere",
        hints: "\(run: "unset", "CREDMGR_ACCOUNT")")
    } else if ended.isEmpty {
      let count = accounts.count == 1 ? "one account is" : "\(accounts.count) accounts are"
      ok(.accounts, accounts.isEmpty ? "nobody is logged in" : "\(count) logged in")
    }
  }
}

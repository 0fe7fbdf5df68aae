import CredentialManager
import Text

extension Doctor {
  mutating func checkAccounts(_ vault: Accounts) {
    let accounts: [Account]
    let refused: [Bool]
    do throws(CredentialError) {
      accounts = try vault.accounts(of: nil)
      refused = try vault.areRefreshesRefused(accounts)
    } catch {
      return tell(error, as: .accounts)
    }
    let now = context.clock.now()
    let ended = zip(accounts, refused).filter { account, isRefused in
      !account.credential.isUsable(at: now) && (isRefused || !account.credential.isRefreshable(at: now))
    }.map(\.0)
    if !ended.isEmpty {
      let names = ended.prefix(Self.shown).map { "\(quoted($0.name)) at \(quoted($0.provider))" }
      let more = ended.count > Self.shown ? " and \(ended.count - Self.shown) more" : ""
      problem(
        .accounts,
        Message(
          "\(ended.count == 1 ? "the token" : "the tokens") of \(names.joined(separator: ", "))\(more) "
            + "\(ended.count == 1 ? "has" : "have") expired, and cannot be refreshed",
          hints: ended.prefix(Self.shown).map { "\(credmgr: "login", $0.provider, "--account", $0.name)" },
          status: .loginNeeded))
    }
    for exchange in (try? context.source.interruptedExchanges()) ?? [] {
      note(.accounts, exchange.words(now: now), exchange.remedy)
    }
    if let name = value("CREDMGR_ACCOUNT"), !accounts.contains(where: { $0.name == name }) {
      problem(
        .accounts, "CREDMGR_ACCOUNT names \(quoted(name)), who is logged in nowhere",
        "\(run: "unset", "CREDMGR_ACCOUNT")")
    } else if ended.isEmpty {
      let count = accounts.count == 1 ? "one account is" : "\(accounts.count) accounts are"
      ok(.accounts, accounts.isEmpty ? "nobody is logged in" : "\(count) logged in")
    }
  }
}

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
      var message = error.message
      if case .vault(let error) = error {
        message.hints = error.remedies(context.home.vault, opensOtherwise: false)
      }
      return problem(.accounts, message)
    }
    let before = diagnostics.count
    let now = context.clock.now()
    let ended = zip(accounts, refused).filter { account, isRefused in
      !account.credential.isUsable(at: now) && (isRefused || !account.credential.isRefreshable(at: now))
    }.map(\.0)
    for (index, account) in ended.prefix(Self.shownDamage + 1).enumerated() {
      let more = ended.count - Self.shownDamage
      problem(
        .accounts,
        index < Self.shownDamage
          ? "the token of \(quoted(account.name)) at \(quoted(account.provider)) has expired, and cannot be refreshed"
          : "so it is with \(more) more \(more == 1 ? "account" : "accounts")",
        "\(credmgr: "login", account.provider, "--account", account.name)", status: .loginNeeded)
    }
    let isWhole = diagnostics.count == before
    for exchange in (try? context.source.interruptedExchanges()) ?? [] {
      note(.accounts, exchange.words(now: now), exchange.remedy)
    }
    if let name = value("CREDMGR_ACCOUNT"), !accounts.contains(where: { $0.name == name }) {
      problem(
        .accounts, "CREDMGR_ACCOUNT names \(quoted(name)), who is logged in nowhere",
        "\(run: "unset", "CREDMGR_ACCOUNT")")
    } else if isWhole {
      let count = accounts.count == 1 ? "one account is" : "\(accounts.count) accounts are"
      ok(.accounts, accounts.isEmpty ? "nobody is logged in" : "\(count) logged in")
    }
  }
}

import CredentialManager
import HTTP
import JSON
import Messages
import OAuth
import POSIX
import Providers
import Vault

/// Looks at everything that a command may depend on. Nothing is changed, and nobody is asked.
struct Doctor {
  let context: Context
  private(set) var findings: [Diagnosis] = []

  init(_ context: Context) { self.context = context }

  // MARK: Findings

  mutating func well(_ check: Diagnosis.Check, _ sentence: String) {
    findings.append(Diagnosis(check: check, state: .well, sentence: sentence, hints: [], status: .done))
  }

  mutating func note(_ check: Diagnosis.Check, _ sentence: String, _ hints: String...) {
    note(check, sentence, hints: hints)
  }

  mutating func note(_ check: Diagnosis.Check, _ sentence: String, hints: [String]) {
    findings.append(Diagnosis(check: check, state: .note, sentence: sentence, hints: hints, status: .done))
  }

  mutating func problem(_ check: Diagnosis.Check, _ message: Message) {
    // One cause is told once, at whatever it was met first.
    guard !findings.contains(where: { $0.sentence == message.text }) else { return }
    findings.append(
      Diagnosis(
        check: check, state: .problem, sentence: message.text, hints: message.hints, status: message.status))
  }

  mutating func problem(_ check: Diagnosis.Check, _ sentence: String, _ hints: String...) {
    problem(check, Message(sentence, hints: hints, status: .usage))
  }

  // MARK: Everything

  mutating func examine() {
    let remote = findings
    findings = []
    home()
    let accounts = vault()
    if let accounts { people(accounts) }
    clock(accounts)
    browser()
    keyring()
    programs()
    let claimed = (try? context.source.claimedHosts()) ?? (git: [], docker: [])
    git(claimed.git)
    docker(claimed.docker)
    descriptors(accounts)
    hosts(claimed)
    rules(accounts)
    certificates()
    proxy()
    findings += remote
  }

  private mutating func home() {
    let (home, before) = (context.home, findings.count)
    if File.exists(home.vault) {
      do throws(POSIXError) {
        try PrivateFile.checkDirectory(home.vault)
      } catch {
        problem(.home, error.message)
      }
    }
    let files = [home.configuration, home.userProviders, home.accountRules] + ownDescriptors
    for file in files where File.exists(file) {
      do throws(POSIXError) {
        try PrivateFile.checkUnchangeable(file)
      } catch {
        problem(.home, error.message)
      }
    }
    for folder in [home.vault, home.configuration] where findings.count == before {
      // What is not there yet is made in the first folder above it that is.
      var place = folder
      while !File.exists(place), let above = Path.directory(of: place) { place = above }
      guard !File.isDirectory(place) || !File.isWritable(place) else { continue }
      problem(
        .home, "\"\(folder)\" cannot be \(place == folder ? "written" : "made"): \"\(place)\" is not yours to write",
        "set CREDMGR_HOME to a folder in which you can write")
    }
    guard findings.count == before else { return }
    well(
      .home,
      File.exists(home.vault)
        ? "\"\(home.configuration)\" and \"\(home.vault)\" are yours alone" : "\"\(home.vault)\" is not there yet")
  }

  private var ownDescriptors: [String] {
    let folder = context.home.userProviders
    return ((try? File.names(in: folder)) ?? []).filter { $0.hasSuffix(".yaml") }.map { Path.joining(folder, $0) }
  }

  // MARK: The vault

  /// The accounts, where the vault opens.
  private mutating func vault() -> Accounts? {
    let status: VaultStatus
    let unlockedUntil: Int64?
    do throws(CredentialError) {
      let fault: VaultError?
      (status, unlockedUntil, fault) = try context.source.vaultStatus()
      if let fault { problem(.vault, CredentialError.vault(fault).message) }
      passphraseFile()
    } catch .vault(.absent) {
      note(.vault, "there is none yet; the first provider that you add makes one", "run \"credmgr providers\"")
      return nil
    } catch {
      problem(.vault, error.message)
      return nil
    }
    let kinds = status.slots.map { $0.kind?.words ?? "way of a newer credmgr" }
    let opens = "it opens with the " + kinds.joined(separator: ", or the ")
    do throws(CredentialError) {
      let accounts = try context.source.accounts()
      let damage = try accounts.verify()
      if damage.isEmpty {
        let unlocked = unlockedUntil.map { ", and is unlocked for \(duration(max($0 - context.clock.now(), 0)))" } ?? ""
        well(
          .vault,
          (status.recordCount == 1
            ? "its one record is as it was" : "all \(status.recordCount) records are as they were")
            + " written; " + opens + unlocked)
      } else {
        tell(damage)
      }
      if status.slots.contains(where: { $0.kind == .secretService }) { secretService() }
      return accounts
    } catch .vault(.passphraseUnavailable), .vault(.locked) {
      note(
        .vault, "it is locked, so that nothing in it was looked at; " + opens, "run \"credmgr vault unlock\"")
      return nil
    } catch {
      problem(.vault, error.message)
      return nil
    }
  }

  /// Secrets of containers are often readable by all, which need not matter there: it is no problem by itself.
  private mutating func passphraseFile() {
    guard let path = context.environment("CREDMGR_PASSPHRASE_FILE"), let mode = PrivateFile.modeForOthers(path) else {
      return
    }
    note(
      .vault, "other users can read the passphrase in \"\(path)\" (mode \(String(mode, radix: 8)))",
      "run \"chmod go= \(argument(path))\"")
  }

  private static let shownDamage = 5

  private mutating func tell(_ damage: [VaultFinding]) {
    for finding in damage.prefix(Self.shownDamage) {
      let hint =
        finding == .unusedBytes ? Message.mendingUnusedBytes : "put the vault back: run \"credmgr vault restore FILE\""
      problem(.vault, Message(finding.sentence, hint: hint, status: .vault))
    }
    if damage.count > Self.shownDamage {
      problem(
        .vault,
        Message(
          "\(damage.count - Self.shownDamage) more are not as they were written", hint: "run \"credmgr vault verify\"",
          status: .vault))
    }
  }

  private mutating func secretService() {
    do throws(CredentialError) {
      try context.source.checkSecretService()
      well(.keyring, "the Secret Service has the key of the vault")
    } catch {
      problem(.keyring, error.message)
    }
  }

  private mutating func people(_ vault: Accounts) {
    let accounts: [Account]
    do throws(CredentialError) {
      accounts = try vault.accounts(of: nil)
    } catch {
      problem(.accounts, error.message)
      return
    }
    let now = context.clock.now()
    let ended = accounts.filter { !$0.credential.isUsable(at: now) && !$0.credential.isRefreshable(at: now) }
    for account in ended.prefix(Self.shownDamage) {
      problem(
        .accounts,
        Message(
          "the token of \"\(account.name)\" at \"\(account.provider)\" has expired, and cannot be refreshed",
          hint: "run \"credmgr login \(account.provider) --account \(argument(account.name))\"", status: .loginNeeded))
    }
    if ended.count > Self.shownDamage {
      problem(
        .accounts,
        Message(
          "so it is with \(ended.count - Self.shownDamage) more accounts", hint: "run \"credmgr status\"",
          status: .loginNeeded))
    }
    for exchange in (try? context.source.interruptedExchanges()) ?? [] {
      note(.accounts, Notice.interrupted(exchange).sentence(now: now))
    }
    if ended.isEmpty {
      let count = accounts.count == 1 ? "one account is" : "\(accounts.count) accounts are"
      well(.accounts, accounts.isEmpty ? "nobody is logged in" : "\(count) logged in")
    }
  }

  // MARK: The machine

  /// A token cannot be obtained in the future.
  private mutating func clock(_ vault: Accounts?) {
    let now = context.clock.now()
    let latest = (try? vault?.accounts(of: nil))?.map(\.credential.obtainedAt).max() ?? 0
    if latest > now + Self.tolerance {
      problem(
        .clock, "the clock is \(duration(latest - now)) behind the moment at which a token was obtained",
        "run \"timedatectl set-ntp true\"")
    } else {
      well(.clock, "it is \(Moment.format(now))")
    }
  }

  /// Seconds by which clocks may differ: as many as a token is refreshed before its end, at least.
  private static let tolerance: Int64 = 60

  private mutating func browser() {
    let hint = "run \"credmgr login ID --no-browser\", which prints an address"
    switch Surroundings(environment: context.environment) {
    case .ssh:
      note(.browser, "you are here by SSH: a login shows a code or an address for the browser on your own machine")
    case .headless:
      note(.browser, "there is no display: a login shows a code or an address for a browser elsewhere")
    case .desktop:
      let candidates = Browser.candidates()
      // The last two are tried whether somebody asked for them or not.
      for candidate in candidates.dropLast(2) where candidate.file == nil {
        problem(
          .browser, "BROWSER names \"\(candidate.command)\", and there is no such command", "run \"unset BROWSER\"")
      }
      if let found = candidates.lazy.compactMap(\.file).first {
        well(.browser, "\"\(found)\" shows it")
      } else {
        problem(
          .browser, "there is no command that shows a browser",
          "run \"sudo apt-get install xdg-utils\", or set BROWSER", hint)
      }
    }
  }

  private mutating func keyring() {
    if KernelKeyring.isThere {
      well(.keyring, "the kernel keeps keys, so that \"credmgr vault unlock\" works")
    } else {
      note(.keyring, "the kernel keeps no keys here, so that \"credmgr vault unlock\" does not work")
    }
  }

  private mutating func programs() {
    let missing = ["credmgr-online", "credmgr-secret-service", "credmgr-simulator"].filter {
      context.sibling($0) == nil
    }
    if missing.contains("credmgr-online") {
      problem(.programs, CredentialError.networkNeeded.message)
    }
    let others = missing.filter { $0 != "credmgr-online" }
    if !others.isEmpty { note(.programs, "not installed: " + others.joined(separator: ", ")) }
    if missing.isEmpty { well(.programs, "all of them are beside \"\(program)\"") }
  }

  /// The file of `credmgr` itself, also where another program of ours has taken its place.
  var program: String {
    guard Path.lastComponent(of: context.executable) != "credmgr",
      let folder = Path.directory(of: context.executable)
    else { return context.executable }
    let prefix = Path.directory(of: Path.directory(of: folder) ?? "") ?? ""
    return [folder + "/credmgr", prefix + "/bin/credmgr"].first(where: File.isExecutable) ?? context.executable
  }

  // MARK: Providers

  private mutating func descriptors(_ vault: Accounts?) {
    let (library, before) = (context.home.library, findings.count)
    let known = context.source.knownProviders()
    for identifier in known {
      guard let path = library.path(of: identifier) else { continue }
      do throws(ProviderError) {
        let loaded = try library.load(identifier)
        if path.hasPrefix(context.home.userProviders), isHiding(identifier, loaded) {
          note(.descriptors, "\"\(path)\" stands in the place of the shipped one, and takes nothing over from it")
        }
      } catch {
        problem(.descriptors, error.message.with(hint: "run \"credmgr check \(argument(path))\""))
      }
    }
    for provider in (try? vault?.addedProviders()) ?? [] {
      do throws(CredentialError) {
        _ = try context.source.client(provider)
      } catch .provider(.invalid) {
        // Told already.
      } catch .provider(.unknown) {
        problem(
          .descriptors, "the provider \"\(provider)\" was added, and its descriptor is gone",
          "put it back, or run \"credmgr add-provider FILE --as \(provider) --replace\"")
      } catch .descriptorChanged(let provider, let file, let hosts) {
        problem(
          .descriptors, CredentialError.descriptorChanged(provider: provider, file: file, hosts: hosts).message)
      } catch {
        problem(
          .descriptors, "\"\(provider)\" was added with other variables: " + error.message.text,
          "run \"credmgr add-provider \(provider) --replace --set NAME=VALUE\"")
      }
    }
    if findings.count == before { well(.descriptors, "all of them can be read") }
  }

  private func isHiding(_ identifier: String, _ loaded: DescriptorLibrary.Loaded) -> Bool {
    context.home.systemProviders.contains { folder in
      let other = folder + "/" + identifier + ".yaml"
      return File.exists(other) && !loaded.bases.contains(other)
    }
  }

  private mutating func hosts(
    _ claimed: (git: [CredentialSource.ClaimedHost], docker: [CredentialSource.ClaimedHost])
  ) {
    let before = findings.count
    for hosts in [claimed.git, claimed.docker] {
      for (index, host) in hosts.enumerated() {
        guard let first = hosts[..<index].first(where: { $0.host == host.host }) else { continue }
        note(
          .hosts, "\"\(host.host)\" is of \"\(first.provider)\" and of \"\(host.provider)\"; the first one is taken")
      }
    }
    let count = claimed.git.count + claimed.docker.count
    if findings.count == before {
      well(
        .hosts,
        count == 0
          ? "no provider claims any for git or docker"
          : count == 1 ? "one is claimed for git or docker" : "\(count) are claimed for git and docker, each once")
    }
  }

  private mutating func rules(_ vault: Accounts?) {
    let rules: AccountRules
    do throws(CredentialError) {
      rules = try context.source.accountRules()
    } catch .malformedRules(let findings) {
      for finding in findings {
        problem(
          .rules, "\(finding.place.source.name):\(finding.place.line):\(finding.place.column): \(finding.sentence)",
          "correct the line")
      }
      return
    } catch {
      problem(.rules, error.message)
      return
    }
    let before = findings.count
    for rule in rules.rules {
      guard let vault, isMissing(rule, in: vault) else { continue }
      problem(
        .rules, "line \(rule.place.line) of \"\(rules.path)\" names \"\(rule.account)\", who is not logged in",
        "run \"credmgr login \(rule.provider) --account \(argument(rule.account))\"")
    }
    if findings.count == before, !rules.rules.isEmpty {
      well(.rules, rules.rules.count == 1 ? "one rule" : "\(rules.rules.count) rules")
    }
  }

  private func isMissing(_ rule: AccountRule, in vault: Accounts) -> Bool {
    do throws(CredentialError) {
      return try vault.account(rule.account, of: rule.provider) == nil
    } catch {
      return false
    }
  }

  // MARK: The network

  /// Where libcurl is told to look when it is built for one of the common systems.
  private static let bundles = [
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
  ]

  private mutating func certificates() {
    func value(_ name: String) -> String? { context.environment(name).flatMap { $0.isEmpty ? nil : $0 } }
    if let folder = value("SSL_CERT_DIR"), !File.isDirectory(folder) {
      problem(.certificates, "SSL_CERT_DIR is \"\(folder)\", which is no folder", "run \"unset SSL_CERT_DIR\"")
    }
    if let file = value("SSL_CERT_FILE") {
      guard let bytes = try? File.read(file, limit: 16 << 20) else {
        return problem(
          .certificates, "SSL_CERT_FILE is \"\(file)\", which cannot be read", "run \"unset SSL_CERT_FILE\"")
      }
      guard bytes.firstPlace(of: Array("-----BEGIN ".utf8)) != nil else {
        return problem(
          .certificates, "SSL_CERT_FILE is \"\(file)\", in which there is no certificate",
          "run \"unset SSL_CERT_FILE\"")
      }
      return well(.certificates, "those in \"\(file)\", as SSL_CERT_FILE says")
    }
    if let file = Self.bundles.first(where: File.exists) {
      well(.certificates, "those in \"\(file)\"")
    } else {
      problem(
        .certificates, "there are no certificates of authorities",
        "run \"sudo apt-get install ca-certificates\", or set SSL_CERT_FILE to a file of them")
    }
  }

  private mutating func proxy() {
    var isSet = false
    for name in ["https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"] {
      guard let text = context.environment(name), !text.isEmpty else { continue }
      isSet = true
      let scheme = text.firstPlace(of: "://").map { String(text[..<$0.lowerBound]).lowercased() } ?? "http"
      // A password may stand before the host.
      let rest = text.firstPlace(of: "://").map { text[$0.upperBound...] } ?? text[...]
      let shown = scheme + "://" + (rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest)
      if ["http", "https", "socks4", "socks4a", "socks5", "socks5h"].contains(scheme) {
        well(.proxy, "\(name) is \"\(shown)\"")
      } else {
        problem(.proxy, "\(name) is \"\(shown)\", which is no proxy that is known", "run \"unset \(name)\"")
      }
    }
    if !isSet { well(.proxy, "there is none") }
  }

  private static func hint(_ error: HTTPError, _ host: String, _ provider: String) -> String {
    switch error {
    case .unreachable(_, .proxy): "run \"env | grep -i _proxy\", and correct what it shows"
    case .unreachable(_, .nameNotResolved): "run \"getent hosts \(argument(host))\" to see whether the name is known"
    case .unreachable(_, .tls): "run \"curl -v https://\(host)/\" to see the certificate"
    default: "compare the addresses that \"credmgr providers \(provider)\" shows with the provider's own page"
    }
  }

  /// Asks a provider's servers for an answer.
  ///
  /// - Throws: `CommandError.handOver` in the program without a network; `.failed` when the provider is not known.
  mutating func reach(_ provider: String) throws(CommandError) {
    let servers = try manager { () throws(CredentialError) in try context.source.reach(provider) }
    for server in servers {
      switch server.date {
      case .failure(let error):
        problem(.network, error.message(provider: provider).with(hint: Self.hint(error, server.host, provider)))
      case .success(let date):
        well(.network, "\"\(server.host)\" of \"\(provider)\" answers")
        guard let date else { continue }
        let difference = context.clock.now() - date
        if abs(difference) > Self.tolerance {
          problem(
            .clock,
            "the clock is \(duration(abs(difference))) \(difference < 0 ? "behind" : "ahead of") that of "
              + "\"\(server.host)\"", "run \"timedatectl set-ntp true\"")
        }
      }
    }
  }
}

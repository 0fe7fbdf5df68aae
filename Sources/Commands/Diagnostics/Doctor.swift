import CredentialManager
import Descriptors
import HTTP
import JSON
import OAuth
import Platform
import Text
import Store

/// Looks at everything that a command may depend on. Nothing is changed, and nobody is asked.
struct Doctor {
  let context: Context
  private(set) var findings: [Diagnosis] = []
  /// Whether the home is another user's, which is why nothing else in it can be used.
  private var isForeign = false

  init(_ context: Context) { self.context = context }

  // MARK: Findings

  mutating func well(_ check: SetUpFinding.Check, _ sentence: String) {
    findings.append(Diagnosis(check: check, state: .well, sentence: sentence, hints: [], status: .done))
  }

  mutating func tell(_ finding: SetUpFinding) {
    let message = finding.message
    // One cause is told once, at whatever it was met first.
    guard !findings.contains(where: { $0.sentence == message.text }) else { return }
    findings.append(
      Diagnosis(
        check: finding.check, state: finding.state, sentence: message.text, hints: message.hints,
        status: finding.state == .problem ? message.status : .done))
  }

  /// Tells a person on standard error what is not as it should be.
  func tellAll() {
    for finding in findings where finding.state != .well {
      context.tell(finding.sentence)
      for hint in finding.hints { context.tell(hint: hint) }
    }
  }

  // MARK: Everything

  mutating func examine() {
    let remote = findings
    findings = []
    home()
    let accounts = vault()
    if let accounts { people(accounts) }
    // One cause is one finding, whatever clock it was found by.
    if !remote.contains(where: { $0.check == .clock }) { clock(accounts) }
    browser()
    keyring()
    programs()
    let claims = (try? context.source.hostClaims()) ?? []
    git(claims.filter { $0.helper == .git })
    docker(claims.filter { $0.helper == .docker })
    descriptors(accounts)
    hosts(claims)
    rules(accounts)
    certificates()
    proxy()
    findings += remote
  }

  // MARK: The home

  private mutating func home() {
    if let fault = context.homeFault { return tell(.homeUnusable(fault)) }
    let (home, before) = (context.home, findings.count)
    var foreign: [String] = []
    if File.exists(home.vault) || File.isLink(home.vault) {
      check(home.vault, &foreign) { () throws(POSIXError) in try PrivateFile.checkDirectory(home.vault) }
    } else {
      // Where the folders above are another's, it is said below whether anything can be made there.
      do throws(POSIXError) {
        try PrivateFile.checkParents(of: home.vault)
      } catch .writableByOthers(let folder, let mode) {
        let fault = POSIXError.writableByOthers(path: folder, mode: mode)
        tell(.homeFault(fault, needsRoot: File.isOwn(folder) == false && !isRoot))
      } catch {}
    }
    let files = [home.configuration, home.userProviders, home.accountRules] + ownDescriptors
    for file in files where File.exists(file) {
      check(file, &foreign) { () throws(POSIXError) in try PrivateFile.checkUnchangeable(file) }
    }
    if !foreign.isEmpty {
      isForeign = true
      tell(.foreignFiles(foreign, ownership(foreign)))
    }
    let closed = File.closedFolder(above: Path.joining(home.userProviders, "x"))
    if let closed, File.isOwn(closed) == true { tell(.closedFolder(closed, isOwn: true)) }
    for folder in [home.configuration, home.userProviders] where File.exists(folder) {
      if !File.isDirectory(folder) {
        tell(.blockedHome(folder, nil))
      } else if !File.isReadable(folder), File.isOwn(folder) == true {
        tell(.closedFolder(folder, isOwn: true))
      }
    }
    // What is not there yet is made in the first folder above it that is.
    for path in [home.vault, home.configuration, home.vaultLocation.file] where findings.count == before {
      checkWritable(path)
    }
    guard findings.count == before else { return }
    well(
      .home,
      File.exists(home.vault)
        ? "\"\(home.configuration)\" and \"\(home.vault)\" are yours alone" : "\"\(home.vault)\" is not there yet")
  }

  private mutating func check(
    _ path: String, _ foreign: inout [String], _ body: () throws(POSIXError) -> Void
  ) {
    do throws(POSIXError) {
      try body()
    } catch .otherOwner(let place) {
      // A folder above is not to be changed for it: then it is the home that is the wrong one.
      if !foreign.contains(place) { foreign.append(place) }
    } catch .symbolicLink(let link) {
      tell(.linkedHome(link, target: target(of: link)))
    } catch {
      let isOthers =
        switch error {
        case .readableByOthers(let place, _), .writableByOthers(let place, _): File.isOwn(place) == false
        default: false
        }
      tell(.homeFault(error, needsRoot: isOthers && !isRoot))
    }
  }

  /// What a link leads to that can be put in its place; nothing else is moved.
  private func target(of link: String) -> String? {
    guard let target = Path.resolved(link), File.isOwn(target) == true else { return nil }
    return File.isDirectory(target) == (link == context.home.vault) ? target : nil
  }

  private mutating func checkWritable(_ path: String) {
    var place = path
    while !File.exists(place), let above = Path.directory(of: place) { place = above }
    // The first is there in any case, or its folder is looked at before.
    let isFile = path == context.home.vaultLocation.file
    if isFile, place != path { return }
    if !isFile, !File.isDirectory(place) {
      let isOwnHome = place == context.environment("CREDMGR_HOME")
      return tell(.blockedHome(place, isOwnHome ? .unset("CREDMGR_HOME") : nil))
    }
    if File.isOnReadOnlyFileSystem(place) { return tell(.readOnlyHome(path, elsewhere)) }
    guard File.isWritable(place) else {
      isForeign = File.isOwn(place) != true
      let remedy: SetUpFinding.HomeRemedy =
        File.isOwn(place) == true ? .allowWriting(place) : ownership([place])
      return tell(.unwritable(path, place: place, remedy))
    }
    if let free = File.freeBytes(at: place), free < Self.neededBytes { tell(.fullDisk(place)) }
  }

  /// What the smallest change of a vault writes, its journal included.
  private static let neededBytes: UInt64 = 128 << 10

  private var isRoot: Bool { UserEntry.identifier == 0 }

  /// What gives us files that are another's: their owner changes where they lie in a home of ours; else it is the wrong home.
  private func ownership(_ paths: [String]) -> SetUpFinding.HomeRemedy {
    let own = [context.environment("CREDMGR_HOME"), context.home.person].compactMap { $0 }
    let isOurs = paths.allSatisfy { path in own.contains { path.hasPrefix($0 + "/") && File.isOwn($0) == true } }
    guard isOurs else { return elsewhere }
    let tops = paths.filter { path in !paths.contains { path.hasPrefix($0 + "/") } }
    let user = UserEntry.current(elsewhere: false)?.name ?? "\(UserEntry.identifier)"
    return .changeOwner(tops, user: user, needsRoot: !isRoot)
  }

  /// A home that we can write.
  private var elsewhere: SetUpFinding.HomeRemedy {
    let isSet = context.environment("CREDMGR_HOME").map { !$0.isEmpty } ?? false
    if isSet, let person = context.home.person, isUsable(person) { return .unset("CREDMGR_HOME") }
    if let own = UserEntry.current(elsewhere: true)?.home, own != context.home.person, isUsable(own) {
      return .export("HOME", own)
    }
    return .anotherHome
  }

  private func isUsable(_ home: String) -> Bool { File.isOwn(home) == true && File.isWritable(home) }

  private var ownDescriptors: [String] {
    let folder = context.home.userProviders
    return ((try? File.names(in: folder)) ?? []).filter { $0.hasSuffix(".yaml") }.map { Path.joining(folder, $0) }
  }

  // MARK: The vault

  /// The accounts, where the vault opens.
  private mutating func vault() -> Accounts? {
    guard context.homeFault == nil else { return nil }
    passphraseFile()
    let status: VaultStatus
    let unlockedUntil: Int64?
    do throws(CredentialError) {
      let fault: StoreError?
      (status, unlockedUntil, fault) = try context.source.vaultStatus()
      if let fault {
        tell(fault, opensOtherwise: status.slots.contains { $0.kind != .keyFile })
      }
    } catch .vault(.absent) {
      tell(.noVault)
      return nil
    } catch {
      tell(error, at: .vault)
      return nil
    }
    let kinds = status.slots.map { $0.kind?.words ?? "way of a newer credmgr" }
    do throws(CredentialError) {
      let accounts = try context.source.accounts()
      let damage = try context.source.verifyVault()
      if damage.isEmpty {
        let unlocked = unlockedUntil.map { ", and is unlocked for \(duration(max($0 - context.clock.now(), 0)))" } ?? ""
        well(
          .vault,
          (status.recordCount == 1
            ? "its one record is as it was" : "all \(status.recordCount) records are as they were")
            + " written; it opens with the " + kinds.joined(separator: ", or the ") + unlocked)
      } else {
        tell(damage)
      }
      if status.slots.contains(where: { $0.kind == .secretService }) { secretService() }
      return accounts
    } catch .vault(.passphraseUnavailable(.noTerminal)), .vault(.locked) {
      tell(.lockedVault(kinds))
      return nil
    } catch .vault(.passphraseUnavailable) {
      // Told with the file of the passphrase.
      return nil
    } catch {
      tell(error, at: .vault)
      return nil
    }
  }

  private mutating func tell(_ error: StoreError, opensOtherwise: Bool = false) {
    switch error {
    case .file(.otherOwner) where isForeign, .file(.permissionDenied) where isForeign: break
    case .file(.symbolicLink(let path)): tell(.linkedHome(path, target: target(of: path)))
    case .secretService(let fault): tell(.secretService(fault, bus: unnamedBus))
    default: tell(.vault(error, folder: context.home.vault, opensOtherwise: opensOtherwise))
    }
  }

  private mutating func tell(_ error: CredentialError, at check: SetUpFinding.Check) {
    if case .vault(let error) = error, check == .vault { return tell(error) }
    tell(.accounts(error, folder: context.home.vault))
  }

  /// The socket of the session's bus, where it is there and the environment does not say so.
  private var unnamedBus: String? {
    guard SessionBus.address(environment: context.environment) == nil else { return nil }
    let path = "/run/user/\(UserEntry.identifier)/bus"
    return File.exists(path) ? path : nil
  }

  private mutating func passphraseFile() {
    guard let path = context.environment("CREDMGR_PASSPHRASE_FILE"), !path.isEmpty else { return }
    do throws(POSIXError) {
      if File.isGivenStream(path) { return }
      let bytes = try File.read(path, limit: 1 << 16, ordinary: true)
      // What ends a line is no part of it.
      guard bytes.allSatisfy({ $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else {
        // Secrets of containers are often readable by all, which need not matter there: it is no problem by itself.
        if let mode = PrivateFile.modeForOthers(path) { tell(.readablePassphrase(path, mode: mode)) }
        return
      }
      tell(.passphraseFile(.endOfInput, path: path))
    } catch .notRegularFile where !File.isDirectory(path) {
      // A pipe is not read: what writes into it does so once.
    } catch {
      tell(.passphraseFile(error, path: path))
    }
  }

  private static let shownDamage = 5

  /// Records that can be made anew are told one by one, and all else at once: a backup mends that, or nothing does.
  private mutating func tell(_ damage: [VaultFinding]) {
    var records: [(finding: VaultFinding, record: RecordIdentifier)] = []
    for finding in damage {
      guard case .record(let record, _) = finding, [.credential, .registration, .selection].contains(record.kind) else {
        return tell(.damage(damage, folder: context.home.vault))
      }
      records.append((finding, record))
    }
    for (finding, record) in records.prefix(Self.shownDamage) { tell(.damagedRecord(finding, record)) }
    if records.count > Self.shownDamage {
      tell(.moreDamage(records.count - Self.shownDamage, records[Self.shownDamage].record))
    }
  }

  private mutating func secretService() {
    do throws(CredentialError) {
      try context.source.checkSecretService()
      well(.keyring, "the Secret Service has the key of the vault")
    } catch {
      tell(error, at: .vault)
    }
  }

  private mutating func people(_ vault: Accounts) {
    let accounts: [Account]
    let refused: [Bool]
    do throws(CredentialError) {
      accounts = try vault.accounts(of: nil)
      refused = try vault.areRefreshesRefused(accounts)
    } catch {
      return tell(error, at: .accounts)
    }
    let now = context.clock.now()
    let ended = zip(accounts, refused).filter { account, isRefused in
      !account.credential.isUsable(at: now) && (isRefused || !account.credential.isRefreshable(at: now))
    }.map(\.0)
    for account in ended.prefix(Self.shownDamage) {
      tell(.expired(provider: account.provider, account: account.name))
    }
    if let next = ended.dropFirst(Self.shownDamage).first {
      tell(.moreExpired(ended.count - Self.shownDamage, provider: next.provider, account: next.name))
    }
    for exchange in (try? context.source.interruptedExchanges()) ?? [] { tell(.interrupted(exchange, now: now)) }
    let before = findings.count
    if let name = context.environment("CREDMGR_ACCOUNT"), !name.isEmpty, !accounts.contains(where: { $0.name == name })
    {
      tell(.unknownAccount(name))
    }
    if ended.isEmpty, findings.count == before {
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
      tell(.lateClock(latest - now))
    } else {
      well(.clock, "it is \(Moment.format(now))")
    }
  }

  /// Seconds by which clocks may differ: as many as a token is refreshed before its end, at least.
  private static let tolerance: Int64 = 60

  private mutating func browser() {
    switch SessionKind(environment: context.environment) {
    case .ssh: tell(.overSSH)
    case .headless: tell(.noDisplay)
    case .desktop:
      let candidates = Browser.candidates()
      // The last two are tried whether somebody asked for them or not.
      for candidate in candidates.dropLast(2) where candidate.file == nil { tell(.unknownBrowser(candidate.command)) }
      let hasOwn = candidates.dropLast(2).contains { $0.file != nil }
      if let variable = Display.unreachable(environment: context.environment), !hasOwn {
        tell(.unknownDisplay(variable: variable, value: context.environment(variable) ?? ""))
      } else if let found = candidates.lazy.compactMap(\.file).first {
        well(.browser, "\"\(found)\" shows it")
      } else {
        tell(.noBrowser)
      }
    }
    for login in context.source.deadLogins() { tell(.deadLogin(entry: login.entry, schemes: login.schemes)) }
  }

  private mutating func keyring() {
    if KernelKeyring.isThere {
      well(.keyring, "the kernel keeps keys, so that \"credmgr vault unlock\" works")
    } else {
      tell(.noKernelKeyring)
    }
  }

  private mutating func programs() {
    let isComplete = context.sibling("credmgr-online") != nil
    if !isComplete { tell(.noOnlineProgram(context.reinstalling)) }
    let shipped = context.home.systemProviders.last ?? ""
    let hasDescriptors = ((try? File.names(in: shipped)) ?? []).contains { $0.hasSuffix(".yaml") }
    if !hasDescriptors { tell(.noShippedDescriptors(shipped, context.reinstalling)) }
    if isComplete, hasDescriptors { well(.programs, "all of them are beside \"\(program)\"") }
  }

  var program: String { context.program }

  // MARK: Providers

  private mutating func descriptors(_ vault: Accounts?) {
    let (library, before) = (context.home.library, findings.count)
    var mistakes: [(file: String, findings: [Finding])] = []
    for identifier in context.source.knownProviders() {
      guard let path = library.path(of: identifier) else { continue }
      let isOwn = isOwn(path)
      do throws(ProviderError) {
        let loaded = try library.load(identifier)
        if isOwn, isHiding(identifier, loaded) { tell(.hidingDescriptor(path)) }
      } catch .invalid(let faults) {
        for fault in faults where fault.severity == .error && !(isForeign && fault.isUnreadable) {
          if let folder = fault.closedFolder {
            tell(.closedFolder(folder, isOwn: File.isOwn(folder) == true))
            continue
          }
          // The mistakes of what a descriptor extends are that one's.
          let file = fault.file
          let index = mistakes.firstIndex { $0.file == file } ?? mistakes.endIndex
          if index == mistakes.endIndex { mistakes.append((file, [])) }
          if !mistakes[index].findings.contains(fault) { mistakes[index].findings.append(fault) }
        }
      } catch {
        tell(.invalidDescriptor(error, path: path, isOwn: isOwn))
      }
    }
    let hasOwn = mistakes.contains { isOwn($0.file) }
    // What came with the program has none, but through what it extends.
    for (file, faults) in mistakes where isOwn(file) || !hasOwn {
      tell(.invalidDescriptor(.invalid(faults), path: file, isOwn: isOwn(file)))
    }
    for provider in (try? vault?.addedProviders()) ?? [] {
      do throws(CredentialError) {
        _ = try context.source.client(provider)
      } catch .provider(.invalid) {
        // Told already.
      } catch .provider(.unknown) {
        let accounts = (try? vault?.accounts(of: provider)) ?? []
        tell(.lostDescriptor(provider, hasAccounts: !accounts.isEmpty))
      } catch .descriptorChanged(let provider, let file, let hosts) {
        tell(.changedDescriptor(provider: provider, file: file, hosts: hosts))
      } catch {
        tell(.unfitRegistration(provider, error))
      }
    }
    if findings.count == before { well(.descriptors, "all of them can be read") }
  }

  private func isOwn(_ path: String) -> Bool { path.hasPrefix(context.home.userProviders + "/") }

  private func isHiding(_ identifier: String, _ loaded: DescriptorLibrary.Loaded) -> Bool {
    context.home.systemProviders.contains { folder in
      let other = folder + "/" + identifier + ".yaml"
      return File.exists(other) && !loaded.bases.contains(other)
    }
  }

  private mutating func hosts(_ claims: [HostClaim]) {
    let before = findings.count
    for helper in HostClaim.Helper.allCases {
      let hosts = claims.filter { $0.helper == helper }
      for (index, host) in hosts.enumerated() {
        guard let first = hosts[..<index].first(where: { $0.host == host.host }) else { continue }
        tell(.sharedHost(host.host, taken: first.provider, other: host.provider))
      }
    }
    let count = claims.count
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
      return tell(.malformedRules(findings, path: context.home.accountRules))
    } catch {
      if isForeign { return }
      if let folder = File.closedFolder(above: context.home.accountRules) {
        return tell(.closedFolder(folder, isOwn: File.isOwn(folder) == true))
      }
      tell(.unreadableRules(error, path: context.home.accountRules))
      return
    }
    let before = findings.count
    // One that was added and is gone is told where it is.
    let known = context.source.knownProviders() + ((try? vault?.addedProviders()) ?? [])
    for rule in rules.rules {
      guard known.contains(rule.provider) else {
        tell(
          .ruleWithoutProvider(
            line: rule.providerPlace.line, path: rules.path, provider: rule.provider,
            suggestion: nearMiss(rule.provider, among: known)))
        continue
      }
      guard let vault, isMissing(rule, in: vault) else { continue }
      tell(
        .ruleWithoutAccount(
          line: rule.place.line, path: rules.path, provider: rule.provider, account: rule.account))
    }
    if findings.count == before, !rules.rules.isEmpty {
      well(.rules, rules.rules.count == 1 ? "one rule" : "\(rules.rules.count) rules")
    }
  }

  private func isMissing(_ rule: AccountRule, in vault: Accounts) -> Bool {
    do throws(CredentialError) {
      return try vault.account(AccountID(rule.provider, rule.account)) == nil
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
    if let folder = value("SSL_CERT_DIR"), !File.isDirectory(folder) { tell(.certificateFolder(folder)) }
    if let file = value("SSL_CERT_FILE") {
      guard let bytes = try? File.read(file, limit: 16 << 20) else { return tell(.certificateFile(file)) }
      guard bytes.firstPlace(of: Array("-----BEGIN ".utf8)) != nil else { return tell(.emptyCertificateFile(file)) }
      return well(.certificates, "those in \"\(file)\", as SSL_CERT_FILE says")
    }
    if let file = Self.bundles.first(where: File.exists) {
      well(.certificates, "those in \"\(file)\"")
    } else {
      tell(.noCertificates)
    }
  }

  private static let proxyVariables = ["https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"]

  private var proxies: [String] {
    Self.proxyVariables.filter { context.environment($0).map { !$0.isEmpty } ?? false }
  }

  private mutating func proxy() {
    for name in proxies {
      let text = context.environment(name) ?? ""
      let scheme = text.firstPlace(of: "://").map { String(text[..<$0.lowerBound]).lowercased() } ?? "http"
      // A password may stand before the host.
      let rest = text.firstPlace(of: "://").map { text[$0.upperBound...] } ?? text[...]
      let shown = scheme + "://" + (rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest)
      if ["http", "https", "socks4", "socks4a", "socks5", "socks5h"].contains(scheme), Self.isPlace(shown) {
        well(.proxy, "\(name) is \"\(shown)\"")
      } else {
        tell(.unknownProxy(variable: name, shown: shown))
      }
    }
    if proxies.isEmpty { well(.proxy, "there is none") }
  }

  /// Whether a host, and a port where there is one, can be what they say.
  private static func isPlace(_ proxy: String) -> Bool {
    guard let begin = proxy.firstPlace(of: "://") else { return false }
    let authority = proxy[begin.upperBound...].prefix { $0 != "/" }
    let host = authority.hasPrefix("[") ? authority.prefix { $0 != "]" } : authority.prefix { $0 != ":" }
    guard !host.isEmpty, host.allSatisfy({ !$0.isWhitespace }) else { return false }
    let rest = authority[host.endIndex...].drop { $0 == "]" }
    guard let colon = rest.first else { return true }
    return colon == ":" && UInt16(rest.dropFirst()).map { $0 > 0 } ?? false
  }

  /// Asks a provider's servers for an answer.
  ///
  /// - Throws: `CommandError.handOver` in the program without a network; `.failed` when the provider is not known.
  mutating func reach(_ provider: String) throws(CommandError) {
    let servers = try manager { () throws(CredentialError) in try context.source.reach(provider) }
    for server in servers {
      switch server.date {
      case .failure(let error):
        tell(.unreachable(error, host: server.host, provider: provider, proxies: proxies))
      case .success(let date):
        well(.network, "\"\(server.host)\" of \"\(provider)\" answers")
        guard let date else { continue }
        let difference = context.clock.now() - date
        if abs(difference) > Self.tolerance, !findings.contains(where: { $0.check == .clock }) {
          tell(.differentClock(difference, host: server.host))
        }
      }
    }
  }
}

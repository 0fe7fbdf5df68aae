import CredmgrCryptography
import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

// Copies of the accounts of a shared vault. A copy has the access token, so a valid one is used like any other account.
// Only the shared vault has what a refresh needs.
extension CredentialSource {
  /// Asks the user about the unusual parts of a provider's descriptor.
  package typealias Agrees = (_ provider: String, _ places: [NewPlace]) -> Bool

  /// Gets the accounts of a shared vault that this machine does not have, with their registrations and descriptors, and
  /// removes the copies of accounts that the vault no longer has. Returns the accounts of the vault.
  @discardableResult package func synchronize(
    with vault: String, of provider: String? = nil, agrees: Agrees = { _, _ in false }
  ) throws(CredentialError) -> [AccountID] {
    if provider == nil { try commitAnswers(waitingFor: vault) }
    let source = try joined(vault)
    let theirs = try source.accounts()
    // A logout removes the copy, but not the answer that waits for its account.
    for account in try theirs.accounts(of: provider) where source.hasAnswer(account.id) {
      _ = try source.committed(account.id)
    }
    let all = try theirs.accounts(of: provider)
    let damaged = Set(try theirs.unreadable(of: provider, without: all))
    let names = Set(all.map { RecordIdentifier(.credential, of: $0.id) }).union(damaged)
    let accounts = try accounts(.readWrite)
    for copy in try accounts.accounts(of: provider)
    where copy.credential.vault == vault && !copy.credential.isMoving
      && !names.contains(RecordIdentifier(.credential, of: copy.id))
    {
      try forget(copy, in: accounts)
      notice(.vanished(provider: copy.provider, account: copy.name, vault: vault))
    }
    for (provider, accounts) in Dictionary(grouping: all, by: \.provider).sorted(by: { $0.key < $1.key }) {
      do throws(CredentialError) {
        while true {
          do throws(CredentialError) {
            try take(accounts, of: provider, from: theirs, in: vault, agrees)
            break
          } catch .vault(.conflict) {}  // A login has ended meanwhile, so the question must name its account too.
        }
      } catch {
        switch error {
        case .peculiar, .importWidens, .shared, .provider, .loginUnderWay, .importWaits:
          try forgetOutdated(provider, theirs, in: vault)
          withheld.append(provider)
          notice(.withheld(provider: provider, vault: vault, error))
        default: throw error.inVault(vault)
        }
      }
    }
    return all.map(\.id)
  }

  /// Removes the copies of a provider's accounts if the vault's tokens go to other places than those of this machine.
  private func forgetOutdated(_ provider: String, _ theirs: Accounts, in vault: String) throws(CredentialError) {
    do throws(CredentialError) {
      try requirePlaces(of: provider, within: theirs.registration(of: provider), of: vault)
    } catch {
      guard case .shared = error else { throw error }
      let accounts = try accounts(.readWrite)
      for copy in try accounts.accounts(of: provider)
      where copy.credential.vault == vault && !copy.credential.isMoving {
        try forget(copy, in: accounts)
      }
    }
  }

  /// Throws if a record of a shared vault was altered, removed or set back.
  package func requireIntact(_ vault: String) throws(CredentialError) {
    let theirs = try joined(vault).accounts()
    for kind in [RecordKind.credential, .registration, .descriptor, .selection] {
      guard let first = try inStore(theirs.store.unreadable(kind, provider: nil, without: [])).first else { continue }
      // The record itself says why.
      do throws(CredentialError) { _ = try theirs.record(first) } catch { throw error.inVault(vault) }
      throw .vault(.server(.damaged(first), vault: vault))
    }
  }

  /// Stores copies of a provider's accounts, and the registration if this machine has none.
  private func take(
    _ all: [Account], of provider: String, from theirs: Accounts, in vault: String, _ agrees: Agrees
  ) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    let known = try accounts.accounts(of: provider)
    var copies: [Account] = []
    for account in all {
      let here = known.first { $0.name == account.name }
      if let here, here.credential.vault != vault {
        notice(.hidden(provider: provider, account: account.name, vault: vault))
      } else if here?.credential.accessToken != account.credential.accessToken, here?.credential.isMoving != true,
        try !inStore(accounts.store.isLost(RecordIdentifier(.credential, of: account.id)))
      {
        copies.append(account)
      }
    }
    var items: [VaultExport.Item] = []
    var descriptors: [String: String] = [:]
    var registration: Registration?
    let own = try accounts.registration(of: provider)
    if own == nil || own?.vault == vault {
      registration = try theirs.registration(of: provider)
      descriptors = try descriptorsToTake(of: provider, theirs, of: vault)
      // The shipped descriptor of this name could send the tokens elsewhere.
      if registration?.agreement?.ownFiles?.isEmpty == false,
        let loaded = try? library(with: descriptors).load(provider), ownFiles(of: loaded).isEmpty
      {
        let record = RecordIdentifier(kind: .descriptor, provider: provider, account: "")
        throw .vault(.server(.damaged(record), vault: vault))
      }
      if let registration {
        do throws(CredentialError) {
          try requirePlaces(of: provider, within: registration, of: vault, with: descriptors)
        } catch .shared(.notAgreed) where own != nil && !descriptors.isEmpty {
          // The texts that this machine has still fit.
          descriptors = [:]
          try requirePlaces(of: provider, within: registration, of: vault, with: [:])
        }
      }
      if let own, let new = registration, own.isSameClient(as: new), descriptors.isEmpty,
        !hasFiles(of: new, for: provider, besides: own)
      {
        registration = nil
      }
    }
    if let own, let registration, own.digest() != registration.digest() {
      try requireNoLogin(at: provider, registration, accounts)
    }
    if own != nil, registration == nil {
      try requirePlaces(of: provider, within: theirs.registration(of: provider), of: vault)
    }
    if copies.isEmpty, registration == nil || own == nil { return }
    let descriptor = try wrapping(CredentialError.provider, library(with: descriptors).load(provider)).descriptor
    if let registration {
      try requireShareable(registration.variables, of: descriptor)
      var taken = registration
      // Only the machine that registered the client can change or delete it.
      if own?.clientIdentifier == taken.clientIdentifier { taken.registered = own?.registered ?? taken.registered }
      items.append(.init(identifier: Accounts.registration(provider), payload: taken.encoded))
    }
    for account in copies {
      try requireShareable(account.credential.variables, of: descriptor)
      let copy = try copy(of: account.credential, from: vault, for: descriptor)
      items.append(.init(identifier: RecordIdentifier(.credential, of: account.id), payload: copy.encoded))
    }
    // The default must not change because accounts appear, nor stay open if the vault has one.
    var selected = known.count == 1 ? known[0].name : nil
    if known.isEmpty {
      // `requireIntact` names a damaged default, which must not keep the accounts away.
      do throws(CredentialError) { selected = try theirs.selected(for: provider) } catch .vault(.damagedRecord) {}
    }
    if let selected, try accounts.selected(for: provider) == nil {
      items.append(.init(identifier: Accounts.selection(provider), payload: Secret(selected)))
    }
    let export = VaultExport(items, descriptors: descriptors)
    _ = try take(export, replaces: true, from: vault, confirms: agrees, agrees: agrees)
    for account in copies {
      let removals = try accounts.removals(ofRefresh: account.id)
      if !removals.isEmpty { try accounts.apply(removals) }
    }
    if registration != nil { notice(.registrationTaken(provider: provider, vault: vault)) }
  }

  // MARK: Descriptors

  /// Whether the descriptors here are those of the vault's registration, but not those to which the user agreed:
  /// another provider of the vault has brought a common one.
  private func hasFiles(of theirs: Registration, for provider: String, besides own: Registration) -> Bool {
    guard let agreed = theirs.agreement?.ownFiles, agreed != own.agreement?.ownFiles,
      let loaded = try? home.library.load(provider)
    else { return false }
    return ownFiles(of: loaded) == agreed
  }

  /// Returns the descriptors of the vault that a provider needs and that this machine does not have. A file of the user
  /// stays as it is, but not one that this machine took from the vault.
  private func descriptorsToTake(
    of provider: String, _ theirs: Accounts, of vault: String
  ) throws(CredentialError) -> [String: String] {
    var texts: [String: String] = [:]
    var unreadable: String?
    for record in try theirs.records(.descriptor, of: nil) {
      let (name, text) = (record.identifier.provider, record.payload.reveal())
      guard DescriptorLibrary.isIdentifier(name) else { continue }
      let path = path(ofOwn: name)
      if let here = try? File.read(path, limit: 1 << 20) {
        let isTaken = try isTaken(here, as: name, from: vault)
        if !isTaken || here == Array(text.utf8) { continue }
      } else if File.exists(path) || File.isLink(path) {
        unreadable = path
        continue
      }
      texts[name] = text
    }
    if texts.isEmpty, unreadable == nil { return [:] }
    do throws(ProviderError) {
      let loaded = try library(with: texts).load(provider)
      let needed = Set([loaded.path] + loaded.bases)
      return texts.filter { needed.contains(path(ofOwn: $0.key)) }
    } catch {
      guard let unreadable else { throw .provider(error) }
      throw .shared(.otherProvider(provider: provider, vault: vault, [], .hasFile(path: unreadable)))
    }
  }

  /// Whether this machine took this text of a descriptor from a vault, or gave it to the vault.
  func isTaken(_ text: [UInt8], as name: String, from vault: String) throws(CredentialError) -> Bool {
    let record = try accounts().record(Accounts.descriptor(name, from: vault))
    return record?.payload.reveal().pieces(separatedBy: " ").contains { String($0) == Self.digest(text) } == true
  }

  private static func digest(_ text: [UInt8]) -> String { Hexadecimal.encode(HashAlgorithm.sha256.digest(text)) }

  /// Returns the change that records a text of a descriptor as that of a vault. The text before it counts as well,
  /// until the file is written. `isPublished` says whether this machine gave it to the vault.
  func taking(
    _ text: String, as name: String, from vault: String, isPublished: Bool = false, isWritten: Bool = false
  ) throws(CredentialError) -> Change {
    let identifier = Accounts.descriptor(name, from: vault)
    let record = isWritten ? nil : try accounts().record(identifier)
    let before = record?.payload.reveal().pieces(separatedBy: " ").first
    var words = [Self.digest(Array(text.utf8))] + [before].compactMap { $0.map { String($0) } }
    if isPublished { words.append(Self.published) }
    return .store(Secret(words.joined(separator: " ")), as: identifier)
  }

  private static let published = "published"

  /// Copies a file that this machine gave to a vault, before the text of another member replaces it.
  func setAside(_ name: String, publishedIn vault: String) throws(CredentialError) {
    let record = try accounts().record(Accounts.descriptor(name, from: vault))
    guard record?.payload.reveal().hasSuffix(Self.published) == true,
      let text = try? File.read(path(ofOwn: name), limit: 1 << 20)
    else { return }
    var (copy, number) = (path(ofOwn: name) + ".old", 1)
    while File.exists(copy) {
      number += 1
      copy = path(ofOwn: name) + ".old\(number)"
    }
    try wrapping(CredentialError.system, File.replace(copy, text))
    notice(.setAside(copy: copy, vault: vault))
  }

  func library(with texts: [String: String]) -> DescriptorLibrary {
    var files: [String: [UInt8]] = [:]
    for (name, text) in texts { files[path(ofOwn: name)] = Array(text.utf8) }
    return home.library(replacing: files)
  }

  func path(ofOwn name: String) -> String { home.userProviders + "/" + name + ".yaml" }

  // MARK: A refresh

  private static var ordinaryPatience: Duration { RefreshPolicy().lockTimeout }

  /// Renews the copy of an account: takes a newer token of its shared vault, or refreshes there. One process of this
  /// machine asks the vault; the others wait and use the new copy.
  func renewedCopy(
    _ copy: Account, from vault: String, _ policy: RefreshPolicy
  ) throws(CredentialError) -> Account {
    do throws(CredentialError) { return try renew(copy, from: vault, policy) } catch { throw error.inVault(vault) }
  }

  private func renew(
    _ copy: Account, from vault: String, _ policy: RefreshPolicy
  ) throws(CredentialError) -> Account {
    let source = try joined(vault)
    let accounts = try accounts(.readWrite)
    var policy = policy
    // A machine that died holds up the others for as long as its lease, which is longer than usual locks.
    if policy.lockTimeout >= Self.ordinaryPatience { policy.lockTimeout = max(policy.lockTimeout, .seconds(150)) }
    let wish = policy
    let isForced = source.isSilent(for: copy.id)
    func done() throws(CredentialError) -> Account? {
      let now = try accounts.existing(copy.id)
      if now.revision != copy.revision, isNewEnough(now, wish) { return now }
      // The process before this one waited for the server in vain.
      if !isForced, AccountState(now.credential, for: wish, at: clock.now()).isAlive { try requireAnswering(for: now) }
      return nil
    }
    return try withAccountLock(copy.id, timeout: wish.lockTimeout, isDone: done) { _ throws(CredentialError) in
      if let account = try done() { return account }
      var current = try accounts.existing(copy.id)
      // A login on this machine replaced the copy.
      guard current.credential.vault == vault else { return current }
      if current.credential.isMoving {
        let known = current.credential.accessToken
        current = try finishMove(of: current, to: source)
        // Another machine may have refreshed the account since it is in the vault.
        let isNew = wish.acceptsNewer && current.credential.accessToken != known
        if !wish.always || isNew, isNewEnough(current, wish) { return current }
      }
      // The copy is valid, so only an answer that waits here makes this machine ask the vault.
      let isNoted = try accounts.note(current.id)?.exchange == .refresh
      if isNoted || source.hasAnswer(current.id),
        AccountState(current.credential, for: wish, at: clock.now()) == .usable
      {
        return try settle(current, with: source, in: accounts)
      }
      guard let theirs = try noting(current, in: accounts, with: source, wish) else {
        try forget(current, in: accounts)
        notice(.vanished(provider: current.provider, account: current.name, vault: vault))
        throw .loginNeeded(provider: current.provider, account: current.name, .noCredential)
      }
      FaultPoint.reach("copy.renewed")
      return try store(theirs, insteadOf: current, in: accounts)
    }
  }

  /// Throws if the server of a shared vault was silent a moment ago, because a valid token need not wait for it again.
  func requireAnswering(for copy: Account) throws(CredentialError) {
    guard let vault = copy.credential.vault, try joined(vault).isSilent(for: copy.id) else { return }
    throw .vault(.server(.silent, vault: vault))
  }

  /// Whether the server of this shared vault was silent a moment ago. An answer that waits for the vault tries again
  /// sooner, because the lease of its exchange ends.
  private func isSilent(for account: AccountID) -> Bool {
    guard let store = shared?.store, store.wasSilent(within: .minutes(1)) else { return false }
    return !hasAnswer(account) || store.wasSilent(within: .seconds(10))
  }

  /// How many exchanges this process has begun for a copy in its vault; without an exchange, a renewed copy has a token
  /// that another machine got.
  func exchanges(for account: Account) -> Int {
    account.credential.vault.flatMap { joinedSources[$0]?.exchangeCount } ?? 0
  }

  /// Returns the account of this shared vault with a newer token than the copy of a machine, or the same token if it
  /// cannot be refreshed; `nil` if the vault no longer has the account. `accepts` throws unless the machine may use the
  /// tokens of the vault's registration. Calls `begins` before an exchange.
  func newest(
    than copy: Account, _ policy: RefreshPolicy, accepts: @escaping Accepts, begins: () throws(CredentialError) -> Void
  ) throws(CredentialError) -> Account? {
    let accounts = try accounts()
    var policy = policy
    // The account, and the plan of a refresh unless the vault has a newer token. One statement reads them, because each
    // statement takes time.
    func look() throws(CredentialError) -> (account: Account, plan: RefreshPlan?)? {
      guard let account = try accounts.account(copy.id) else { return nil }
      try accepts(accounts.registration(of: copy.provider))
      let isKnown = account.credential.accessToken == copy.credential.accessToken
      if !isKnown, !policy.always || policy.acceptsNewer, isNewEnough(account, policy) { return (account, nil) }
      // Copies are refreshed earlier than the vault's own credential.
      policy.always = policy.always || isKnown
      do throws(CredentialError) { return (account, try refreshPlan(account, policy)) } catch {
        switch error {
        case .loginNeeded(_, _, .notRefreshable), .loginNeeded(_, _, .typed(_, .notRefreshable)): break
        default: throw error
        }
        guard copy.credential.isRejected, isKnown else { return (account, nil) }
        throw .loginNeeded(provider: copy.provider, account: copy.name, .rejected)
      }
    }
    guard let (account, plan) = try inStore(accounts.store.snapshot(look)).get() else { return nil }
    guard let plan else { return account }
    plan.accepts = accepts
    exchangeCount += 1
    try begins()
    // The commit of an answer ends the lease, so a further exchange takes another one.
    if let taken = try committed(copy.id, timeout: policy.lockTimeout), isNewEnough(taken, policy) {
      return try accepted(taken, accepts)
    }
    return try accepted(refreshed(account, policy, with: plan), accepts)
  }

  /// Stores the copy of an account of a shared vault, unless a login on this machine has replaced it meanwhile.
  func store(_ theirs: Account, insteadOf copy: Account, in accounts: Accounts) throws(CredentialError) -> Account {
    guard let vault = copy.credential.vault else { return copy }
    let removals = try accounts.removals(ofRefresh: copy.id)
    if !copy.credential.isMoving, !copy.credential.isRejected,
      copy.credential.accessToken == theirs.credential.accessToken
    {
      if !removals.isEmpty { try accounts.apply(removals) }
      return copy
    }
    let identifier = RecordIdentifier(.credential, of: copy.id)
    let descriptor = try? descriptor(copy.provider).descriptor
    let credential = try self.copy(of: learn(theirs.credential), from: vault, for: descriptor)
    var revision = copy.revision
    while true {
      do throws(StoreError) {
        revision = try accounts.store.apply(
          [.store(credential.encoded, as: identifier, if: .revision(revision))] + removals)
        return Account(provider: copy.provider, name: copy.name, credential: credential, revision: revision)
      } catch .conflict {
        let current = try accounts.existing(copy.id)
        // Only the mark of a rejected token may have changed.
        guard current.credential.vault == vault else { return current }
        revision = current.revision
      } catch {
        throw .vault(error)
      }
    }
  }
}

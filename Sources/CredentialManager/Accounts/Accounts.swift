import CredmgrCryptography
import CredmgrOAuth
import CredmgrStore

package struct Account: Sendable {
  package let provider: String
  package let name: String
  package var credential: Credential
  package let revision: Int64  // The record's revision, which grows with every change.
}

extension Account {
  package var id: AccountID { AccountID(provider, name) }

  /// Whether a user name is this account's name or identity. Ignores case, as providers do.
  package func matches(username: String) -> Bool {
    name.lowercased() == username.lowercased() || isPerson(username)
  }

  func isPerson(_ identity: String) -> Bool { credential.identity?.lowercased() == identity.lowercased() }
}

func inStore<Result>(_ step: @autoclosure () throws(StoreError) -> Result) throws(CredentialError) -> Result {
  do { return try step() } catch { throw .vault(error) }
}

func inStore<Result>(_ steps: () throws(StoreError) -> Result) throws(CredentialError) -> Result {
  do { return try steps() } catch { throw .vault(error) }
}

package struct Accounts {
  let store: any AccountStore

  static func selection(_ provider: String) -> RecordIdentifier {
    RecordIdentifier(.selection, of: AccountID(provider))
  }

  static func keySet(_ provider: String) -> RecordIdentifier { RecordIdentifier(.keySet, of: AccountID(provider)) }

  /// The record of what this machine took from a shared vault as the text of a descriptor.
  static func descriptor(_ name: String, from vault: String) -> RecordIdentifier {
    RecordIdentifier(kind: .descriptor, provider: name, account: vault)
  }

  static func registration(_ provider: String) -> RecordIdentifier {
    RecordIdentifier(.registration, of: AccountID(provider))
  }

  func revision(ofRegistration provider: String) throws(CredentialError) -> Int64? {
    try record(Self.registration(provider))?.revision
  }

  func record(_ identifier: RecordIdentifier) throws(CredentialError) -> Record? {
    try inStore(store.record(identifier))
  }

  func records(_ kind: RecordKind, of provider: String?) throws(CredentialError) -> [Record] {
    try inStore(store.records(kind, provider: provider))
  }

  func apply(_ changes: [Change]) throws(CredentialError) { _ = try inStore(store.apply(changes)) }

  package func account(_ id: AccountID) throws(CredentialError) -> Account? {
    if let record = try record(RecordIdentifier(.credential, of: id)) { return try account(record) }
    // "é" can be one code point or two. Lookups compare bytes, but users mean the same name.
    guard let name = id.name, !name.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    return try accounts(of: id.provider).first { $0.name == name }
  }

  func existing(_ id: AccountID) throws(CredentialError) -> Account {
    guard let account = try account(id) else {
      throw .loginNeeded(provider: id.provider, account: id.name, .noCredential)
    }
    return account
  }

  /// Returns the accounts sorted by name, without damaged ones.
  package func accounts(of provider: String?) throws(CredentialError) -> [Account] {
    var accounts: [Account] = []
    for record in try records(.credential, of: provider) { accounts.append(try account(record)) }
    return accounts.sorted { ($0.provider, $0.name) < ($1.provider, $1.name) }
  }

  package func selected(for provider: String) throws(CredentialError) -> String? {
    try record(Self.selection(provider))?.payload.reveal()
  }

  /// Returns the named account, or else the default account, or else the only account.
  package func resolve(_ name: String?, provider: String) throws(CredentialError) -> Account {
    let meant = if let name { name } else { try selected(for: provider) }
    if let meant {
      if let account = try account(AccountID(provider, meant)) { return account }
      try throwIfDamaged(RecordIdentifier(.credential, of: AccountID(provider, meant)))
      // A missing account must not change which account's token is used.
      let known = try accounts(of: provider).map(\.name)
      if known.isEmpty { throw .loginNeeded(provider: provider, account: meant, .noCredential) }
      throw .unknownAccount(meant, provider: provider, known: known)
    }
    let accounts = try accounts(of: provider)
    if let damaged = try unreadable(of: provider).first { throw .vault(.damagedRecord(damaged)) }
    guard let first = accounts.first else { throw .loginNeeded(provider: provider, account: nil, .noCredential) }
    if accounts.count > 1 {
      try throwIfDamaged(Self.selection(provider))
      throw .ambiguousAccount(provider: provider, known: accounts.map(\.name))
    }
    return first
  }

  /// Returns the account with this name, or else with this identity, or whose token is sent with this user name. If
  /// several match, the default account wins.
  package func name(forUsername username: String, of claim: HostClaim) throws(CredentialError) -> String? {
    let provider = claim.provider
    if try account(AccountID(provider, username)) != nil { return username }
    try throwIfDamaged(RecordIdentifier(.credential, of: AccountID(provider, username)))
    let accounts = try accounts(of: provider).filter { claim.isName(username, of: $0) }
    if accounts.count > 1, let selected = try selected(for: provider), accounts.contains(where: { $0.name == selected })
    {
      return selected
    }
    return accounts.first?.name
  }

  func throwIfDamaged(_ identifier: RecordIdentifier) throws(CredentialError) {
    if try inStore(store.isLost(identifier)) { throw .vault(.damagedRecord(identifier)) }
  }

  /// Returns the damaged accounts that `accounts(of:)` omits. Does not read the `known` ones again.
  package func unreadable(
    of provider: String?, without known: [Account] = []
  ) throws(CredentialError) -> [RecordIdentifier] {
    let known = Set(known.map { RecordIdentifier(.credential, of: $0.id) })
    return try inStore(store.unreadable(.credential, provider: provider, without: known))
  }

  /// Returns the account as `account(_:)` does, but `nil` if it is damaged, because its content is unknown.
  func readableAccount(_ id: AccountID) throws(CredentialError) -> Account? {
    do { return try account(id) } catch .vault(.damagedRecord) { return nil }
  }

  package func verify() throws(CredentialError) -> [VaultFinding] { try inStore(store.verify()) }

  package func select(_ name: String, provider: String) throws(CredentialError) {
    let account = try resolve(name, provider: provider)
    try apply([.store(Secret(account.name), as: Self.selection(provider))])
  }

  package func registration(of provider: String) throws(CredentialError) -> Registration? {
    guard let record = try record(Self.registration(provider)) else { return nil }
    guard let registration = Registration(decoding: record.payload) else {
      throw .malformedRegistration(provider: provider)
    }
    return registration
  }

  package func addedProviders() throws(CredentialError) -> [String] {
    try records(.registration, of: nil).map(\.identifier.provider).sorted()
  }

  private func account(_ record: Record) throws(CredentialError) -> Account {
    let (provider, name) = (record.identifier.provider, record.identifier.account)
    do {
      let credential = try Credential(decoding: record.payload)
      return Account(provider: provider, name: name, credential: credential, revision: record.revision)
    } catch {
      throw .oauth(error, provider: provider)
    }
  }

  /// Whether the text is 1 to 255 bytes, without characters that could make two names look alike.
  package static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 255 && !text.unicodeScalars.contains(where: \.actsOnTerminals)
  }
}

import CredmgrCryptography
import CredmgrJSON
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import CredmgrStore

/// The portable data of a vault: without the log and without notes on running exchanges.
struct VaultExport {
  struct Item {
    let identifier: RecordIdentifier
    let payload: Secret

    init(identifier: RecordIdentifier, payload: Secret) { (self.identifier, self.payload) = (identifier, payload) }

    init(_ record: Record) { self.init(identifier: record.identifier, payload: record.payload) }
  }

  static let format = "credmgr-export-1"
  static let encryptedFormat = "credmgr-export-encrypted-1"
  private static let kinds: [(kind: RecordKind, name: String)] = [
    (.registration, "registration"), (.credential, "credential"), (.selection, "selection"), (.login, "login"),
  ]

  private(set) var items: [Item] = []
  /// The user's own descriptors and the system's descriptors in use, by identifier.
  var descriptors: [String: String] = [:]
  var rules: String?

  /// Leaves out the copies of accounts in shared vaults, which only members can refresh.
  init(_ store: any AccountStore) throws(StoreError) {
    for (kind, _) in Self.kinds {
      items += try store.records(kind, provider: nil).map { Item($0) }.filter { !$0.isCopy }
    }
  }

  init(_ items: [Item], descriptors: [String: String]) { (self.items, self.descriptors) = (items, descriptors) }

  // MARK: Plain

  var plain: JSONValue {
    let records = items.map { item -> JSONValue in
      let text = item.payload.reveal()
      let value = item.identifier.kind == .selection ? nil : try? JSONValue.parse(Array(text.utf8))
      return [
        "kind": .optional(Self.kinds.first { $0.kind == item.identifier.kind }?.name),
        "provider": .string(item.identifier.provider), "account": .string(item.identifier.account),
        "value": value?.members == nil ? .string(text) : value ?? .null,
      ]
    }
    let texts = descriptors.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }
    return [
      "format": .string(Self.format), "records": .array(records), "descriptors": .object(texts),
      "rules": .optional(rules),
    ]
  }

  init(plain value: JSONValue) throws(CredentialError) {
    guard value["format"]?.text == Self.format, let records = value["records"]?.elements else { throw .malformedExport }
    for record in records {
      guard let kind = Self.kinds.first(where: { $0.name == record["kind"]?.text })?.kind,
        let provider = record["provider"]?.text, let account = record["account"]?.text, let value = record["value"]
      else { throw .malformedExport }
      let item = Item(
        identifier: RecordIdentifier(kind: kind, provider: provider, account: account),
        payload: Secret(value.text ?? value.encoded))
      guard item.isUsable else { throw .malformedExport }
      items.append(item)
    }
    // Exports of earlier versions have neither.
    for member in value["descriptors"]?.members ?? [] {
      guard DescriptorLibrary.isIdentifier(member.name), let text = member.value.text, text.utf8.count <= 1 << 20 else {
        throw .malformedExport
      }
      descriptors[member.name] = text
    }
    rules = value["rules"]?.text
  }

  // MARK: Encrypted

  private static let associatedData = Array("credmgr export 1".utf8)

  func encrypted(
    _ passphrase: Secret, costs: PassphraseCosts = .standard, random: some RandomSource
  ) throws(StoreError) -> JSONValue {
    let salt = random.bytes(PassphraseCosts.saltByteCount)
    let nonce = random.bytes(SealingKey.nonceByteCount)
    do throws(CryptographyError) {
      let key = try SealingKey(passphrase: passphrase, costs: costs, salt: salt)
      let sealed = try key.seal(Secret(plain.encoded), associatedData: Self.associatedData, nonce: nonce)
      return [
        "format": .string(Self.encryptedFormat), "operations": .integer(costs.operations),
        "memory": .integer(costs.memory), "salt": .string(Base64.encode(salt)), "nonce": .string(Base64.encode(nonce)),
        "sealed": .string(Base64.encode(sealed)),
      ]
    } catch {
      throw .outOfMemory
    }
  }

  /// Opens a file of either form. Calls `ask` again with a higher number after a wrong passphrase. Accepts an
  /// unencrypted file, which anyone could have made, only with `acceptsPlain`.
  init(_ bytes: [UInt8], acceptsPlain: Bool = false, ask: (Int) throws(StoreError) -> Secret) throws(CredentialError) {
    guard let value = try? JSONValue.parse(bytes) else { throw .malformedExport }
    guard value["format"]?.text == Self.encryptedFormat else {
      try self.init(plain: value)
      if !acceptsPlain { throw .plainExport }
      return
    }
    guard let operations = value["operations"]?.integer, let memory = value["memory"]?.integer,
      let salt = value["salt"]?.text.flatMap(Base64.decode), let nonce = value["nonce"]?.text.flatMap(Base64.decode),
      let sealed = value["sealed"]?.text.flatMap(Base64.decode)
    else { throw .malformedExport }
    let costs = PassphraseCosts(operations: UInt64(bitPattern: operations), memory: UInt64(bitPattern: memory))
    var attempt = 1
    while true {
      let passphrase = try wrapping(CredentialError.init(export:), ask(attempt))
      let opened: Secret
      do throws(CryptographyError) {
        let key = try SealingKey(passphrase: passphrase, costs: costs, salt: salt)
        opened = try key.open(sealed, associatedData: Self.associatedData, nonce: nonce)
      } catch .notAuthentic {
        attempt += 1
        continue
      } catch {
        throw error == .outOfMemory ? .vault(.outOfMemory) : .malformedExport
      }
      guard let value = try? JSONValue.parse(opened.revealBytes()) else { throw .malformedExport }
      try self.init(plain: value)
      return
    }
  }
}

extension VaultExport.Item {
  /// The shared vault that an account or a registration follows.
  var vault: String? {
    switch identifier.kind {
    case .credential: (try? Credential(decoding: payload))?.vault
    case .registration: Registration(decoding: payload)?.vault
    default: nil
    }
  }

  fileprivate var isCopy: Bool {
    guard identifier.kind == .credential, let credential = try? Credential(decoding: payload) else { return false }
    return credential.vault != nil && !credential.isMoving
  }

  fileprivate var isUsable: Bool {
    switch identifier.kind {
    case .registration:
      DescriptorLibrary.isIdentifier(identifier.provider) && identifier.account.isEmpty
        && Registration(decoding: payload).map(\.hasOwnRedirect) == true
    case .credential:
      DescriptorLibrary.isIdentifier(identifier.provider) && Accounts.isName(identifier.account)
        && (try? Credential(decoding: payload)).map { $0.vault == nil } == true
    case .selection:
      DescriptorLibrary.isIdentifier(identifier.provider) && identifier.account.isEmpty
        && Accounts.isName(payload.reveal())
    case .login: HostLogin(decoding: payload) != nil
    case .event, .pending, .host, .failure, .keySet, .descriptor, .membership, .seen: false
    }
  }
}

extension CredentialError {
  init(export error: StoreError) {
    self =
      switch error {
      case .wrongPassphrase: .wrongExportPassphrase
      case .passphraseUnavailable(let reason): .exportPassphraseUnavailable(reason)
      default: .vault(error)
      }
  }
}

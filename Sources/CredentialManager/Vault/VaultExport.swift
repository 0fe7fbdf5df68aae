import Cryptography
import JSON
import OAuth
import Platform
import Descriptors
import Store

/// What another machine can use of a vault: not the log, nor notes of what is under way here.
struct VaultExport {
  struct Item {
    let identifier: RecordIdentifier
    let payload: Secret
  }

  static let format = "credmgr-export-1"
  static let encryptedFormat = "credmgr-export-encrypted-1"
  private static let kinds: [(kind: RecordKind, name: String)] = [
    (.registration, "registration"), (.credential, "credential"), (.selection, "selection"), (.login, "login"),
  ]

  private(set) var items: [Item] = []

  init(_ store: any AccountStore) throws(StoreError) {
    for (kind, _) in Self.kinds {
      items += try store.records(kind, provider: nil).map { Item(identifier: $0.identifier, payload: $0.payload) }
    }
  }

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
    return ["format": .string(Self.format), "records": .array(records)]
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

  /// Opens a file of either form. `ask` is called again with a greater number after a wrong passphrase.
  init(_ bytes: [UInt8], ask: (Int) throws(StoreError) -> Secret) throws(CredentialError) {
    guard let value = try? JSONValue.parse(bytes) else { throw .malformedExport }
    guard value["format"]?.text == Self.encryptedFormat else {
      try self.init(plain: value)
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
  fileprivate var isUsable: Bool {
    switch identifier.kind {
    case .registration:
      DescriptorLibrary.isIdentifier(identifier.provider) && identifier.account.isEmpty
        && Registration(decoding: payload) != nil
    case .credential:
      DescriptorLibrary.isIdentifier(identifier.provider) && Accounts.isName(identifier.account)
        && (try? Credential(decoding: payload)) != nil
    case .selection:
      DescriptorLibrary.isIdentifier(identifier.provider) && identifier.account.isEmpty
        && Accounts.isName(payload.reveal())
    case .login: HostLogin(decoding: payload) != nil
    case .event, .pending, .host: false
    }
  }
}

extension CredentialSource {
  /// All that another machine can use, as JSON. Without a `passphrase`, the sources of passphrases are asked.
  package func exportVault(
    isPlain: Bool, passphrase: Secret? = nil
  ) throws(CredentialError) -> (json: JSONValue, count: Int) {
    // A vault that is not there is not made for it.
    _ = try accounts()
    let store = try accounts(.readWrite).store
    do throws(StoreError) {
      let export = try VaultExport(store)
      let json = try keys.asking { () throws(StoreError) in
        if isPlain { return export.plain }
        guard let passphrase else { return try export.encrypted(keys.passphrase(.newForExport), random: random) }
        return try export.encrypted(passphrase, random: random)
      }
      note(.export, isPlain ? "plain" : "encrypted")
      return (json, export.items.count)
    } catch {
      throw CredentialError(export: error)
    }
  }

  /// Stores what was exported, and returns how many records that were. What is there and the same stays; what is there
  /// and different is replaced, or `.alreadyThere` says it and nothing is changed.
  package func importVault(_ bytes: [UInt8], passphrase: Secret? = nil, replaces: Bool) throws(CredentialError) -> Int {
    let keys = keys
    let export = try keys.asking(CredentialError.exportPassphraseUnavailable(.interrupted)) {
      () throws(CredentialError) in
      try VaultExport(bytes) { attempt throws(StoreError) in
        guard let passphrase else { return try keys.passphrase(.export(attempt: attempt)) }
        guard attempt == 1 else { throw .wrongPassphrase }
        return passphrase
      }
    }
    let accounts = try accounts(.readWrite)
    var registrations: [String: Registration?] = [:]
    for item in export.items where item.identifier.kind == .registration {
      registrations[item.identifier.provider] = Registration(decoding: item.payload)
    }
    let claims = try claims(accounts, replacing: registrations).changes
    var changes: [Change] = []
    var there: [RecordIdentifier] = []
    for item in export.items {
      let record = try accounts.record(item.identifier)
      if record?.payload == item.payload { continue }
      if record != nil { there.append(item.identifier) }
      let precondition = record.map { Precondition.revision($0.revision) } ?? .absent
      changes.append(.store(item.payload, as: item.identifier, if: precondition))
    }
    if !there.isEmpty, !replaces { throw .alreadyThere(there) }
    if !changes.isEmpty {
      try accounts.apply(changes + claims + [noting(.import, nil, nil, "\(changes.count) records")])
    }
    return changes.count
  }
}

extension CredentialError {
  fileprivate init(export error: StoreError) {
    self =
      switch error {
      case .wrongPassphrase: .wrongExportPassphrase
      case .passphraseUnavailable(let reason): .exportPassphraseUnavailable(reason)
      default: .vault(error)
      }
  }
}

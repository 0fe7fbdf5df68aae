import Cryptography
import Descriptors
import JSON
import OAuth
import Platform
import Store

package struct TransferredParts: Sendable, Equatable {
  package var records = 0
  package var descriptors = 0
  package var hasRules = false
  package var isEmpty: Bool { records == 0 && descriptors == 0 && !hasRules }
}

/// A registration of a file, as it is sealed here. `made`: what its agreement is made of, where there is a descriptor.
private struct ImportedRegistration {
  let provider: String
  let file: Registration
  let registration: Registration
  let made: (loaded: DescriptorLibrary.Loaded, client: Client)?
}

extension CredentialSource {
  /// All that another machine can use, as JSON. Without a `passphrase`, the sources of passphrases are asked.
  package func exportVault(
    isPlain: Bool, passphrase: Secret? = nil
  ) throws(CredentialError) -> (json: JSONValue, parts: TransferredParts) {
    // A vault that is not there is not made for it.
    let added = try accounts().addedProviders()
    let store = try accounts(.readWrite).store
    let descriptors = try ownDescriptors(and: added)
    let rules = try AccountRules.bytes(home.accountRules).map { String(decoding: $0, as: UTF8.self) }
    do throws(StoreError) {
      var export = try VaultExport(store)
      (export.descriptors, export.rules) = (descriptors, rules)
      let json = try keys.asking { () throws(StoreError) in
        if isPlain { return export.plain }
        guard let passphrase else { return try export.encrypted(keys.passphrase(.newForExport), random: random) }
        return try export.encrypted(passphrase, random: random)
      }
      note(.export, isPlain ? "plain" : "encrypted")
      return (
        json, TransferredParts(records: export.items.count, descriptors: descriptors.count, hasRules: rules != nil)
      )
    } catch {
      throw CredentialError(export: error)
    }
  }

  /// The person's own descriptors, and those of the system that are in use: all that another machine may not have.
  private func ownDescriptors(and added: [String]) throws(CredentialError) -> [String: String] {
    let own = ((try? File.names(in: home.userProviders)) ?? []).filter { $0.hasSuffix(".yaml") }
      .map { String($0.dropLast(".yaml".count)) }
    var texts: [String: String] = [:]
    for provider in own + added {
      guard let path = home.library.path(of: provider),
        [home.userProviders, Home.systemFolder].contains(Path.directory(of: path)),
        let bytes = (try? home.readDescriptor(path)) ?? nil
      else { continue }
      texts[provider] = String(decoding: bytes, as: UTF8.self)
    }
    return texts
  }

  /// Stores what was exported. What is there and different is replaced, or `.alreadyThere` says it and nothing is
  /// changed. A registration that would send what is kept here to new places is replaced only if `confirms` says so.
  /// `agrees` is asked about what is unusual in a descriptor, as when one is added.
  package func importVault(
    _ bytes: [UInt8], passphrase: Secret? = nil, acceptsPlain: Bool, replaces: Bool,
    confirms: (_ provider: String, _ places: [NewPlace]) -> Bool = { _, _ in false },
    agrees: (_ provider: String, _ places: [NewPlace]) -> Bool = { _, _ in false }
  ) throws(CredentialError) -> TransferredParts {
    let keys = keys
    let export = try keys.asking(CredentialError.exportPassphraseUnavailable(.interrupted)) {
      () throws(CredentialError) in
      try VaultExport(bytes, acceptsPlain: acceptsPlain) { attempt throws(StoreError) in
        guard let passphrase else { return try keys.passphrase(.export(attempt: attempt)) }
        guard attempt == 1 else { throw .wrongPassphrase }
        return passphrase
      }
    }
    let accounts = try accounts(.readWrite)
    var registrations: [String: Registration?] = [:]
    var imported: [ImportedRegistration] = []
    var changes: [Change] = []
    var there: [RecordIdentifier] = []
    for item in export.items {
      let record = try accounts.record(item.identifier)
      var payload = item.payload
      if item.identifier.kind == .registration, let file = Registration(decoding: payload) {
        let one = record?.payload == payload ? nil : self.imported(file, of: item.identifier.provider, export)
        registrations[item.identifier.provider] = one?.registration ?? file
        if let one { payload = one.registration.encoded }
        if let one, record?.payload != payload { imported.append(one) }
      }
      if record?.payload == payload { continue }
      if record != nil { there.append(item.identifier) }
      let precondition = record.map { Precondition.revision($0.revision) } ?? .absent
      changes.append(.store(payload, as: item.identifier, if: precondition))
    }
    let claims = try claims(accounts, replacing: registrations).changes
    let files = differingFiles(export)
    let others = files.map(\.path).filter { File.exists($0) }
    if !there.isEmpty || !others.isEmpty, !replaces { throw .alreadyThere(there, files: others) }
    try requireNotWidened(export.items, imported, in: accounts, confirms: confirms)
    for one in imported {
      let places = try peculiarities(of: one, in: accounts)
      if !places.isEmpty, !agrees(one.provider, places) {
        throw .peculiar(provider: one.provider, places, isBeingAdded: true)
      }
    }
    if !changes.isEmpty {
      try accounts.apply(changes + claims + [noting(.import, detail: "\(changes.count) records")])
    }
    for file in files {
      if let folder = Path.directory(of: file.path) {
        try wrapping(CredentialError.system, File.createDirectory(folder))
      }
      // A link, into a repository of such files, stays one.
      let path = Path.resolved(file.path) ?? file.path
      try wrapping(CredentialError.system, File.replace(path, Array(file.text.utf8)))
    }
    let hasRules = files.contains { $0.path == home.accountRules }
    return TransferredParts(records: changes.count, descriptors: files.count - (hasRules ? 1 : 0), hasRules: hasRules)
  }

  /// What stands in a file as agreed to, anybody could have written: the descriptor that will be in force tells it.
  private func imported(_ file: Registration, of provider: String, _ export: VaultExport) -> ImportedRegistration {
    var files: [String: [UInt8]] = [:]
    for (name, text) in export.descriptors { files[home.userProviders + "/" + name + ".yaml"] = Array(text.utf8) }
    var registration = file
    guard let loaded = try? home.library(replacing: files).load(provider),
      let client = try? client(loaded.descriptor, file)
    else {
      // Completed within it at the first use, as one of an earlier version.
      registration.agreement?.isOfEarlierVersion = true
      registration.agreement?.claims = nil
      return ImportedRegistration(provider: provider, file: file, registration: registration, made: nil)
    }
    registration.seal(loaded.descriptor, client, ownFiles: ownFiles(of: loaded, replacing: files))
    return ImportedRegistration(provider: provider, file: file, registration: registration, made: (loaded, client))
  }

  /// Where the descriptor is beyond what was agreed to, here or where the file was made.
  private func newPlaces(of imported: ImportedRegistration, in accounts: Accounts) -> [NewPlace] {
    guard let made = imported.made, var now = imported.registration.agreement else { return [] }
    now.ownFiles = nil  // The client may be another one, although the files are the same.
    let own = (try? accounts.registration(of: imported.provider)).map { sealed($0, of: imported.provider) }
    let agreed = own ?? imported.file.agreement
    var places = agreed?.newPlaces(in: now, made.loaded, variables: imported.registration.variables) ?? []
    if let before = own?.clientIdentifier, let client = now.clientIdentifier, client != before {
      places.append(NewPlace(kind: .setting("client_id"), name: client, before: [before], place: nil))
    }
    return places
  }

  /// What `add` would ask about, and a page elsewhere that gets the answers to logins.
  private func peculiarities(
    of imported: ImportedRegistration, in accounts: Accounts
  ) throws(CredentialError) -> [NewPlace] {
    guard let (loaded, client) = imported.made else { return [] }
    let agreed = (try? accounts.registration(of: imported.provider))?.agreement
    let paths = [loaded.path] + loaded.bases
    let isOwn = paths.contains { $0.hasPrefix(home.userProviders + "/") }
    var places = try OtherProviders(self, than: imported.provider, isOwn: isOwn)
      .peculiarities(of: client, loaded, beyond: agreed)
    if isOwn, case .elsewhere(let text)? = try? client.redirect(), text.hasPrefix("http"),
      agreed?.texts(.redirect).contains(text) != true
    {
      places.append(NewPlace(kind: .redirect, name: text, before: [], place: loaded.place(of: ["redirect"])))
    }
    return places
  }

  private func differingFiles(_ export: VaultExport) -> [(path: String, text: String)] {
    var files = export.descriptors.sorted { $0.key < $1.key }.map { name, text in
      (path: home.userProviders + "/" + name + ".yaml", text: text)
    }
    if let rules = export.rules { files.append((path: home.accountRules, text: rules)) }
    return files.filter { file in
      (try? File.read(file.path, limit: 1 << 20)).map { $0 != Array(file.text.utf8) } ?? true
    }
  }

  /// Asks where a registration lets what is kept here go to new places, or where the variables of an account do so,
  /// which a person gives here at a login.
  private func requireNotWidened(
    _ items: [VaultExport.Item], _ imported: [ImportedRegistration], in accounts: Accounts,
    confirms: (_ provider: String, _ places: [NewPlace]) -> Bool
  ) throws(CredentialError) {
    var places: [String: [NewPlace]] = [:]
    for one in imported { places[one.provider] = newPlaces(of: one, in: accounts) }
    for item in items {
      let provider = item.identifier.provider
      guard let own = try? accounts.registration(of: provider) else { continue }
      let new =
        switch item.identifier.kind {
        case .registration: newPlaces(ofRegistration: item.payload, of: provider, own)
        case .credential: newPlaces(ofCredential: item.payload, of: provider, own)
        default: [] as [NewPlace]
        }
      places[provider, default: []] += new.filter { place in
        places[provider]?.contains { $0.name == place.name } != true
      }
    }
    for (provider, places) in places.sorted(by: { $0.key < $1.key }) where !places.isEmpty {
      if !confirms(provider, places) { throw .importWidens(provider: provider, places) }
    }
  }

  /// What was agreed to here; where nobody noted it, the descriptor in force tells.
  func sealed(_ own: Registration, of provider: String) -> Agreement {
    own.agreement ?? (try? client(descriptor(provider).descriptor, own)).map { Agreement($0) }
      ?? Agreement(destinations: [])
  }

  private static let anywhere = [NewPlace(kind: .secrets, name: "any host", before: [], place: nil)]

  private func newPlaces(ofRegistration payload: Secret, of provider: String, _ own: Registration) -> [NewPlace] {
    guard payload != own.encoded, let registration = Registration(decoding: payload) else { return [] }
    let sealed = sealed(own, of: provider)
    // What says less than what is sealed here would be taken for that of an earlier version.
    guard let later = registration.agreement, sealed.isOfEarlierVersion || !later.isOfEarlierVersion else {
      return Self.anywhere
    }
    return sealed.newPlaces(in: later, variables: registration.variables)
  }

  private func newPlaces(ofCredential payload: Secret, of provider: String, _ own: Registration) -> [NewPlace] {
    guard let variables = try? Credential(decoding: payload).variables, !variables.isEmpty else { return [] }
    let known = (try? accounts().accounts(of: provider)) ?? []
    if known.contains(where: { $0.credential.variables == variables }) { return [] }
    guard let descriptor = try? descriptor(provider).descriptor,
      let client = try? client(descriptor, own, variables: variables)
    else { return Self.anywhere }
    let sealed = sealed(own, of: provider)
    let new = sealed.newPlaces(in: Agreement(client))
    return new + sealed.newPlaces(in: sealed.widened(by: client)).filter { !new.map(\.name).contains($0.name) }
  }
}

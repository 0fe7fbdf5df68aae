import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore

package struct TransferredParts: Sendable, Equatable {
  package var records = 0
  package var descriptors = 0
  package var hasRules = false
  /// The imported descriptors that are used instead of shipped ones from now on.
  package var replacesShipped: [String] = []
  package var isEmpty: Bool { records == 0 && descriptors == 0 && !hasRules }
}

/// A registration from a file, ready to store. `made` is the source of its agreement; `nil` without a descriptor.
private struct ImportedRegistration {
  let provider: String
  let file: Registration
  let registration: Registration
  let made: (loaded: DescriptorLibrary.Loaded, client: Client)?
}

extension CredentialSource {
  /// Returns all portable data as JSON. Without a `passphrase`, uses the passphrase sources.
  package func exportVault(
    isPlain: Bool, passphrase: Secret? = nil
  ) throws(CredentialError) -> (json: JSONValue, parts: TransferredParts) {
    // Exporting must not create a vault.
    let own = try ownFiles(of: accounts())
    let store = try accounts(.readWrite).store
    let descriptors = shared == nil ? own.descriptors : try sharedDescriptors()
    let rules = shared == nil ? own.rules : nil
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

  /// Returns the descriptors and rules that belong to the vault, but are files beside it.
  func ownFiles(of accounts: Accounts) throws(CredentialError) -> (descriptors: [String: String], rules: String?) {
    let rules = try AccountRules.bytes(home.accountRules).map { String(decoding: $0, as: UTF8.self) }
    return (ownDescriptors(and: try accounts.addedProviders()), rules)
  }

  /// Returns the user's own descriptors and the system's descriptors in use, which another machine may not have.
  private func ownDescriptors(and added: [String]) -> [String: String] {
    let own = ((try? File.names(in: home.userProviders)) ?? []).filter { $0.hasSuffix(".yaml") }
      .map { String($0.dropLast(".yaml".count)) }
    return ownDescriptors(of: own + added)
  }

  /// Returns the descriptors in this shared vault, which may differ from those of this machine.
  func sharedDescriptors() throws(CredentialError) -> [String: String] {
    let records = try accounts().records(.descriptor, of: nil)
    return Dictionary(records.map { ($0.identifier.provider, $0.payload.reveal()) }) { first, _ in first }
  }

  /// Returns the descriptors of these providers, and those that they extend, that did not come with the program.
  func ownDescriptors(of providers: [String]) -> [String: String] {
    var texts: [String: String] = [:]
    for provider in providers {
      guard let path = home.library.path(of: provider) else { continue }
      let bases = (try? home.library.load(provider))?.bases ?? []
      for path in [path] + bases where [home.userProviders, Home.systemFolder].contains(Path.directory(of: path)) {
        let name = String(Path.lastComponent(of: path).dropLast(".yaml".count))
        // The user's own file is found first, also by a descriptor that extends it.
        guard texts[name] == nil, let bytes = (try? home.readDescriptor(path)) ?? nil else { continue }
        texts[name] = String(decoding: bytes, as: UTF8.self)
      }
    }
    return texts
  }

  /// Stores exported data. Replaces different data only with `replaces`; otherwise throws `.alreadyThere` and changes
  /// nothing. Calls `confirms` if a registration or an account's variables would send secrets to new places, and
  /// `agrees` for unusual parts of a descriptor, as when adding one. Calls `adds` for each new provider with variables
  /// or with a descriptor that did not come with the program.
  package func importVault(
    _ bytes: [UInt8], passphrase: Secret? = nil, acceptsPlain: Bool, replaces: Bool,
    confirms: (_ provider: String, _ places: [NewPlace]) -> Bool = { _, _ in false },
    agrees: (_ provider: String, _ places: [NewPlace]) -> Bool = { _, _ in false },
    adds: (_ provider: String) -> Void = { _ in }
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
    return try take(export, replaces: replaces, confirms: confirms, agrees: agrees, adds: adds)
  }

  /// Stores the parts of an export as `importVault` does. With `vault`, they are the parts of that shared vault, whose
  /// copies replace only its own.
  func take(
    _ export: VaultExport, replaces: Bool, from vault: String? = nil,
    confirms: (_ provider: String, _ places: [NewPlace]) -> Bool,
    agrees: (_ provider: String, _ places: [NewPlace]) -> Bool, adds: (_ provider: String) -> Void = { _ in }
  ) throws(CredentialError) -> TransferredParts {
    let accounts = try accounts(.readWrite)
    var registrations: [String: Registration?] = [:]
    var imported: [ImportedRegistration] = []
    var changes: [Change] = []
    var there: [RecordIdentifier] = []
    for item in export.items {
      let record = try accounts.record(item.identifier)
      var payload = item.payload
      if let vault, let record, VaultExport.Item(record).vault != vault { continue }
      if item.identifier.kind == .registration, var file = Registration(decoding: payload) {
        // A file does not decide which vault may change the registration later.
        file.vault = vault ?? record.flatMap { VaultExport.Item($0).vault }
        payload = file.encoded
        let one =
          record?.payload == payload ? nil : self.imported(file, of: item.identifier.provider, in: export, accounts)
        registrations[item.identifier.provider] = one?.registration ?? file
        if let one { payload = one.registration.encoded }
        if let record, let before = Registration(decoding: record.payload), let one,
          before.digest() != one.registration.digest()
        {
          try requireNoLogin(at: item.identifier.provider, one.registration, accounts)
        }
        if let one, record?.payload != payload { imported.append(one) }
      }
      if record?.payload == payload { continue }
      // Anyone could have written the mark into the file, so the next use verifies the ID token.
      if item.identifier.kind == .credential, var credential = try? Credential(decoding: payload),
        credential.isIDTokenVerified
      {
        credential.isIDTokenVerified = false
        payload = credential.encoded
        if record?.payload == payload { continue }
      }
      if record != nil { there.append(item.identifier) }
      let precondition = record.map { Precondition.revision($0.revision) } ?? .absent
      changes.append(.store(payload, as: item.identifier, if: precondition))
    }
    // A process that changes a provider at this moment notices its new accounts by the revision, as after a login.
    let stored = changes.compactMap { change in
      if case .store(_, let identifier, _) = change { identifier } else { nil }
    }
    var repeated: [Change] = []
    for provider in Set(stored.filter { $0.kind == .credential }.map(\.provider)) {
      let place = Accounts.registration(provider)
      guard !stored.contains(place), let record = try accounts.record(place) else { continue }
      repeated.append(.store(record.payload, as: place, if: .revision(record.revision)))
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
    let added = imported.filter { one in
      one.made.map { !ownFiles(of: $0.loaded).isEmpty || !one.registration.variables.isEmpty } == true
        && !there.contains(Accounts.registration(one.provider))
    }
    let replacesShipped = files.filter { !others.contains($0.path) }.compactMap(\.provider)
      .filter { home.installedLibrary.path(of: $0) != nil }
    if let vault {
      for one in imported {
        let places = newPlaces(of: one, in: accounts).filter { [.secrets, .tokens].contains($0.kind) }
        changes += try forgetting(copiesOfOthersThan: vault, of: one.provider, before: places, in: accounts)
      }
      for file in files {
        guard let name = file.provider else { continue }
        try setAside(name, publishedIn: vault)
        changes.append(try taking(file.text, as: name, from: vault))
      }
    }
    if !changes.isEmpty {
      try accounts.apply(changes + repeated + claims + [noting(.import, detail: vault ?? "\(changes.count) records")])
    }
    for file in files {
      if let folder = Path.directory(of: file.path) {
        try wrapping(CredentialError.system, File.createDirectory(folder))
      }
      // Write to the target of a symbolic link, for example in a dotfiles repository.
      let path = Path.resolved(file.path) ?? file.path
      try wrapping(CredentialError.system, File.replace(path, Array(file.text.utf8)))
    }
    if let vault, !files.isEmpty {
      // The user may put the text before back.
      var written: [Change] = []
      for file in files {
        guard let name = file.provider else { continue }
        written.append(try taking(file.text, as: name, from: vault, isWritten: true))
      }
      try accounts.apply(written)
    }
    for one in added { adds(one.provider) }
    let hasRules = files.contains { $0.path == home.accountRules }
    return TransferredParts(
      records: changes.count, descriptors: files.count - (hasRules ? 1 : 0), hasRules: hasRules,
      replacesShipped: replacesShipped)
  }

  /// Anyone could have written an agreement into the file, so compute it from the descriptor that will be in force.
  private func imported(
    _ file: Registration, of provider: String, in export: VaultExport, _ accounts: Accounts
  ) -> ImportedRegistration {
    var files: [String: [UInt8]] = [:]
    for (name, text) in export.descriptors { files[home.userProviders + "/" + name + ".yaml"] = Array(text.utf8) }
    var registration = file
    guard let loaded = try? home.library(replacing: files).load(provider),
      let client = try? client(loaded.descriptor, file)
    else {
      // The user's earlier agreement stays. Without one, nothing is agreed to, so the first use asks.
      let own = (try? accounts.registration(of: provider)).map { sealed($0, of: provider) }
      registration.agreement = own ?? Agreement(destinations: [])
      // The client may differ although the files are the same.
      registration.agreement?.ownFiles = own?.ownFiles.map { _ in "-" }
      return ImportedRegistration(provider: provider, file: file, registration: registration, made: nil)
    }
    registration.seal(loaded, client, ownFiles: ownFiles(of: loaded))
    return ImportedRegistration(provider: provider, file: file, registration: registration, made: (loaded, client))
  }

  /// Returns the places where the descriptor exceeds what was agreed here or in the file.
  private func newPlaces(of imported: ImportedRegistration, in accounts: Accounts) -> [NewPlace] {
    let registered = try? accounts.registration(of: imported.provider)
    let own = registered.map { sealed($0, of: imported.provider) }
    var places: [NewPlace] = []
    if let made = imported.made, var now = imported.registration.agreement {
      now.ownFiles = nil  // The client may differ although the files are the same.
      let agreed = own ?? imported.file.agreement
      places = agreed?.newPlaces(in: now, made.loaded, variables: imported.registration.variables) ?? []
    }
    if let before = registered?.clientIdentifier, case let client = imported.registration.clientIdentifier,
      client != before
    {
      places.append(NewPlace(kind: .setting("client_id"), name: client, before: [before], place: nil))
    }
    return places
  }

  /// Returns what `add` would ask about, and a page elsewhere that would get the answers to logins.
  private func peculiarities(
    of imported: ImportedRegistration, in accounts: Accounts
  ) throws(CredentialError) -> [NewPlace] {
    guard let (loaded, client) = imported.made else { return [] }
    let agreed = (try? accounts.registration(of: imported.provider))?.agreement
    let isOwn = !ownFiles(of: loaded).isEmpty
    var places = try OtherProviders(self, than: imported.provider, isOwn: isOwn, areVariablesGiven: false)
      .peculiarities(of: client, loaded, beyond: agreed)
    if isOwn, case .elsewhere(let text)? = try? client.redirect(), text.hasPrefix("http"),
      agreed?.texts(.redirect).contains(text) != true
    {
      places.append(NewPlace(kind: .redirect, name: text, before: [], place: loaded.place(of: ["redirect"])))
    }
    return places
  }

  /// Returns the descriptors and the account rules; `provider` is `nil` for the rules.
  private func differingFiles(_ export: VaultExport) -> [(path: String, text: String, provider: String?)] {
    var files = export.descriptors.sorted { $0.key < $1.key }.map { name, text in
      (path: home.userProviders + "/" + name + ".yaml", text: text, provider: Optional(name))
    }
    if let rules = export.rules { files.append((path: home.accountRules, text: rules, provider: nil)) }
    return files.filter { file in
      (try? File.read(file.path, limit: 1 << 20)).map { $0 != Array(file.text.utf8) } ?? true
    }
  }

  /// Asks before a registration, or the variables of an imported account, let stored secrets go to new places.
  private func requireNotWidened(
    _ items: [VaultExport.Item], _ imported: [ImportedRegistration], in accounts: Accounts,
    confirms: (_ provider: String, _ places: [NewPlace]) -> Bool
  ) throws(CredentialError) {
    var places: [String: [NewPlace]] = [:]
    for one in imported { places[one.provider] = newPlaces(of: one, in: accounts) }
    for item in items {
      let provider = item.identifier.provider
      let own = try? accounts.registration(of: provider)
      let new =
        switch item.identifier.kind {
        case .registration: own.map { newPlaces(ofRegistration: item.payload, of: provider, $0) } ?? []
        case .credential:
          newPlaces(ofCredential: item.payload, of: provider, imported.first { $0.provider == provider }, own)
        default: [] as [NewPlace]
        }
      places[provider, default: []].add(new)
    }
    for (provider, places) in places.sorted(by: { $0.key < $1.key }) where !places.isEmpty {
      if !confirms(provider, places) { throw .importWidens(provider: provider, places) }
    }
  }

  /// Returns the stored agreement; without one, the current descriptor's.
  func sealed(_ own: Registration, of provider: String) -> Agreement {
    own.agreement ?? (try? client(descriptor(provider).descriptor, own)).map { Agreement($0) }
      ?? Agreement(destinations: [])
  }

  private static let anywhere = [NewPlace(kind: .secrets, name: "any host", before: [], place: nil)]

  private func newPlaces(ofRegistration payload: Secret, of provider: String, _ own: Registration) -> [NewPlace] {
    guard payload != own.encoded, let registration = Registration(decoding: payload) else { return [] }
    let sealed = sealed(own, of: provider)
    // A record with fewer fields than the stored one would look like a record of an earlier version.
    guard let later = registration.agreement, sealed.isOfEarlierVersion || !later.isOfEarlierVersion else {
      return Self.anywhere
    }
    return sealed.newPlaces(in: later, variables: registration.variables)
  }

  /// Returns the places that an account's own variables make and that the future agreement does not cover.
  private func newPlaces(
    ofCredential payload: Secret, of provider: String, _ imported: ImportedRegistration?, _ own: Registration?
  ) -> [NewPlace] {
    guard let variables = try? Credential(decoding: payload).variables, !variables.isEmpty else { return [] }
    let isSame = imported.map { own?.agreement == $0.registration.agreement } ?? true
    let accounts = isSame ? (try? accounts().accounts(of: provider)) ?? [] : []
    if accounts.contains(where: { $0.credential.variables == variables }) { return [] }
    // The account would make this machine read this file or variable, and send its content.
    let read = variables.sorted { $0.key < $1.key }.filter { SubjectTokenPlace($0.value) != nil }
      .map { NewPlace(kind: .setting($0.key), name: $0.value, before: [], place: nil) }
    guard let registration = imported?.registration ?? own,
      let descriptor = imported.map({ $0.made?.loaded.descriptor }) ?? (try? descriptor(provider).descriptor),
      let client = try? client(descriptor, registration, variables: variables)
    else { return Self.anywhere }
    let sealed = imported?.registration.agreement ?? sealed(registration, of: provider)
    func places(of client: Client) -> [NewPlace] {
      var new = sealed.newPlaces(in: Agreement(client))
      new.add(sealed.newPlaces(in: sealed.widened(by: client)))
      return new
    }
    // The registration's own places are compared elsewhere.
    let registered = (try? self.client(descriptor, registration)).map(places) ?? []
    return places(of: client).filter { !registered.contains($0) } + read
  }
}

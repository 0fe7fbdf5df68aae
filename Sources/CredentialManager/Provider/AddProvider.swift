import CredmgrCryptography
import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText
import CredmgrStore
import CredmgrYAML

package struct ProviderAddition: Sendable {
  private let shared: SharedDescriptor
  package var descriptor: Descriptor { shared.value }
  package var warnings: [Finding] { loaded.warnings }
  let file: [UInt8]?  // The file to install; `nil` if the descriptor is already in a provider directory.
  package let loaded: DescriptorLibrary.Loaded  // The parsed descriptor. Its places refer to the user's original file.

  package var identifier: String { descriptor.identifier }

  fileprivate init(descriptor: Descriptor, file: [UInt8]?, loaded: DescriptorLibrary.Loaded) {
    (shared, self.file, self.loaded) = (SharedDescriptor(descriptor), file, loaded)
  }
}

package struct ClientNeeds: Sendable, Equatable {
  package var needsIdentifier: Bool
  package var needsSecret: Bool  // Whether that client certainly has a secret.
  package var register: String?
  package var needsCertificate = false  // Whether that client presents a certificate.
  package var takesDocument = false  // Whether a document at a URL of the user can be that client.
  /// The required ones without a value, as "NAME=VALUE". A login prompts for its own.
  package var variables: [String] = []
}

extension ClientNeeds {
  package init(_ descriptor: Descriptor) {
    let client = descriptor.client
    (register, takesDocument) = (client.register, client.takesDocument)
    variables = descriptor.variables.filter { $0.defaultValue == nil && !$0.isOptional && !$0.isAtLogin }.map {
      $0.name + ($0.isSecret ? "=@FILE" : "=VALUE")
    }
    needsIdentifier =
      client.identifier == nil && descriptor.endpoints[.registration] == nil
      && descriptor.grants.contains(where: \.traits.needsClient)
    needsCertificate =
      needsIdentifier && (descriptor.tokenBinding == .mutualTLS || client.authentication?.usesCertificate == true)
    needsSecret =
      needsIdentifier
      && (needsCertificate || descriptor.grants.first?.traits.alwaysHasSecret == true
        || ![nil, ClientAuthentication.none].contains(client.authentication))
  }
}

extension ClientNeeds {
  /// Leaves out the variables that have a value.
  package mutating func leaveOut(_ given: [String: String]) {
    variables.removeAll { given[String($0.prefix { $0 != "=" })] != nil }
  }
}

extension CredentialSource {
  package func addition(shipped identifier: String, as name: String?) throws(CredentialError) -> ProviderAddition {
    let loaded = try descriptor(identifier)
    guard let name, name != identifier else {
      return ProviderAddition(descriptor: loaded.descriptor, file: nil, loaded: loaded)
    }
    guard DescriptorLibrary.isIdentifier(name) else { throw .provider(.malformedIdentifier(name)) }
    var descriptor = loaded.descriptor
    descriptor.identifier = name
    return ProviderAddition(
      descriptor: descriptor, file: Array("provider: \(name)\nextends: \(identifier)\n".utf8), loaded: loaded)
  }

  package func addition(
    _ bytes: [UInt8], named file: String, as name: String?
  ) throws(CredentialError) -> ProviderAddition {
    do throws(ProviderError) {
      let loaded = try home.library.load(bytes, name: file)
      guard let name, name != loaded.descriptor.identifier else {
        return ProviderAddition(descriptor: loaded.descriptor, file: bytes, loaded: loaded)
      }
      guard DescriptorLibrary.isIdentifier(name) else { throw .malformedIdentifier(name) }
      let renamed = try Self.renamed(bytes, file, to: name)
      return ProviderAddition(
        descriptor: try home.library.load(renamed, name: file).descriptor, file: renamed, loaded: loaded)
    } catch {
      throw .provider(error)
    }
  }

  /// Returns the text with another value for `provider`, in the same position.
  private static func renamed(_ bytes: [UInt8], _ file: String, to name: String) throws(ProviderError) -> [UInt8] {
    guard let root = try? Node.parse(bytes: bytes, name: file), let value = root["provider"], let old = value.text
    else { throw .malformedIdentifier(name) }
    var lines = String(decoding: bytes, as: UTF8.self).linesByScalars
    let index = value.place.line - 1
    // Start at the value's column, because the key may contain the same letters.
    guard let start = value.place.index(in: lines), let range = lines[index][start...].firstPlace(of: old) else {
      throw .malformedIdentifier(name)
    }
    lines[index].replaceSubrange(range, with: name)
    return Array(lines.joined(separator: "\n").utf8)
  }

  /// Installs a descriptor with its client registration and host claims; changes nothing if it throws. With `replaces`,
  /// omitted values stay. Calls `confirms` if tokens of existing accounts would go to new hosts, and `agrees` for
  /// unusual parts of a descriptor. A provider that `isForTokens` of the user needs no client. If `shared` is changed
  /// too, the tokens of its accounts count.
  /// Returns the registration if a client was registered, which may require an `initialAccessToken` (RFC 7591, 3).
  @discardableResult package func add(
    _ addition: ProviderAddition, clientIdentifier: String?, clientSecret: Secret?, variables: [String: String],
    initialAccessToken: Secret? = nil, replaces: Bool, isForTokens: Bool = false, shared: SharedProvider? = nil,
    confirms: Consent,
    agrees: ([NewPlace]) -> Bool = { _ in false }
  ) throws(CredentialError) -> Registration? {
    let identifier = addition.identifier
    let existing = try accountsIfAny()
    // Another process may change the client meanwhile, or log in to an account that no question names.
    var revisions: [String: Int64?] = [:]
    var previous: Registration?
    do throws(CredentialError) {
      revisions[identifier] = .some(try existing?.revision(ofRegistration: identifier))
      previous = try existing?.registration(of: identifier)
    } catch {
      // `replaces` may overwrite damaged data, whose content is unknown.
      switch error {
      case .vault(.damagedRecord) where replaces, .malformedRegistration where replaces: break
      default: throw error
      }
    }
    let needsClient = !isForTokens && addition.descriptor.grants.contains(where: \.traits.needsClient)
    // A login with a token of the user adds a provider without a client.
    let hasClient = previous?.clientIdentifier.isEmpty == false
    if previous != nil, !replaces, hasClient || !needsClient { throw .alreadyAdded(provider: identifier) }
    if !replaces { try requireFreeFile(for: addition) }
    // A client that another issuer knows is not sent to this one.
    let isForeign = previous?.isOfOtherIssuer(than: addition.descriptor) == true
    let agreedClient = hasClient && !isForeign ? previous?.clientIdentifier : nil
    let known = clientIdentifier ?? agreedClient ?? addition.descriptor.client.identifier
    let canRegister = !isForTokens && addition.descriptor.endpoints[.registration] != nil && clientSecret == nil
    var needs = ClientNeeds(addition.descriptor)
    if clientIdentifier?.isEmpty == true || known == nil && !canRegister && needsClient {
      needs.needsIdentifier = true
      needs.leaveOut(variables)
      throw .clientIdentifierMissing(provider: identifier, needs)
    }
    // Drop values of variables that the new descriptor no longer has.
    var values = previous?.variables.filter { addition.descriptor.variable($0.key) != nil } ?? [:]
    values.merge(variables) { _, new in new }
    // The new descriptor alone decides whether a newly supplied value is secret.
    var agreed = previous?.agreement
    agreed?.secrets.subtract(variables.keys)
    var registration = Registration(
      clientIdentifier: known ?? "", clientSecret: clientSecret ?? (isForeign ? nil : previous?.clientSecret),
      variables: values, redirect: previous == nil ? Descriptor.standardRedirect(of: identifier) : previous?.redirect,
      // Another client's registration does not apply.
      registered: known == previous?.clientIdentifier ? previous?.registered : nil, agreement: agreed)
    let client = try client(addition.descriptor, registration)
    if clientSecret != nil { try requireUsableSecret(of: client) }
    // Otherwise each login would fail.
    try core(identifier, client.checkAssertions())
    let registers = canRegister ? try self.registers(client, given: clientIdentifier, previous: previous) : false
    if registers, let words = try existing?.waitingImport(at: identifier) {
      throw .importWaits(provider: identifier, command: words)
    }
    if registers { _ = try network() }
    let own = try existing?.accounts(of: identifier) ?? []
    let further = (shared?.accounts ?? []).filter { account in !own.contains { $0.name == account.name } }
    let kept = KeptSecrets(
      accounts: own + further,
      unreadable: (shared?.unreadable ?? []).filter { name in !own.contains { $0.name == name } },
      clientSecret: clientSecret == nil && previous?.clientSecret != nil,
      variable: keepsSecretVariable(addition, previous, given: variables),
      login: try existing?.hasUnfinishedLogin(at: identifier) ?? false)
    let ownFiles = ownFiles(of: addition.loaded, installing: addition.file)
    var confirmed: [NewPlace] = []
    func confirmsAndNotes(_ provider: String, accounts: [String], places: [NewPlace]) -> Bool {
      confirmed += places
      return confirms(provider, accounts, places)
    }
    let permit = try consent(
      to: addition.loaded, client, ownFiles: ownFiles, replacing: agreed, kept: kept, confirms: confirmsAndNotes)
    if let shared, let agreed = shared.agreement {
      // This machine may have agreed to more than the vault.
      let now = Agreement(client, ownFiles: ownFiles, files: addition.loaded.digest)
      try requireConsent(
        addition.loaded, client, now: now, replacing: agreed, kept: KeptSecrets(accounts: shared.accounts)
      ) { provider, accounts, places in
        let new = places.filter { place in !confirmed.contains { $0.kind == place.kind && $0.name == place.name } }
        return new.isEmpty || confirmsAndNotes(provider, accounts: accounts, places: new)
      }
    }
    var dependents: [String: Registration?] = [:]
    if let existing {
      dependents = try dependentProviders(of: addition, existing, revisions: &revisions, confirmsAndNotes)
    }
    let isOwn = !ownFiles.isEmpty
    let others = try OtherProviders(self, than: identifier, isOwn: isOwn)
    let places = others.peculiarities(of: client, addition.loaded, beyond: agreed).filter { place in
      // Ask only once whether tokens may go to a place.
      !place.isBorrowed || !confirmed.contains { $0.name == place.name }
    }
    if !places.isEmpty, !agrees(places) { throw .peculiar(provider: identifier, places, isBeingAdded: true) }
    // Open the vault before installing: a descriptor with another registration would send a secret to the wrong place.
    let accounts = try accounts(.readWrite)
    func changed(_ provider: String) -> CredentialError {
      if !replaces, provider == identifier { return .alreadyAdded(provider: provider) }
      return .vault(.conflict(Accounts.registration(provider), actual: nil))
    }
    func requireUnchanged() throws(CredentialError) {
      for (provider, revision) in revisions where try accounts.revision(ofRegistration: provider) != revision {
        throw changed(provider)
      }
    }
    try requireUnchanged()
    if registers {
      let (redirect, agreement) = (registration.redirect, registration.agreement)
      registration = try register(permit, variables: values, initialAccessToken: initialAccessToken)
      (registration.redirect, registration.agreement) = (redirect, agreement)
    }
    registration.seal(addition.loaded, try self.client(addition.descriptor, registration), ownFiles: ownFiles)
    if let previous, registration.digest() != previous.digest() {
      try requireNoLogin(at: identifier, registration, accounts)
    }
    dependents[identifier] = registration
    let (changes, descriptor) = (dependents, AccountID("/descriptor", identifier))
    // The file and the registration belong together.
    try withAccountLock(descriptor, waiting: { _ in }) { _ throws(CredentialError) in
      try requireUnchanged()
      let uninstall = try install(addition)
      do throws(CredentialError) {
        try store(changes, with: [noting(.addProvider, of: identifier)], after: revisions)
      } catch .alreadyAdded(let provider) {
        try uninstall()
        throw changed(provider)
      }
    }
    if let conflict = others.conflict(of: client) { notice(.loginsRefused(conflict)) }
    return registers ? registration : nil
  }

  /// Throws if a new secret is not the key or the certificate that the descriptor requires, so that it never replaces a
  /// secret that works.
  private func requireUsableSecret(of client: Client) throws(CredentialError) {
    let provider = client.descriptor.identifier
    try core(provider, client.checkSecret())
    if client.usesCertificate, let fault = client.certificateFault(at: clock.now()) {
      throw .oauth(.clientCertificate(fault), provider: provider)
    }
  }

  /// Whether a secret value stays. Checks both descriptors, because the new one could omit `secret`.
  func keepsSecretVariable(_ addition: ProviderAddition, _ previous: Registration?, given: [String: String]) -> Bool {
    let before = (try? home.library.load(addition.identifier))?.descriptor.variables ?? []
    let names = Set((addition.descriptor.variables + before).filter(\.isSecret).map(\.name))
      .union(previous?.agreement?.secrets ?? [])
    return !names.isDisjoint(with: previous?.variables.keys.filter { given[$0] == nil } ?? [])
  }

  /// Whether a descriptor with other contents has the addition's name.
  package func hasOtherDescriptor(than addition: ProviderAddition) -> Bool {
    guard let file = addition.file, let path = home.library.path(of: addition.identifier) else { return false }
    return (try? Home.descriptor(at: path)) != file
  }

  /// Throws if the addition would overwrite a file with other contents, which may exist nowhere else.
  private func requireFreeFile(for addition: ProviderAddition) throws(CredentialError) {
    guard let file = addition.file else { return }
    let path = home.userProviders + "/" + addition.identifier + ".yaml"
    guard File.exists(path) || File.isLink(path), (try? Home.descriptor(at: path)) != file else { return }
    throw .descriptorExists(path)
  }

  /// Throws while a process logs in, which has asked the provider as it was, or if only an earlier registration than
  /// this one can finish an import.
  func requireNoLogin(
    at provider: String, _ registration: Registration, _ accounts: Accounts
  ) throws(CredentialError) {
    for id in try accounts.pending(of: provider) where accounts.store.isLocked(id) {
      // A refresh has its own check.
      if try accounts.note(id)?.exchange == .login { throw .loginUnderWay(provider: provider, account: id.name) }
    }
    if let words = try accounts.waitingImport(at: provider, besides: registration) {
      throw .importWaits(provider: provider, command: words)
    }
  }

  /// Writes the descriptor, and returns the function that restores the file before.
  private func install(_ addition: ProviderAddition) throws(CredentialError) -> () throws(CredentialError) -> Void {
    guard let file = addition.file else { return { () throws(CredentialError) in } }
    try wrapping(CredentialError.system, File.createDirectory(home.userProviders))
    let path = home.userProviders + "/" + addition.identifier + ".yaml"
    // Write to the target of a symbolic link, for example in a dotfiles repository.
    let target = Path.resolved(path) ?? path
    let before = try? File.read(target, limit: 1 << 20)
    try wrapping(CredentialError.system, File.replace(target, file))
    return { () throws(CredentialError) in
      do throws(POSIXError) {
        if let before { try File.replace(target, before) } else { _ = try File.remove(path) }
      } catch { throw .system(error) }
    }
  }

  /// Asks for consent to the descriptors that extend the installed one; returns the registrations that change.
  private func dependentProviders(
    of addition: ProviderAddition, _ accounts: Accounts, revisions: inout [String: Int64?], _ confirms: Consent
  ) throws(CredentialError) -> [String: Registration?] {
    guard let file = addition.file else { return [:] }
    let path = home.userProviders + "/" + addition.identifier + ".yaml"
    let library = home.library(replacing: [path: file])
    var dependents: [String: Registration?] = [:]
    for provider in try accounts.addedProviders() where provider != addition.identifier {
      let revision = try accounts.revision(ofRegistration: provider)
      guard var registration = try accounts.registration(of: provider), let loaded = try? library.load(provider),
        loaded.bases.contains(path), let client = try? client(loaded.descriptor, registration)
      else { continue }
      revisions[provider] = .some(revision)
      let before = registration.agreement
      let keepsVariable = client.descriptor.variables.contains { $0.isSecret && registration.variables[$0.name] != nil }
      let now = Agreement(client, ownFiles: ownFiles(of: loaded), files: loaded.digest)
      // Descriptors that extend this one need consent for the change, even without stored secrets.
      let kept = KeptSecrets(
        accounts: try accounts.accounts(of: provider), clientSecret: registration.clientSecret != nil,
        variable: keepsVariable, login: true)
      try requireConsent(loaded, client, now: now, replacing: before, kept: kept, confirms: confirms)
      registration.seal(loaded, client, ownFiles: now.ownFiles ?? "")
      if registration.agreement != before { dependents[provider] = registration }
    }
    return dependents
  }
}

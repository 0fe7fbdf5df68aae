import Cryptography
import Descriptors
import OAuth
import Platform
import Text
import Store
import YAML

package struct ProviderAddition: Sendable {
  package let descriptor: Descriptor
  package var warnings: [Finding] { loaded.warnings }
  let file: [UInt8]?  // The file to install; `nil` when the descriptor lies along the path already.
  let loaded: DescriptorLibrary.Loaded  // What was read, whose places are those of the file that the person knows.

  package var identifier: String { descriptor.identifier }
}

package struct ClientNeeds: Sendable, Equatable {
  package var needsIdentifier: Bool
  package var needsSecret: Bool  // Whether that client has a secret for sure.
  package var register: String?

}

extension ClientNeeds {
  /// An OAuth 1.0a client always has a secret.
  package init(_ descriptor: Descriptor) {
    let client = descriptor.client
    register = client.register
    needsIdentifier =
      client.identifier == nil && descriptor.endpoints[.registration] == nil
      && descriptor.grants.contains(where: \.traits.needsClient)
    needsSecret =
      needsIdentifier
      && (descriptor.grants.first?.traits.binding == .signature
        || [.clientSecretBasic, .clientSecretPost, .clientSecretJWT, .privateKeyJWT].contains(client.authentication))
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

  /// The text with another identifier: the value of `provider` is exchanged where it stands.
  private static func renamed(_ bytes: [UInt8], _ file: String, to name: String) throws(ProviderError) -> [UInt8] {
    guard let root = try? Node.parse(bytes: bytes, name: file), let value = root["provider"], let old = value.text
    else { throw .malformedIdentifier(name) }
    var lines = String(decoding: bytes, as: UTF8.self).linesByScalars
    let index = value.place.line - 1
    // Before its column stands the key, which may hold the same letters.
    guard let start = value.place.index(in: lines), let range = lines[index][start...].firstPlace(of: old) else {
      throw .malformedIdentifier(name)
    }
    lines[index].replaceSubrange(range, with: name)
    return Array(lines.joined(separator: "\n").utf8)
  }

  /// Installs a descriptor with the client's registration and its claims of hosts; changes nothing when it throws. With
  /// `replaces`, what is not given stays. `confirms` is asked if tokens of existing accounts would go to new hosts.
  /// `agrees` is asked about what is unusual in a descriptor.
  /// Returns the registration if a client was registered, which may take an `initialAccessToken` (RFC 7591, 3).
  @discardableResult package func add(
    _ addition: ProviderAddition, clientIdentifier: String?, clientSecret: Secret?, variables: [String: String],
    initialAccessToken: Secret? = nil, replaces: Bool, confirms: Consent, agrees: ([NewPlace]) -> Bool = { _ in false }
  ) throws(CredentialError) -> Registration? {
    let identifier = addition.identifier
    let existing = try accountsIfAny()
    var previous: Registration?
    do throws(CredentialError) { previous = try existing?.registration(of: identifier) } catch {
      // What is damaged is replaced, if that is what is wanted; what it was is not known.
      switch error {
      case .vault(.damagedRecord) where replaces, .malformedRegistration where replaces: break
      default: throw error
      }
    }
    if previous != nil, !replaces { throw .alreadyAdded(provider: identifier) }
    let known = clientIdentifier ?? previous?.clientIdentifier ?? addition.descriptor.client.identifier
    let canRegister = addition.descriptor.endpoints[.registration] != nil && clientSecret == nil
    var needs = ClientNeeds(addition.descriptor)
    let needsClient = addition.descriptor.grants.contains(where: \.traits.needsClient)
    if clientIdentifier?.isEmpty == true || known == nil && !canRegister && needsClient {
      needs.needsIdentifier = true
      throw .clientIdentifierMissing(provider: identifier, needs)
    }
    // Values of variables that the new descriptor does not have any more are let go.
    var values = previous?.variables.filter { addition.descriptor.variable($0.key) != nil } ?? [:]
    values.merge(variables) { _, new in new }
    // A value that is given now is no more secret than the new descriptor says.
    var agreed = previous?.agreement
    agreed?.secrets.subtract(variables.keys)
    var registration = Registration(
      clientIdentifier: known ?? "", clientSecret: clientSecret ?? previous?.clientSecret, variables: values,
      redirect: previous == nil ? Descriptor.standardRedirect(of: identifier) : previous?.redirect,
      // Of another client, what one was registered with says nothing.
      registered: known == previous?.clientIdentifier ? previous?.registered : nil, agreement: agreed)
    let client = try client(addition.descriptor, registration)
    let registers = canRegister ? try self.registers(client, given: clientIdentifier, previous: previous) : false
    if registers { _ = try network() }
    let kept = KeptSecrets(
      accounts: try existing?.accounts(of: identifier) ?? [],
      clientSecret: clientSecret == nil && previous?.clientSecret != nil,
      variable: keepsSecretVariable(addition, previous, given: variables),
      login: try existing?.hasUnfinishedLogin(at: identifier) ?? false)
    let ownFiles = ownFiles(of: addition.loaded, installing: addition.file)
    var confirmed: [NewPlace] = []
    func confirmsAndNotes(_ accounts: [String], _ places: [NewPlace]) -> Bool {
      confirmed += places
      return confirms(accounts, places)
    }
    let permit = try consent(
      to: addition.loaded, client, ownFiles: ownFiles, replacing: agreed, kept: kept, confirms: confirmsAndNotes)
    var dependents: [String: Registration?] = [:]
    if let existing { dependents = try dependentProviders(of: addition, existing, confirmsAndNotes) }
    let isOwn = addition.file != nil || ownFile(of: addition.loaded) != nil
    let others = try OtherProviders(self, than: identifier, isOwn: isOwn)
    let places = others.peculiarities(of: client, addition.loaded, beyond: agreed).filter { place in
      // Nobody is asked twice whether tokens go to a place.
      !place.isBorrowed || !confirmed.contains { $0.name == place.name }
    }
    if !places.isEmpty, !agrees(places) { throw .peculiar(provider: identifier, places, isBeingAdded: true) }
    // Before the descriptor is there: one with another's registration would send a secret to the wrong place.
    _ = try accounts(.readWrite)
    if registers {
      let (redirect, agreement) = (registration.redirect, registration.agreement)
      registration = try register(permit, variables: values, initialAccessToken: initialAccessToken)
      (registration.redirect, registration.agreement) = (redirect, agreement)
    }
    registration.seal(
      addition.descriptor, try self.client(addition.descriptor, registration), ownFiles: ownFiles)
    try install(addition)
    dependents[identifier] = registration
    try store(dependents, with: [noting(.addProvider, of: identifier)])
    if let conflict = others.conflict(of: client) { notice(.loginsRefused(conflict)) }
    return registers ? registration : nil
  }

  /// Whether a secret value stays. Either descriptor may call it one: the new one could leave the word out.
  func keepsSecretVariable(_ addition: ProviderAddition, _ previous: Registration?, given: [String: String]) -> Bool {
    let before = (try? home.library.load(addition.identifier))?.descriptor.variables ?? []
    let names = Set((addition.descriptor.variables + before).filter(\.isSecret).map(\.name))
      .union(previous?.agreement?.secrets ?? [])
    return !names.isDisjoint(with: previous?.variables.keys.filter { given[$0] == nil } ?? [])
  }

  private func install(_ addition: ProviderAddition) throws(CredentialError) {
    guard let file = addition.file else { return }
    try wrapping(CredentialError.system, File.createDirectory(home.userProviders))
    let path = home.userProviders + "/" + addition.identifier + ".yaml"
    // A link, into a repository of such files, stays one.
    try wrapping(CredentialError.system, File.replace(Path.resolved(path) ?? path, file))
  }

  /// Asks the same for providers whose descriptors extend the installed one; returns the registrations that change.
  private func dependentProviders(
    of addition: ProviderAddition, _ accounts: Accounts, _ confirms: Consent
  ) throws(CredentialError) -> [String: Registration?] {
    guard let file = addition.file else { return [:] }
    let path = home.userProviders + "/" + addition.identifier + ".yaml"
    let library = home.library(replacing: [path: file])
    var dependents: [String: Registration?] = [:]
    for provider in try accounts.addedProviders() where provider != addition.identifier {
      guard var registration = try accounts.registration(of: provider), let loaded = try? library.load(provider),
        loaded.bases.contains(path), let client = try? client(loaded.descriptor, registration)
      else { continue }
      let before = registration.agreement
      let keepsVariable = client.descriptor.variables.contains { $0.isSecret && registration.variables[$0.name] != nil }
      let now = Agreement(client, ownFiles: ownFiles(of: loaded))
      // What extends the descriptor was agreed to as it was, also if nothing is kept for it.
      let kept = KeptSecrets(
        accounts: try accounts.accounts(of: provider), clientSecret: registration.clientSecret != nil,
        variable: keepsVariable, login: true)
      try requireConsent(loaded, client, now, replacing: before, kept: kept, confirms: confirms)
      registration.seal(loaded.descriptor, client, ownFiles: now.ownFiles ?? "")
      if registration.agreement != before { dependents[provider] = registration }
    }
    return dependents
  }
}

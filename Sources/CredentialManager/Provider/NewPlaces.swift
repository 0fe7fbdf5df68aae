import Descriptors
import HTTP
import OAuth
import Text
import YAML

/// A place that a descriptor names, and to which nobody agreed.
package struct NewPlace: Sendable, Equatable {
  package enum Kind: Sendable, Equatable {
    case secrets  // Gets the client's secret and tokens.
    case tokens
    case redirect  // Gets the code, or the token, of a login.
    case devicePage  // Where a person enters a device's code.
    case issuer  // Whose answers are taken.
  }

  package let kind: Kind
  package let name: String  // An origin over TLS without its scheme.
  package let before: [String]  // What was agreed to and is not named any more.
  package let place: Place?  // Where the descriptor names it; `nil` where no line does.
}

/// What a provider keeps when it is added anew, and what would go to the places of its new descriptor.
struct KeptSecrets {
  var accounts: [Account] = []
  var clientSecret = false
  var variable = false

  var isEmpty: Bool { accounts.isEmpty && !clientSecret && !variable }
  /// A secret variable goes wherever a token does.
  var subject: NewPlace.Kind { accounts.isEmpty && !variable ? .secrets : .tokens }
}

extension Agreement {
  /// What a client's descriptor names beyond this one. Fewer places are fine, and so is an issuer that was not known.
  func newPlaces(
    of client: Client, _ loaded: DescriptorLibrary.Loaded, registration: Registration,
    for subject: NewPlace.Kind = .tokens
  ) -> [NewPlace] {
    let places = AgreedPlaces(client)
    return newPlaces(in: Agreement(client), for: subject) {
      isHarmless($0, in: loaded.descriptor, registration)
    } at: {
      kind, text in
      switch kind {
      case .secrets, .tokens:
        loaded.place(ofHost: Self.withoutScheme(text)) { places.origins(of: [$0]).map(Self.withoutScheme) }
      case .redirect: loaded.place(of: ["redirect"])
      case .devicePage: loaded.place(of: ["device", "verification_uri_complete"])
      case .issuer: loaded.place(of: ["issuer"])
      }
    }.filter { $0.kind != .devicePage || !isWithinOldHosts($0.name) }
  }

  /// The same of two sealed agreements, where no descriptor is looked at.
  func newPlaces(in later: Agreement) -> [NewPlace] {
    newPlaces(in: later, for: .tokens, isHarmless: { redirect == nil || Self.staysHere($0) }, at: { _, _ in nil })
  }

  private func newPlaces(
    in later: Agreement, for subject: NewPlace.Kind, isHarmless: (_ redirect: String) -> Bool,
    at place: (NewPlace.Kind, String) -> Place?
  ) -> [NewPlace] {
    let origins = subject == .tokens ? later.tokenOrigins : later.secretOrigins
    let gone = tokenOrigins.filter { !later.tokenOrigins.contains($0) }.map(shown)
    var new = origins.filter { !includes($0, later.bounds) }.map { origin in
      let kind: NewPlace.Kind = later.secretOrigins.contains(origin) ? .secrets : .tokens
      return NewPlace(kind: kind, name: shown(origin), before: gone, place: place(kind, origin))
    }
    func add(_ kind: NewPlace.Kind, _ text: String?, before: String?) {
      guard let text, text != before else { return }
      new.append(NewPlace(kind: kind, name: text, before: before.map { [$0] } ?? [], place: place(kind, text)))
    }
    if let text = later.redirect, !isHarmless(text) { add(.redirect, text, before: redirect) }
    add(.devicePage, later.devicePage, before: devicePage)
    if issuer != nil { add(.issuer, later.issuer, before: issuer) }
    return new
  }

  private func includes(_ origin: String, _ bounds: OriginPattern.Bounds) -> Bool {
    let later = OriginPattern(origin)
    let isBounded = later.names.allSatisfy { self.bounds[$0] == nil || self.bounds[$0] == bounds[$0] }
    return isBounded && tokenOrigins.contains { OriginPattern($0).includes(later) }
  }

  private static func staysHere(_ redirect: String) -> Bool {
    if redirect == "oob" || redirect == "urn:ietf:wg:oauth:2.0:oob" { return true }
    return (try? URI(parsing: redirect)).map { $0.scheme == "http" && $0.isLoopback } ?? false
  }

  /// Whether a redirect comes back to this machine, shows the code to the person, or was not noted once.
  private func isHarmless(_ text: String, in descriptor: Descriptor, _ registration: Registration) -> Bool {
    if Self.staysHere(text) { return true }
    guard isOfEarlierVersion, redirect == nil else { return false }
    // An earlier version did not note it. Its hosts have a page elsewhere, and a variable's value is the person's own.
    let names = descriptor.redirect.template.names
    return isWithinOldHosts(text) || (!names.isEmpty && names.allSatisfy { registration.variables[$0] != nil })
      || SchemeHandler.scheme(of: text).map { !["http", "https"].contains($0) } == true
  }

  private func isWithinOldHosts(_ text: String) -> Bool {
    isOfEarlierVersion && OriginPattern.texts(of: text).allSatisfy { includes($0, [:]) }
  }

  private static func withoutScheme(_ origin: String) -> String {
    origin.firstPlace(of: "://").map { String(origin[$0.upperBound...]) } ?? origin
  }

  /// A person knows an origin by its host. The scheme shows where nothing else is new.
  private func shown(_ origin: String) -> String {
    let name = Self.withoutScheme(origin)
    let isKnown = tokenOrigins.contains { $0 != origin && Self.withoutScheme($0) == name }
    return isKnown && !isOfEarlierVersion ? origin : name
  }
}

extension CredentialSource {
  /// Asked before what is kept for a provider can go to places to which nobody agreed.
  package typealias Consent = (_ accounts: [String], _ places: [NewPlace]) -> Bool

  /// The person's own file that a descriptor is made of; `nil` where all came with the program or the system.
  func ownFile(of loaded: DescriptorLibrary.Loaded) -> String? {
    ([loaded.path] + loaded.bases).first { $0.hasPrefix(home.userProviders + "/") }
  }

  /// A descriptor is a file that strangers send each other: one that takes the place of another must not carry existing
  /// secrets to new places unasked. Where nobody noted what was `agreed`, the descriptor in force tells.
  func requireConsent(
    _ loaded: DescriptorLibrary.Loaded, _ client: Client, replacing agreed: Agreement?, kept: KeptSecrets,
    confirms: Consent
  ) throws(CredentialError) {
    guard !kept.isEmpty else { return }
    let provider = client.descriptor.identifier
    let previous = try accountsIfAny()?.registration(of: provider) ?? Registration(clientIdentifier: "")
    // A descriptor that cannot be read any more tells nothing: then every place is new.
    let agreed =
      agreed ?? (try? self.client(descriptor(provider).descriptor, previous)).map { Agreement($0) }
      ?? Agreement(destinations: [])
    let places = agreed.newPlaces(of: client, loaded, registration: previous, for: kept.subject)
    guard !places.isEmpty else { return }
    let names = kept.accounts.map(\.name)
    if !confirms(names, places) { throw .destinationChange(provider: provider, accounts: names, places: places) }
  }

  /// The places that `add` would ask about if this descriptor replaced the one that was added before. Throws where
  /// nobody can tell: the vault is locked, a variable has no value.
  package func newPlaces(
    of provider: String, _ bytes: [UInt8], named file: String
  ) throws(CredentialError) -> [NewPlace] {
    guard let existing = try accountsIfAny(), let previous = try existing.registration(of: provider) else { return [] }
    let addition = try addition(bytes, named: file, as: nil)
    var registration = previous
    registration.variables = previous.variables.filter { addition.descriptor.variable($0.key) != nil }
    var found: [NewPlace] = []
    try requireConsent(
      addition.loaded, try client(addition.descriptor, registration), replacing: previous.agreement,
      kept: KeptSecrets(
        accounts: existing.accounts(of: addition.identifier), clientSecret: previous.clientSecret != nil,
        variable: keepsSecretVariable(addition, previous, given: [:]))
    ) { _, places in
      found = places
      return true
    }
    return found
  }
}

import Descriptors
import HTTP
import OAuth
import Text
import YAML

/// A place that a descriptor names, and to which nobody agreed.
package struct NewPlace: Sendable, Equatable {
  package enum Kind: Sendable, Equatable {
    /// Gets the client's secret and tokens.
    case secrets
    /// Gets tokens.
    case tokens
    /// Gets the code, or the token, of a login.
    case redirect
    /// Where a person enters a device's code.
    case devicePage
    /// Whose answers are taken.
    case issuer
  }

  package let kind: Kind
  /// An origin over TLS without its scheme.
  package let name: String
  /// What was agreed to and is not named any more.
  package let before: [String]
  /// Where the descriptor names it; `nil` where no line does.
  package let place: Place?
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
  /// What a later agreement has beyond this one. Fewer places are fine, and so is an issuer that was not known before.
  func newPlaces(
    in later: Agreement, _ loaded: DescriptorLibrary.Loaded, _ registration: Registration, _ client: Client,
    for subject: NewPlace.Kind = .tokens
  ) -> [NewPlace] {
    let places = AgreedPlaces(client)
    let origins = subject == .tokens ? later.tokenOrigins : later.secretOrigins
    let gone = tokenOrigins.filter { !later.tokenOrigins.contains($0) }.map(shown)
    var new = origins.filter { !includes($0, later.bounds) }.map { origin in
      let name = shown(origin)
      let place = loaded.place(ofHost: Self.withoutScheme(origin)) { places.origins(of: [$0]).map(Self.withoutScheme) }
      return NewPlace(
        kind: later.secretOrigins.contains(origin) ? .secrets : .tokens, name: name, before: gone, place: place)
    }
    func add(_ kind: NewPlace.Kind, _ before: String?, _ text: String, _ key: String...) {
      new.append(NewPlace(kind: kind, name: text, before: before.map { [$0] } ?? [], place: loaded.place(of: key)))
    }
    if let text = later.redirect, text != redirect, !isHarmless(text, loaded, registration) {
      add(.redirect, redirect, text, "redirect")
    }
    if let page = later.devicePage, page != devicePage, !isWithinOldHosts(page) {
      add(.devicePage, devicePage, page, "device", "verification_uri_complete")
    }
    if let text = later.issuer, let issuer, text != issuer { add(.issuer, issuer, text, "issuer") }
    return new
  }

  /// The same of two sealed agreements, where no descriptor is looked at.
  func newPlaces(in later: Agreement) -> [NewPlace] {
    func place(_ kind: NewPlace.Kind, _ before: [String], _ name: String) -> NewPlace {
      NewPlace(kind: kind, name: name, before: before, place: nil)
    }
    let gone = tokenOrigins.filter { !later.tokenOrigins.contains($0) }.map(shown)
    var new = later.tokenOrigins.filter { !includes($0, later.bounds) }.map {
      place(later.secretOrigins.contains($0) ? .secrets : .tokens, gone, shown($0))
    }
    if let text = later.redirect, let redirect, text != redirect, !Self.staysHere(text) {
      new.append(place(.redirect, [redirect], text))
    }
    if let page = later.devicePage, page != devicePage {
      new.append(place(.devicePage, devicePage.map { [$0] } ?? [], page))
    }
    if let text = later.issuer, let issuer, text != issuer { new.append(place(.issuer, [issuer], text)) }
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
  private func isHarmless(_ text: String, _ loaded: DescriptorLibrary.Loaded, _ registration: Registration) -> Bool {
    if Self.staysHere(text) { return true }
    guard isOfEarlierVersion, redirect == nil else { return false }
    // An earlier version did not note it. Its hosts have a page elsewhere, and a variable's value is the person's own.
    let names = loaded.descriptor.redirect.template.names
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
    let places = agreed.newPlaces(in: Agreement(client), loaded, previous, client, for: kept.subject)
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

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
    case scheme(owner: String)  // The same in the place of another application.
    case borrower(owner: String, page: String)  // Gets what a person gives on another provider's page.
    case devicePage  // Where a person enters a device's code.
    case othersDevicePage(owner: String)  // The same, at another provider.
    case issuer  // Whose answers are taken.
    case anyIssuer  // Answers of any issuer are taken.
    case audience  // Can use assertions of the client.
    case shownSecret  // A variable that was secret, and is shown.
    case setting(String)  // A key whose value protects less, or takes a secret from another place.
  }

  package let kind: Kind
  package var isBorrowed: Bool { if case .borrower = kind { true } else { false } }
  package let name: String  // An origin over TLS without its scheme.
  package let before: [String]  // What was agreed to and is not named any more.
  package let place: Place?  // Where the descriptor names it; `nil` where no line does.
}

/// What a provider keeps when it is added anew, and what would go to the places of its new descriptor.
struct KeptSecrets {
  var accounts: [Account] = []
  var clientSecret = false
  var variable = false
  var login = false  // A login that was interrupted may have a token.

  var isEmpty: Bool { accounts.isEmpty && !clientSecret && !variable && !login }
  /// A secret variable goes wherever a token does.
  var subject: NewPlace.Kind { accounts.isEmpty && !variable && !login ? .secrets : .tokens }
}

extension Agreement {
  /// What a later agreement has beyond this one. Fewer places are fine, and so is an issuer that was not known before.
  ///
  /// The descriptor of the later one tells where a place stands, and what it calls secret; of two sealed agreements,
  /// there is none. `variables` are the registered ones. Where the later one is not sealed, this one goes on to bound
  /// the clusters.
  func newPlaces(
    in later: Agreement, _ loaded: DescriptorLibrary.Loaded? = nil, variables: [String: String] = [:],
    for subject: NewPlace.Kind = .tokens, isSealedAnew: Bool = true
  ) -> [NewPlace] {
    var new: [NewPlace] = []
    func add(_ kind: NewPlace.Kind, _ name: String, before: [String], at place: Place?) {
      // What gets the client's secret stands first, and gets tokens as well.
      if new.contains(where: { $0.name == name && [kind, .secrets].contains($0.kind) }) { return }
      new.append(NewPlace(kind: kind, name: name, before: before, place: place))
    }
    let gone = origins.filter { !later.origins.contains($0) }.map(shown)
    func add(_ kind: NewPlace.Kind, origin: String) {
      let place = loaded?.place(ofHost: Self.withoutScheme(origin)) { template in
        later.origins(writtenAs: template).map(Self.withoutScheme)
      }
      add(kind, shown(origin), before: gone, at: place)
    }
    for origin in later.texts(.endpoints) where !includes(origin, of: later, as: [.endpoints]) {
      add(.secrets, origin: origin)
    }
    let areCarried = !Self.protocolSecrets.isDisjoint(with: later.texts(.carried))
    for origin in later.texts(.presented) where !includes(origin, of: later, as: [.presented, .endpoints]) {
      add(areCarried ? .secrets : .tokens, origin: origin)
    }
    if subject == .tokens {
      for origin in isSealedAnew || later.places[.clusters] != nil ? newClusters(in: later) : [] {
        add(.tokens, origin: origin)
      }
      // What is claimed is what the templates became, unless somebody wrote the agreement.
      let claimed = (later.claims ?? []).flatMap { OriginPattern.texts(of: $0.host) }
      for origin in later.texts(.helpers) + claimed
      where !includes(origin, of: later, as: [.helpers, .presented, .endpoints]) { add(.tokens, origin: origin) }
    }
    func key(_ keys: String...) -> Place? { loaded?.place(of: keys) }
    for text in later.texts(.redirect) where !isHarmless(redirect: text, of: later, variables: variables) {
      add(.redirect, text, before: texts(.redirect), at: key("redirect"))
    }
    for text in later.texts(.devicePage) where !texts(.devicePage).contains(text) && !isWithinOldHosts(text) {
      add(.devicePage, text, before: texts(.devicePage), at: key("device", "verification_uri_complete"))
    }
    let (issuers, laterIssuers) = (texts(.issuer), later.texts(.issuer))
    for text in laterIssuers where !issuers.isEmpty && !issuers.contains(text) {
      add(.issuer, text, before: issuers, at: key("issuer"))
    }
    if !issuers.isEmpty, laterIssuers.isEmpty { add(.anyIssuer, "(none)", before: issuers, at: key("issuer")) }
    for text in later.texts(.audience) where !(texts(.audience) + issuers).contains(text) && !isWithinOldHosts(text) {
      add(.audience, text, before: texts(.audience), at: key("assertion", "claims", "aud") ?? key("issuer"))
    }
    let carried = later.secrets.union(Self.protocolSecrets).intersection(later.texts(.carried))
    for name in carried.subtracting(texts(.carried)).sorted() where !isOfEarlierVersion {
      add(.shownSecret, name, before: [], at: key("extra_headers") ?? key("header_style"))
    }
    for name in shownSecrets(in: later, loaded) { add(.shownSecret, name, before: [], at: key("variables", name)) }
    for (key, value, before) in newSettings(in: later) {
      add(.setting(key), value, before: [before].compactMap(\.self), at: loaded?.place(ofSetting: key))
    }
    return new
  }

  /// The secret variables that are shown later. A registration marks what was secret, so the descriptor has to say it.
  private func shownSecrets(in later: Agreement, _ loaded: DescriptorLibrary.Loaded?) -> [String] {
    secrets.subtracting(shownSecrets).filter { name in
      guard let loaded else { return !later.secrets.contains(name) || later.shownSecrets.contains(name) }
      return loaded.descriptor.variable(name)?.isSecret == false
    }.sorted()
  }

  /// Where tokens may go, in all ways.
  var origins: [String] { Set(Kind.ofOrigins.flatMap(texts)).sorted() }

  private func origins(writtenAs template: Template) -> [String] {
    let written = template.origin.text
    return Kind.ofOrigins.flatMap { places[$0]?[written] ?? [] }
  }

  private func newClusters(in later: Agreement) -> [String] {
    let (own, others) = (places[.clusters] ?? places[.presented], later.places[.clusters] ?? later.places[.presented])
    if own == nil { return [] }
    guard others != nil else { return ["any cluster"] }
    let kind: Kind = later.places[.clusters] == nil ? .presented : .clusters
    let agreed: [Kind] = places[.clusters] == nil ? [.presented, .endpoints] : [.clusters]
    return later.texts(kind).filter { !includes($0, of: later, as: agreed) }
  }

  /// Whether an origin of a later agreement is one that was agreed to for these kinds, with the same bounds.
  func includes(_ origin: String, of later: Agreement, as kinds: [Kind]) -> Bool {
    let other = OriginPattern(origin)
    let isBounded = other.names.allSatisfy { name in
      bounds[name] == later.bounds[name] || (isOfEarlierVersion && bounds[name] == nil)
    }
    return isBounded && kinds.flatMap(texts).contains { OriginPattern($0).includes(other) }
  }

  /// Whether a redirect was agreed to, comes back to this machine, shows the code to the person, or was not noted once.
  private func isHarmless(redirect text: String, of later: Agreement, variables: [String: String]) -> Bool {
    if texts(.redirect).contains(text) || text == "oob" || text == "urn:ietf:wg:oauth:2.0:oob" { return true }
    // Another address of loopback may be another user's: nothing listens there.
    if let uri = try? URI(parsing: text), uri.scheme == "http", ["127.0.0.1", "localhost", "[::1]"].contains(uri.host) {
      return true
    }
    guard isOfEarlierVersion, places[.redirect] == nil else { return false }
    // An earlier version did not note it. Its hosts have a page elsewhere, and a variable's value is the person's own.
    let names = later.places[.redirect]?.keys.flatMap { (try? Template(parsing: $0))?.names ?? [] } ?? []
    return isWithinOldHosts(text) || (!names.isEmpty && names.allSatisfy { variables[$0] != nil })
      || SchemeHandler.scheme(of: text).map { !["http", "https"].contains($0) } == true
  }

  private func isWithinOldHosts(_ text: String) -> Bool {
    isOfEarlierVersion && OriginPattern.texts(of: text).allSatisfy { includes($0, of: self, as: [.endpoints]) }
  }

  static func withoutScheme(_ origin: String) -> String {
    origin.firstPlace(of: "://").map { String(origin[$0.upperBound...]) } ?? origin
  }

  /// A person knows an origin by its host. The scheme shows where nothing else is new.
  private func shown(_ origin: String) -> String {
    let name = Self.withoutScheme(origin)
    let isKnown = origins.contains { $0 != origin && Self.withoutScheme($0) == name }
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
    _ loaded: DescriptorLibrary.Loaded, _ client: Client, _ now: Agreement, replacing agreed: Agreement?,
    kept: KeptSecrets, confirms: Consent
  ) throws(CredentialError) {
    guard !kept.isEmpty else { return }
    let provider = client.descriptor.identifier
    let previous = try accountsIfAny()?.registration(of: provider) ?? Registration(clientIdentifier: "")
    // A descriptor that cannot be read any more tells nothing: then every place is new.
    let agreed = agreed ?? sealed(previous, of: provider)
    let places = agreed.newPlaces(in: now, loaded, variables: previous.variables, for: kept.subject)
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
    let client = try client(addition.descriptor, registration)
    let now = Agreement(client, ownFiles: ownFiles(of: addition.loaded, installing: addition.file))
    try requireConsent(
      addition.loaded, client, now, replacing: previous.agreement,
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

import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrText
import CredmgrYAML

/// A place in a descriptor that the user has not agreed to.
package struct NewPlace: Sendable, Equatable {
  package enum Kind: Sendable, Equatable {
    case secrets  // Gets the client's secret and tokens.
    case tokens
    case redirect  // Gets the code or token of a login.
    case scheme(owner: String)  // As `redirect`, replacing another application.
    case borrower(owner: String, page: String)  // Gets what the user enters on another provider's page.
    case devicePage  // The page where the user enters a device code.
    case othersDevicePage(owner: String)  // As `devicePage`, at another provider.
    case issuer  // An issuer whose answers count.
    case anyIssuer  // Answers of any issuer count.
    case keys  // Whose keys verify ID tokens.
    case audience  // Can use the client's assertions.
    case shownSecret  // A variable that was secret and is now shown.
    case setting(String)  // A key whose new value protects less or moves a secret.
    case value(String)  // A key with another value, which no other rule compares.
  }

  package let kind: Kind
  package var isBorrowed: Bool { if case .borrower = kind { true } else { false } }
  package let name: String  // Without its scheme if that is `https`.
  package let before: [String]  // Agreed places that are no longer named.
  package let place: Place?  // The line in the descriptor; `nil` if unknown.
}

extension [NewPlace] {
  /// Whether these places include the place: a server that gets the client's secret also gets tokens.
  func covers(_ place: NewPlace) -> Bool {
    contains { $0.name == place.name && !(place.kind == .secrets && $0.kind == .tokens) }
  }

  /// Adds the places that this list does not include.
  mutating func add(_ places: some Sequence<NewPlace>) {
    for place in places where !covers(place) {
      removeAll { $0.name == place.name && $0.kind == .tokens }
      append(place)
    }
  }
}

/// The stored secrets of a provider that is being added again, which the new descriptor could send elsewhere.
struct KeptSecrets {
  var accounts: [Account] = []
  var unreadable: [String] = []  // The names of accounts that a server may show again later.
  var clientSecret = false
  var variable = false
  var login = false  // Whether an interrupted login may have a token.

  var isEmpty: Bool { accounts.isEmpty && unreadable.isEmpty && !clientSecret && !variable && !login }
  /// A secret variable goes to the same places as a token.
  var subject: NewPlace.Kind {
    accounts.isEmpty && unreadable.isEmpty && !variable && !login ? .secrets : .tokens
  }
}

extension Agreement {
  /// Returns what a later agreement adds to this one. Fewer places are fine, and so is a first issuer.
  ///
  /// The later agreement's descriptor, if there is one, provides each place's line and says which variables are secret.
  /// `variables` are the registered ones. If the later agreement has not been stored, this one still limits the
  /// clusters.
  func newPlaces(
    in later: Agreement, _ loaded: DescriptorLibrary.Loaded? = nil, variables: [String: String] = [:],
    for subject: NewPlace.Kind = .tokens, isSealedAnew: Bool = true
  ) -> [NewPlace] {
    var new: [NewPlace] = []
    func add(_ kind: NewPlace.Kind, _ name: String, before: [String], at place: Place?) {
      // Places for the client's secret come first, and get tokens as well.
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
    for origin in later.texts(.presented) where !includes(origin, of: later, as: [.presented, .endpoints]) {
      add(later.presentsSecrets ? .secrets : .tokens, origin: origin)
    }
    if subject == .tokens {
      for origin in isSealedAnew || later.places[.clusters] != nil ? newClusters(in: later) : [] {
        add(.tokens, origin: origin)
      }
      // Claims match the filled templates, unless the agreement was edited by hand.
      let claimed = (later.claims ?? []).flatMap { OriginPattern.texts(of: $0.host) }
      for origin in later.texts(.helpers) + claimed
      where !includes(origin, of: later, as: [.helpers, .presented, .endpoints]) { add(.tokens, origin: origin) }
    }
    func key(_ keys: String...) -> Place? { loaded?.place(of: keys) }
    for text in later.texts(.redirect) where !isHarmless(redirect: text, of: later, variables: variables) {
      add(.redirect, text, before: texts(.redirect), at: key("redirect"))
    }
    for text in later.texts(.devicePage) where !texts(.devicePage).contains(text) && !isPlainPage(text) {
      add(.devicePage, text, before: texts(.devicePage), at: key("device", "verification_uri_complete"))
    }
    // An earlier version did not record them.
    if places[.deviceHosts] != nil, ownFiles == nil || ownFiles != later.ownFiles {
      let known = Set(texts(.deviceHosts))
      for text in later.texts(.deviceHosts) where !known.contains(text) && !isAtEndpoint("https://" + text) {
        add(.devicePage, text, before: texts(.deviceHosts), at: key("device", "hosts"))
      }
    }
    let (issuers, laterIssuers) = (texts(.issuer), later.texts(.issuer))
    for text in laterIssuers where !issuers.isEmpty && !issuers.contains(text) {
      add(.issuer, text, before: issuers, at: key("issuer"))
    }
    if !issuers.isEmpty, laterIssuers.isEmpty { add(.anyIssuer, "(none)", before: issuers, at: key("issuer")) }
    // A first place for keys only adds a check.
    let known = Set(texts(.keys))
    for text in later.texts(.keys) where places[.keys] != nil && !known.contains(text) && !isAtEndpoint(text) {
      add(.keys, text, before: texts(.keys), at: key("endpoints", EndpointKind.keySet.rawValue))
    }
    for text in later.texts(.audience) where !(texts(.audience) + issuers).contains(text) && !isWithinOldHosts(text) {
      add(.audience, text, before: texts(.audience), at: key("assertion", "claims", "aud") ?? key("issuer"))
    }
    let carried = later.secrets.union(Self.protocolSecrets).intersection(later.texts(.carried))
    for name in carried.subtracting(texts(.carried)).sorted() where !isOfEarlierVersion {
      add(.shownSecret, name, before: [], at: key("extra_headers") ?? key("header_style"))
    }
    for name in shownSecrets(in: later, loaded) { add(.shownSecret, name, before: [], at: key("variables", name)) }
    for (key, value, before) in newSettings(in: later, loaded?.descriptor) {
      add(
        later.settings[key] == nil ? .value(key) : .setting(key), value, before: [before].compactMap(\.self),
        at: loaded?.place(ofSetting: key))
    }
    return new
  }

  /// Whether API requests contain another secret besides the access token or instead of it.
  private var presentsSecrets: Bool {
    let fields = settings["response.fields.access_token"] ?? []
    let refreshing = settings["response.fields.refresh_token"] ?? []
    let isExchanged = fields.contains { field in
      let name = field.split(separator: ".").last ?? ""
      return refreshing.contains(field) || name != "id_token" && Self.protocolSecrets.contains(String(name))
    }
    return isExchanged || !secrets.union(Self.protocolSecrets).isDisjoint(with: texts(.carried))
  }

  /// Returns the variables that the later descriptor no longer calls secret; its registration still does.
  private func shownSecrets(in later: Agreement, _ loaded: DescriptorLibrary.Loaded?) -> [String] {
    secrets.subtracting(shownSecrets).filter { name in
      guard let loaded else { return !later.secrets.contains(name) || later.shownSecrets.contains(name) }
      return loaded.descriptor.variable(name)?.isSecret == false
    }.sorted()
  }

  /// All origins that may get tokens.
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

  /// Whether the user agreed to a later agreement's origin for these kinds, with the same bounds.
  func includes(_ origin: String, of later: Agreement, as kinds: [Kind]) -> Bool {
    let other = OriginPattern(origin)
    let isBounded = other.names.allSatisfy { name in
      bounds[name] == later.bounds[name] || (isOfEarlierVersion && bounds[name] == nil)
    }
    return isBounded && kinds.flatMap(texts).contains { OriginPattern($0).includes(other) }
  }

  /// Whether a redirect was agreed to, returns to this machine, shows the code to the user, or predates agreements.
  private func isHarmless(redirect text: String, of later: Agreement, variables: [String: String]) -> Bool {
    if texts(.redirect).contains(text) || text == "oob" || text == "urn:ietf:wg:oauth:2.0:oob" { return true }
    // credmgr does not listen at other loopback addresses, so they may belong to another user.
    if let uri = try? URI(parsing: text), uri.scheme == "http", ["127.0.0.1", "localhost", "[::1]"].contains(uri.host) {
      return true
    }
    guard isOfEarlierVersion, places[.redirect] == nil else { return false }
    // An earlier version did not record it. Accept a page on the old hosts, or one that the user's own variables name.
    let names = later.places[.redirect]?.keys.flatMap { (try? Template(parsing: $0))?.names ?? [] } ?? []
    return isWithinOldHosts(text) || (!names.isEmpty && names.allSatisfy { variables[$0] != nil })
      || SchemeHandler.scheme(of: text).map { !["http", "https"].contains($0) } == true
  }

  private func isWithinOldHosts(_ text: String) -> Bool {
    isOfEarlierVersion && OriginPattern.texts(of: text).allSatisfy { includes($0, of: self, as: [.endpoints]) }
  }

  /// Whether this is the provider's page with the user's code as its only addition. A fixed code, or another page,
  /// would give a token to another person (RFC 8628, 5.4).
  private func isPlainPage(_ text: String) -> Bool {
    guard text.hasPrefix("{verification_uri}?"), text.hasSuffix("={user_code}") else { return false }
    let name = text.dropFirst("{verification_uri}?".count).dropLast("={user_code}".count)
    return !name.isEmpty && name.utf8.allSatisfy { $0.isLetterOrDigit || "-_".utf8.contains($0) }
  }

  private func isAtEndpoint(_ text: String) -> Bool {
    OriginPattern.texts(of: text).allSatisfy { includes($0, of: self, as: [.endpoints]) }
  }

  /// Adds the agreed clusters, if the descriptor names neither clusters nor hosts.
  func keepingClusters(of agreed: Agreement?) -> Agreement {
    var kept = self
    if places[.clusters] == nil, places[.presented] == nil {
      kept.places[.clusters] = agreed?.places[.clusters] ?? agreed?.places[.presented]
    }
    return kept
  }

  static func withoutScheme(_ origin: String) -> String {
    origin.firstPlace(of: "://").map { String(origin[$0.upperBound...]) } ?? origin
  }

  /// Returns the host, which users recognize. Adds the scheme only if nothing else is new.
  private func shown(_ origin: String) -> String {
    let name = Self.withoutScheme(origin)
    let isKnown = origins.contains { $0 != origin && Self.withoutScheme($0) == name }
    return isKnown && !isOfEarlierVersion ? origin : name
  }
}

extension CredentialSource {
  /// Asks the user before stored secrets can go to new places.
  package typealias Consent = (_ provider: String, _ accounts: [String], _ places: [NewPlace]) -> Bool

  /// Returns the user's own file in a descriptor; `nil` if all files came with the program or the system.
  func ownFile(of loaded: DescriptorLibrary.Loaded) -> String? {
    ([loaded.path] + loaded.bases).first { $0.hasPrefix(home.userProviders + "/") }
  }

  /// Asks for consent, because strangers share descriptors, and a replacement must not send existing secrets to new
  /// places. Without a recorded agreement, compares with the current descriptor.
  func requireConsent(
    _ loaded: DescriptorLibrary.Loaded, _ client: Client, now: Agreement, replacing agreed: Agreement?,
    kept: KeptSecrets, confirms: Consent
  ) throws(CredentialError) {
    guard !kept.isEmpty else { return }
    let provider = client.descriptor.identifier
    let previous = try accountsIfAny()?.registration(of: provider) ?? Registration(clientIdentifier: "")
    // If the current descriptor is unreadable, every place is new.
    let agreed = agreed ?? sealed(previous, of: provider)
    var places = agreed.newPlaces(
      in: now.keepingClusters(of: agreed), loaded, variables: previous.variables, for: kept.subject)
    places.add(newPlaces(ofAccounts: kept.accounts, client, agreed: agreed, now))
    guard !places.isEmpty else { return }
    let names = kept.accounts.map(\.name) + kept.unreadable
    if !confirms(provider, names, places) {
      throw .destinationChange(provider: provider, accounts: names, places: places)
    }
  }

  /// Returns the places that the accounts' own variables make with a new descriptor, but not with the agreed one.
  private func newPlaces(
    ofAccounts accounts: [Account], _ client: Client, agreed: Agreement, _ now: Agreement
  ) -> [NewPlace] {
    var places: [NewPlace] = []
    for account in accounts where !account.credential.variables.isEmpty {
      let variables = client.variables.merging(account.credential.variables) { _, own in own }
        .filter { client.descriptor.variable($0.key) != nil }
      guard
        let own = try? Client(
          descriptor: client.descriptor, identifier: client.identifier, secret: client.secret, variables: variables)
      else { continue }
      let (before, after) = (agreed.widened(by: own), now.widened(by: own))
      let known = before.newPlaces(in: now) + before.newPlaces(in: now.widened(by: client))
      places.add(before.newPlaces(in: after).filter { !known.covers($0) })
    }
    return places
  }

  /// Returns the places that `add` would ask about if this descriptor replaced the added one. Throws if they are
  /// unknown, because the vault is locked or a variable has no value.
  package func newPlaces(
    of provider: String, _ bytes: [UInt8], named file: String
  ) throws(CredentialError) -> [NewPlace] {
    guard let existing = try accountsIfAny(), let previous = try existing.registration(of: provider) else { return [] }
    let addition = try addition(bytes, named: file, as: nil)
    var registration = previous
    registration.variables = previous.variables.filter { addition.descriptor.variable($0.key) != nil }
    var found: [NewPlace] = []
    let client = try client(addition.descriptor, registration)
    let now = Agreement(
      client, ownFiles: ownFiles(of: addition.loaded, installing: addition.file), files: addition.loaded.digest)
    try requireConsent(
      addition.loaded, client, now: now, replacing: previous.agreement,
      kept: KeptSecrets(
        accounts: existing.accounts(of: addition.identifier), clientSecret: previous.clientSecret != nil,
        variable: keepsSecretVariable(addition, previous, given: [:]))
    ) { _, _, places in
      found = places
      return true
    }
    return found
  }
}

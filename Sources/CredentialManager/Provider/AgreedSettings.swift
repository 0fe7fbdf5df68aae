import CredmgrCryptography
import CredmgrDescriptors
import CredmgrOAuth
import CredmgrText
import CredmgrYAML

extension Client {
  /// The settings that protect a login and its secrets, by descriptor key. Each list has the
  /// setting and all stronger ones, so a descriptor is weaker if its list has more values.
  var settings: [String: [String]] {
    func rule(_ isRequired: Bool) -> [String] { isRequired ? ["required"] : ["required", "optional"] }
    let page = descriptor.endpoints[.authorization]
    let hidesState = page?.response.fields[.state]?.paths.isEmpty == true
    var settings = [
      "grant": descriptor.grants.contains(.implicit) ? ["implicit"] : [],
      "state": rule(descriptor.state == .required && !hidesState),
      "iss": rule(descriptor.issuerResponse == .required),
      "nonce": descriptor.nonce == false ? ["true", "false"] : ["true"],
    ]
    let proofs: [PKCEMethod] = [.s256Hexadecimal, .s256, .plain, .none]
    settings["pkce"] = proofs.prefix(max(proofs.firstIndex(of: descriptor.pkce) ?? 0, 1) + 1).map(\.rawValue)
    let legs = descriptor.endpoints.filter(\.key.leg.authenticatesClient).mapValues {
      Self.strength(of: authentication(for: $0))
    }
    settings["client.authentication"] = Self.authentications(upTo: legs.values.max() ?? 0)
    for (kind, strength) in legs {
      settings["endpoints.\(kind.rawValue).authentication"] = Self.authentications(upTo: strength)
    }
    settings["endpoints.send"] = secretsInAddresses
    settings["header_style"] =
      switch descriptor.headerStyle.location {
      case .header, .none: ["header"]
      case .body: ["header", "body"]
      case .query: ["header", "query"]
      case .path: ["header", "query", "path"]
      }
    settings["assertion"] = assertionRules
    for kind in EndpointKind.allCases where kind.leg.protects {
      settings[kind.rawValue] = descriptor.endpoints[kind] == nil ? ["exchanged", "not exchanged"] : ["exchanged"]
    }
    settings.merge(signatureSettings) { own, _ in own }
    for grant in descriptor.grants {
      let isUsableAlone = descriptor.binding(of: grant).isUsableAlone
      settings[Self.binding(of: grant)] = isUsableAlone ? ["bound", "usable alone"] : ["bound"]
    }
    for (field, kinds) in secretFields {
      let paths = kinds.compactMap { descriptor.endpoints[$0]?.response }.flatMap { response in
        response.source(of: field).paths.map { (response.within.map { $0.text + "." } ?? "") + $0.text }
      }
      if !paths.isEmpty { settings["response.fields." + field.rawValue] = Set(paths).sorted() }
    }
    return settings
  }

  /// The setting for the tokens of a grant.
  static func binding(of grant: Grant) -> String { "binding." + grant.rawValue }

  /// The secrets inside an endpoint's address.
  private var secretsInAddresses: [String] {
    let variables = descriptor.variables.filter(\.isSecret).map(\.name) + descriptor.keptSecrets.map(\.name)
    let secrets = Agreement.protocolSecrets.union(variables + ["access_token"])
    var addressed: Set<String> = []
    for (kind, endpoint) in descriptor.endpoints {
      func named(_ templates: [Template]) -> [String] {
        templates.flatMap(\.names).filter(secrets.contains).map { kind.rawValue + ": " + $0 }
      }
      addressed.formUnion(named([endpoint.url.template]))
      guard [.query, .fragment].contains(endpoint.send) else { continue }
      addressed.formUnion(named(endpoint.parameters.compactMap(\.value)))
      guard kind.leg.authenticatesClient else { continue }
      addressed.insert(kind.rawValue + ": parameters")
      if authentication(for: endpoint) == .clientSecretPost { addressed.insert(kind.rawValue + ": client_secret") }
    }
    let inQuery = descriptor.headerStyle.parameters.map(\.value) + descriptor.extraQuery.compactMap(\.value)
    for name in inQuery.flatMap(\.names) where secrets.contains(name) {
      addressed.insert("requests: " + name)
    }
    return addressed.sorted()
  }

  /// The limit on a stolen assertion: a short lifetime.
  private var assertionRules: [String] {
    (descriptor.assertion?.lifetime ?? .zero) > .seconds(3600) ? ["valid for more than an hour"] : []
  }

  /// The values of keys without a rule of their own, filled with variables, and the queries of addresses.
  var written: [String: String] {
    let all = AgreedPlaces(of: self)
    let filled = AgreedPlaces { [descriptor] in descriptor.variable($0) == nil ? nil : all.values($0) }
    var written = descriptor.agreedValues.mapValues { text in
      (try? Template(parsing: text)).map { filled.texts(of: $0).joined(separator: " || ") } ?? text
    }
    written["assertion.claims.aud"] = nil  // A place.
    for (kind, endpoint) in descriptor.endpoints where !kind.leg.asksForConsent {
      let template = endpoint.url.template
      if template == kind.leg.base.flatMap({ descriptor.endpoints[$0]?.url.template }) { continue }
      let queries = filled.texts(of: template).compactMap { url in url.firstIndex(of: "?").map { String(url[$0...]) } }
      if !queries.isEmpty { written["endpoints.\(kind.rawValue).url"] = queries.joined(separator: " || ") }
    }
    return written
  }

  /// The client authentication methods, strongest first. A secret in a header and one in a form are equally strong.
  private static let authentications: [[ClientAuthentication]] = [
    [.privateKeyJWT, .tlsClientAuth, .selfSignedTLSClientAuth], [.clientSecretJWT],
    [.clientSecretBasic, .clientSecretPost], [.none], [.accessToken],
  ]

  private static func strength(of way: ClientAuthentication) -> Int {
    authentications.firstIndex { $0.contains(way) } ?? authentications.count - 1
  }

  private static func authentications(upTo strength: Int) -> [String] {
    authentications.prefix(strength + 1).map { $0[0] == .clientSecretBasic ? "client_secret" : $0[0].rawValue }
  }

  /// The endpoints whose answers contain each secret.
  private var secretFields: [(ResponseField, [EndpointKind])] {
    var tokens = EndpointKind.allCases.filter(\.leg.issuesToken)
    if descriptor.grants.contains(.implicit) { tokens.append(.authorization) }
    var fields: [(ResponseField, [EndpointKind])] = [.accessToken, .refreshToken, .idToken].map { ($0, tokens) }
    fields += [ResponseField.code, .deviceCode, .authReqID].map { ($0, $0.readers) }
    return fields + signatureSecrets.map { ($0, [.temporaryCredentials, .token, .refresh]) }
  }
}

extension Agreement {
  /// `sealed` is an earlier agreement: while the files are the same, so is what is written in them. Collecting it again
  /// would take a sixth of the instructions of a refresh.
  init(_ client: Client, ownFiles: String?, files: String?, sealed: Agreement? = nil) {
    self.init(client)
    (self.ownFiles, self.files) = (ownFiles, files)
    let isUnchanged = files != nil && sealed?.files == files && sealed?.ownFiles == ownFiles
    written = isUnchanged ? sealed?.written : client.written
  }

  /// The grants whose token binding is recorded. An earlier version recorded none.
  var knownGrants: [(grant: Grant, isUsableAlone: Bool)] {
    Grant.allCases.compactMap { grant in settings[Client.binding(of: grant)].map { (grant, $0.count > 1) } }
  }

  /// Returns the settings of a later agreement that the user has not agreed to: the weakest value of each protecting
  /// setting, and every other value that differs. Unchanged files mean that the change came with the program, which the
  /// user trusts. A leg that protects nothing may be dropped.
  func newSettings(
    in later: Agreement, _ descriptor: Descriptor?
  ) -> [(key: String, value: String, before: String?)] {
    if let ownFiles, ownFiles == later.ownFiles { return [] }
    let weaker = later.settings.sorted { $0.key < $1.key }.compactMap { key, values in
      settings[key].flatMap { agreed in
        values.last { !agreed.contains($0) }.map { (key: key, value: $0, before: agreed.last) }
      }
    }
    .filter { key, value, _ in
      // If a setting applies to all legs, show it once, and not for each leg.
      !key.hasPrefix("endpoints.") || !key.hasSuffix(".authentication")
        || settings["client.authentication"]?.contains(value) == true
    }
    guard let written, let now = later.written else { return weaker }
    let secrets = (descriptor?.variables ?? []).filter(\.isSecret).compactMap(\.defaultValue).filter { !$0.isEmpty }
    func shown(_ key: String) -> (key: String, value: String, before: String?) {
      let (value, before) = (now[key] ?? "(default)", written[key] ?? "(default)")
      // The default of a secret variable is compared, but not shown.
      let isSecret = secrets.contains { value.firstPlace(of: $0) != nil }
      return isSecret ? (key, "(another secret)", "(a secret)") : (key, value, before)
    }
    func isDropped(_ key: String) -> Bool {
      guard let descriptor, now[key] == nil else { return false }
      return EndpointKind.allCases.contains { kind in
        !kind.leg.protects && key.hasPrefix("endpoints.\(kind.rawValue).") && descriptor.endpoints[kind] == nil
      }
    }
    let other = Set(written.keys).union(now.keys).sorted().filter { written[$0] != now[$0] && !isDropped($0) }
    return weaker + other.map(shown)
  }

  /// Adds the parts that an earlier version did not record or that came with a new version of the program.
  func completed(by now: Agreement) -> Agreement {
    var complete = isOfEarlierVersion ? now : self
    if isOfEarlierVersion, let claims { complete.claims = claims }
    let isSame = ownFiles == now.ownFiles
    complete.settings = isSame ? now.settings : settings.merging(now.settings) { agreed, _ in agreed }
    if isSame || written == nil { complete.written = now.written }
    (complete.ownFiles, complete.files) = (now.ownFiles, now.files)
    // A first place of keys gets nothing secret and adds a check, so it needs no consent.
    if complete.places[.keys] == nil { complete.places[.keys] = now.places[.keys] }
    return complete
  }
}

extension DescriptorLibrary.Loaded {
  /// A digest of the contents of the file and its bases.
  var digest: String {
    let lengths = contents.map { "\($0.count)" }.joined(separator: " ")
    return Hexadecimal.encode(HashAlgorithm.sha256.digest(Array(lengths.utf8) + contents.joined(separator: [0])))
  }

  /// Returns the setting's place: its common value, or the first endpoint with its own; `nil` if it is not in the file.
  func place(ofSetting key: String) -> Place? {
    let keys = key.split(separator: ".").map(String.init)
    let own = keys.first == "client" ? ["authentication"] : keys
    return place(of: keys)
      ?? EndpointKind.allCases.lazy.compactMap { place(of: ["endpoints", $0.rawValue] + own) }.first
  }
}

extension CredentialSource {
  /// Whether requests with an account's token need nothing else, such as a signature. Loads the descriptor only if
  /// neither the account nor the stored agreement says so.
  package func isUsableAlone(_ account: Account) throws(CredentialError) -> Bool {
    let (provider, grant) = (account.provider, account.credential.grant)
    if account.credential.isBound { return false }
    if let isUsableAlone = account.credential.isUsableAlone { return isUsableAlone }
    let sealed = try accountsIfAny()?.registration(of: provider)?.agreement
    if sealed?.knownGrants.first(where: { $0.grant == grant })?.isUsableAlone == true { return true }
    return try permit(.token, provider).client.isUsableAlone(account.credential)
  }

  /// Whether all files of a descriptor came with the program. A renamed copy counts as its original.
  package func isShipped(_ loaded: DescriptorLibrary.Loaded) -> Bool { ownFiles(of: loaded).isEmpty }

  /// Returns a digest of the user's and the administrator's files that make up a descriptor, including the `file` to
  /// install and the new contents of others; empty if all files came with the program.
  func ownFiles(
    of loaded: DescriptorLibrary.Loaded, installing file: [UInt8]? = nil
  ) -> String {
    let parts = zip([loaded.path] + loaded.bases, loaded.contents).filter { path, _ in
      [home.userProviders, Home.systemFolder].contains { path.hasPrefix($0 + "/") }
    }
    let texts = [file].compactMap(\.self) + parts.map(\.1)
    return texts.isEmpty ? "" : Hexadecimal.encode(HashAlgorithm.sha256.digest(Array(texts.joined(separator: [0]))))
  }
}

extension Descriptor {
  /// Whether requests contain assertions that the client or the user's key signs.
  private var makesAssertions: Bool {
    let methods = [client.authentication] + endpoints.values.map(\.authentication)
    let templates = endpoints.values.flatMap { $0.parameters.compactMap(\.value) + $0.headers.map(\.value) }
    return grants.contains(where: \.traits.signsJWT) || methods.contains(.privateKeyJWT)
      || methods.contains(.clientSecretJWT) || templates.contains(where: { $0.names.contains("assertion") })
  }

  /// Whether signed requests contain the time.
  var signsRequestsWithTimes: Bool {
    makesAssertions || signsRequests || tokenBinding.needsKey || grants.contains { $0.traits.binding == .signature }
  }

  /// The audience of assertions; `nil` if none are made, or if it is the token endpoint.
  var foreignAudience: Template? {
    guard makesAssertions else { return nil }
    let isToken = grants.contains(where: \.traits.signsJWT) && endpoints[.token] == nil
    guard let claim = assertion?.claims.last(where: { $0.name == "aud" }) else {
      return issuer ?? (isToken ? Template(literal: "*") : nil)
    }
    // Every server accepts an assertion without an audience.
    return claim.value ?? Template(literal: "*")
  }
}

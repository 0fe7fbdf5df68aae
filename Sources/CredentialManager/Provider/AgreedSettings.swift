import Cryptography
import Descriptors
import OAuth
import YAML

extension Client {
  /// What protects a login and each secret, by the key of the descriptor. A value comes with those that are stronger,
  /// so that each value of a stronger descriptor is among those of a weaker one.
  var settings: [String: [String]] {
    func rule(_ isRequired: Bool) -> [String] { isRequired ? ["required"] : ["required", "optional"] }
    let page = descriptor.endpoints[.authorization]
    let hidesState = page?.response.fields[.state]?.paths.isEmpty == true
    var settings = [
      "grant": descriptor.grants.contains(.implicit) ? ["implicit"] : [],
      "state": rule(descriptor.state == .required && !hidesState),
      "iss": rule(descriptor.issuerResponse == .required),
      "nonce": descriptor.sendsNonce ? ["true"] : ["true", "false"],
    ]
    let proofs: [PKCEMethod] = [.s256Hexadecimal, .s256, .plain, .none]
    settings["pkce"] = proofs.prefix(max(proofs.firstIndex(of: descriptor.pkce) ?? 0, 1) + 1).map(\.rawValue)
    settings["client.authentication"] = authentications
    let (sent, addressed) = secretsOfTemplates
    settings["endpoints.parameters"] = sent
    settings["endpoints.send"] = addressed
    if case .query = descriptor.headerStyle.location {
      settings["header_style"] = ["header", "query"]
    } else {
      settings["header_style"] = ["header"]
    }
    settings["assertion"] = assertionRules
    settings.merge(signatureSettings) { own, _ in own }
    for (field, kinds) in secretFields {
      let paths = kinds.compactMap { descriptor.endpoints[$0]?.response }.flatMap { response in
        response.source(of: field).paths.map { (response.within.map { $0.text + "." } ?? "") + $0.text }
      }
      if !paths.isEmpty { settings["response.fields." + field.rawValue] = Set(paths).sorted() }
    }
    return settings
  }

  /// The secrets that templates of the descriptor send to an endpoint, and those that stand in its address.
  private var secretsOfTemplates: (sent: [String], addressed: [String]) {
    let secrets = Agreement.protocolSecrets.union(descriptor.variables.filter(\.isSecret).map(\.name))
    var (sent, addressed): (Set<String>, Set<String>) = ([], [])
    for (kind, endpoint) in descriptor.endpoints {
      func named(_ templates: [Template]) -> [String] {
        templates.flatMap(\.names).filter(secrets.contains).map { kind.rawValue + ": " + $0 }
      }
      let (inURL, inParameters) = (named([endpoint.url.template]), named(endpoint.parameters.compactMap(\.value)))
      sent.formUnion(inURL + inParameters + named(endpoint.headers.map(\.value)))
      addressed.formUnion(inURL)
      guard [.query, .fragment].contains(endpoint.send) else { continue }
      addressed.formUnion(inParameters)
      if kind.authenticates { addressed.insert(kind.rawValue + ": parameters") }
    }
    return (sent.sorted(), addressed.sorted())
  }

  /// What bounds an assertion that somebody else got hold of: a short life, and an identifier.
  private var assertionRules: [String] {
    guard let assertion = descriptor.assertion else { return [] }
    func drops(_ name: String) -> Bool { assertion.claims.contains { $0.name == name && $0.value == nil } }
    var rules = drops("jti") ? ["without jti"] : []
    if drops("exp") || assertion.lifetime > .seconds(3600) { rules.append("valid for more than an hour") }
    return rules
  }

  /// How the client shows who it is at any endpoint, the strongest way first.
  private var authentications: [String] {
    let ways: [ClientAuthentication] = [
      .privateKeyJWT, .clientSecretJWT, .clientSecretBasic, .clientSecretPost, .none, .accessToken,
    ]
    let used = Set(descriptor.endpoints.filter { $0.key.authenticates }.map { authentication(for: $0.value) })
    let signs: Set<ClientAuthentication> = used.isSubset(of: [.privateKeyJWT]) ? [] : [.clientSecretJWT]
    // A secret in a header and one in a form are as good as each other.
    return ways.filter { used.union(signs).union([.privateKeyJWT]).contains($0) }.map { way in
      [.clientSecretBasic, .clientSecretPost].contains(way) ? "client_secret" : way.rawValue
    }
  }

  /// The endpoints whose answers have each secret.
  private var secretFields: [(ResponseField, [EndpointKind])] {
    var tokens = EndpointKind.allCases.filter(\.issuesToken)
    if descriptor.grants.contains(.implicit) { tokens.append(.authorization) }
    var fields: [(ResponseField, [EndpointKind])] = [.accessToken, .refreshToken, .idToken].map { ($0, tokens) }
    fields += [(.code, [.authorization]), (.deviceCode, [.deviceAuthorization])]
    return fields + signatureSecrets.map { ($0, [.temporaryCredentials, .token, .refresh]) }
  }
}

extension EndpointKind {
  fileprivate var authenticates: Bool {
    switch self {
    case .authorization, .identity, .registration, .temporaryCredentials: false
    default: true
    }
  }
}

extension Agreement {
  /// The settings of a later agreement that were not agreed to, each by the weakest value. What the same files of the
  /// person say changed with the program, which a stranger does not write.
  func newSettings(in later: Agreement) -> [(key: String, value: String, before: String?)] {
    if let ownFiles, ownFiles == later.ownFiles { return [] }
    return later.settings.sorted { $0.key < $1.key }.compactMap { key, values in
      guard let agreed = settings[key], let value = values.last(where: { !agreed.contains($0) }) else { return nil }
      return (key, value, agreed.last)
    }
  }

  /// The same with what an earlier version did not note, and what a new version of the program brought.
  func completed(by now: Agreement) -> Agreement {
    var complete = isOfEarlierVersion ? now : self
    if isOfEarlierVersion, let claims { complete.claims = claims }
    complete.settings = ownFiles == now.ownFiles ? now.settings : settings.merging(now.settings) { agreed, _ in agreed }
    complete.ownFiles = now.ownFiles
    return complete
  }
}

extension DescriptorLibrary.Loaded {
  /// Where a setting stands: for all endpoints, or at the first that has one of its own.
  func place(ofSetting key: String) -> Place? {
    let keys = key.split(separator: ".", maxSplits: 2).map(String.init)
    let own = keys.first == "client" ? ["authentication"] : keys
    return place(of: keys)
      ?? EndpointKind.allCases.lazy.compactMap { place(of: ["endpoints", $0.rawValue] + own) }.first
  }
}

extension CredentialSource {
  /// A digest of the person's own files that a descriptor is made of, with the `file` that is about to be installed
  /// and others as they are about to be; empty where all came with the program or the system.
  func ownFiles(
    of loaded: DescriptorLibrary.Loaded, installing file: [UInt8]? = nil, replacing files: [String: [UInt8]] = [:]
  ) -> String {
    let paths = ([loaded.path] + loaded.bases).filter { $0.hasPrefix(home.userProviders + "/") }
    let texts = [file].compactMap(\.self) + paths.map { files[$0] ?? (try? home.readDescriptor($0)) ?? nil ?? [] }
    return texts.isEmpty ? "" : Hexadecimal.encode(HashAlgorithm.sha256.digest(Array(texts.joined(separator: [0]))))
  }
}

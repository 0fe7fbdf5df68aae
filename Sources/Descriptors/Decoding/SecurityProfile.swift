import CredmgrYAML

/// A profile that makes several keys stricter.
package enum SecurityProfile: String, Sendable, CaseIterable {
  case fapi2  // FAPI 2.0 Security Profile (2025).
  case fapi2MessageSigning = "fapi2_message_signing"  // FAPI 2.0 Message Signing (2025), which includes the former.

  /// The algorithms of all signed JWTs (5.4.1 (1)).
  package static let algorithms: Set<AssertionAlgorithm> = [.ps256, .es256, .edDSA]
}

/// A requirement of a profile on a descriptor.
package enum ProfileRule: Sendable, Equatable, CaseIterable {
  case proofKey  // FAPI 2.0, 5.3.3.2 (3)
  case issuer  // 5.3.3.1 (5) and (11)
  case issuerResponse  // 5.3.3.2 (5)
  case binding  // 5.3.3.1 (1)
  case authentication  // 5.3.3.1 (2)
  case audience  // 5.3.3.1 (5)
  case algorithm  // 5.4.1 (1)
  case header  // 5.3.3.1 (3)
  case noImplicit  // 5.3.3.2 (1)
  case pushedRequest  // 5.3.3.2 (2)
  case signedRequest  // FAPI 2.0 Message Signing, 5.3.2 (1)
  case requestLifetime  // 5.3.2 (4)
  case signedAnswer  // 5.4.2 (1)
  case keys  // 5.4.2 (2)
}

extension ClientAuthentication {
  /// The methods of FAPI 2.0, 5.3.3.1 (2).
  fileprivate static let ofProfile: [ClientAuthentication] = [.privateKeyJWT, .tlsClientAuth, .selfSignedTLSClientAuth]
}

extension DescriptorDecoder {
  /// Sets what the profile demands, and reports each key that has another value and each part that is missing.
  mutating func apply(_ profile: SecurityProfile, _ root: Node, to descriptor: inout Descriptor) {
    func node(_ keys: String...) -> Node? {
      let found = keys.reduce(root as Node?) { $0?[$1] }
      return found?.isNull == true ? nil : found
    }
    func unmet(_ rule: ProfileRule, at node: Node?) {
      add(.profile(profile, rule), at: (node ?? root["profile"] ?? root).place)
    }
    if descriptor.pkce != .s256 { unmet(.proofKey, at: node("pkce")) }
    if descriptor.issuer == nil { unmet(.issuer, at: nil) }
    if node("iss") == nil { descriptor.issuerResponse = .required }
    if descriptor.issuerResponse != .required { unmet(.issuerResponse, at: node("iss")) }
    if node("token_binding") == nil { descriptor.tokenBinding = .dpop }
    if descriptor.tokenBinding == .none { unmet(.binding, at: node("token_binding")) }
    if node("client", "authentication") == nil { descriptor.client.authentication = .privateKeyJWT }
    let allowed = ClientAuthentication.ofProfile
    if let method = descriptor.client.authentication, !allowed.contains(method) {
      unmet(.authentication, at: node("client", "authentication"))
    }
    for kind in EndpointKind.allCases where kind.leg.authenticatesClient {
      guard let endpoint = descriptor.endpoints[kind] else { continue }
      if let own = node("endpoints", kind.rawValue, "authentication"), let method = endpoint.authentication,
        !allowed.contains(method)
      {
        unmet(.authentication, at: own)
      }
      if let own = node("endpoints", kind.rawValue, "parameters"),
        endpoint.parameters.contains(where: { ["client_assertion", "client_assertion_type"].contains($0.name) })
      {
        unmet(.authentication, at: own)
      }
    }
    var assertion = descriptor.assertion ?? AssertionRules()
    assertion.algorithm = assertion.algorithm ?? .es256
    let algorithms = [
      (assertion.algorithm, node("assertion", "algorithm")),
      (descriptor.idTokenAlgorithm, node("id_token_signed_response_alg")),
    ]
    for (algorithm, node) in algorithms {
      if let algorithm, !SecurityProfile.algorithms.contains(algorithm) { unmet(.algorithm, at: node) }
    }
    if assertion.claims.contains(where: { $0.name == "aud" }) {
      unmet(.audience, at: node("assertion", "claims", "aud"))
    }
    if assertion.audience != .issuer { unmet(.audience, at: node("assertion", "audience")) }
    descriptor.assertion = assertion
    if case .header = descriptor.headerStyle.location {} else { unmet(.header, at: node("header_style")) }
    if descriptor.grants.contains(.implicit) { unmet(.noImplicit, at: node("grant")) }
    if descriptor.grants.contains(.authorizationCode), descriptor.endpoints[.pushedAuthorizationRequest] == nil {
      unmet(.pushedRequest, at: node("endpoints"))
    }
    if profile == .fapi2MessageSigning {
      for (rule, node) in Self.sign(root, &descriptor) { unmet(rule, at: node) }
    }
  }

  /// Sets what Message Signing demands of a login, a signed request and a signed answer. Returns the unmet rules.
  private static func sign(_ root: Node, _ descriptor: inout Descriptor) -> [(ProfileRule, Node?)] {
    guard descriptor.grants.contains(.authorizationCode), var page = descriptor.endpoints[.authorization] else {
      return []
    }
    var unmet: [(ProfileRule, Node?)] = []
    let request = root["request_object"]
    if request?.isNull ?? true { descriptor.signsRequests = true }
    if !descriptor.signsRequests { unmet.append((.signedRequest, request)) }
    if let assertion = descriptor.assertion, assertion.lifetime > .hours(1) {
      unmet.append((.requestLifetime, root["assertion"]?["lifetime"]))
    }
    if !page.parameters.contains(where: { $0.name == "response_mode" }) {
      page.parameters.append(ParameterRule(name: "response_mode", value: Template(literal: "jwt")))
      descriptor.endpoints[.authorization] = page
    }
    if page.parameters.last(where: { $0.name == "response_mode" })?.value?.literal != "jwt" {
      unmet.append((.signedAnswer, root["endpoints"]?["authorization"]?["parameters"]?["response_mode"]))
    }
    if descriptor.endpoints[.keySet] == nil { unmet.append((.keys, root["endpoints"])) }
    return unmet
  }
}

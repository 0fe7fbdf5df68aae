import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// A JWT that the client signed. The checks are those of every such JWT: its form, signature and times.
struct ClientJWT {
  enum Purpose {
    case assertion  // RFC 7523, 2.2
    case grant  // RFC 7523, 2.1
    case requestObject  // RFC 9101, 4
  }

  let claims: JSONValue
  private let purpose: Purpose

  /// How many seconds the client's clock may be ahead: FAPI 2.0 Security Profile, 5.3.2.1 (13), demands 10.
  static let fastestClock: Int64 = 10

  init(
    _ text: String, as purpose: Purpose, _ algorithm: AssertionAlgorithm, checkedBy simulation: Simulation
  ) throws(Refusal) {
    self.purpose = purpose
    let parts = Simulation.parts(ofJWT: text)
    claims = parts?.claims ?? .null
    guard let (header, claims, signature) = parts else {
      throw fault("it is not a JWT, or its \"crit\" demands an extension")
    }
    let rules = simulation.descriptor.assertion ?? AssertionRules()
    guard header["alg"]?.text == algorithm.rawValue else { throw fault("its \"alg\" is not \(algorithm.rawValue)") }
    try checkType(header["typ"], isFree: rules.header.contains { $0.name == "typ" })
    // The simulator knows no key except the client's secret.
    guard
      rules.key.names != ["client_secret"]
        || simulation.isSignature(
          signature.bytes, of: signature.text, algorithm.scheme, key: simulation.clientSecret)
    else { throw fault("its signature does not match the key of the client") }
    let now = simulation.now.wholeSeconds
    for name in ["nbf", "iat"] {
      guard let value = claims[name] else { continue }
      guard let moment = value.integer else { throw fault("its \(quoted(name)) is not a number of seconds") }
      guard moment <= now + Self.fastestClock else {
        throw fault("its \(quoted(name)) is \(moment - now) s ahead of the clock of the simulator")
      }
    }
    guard let end = claims["exp"] else {
      if rules.claims.contains(where: { $0.name == "exp" && $0.value == nil }) { return }
      throw fault("it has no \"exp\"")
    }
    guard let end = end.integer else { throw fault("its \"exp\" is not a number of seconds") }
    guard now <= end else {
      throw fault("it expired \(now - max(end, 0)) s ago by the clock of the simulator (\"exp\")")
    }
    guard (claims["nbf"]?.integer ?? .min) <= end else { throw fault("its \"exp\" is before its \"nbf\"") }
    let longest = max(.hours(1), rules.lifetime).wholeSeconds
    guard end - Self.fastestClock - now <= longest else { throw fault("its \"exp\" is too far ahead") }
  }

  private func checkType(_ type: JSONValue?, isFree: Bool) throws(Refusal) {
    switch purpose {
    case .requestObject:
      guard type?.text == "oauth-authz-req+jwt" else { throw fault("its \"typ\" is not oauth-authz-req+jwt") }
    case .assertion, .grant:
      guard isFree || type == nil || ["jwt", "client-authentication+jwt"].contains(type?.text?.lowercased()) else {
        throw fault("its \"typ\" is not JWT")
      }
    }
  }

  func fault(_ reason: String) -> Refusal {
    switch purpose {
    case .assertion: Refusal("the client assertion is invalid: \(reason)", code: "invalid_client")
    case .grant: Refusal("the JWT is invalid: \(reason)", code: "invalid_grant")
    case .requestObject: Refusal("the request object is invalid: \(reason)", code: "invalid_request_object")
    }
  }
}

extension Simulation {
  /// Checks the assertion that authenticates the client (RFC 7523, 3).
  mutating func checkAssertion(
    _ text: String, of method: ClientAuthentication, _ parameters: EndpointParameters, kept: [String: String]
  ) throws(Refusal) {
    let rules = descriptor.assertion ?? AssertionRules()
    let assertion = try ClientJWT(
      text, as: .assertion, rules.algorithm ?? method.usualAlgorithm ?? .rs256, checkedBy: self)
    let claims = assertion.claims
    try checkClaims(of: assertion, kept: kept)
    func isOwn(_ name: String) -> Bool { !rules.claims.contains { $0.name == name } }
    for name in ["iss", "sub"] where isOwn(name) {
      guard claims[name]?.text.map(isClient) == true else {
        throw assertion.fault("its \(quoted(name)) is not the client")
      }
    }
    let client = parameters.isSet("client_id") ? nil : try parameters.optional("client_id")
    guard client == nil || !isOwn("sub") || client == claims["sub"]?.text else { throw .unknownClient }
    if isOwn("aud") {
      guard isAudience(claims["aud"], parameters) else {
        throw assertion.fault(
          "its \"aud\" is not "
            + (descriptor.profile == nil ? "one of this server" : "the issuer, as the profile demands"))
      }
    }
    guard isOwn("jti") else { return }
    guard let identifier = claims["jti"]?.text, !identifier.isEmpty else { throw assertion.fault("it has no \"jti\"") }
    guard state.assertions.insert(identifier).inserted else { throw assertion.fault("its \"jti\" was already used") }
  }

  /// Checks the descriptor's own claims, which have the values that it says.
  func checkClaims(of jwt: ClientJWT, kept: [String: String] = [:]) throws(Refusal) {
    for rule in (descriptor.assertion ?? AssertionRules()).claims where !["exp", "iat", "nbf"].contains(rule.name) {
      let found = jwt.claims[rule.name].map { $0.scalarText ?? $0.encoded }
      let isRight: Void? = try? rule.value.map { try TemplatePattern($0, knowledge(kept)).check(found, rule.name) }
      guard isRight != nil || rule.value == nil && found == nil else {
        throw jwt.fault("its \(quoted(rule.name)) is not that of the descriptor")
      }
    }
  }

  /// Whether an assertion is for this server: for its issuer (FAPI 2.0 Security Profile, 5.3.2.1, allows nothing else),
  /// its token endpoint (RFC 7523, 3 (3)), or the endpoint of the request if the descriptor says so.
  private func isAudience(_ audience: JSONValue?, _ parameters: EndpointParameters) -> Bool {
    let isStrict = descriptor.profile != nil
    let names = audience?.text.map { [$0] } ?? (isStrict ? nil : audience?.elements?.compactMap(\.text)) ?? []
    if names.contains(where: { $0 == issuer }) { return true }
    if isStrict { return false }
    let tokens: [EndpointKind] = [.token, .clientCredentials, .deviceToken, .backchannelToken, .refresh]
    let isEndpoint = descriptor.assertion?.audience == .endpoint
    let endpoints = [descriptor, aliasedDescriptor].flatMap { descriptor in
      [tokens.lazy.compactMap { descriptor.endpoints[$0] }.first, descriptor.endpoints[parameters.kind]]
        .prefix(isEndpoint ? 2 : 1).compactMap(\.self)
    }
    return names.contains { name in endpoints.contains { isAddress(name, of: $0) } }
  }

  /// Whether a text is the address of an endpoint, without a query or a fragment.
  private func isAddress(_ text: String, of endpoint: Endpoint) -> Bool {
    let whole = endpoint.url.template
    let template = (try? Template(parsing: String(whole.text.prefix { $0 != "?" && $0 != "#" }))) ?? whole
    let pattern = TemplatePattern(template, encode: PercentEncoding.encode, knowledge())
    return pattern.captures(in: text, isValue: { !"/?&=".utf8.contains($0) }) != nil
  }
}

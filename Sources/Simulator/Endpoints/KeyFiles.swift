import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// Providers that give tokens for what the user brings: the values of a session, or a private key (RFC 7523, 2.1).
extension Simulation {
  /// The grant whose requests carry what the user brought; `nil` if another grant uses the leg `token`.
  var broughtGrant: Grant? {
    descriptor.grants.first { $0.traits.brought != nil }
      .flatMap { grant in descriptor.grants.contains(.authorizationCode) ? nil : grant }
  }

  /// Whether the user registers a client.
  var hasClient: Bool { descriptor.grants.contains(where: \.traits.needsClient) }

  mutating func exchangeBrought(
    by grant: Grant, _ parameters: EndpointParameters, _ answer: inout AnswerContent
  ) throws(Refusal) {
    try parameters.checkRulesAndHeaders(knowledge())
    if grant.traits.signsJWT {
      if !parameters.isSet("grant_type"), !parameters.isDropped("grant_type") {
        let type = try parameters.needed("grant_type")
        guard type == "urn:ietf:params:oauth:grant-type:jwt-bearer" else { throw .unsupportedGrantType }
      }
      let inHeader = parameters.request.fields["Authorization"]?.split(separator: " ").last.map(String.init)
      guard let text = try parameters.optional("assertion") ?? inHeader else {
        throw .tokenUnknown.with(code: "invalid_grant")
      }
      _ = try ownToken(text)
      if let identifier = Self.parts(ofJWT: text)?.claims["jti"]?.text,
        !state.assertions.insert(identifier).inserted
      {
        throw Refusal("the JWT is invalid: its \"jti\" was already used", code: "invalid_grant")
      }
    }
    if grant == .tokenExchange { try checkExchange(parameters) }
    // The rules have checked the values that the descriptor sends.
    for name in descriptor.variables.filter(\.isAtExchange).map(\.name) {
      let expiry = (state.key?.variables[name]).flatMap { Self.parts(ofJWT: $0)?.claims["exp"]?.integer }
      guard let expiry, .seconds(expiry) > now else { throw .subjectTokenExpired }
    }
    let consent = addConsent(account: "ada", scope: try scope(parameters), details: try details(parameters))
    issue(consent, withRefreshToken: false, into: &answer)
    if grant == .tokenExchange { answer.set(FieldPath("issued_token_type"), .string(Self.accessTokenType)) }
  }

  /// Checks the parameters of a token exchange that the descriptor neither sets nor drops (RFC 8693, 2.1 and 2.2.2).
  private func checkExchange(_ parameters: EndpointParameters) throws(Refusal) {
    func value(_ name: String) throws(Refusal) -> String? {
      parameters.isSet(name) || parameters.isDropped(name) ? nil : try parameters.needed(name)
    }
    let type = try value("grant_type")
    if type != nil, type != EndpointKind.tokenExchange.leg.grantType { throw .unsupportedGrantType }
    _ = try value("subject_token_type")
    if let token = try value("subject_token"), token != state.key?.variables["subject_token"] {
      throw .tokenUnknown.with(code: "invalid_request")
    }
  }

  private static let accessTokenType = "urn:ietf:params:oauth:token-type:access_token"

  /// A token of another issuer, valid for a day: the JWT that a CI gives its jobs, for practice.
  var subjectToken: String {
    let claims: JSONValue = [
      "iss": "https://ci.example", "sub": "ada", "aud": .string(issuer ?? origin), "iat": .duration(now),
      "exp": .duration(now + .days(1)),
    ]
    let text = Self.jwt(["alg": "HS256", "typ": "JWT"], claims)
    let mark = HashAlgorithm.sha256.authenticationCode(for: Array(text.utf8), key: clientSecret.revealBytes())
    return text + "." + Base64.encodeURL(mark)
  }

  /// Notes a token that the client made itself, so that later requests find it.
  mutating func learnOwnToken(_ request: HTTPRequest) {
    guard descriptor.grants.contains(where: \.traits.signsJWT), descriptor.endpoints[.token] == nil,
      let text = request.fields["Authorization"]?.split(separator: " ").last.map(String.init),
      state.tokens[text] == nil, let expiry = try? ownToken(text)
    else { return }
    state.tokens[text] = IssuedToken(consent: addConsent(account: "ada", scope: []), expiresAt: expiry)
  }

  /// Checks a JWT that the practice key signed, and returns its expiry (RFC 7523, 3).
  private func ownToken(_ text: String) throws(Refusal) -> Duration {
    let rules = descriptor.assertion ?? AssertionRules()
    let algorithm = rules.algorithm ?? .rs256
    let token = try ClientJWT(text, as: .grant, algorithm, checkedBy: self)
    guard let (_, claims, signature) = Self.parts(ofJWT: text),
      isSignature(signature.bytes, of: signature.text, algorithm.scheme, key: practiceKey)
    else { throw token.fault("its signature does not match the key file") }
    try checkClaims(of: token)
    guard let expiry = claims["exp"]?.integer else { throw token.fault("it has no \"exp\"") }
    return .seconds(expiry)
  }

  /// Returns the content of the key file for the login, with the variables that are not in it.
  func keyFile(_ values: [String: String]) -> String {
    let fields = descriptor.key?.file ?? []
    if fields.contains(where: { $0.path == nil }) { return practiceKey.reveal() + "\n" }
    return JSONValue.object(
      fields.compactMap { field in
        field.path.map { .init($0.text, .string(values[field.variable] ?? "")) }
      }
    ).encoded
  }
}

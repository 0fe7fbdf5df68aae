import Cryptography
import HTTP
import JSON
import Descriptors

extension Simulation {
  /// The answer to a request of RFC 6749 (4.1.3, 4.4.2, 6) or RFC 8628 (3.4).
  mutating func tokenAnswer(_ request: HTTPRequest, _ kind: EndpointKind, _ endpoint: Endpoint) -> HTTPResponse {
    do throws(Refusal) {
      let parameters = try EndpointParameters(request, endpoint)
      let kept = keptValues(of: parameters)
      try checkClient(request, endpoint, parameters, kept: kept)
      if !parameters.isSet("grant_type"), !parameters.isDropped("grant_type") {
        guard try parameters.needed("grant_type") == Self.grantType(kind) else {
          throw Refusal("unsupported_grant_type", .unsupportedGrantType)
        }
      }
      var content = AnswerContent(endpoint.response)
      content.setSuccess()
      switch kind {
      case .tokenExchange: try exchangeToken(parameters, &content, endpoint.response)
      case .refresh:
        guard let token = try refreshToken(of: parameters) else {
          throw .request(.missing(parameters.wireName("refresh_token")))
        }
        try refresh(token, &content, endpoint.response)
      case .clientCredentials: try clientCredentials(parameters, &content, endpoint.response)
      case .deviceToken: try poll(parameters, &content, endpoint.response)
      default: try exchange(parameters, &content, endpoint.response)
      }
      return content.response(200)
    } catch {
      state.log.refused(at: kind.rawValue, error)
      return response(error, endpoint.response)
    }
  }

  /// What is kept for the account whose code or refresh token is in a request.
  private func keptValues(of parameters: EndpointParameters) -> [String: String] {
    if let code = try? code(of: parameters), let issued = state.codes[code] {
      return state.consents[issued.consent].kept
    }
    if let token = try? refreshToken(of: parameters), let issued = state.refreshTokens[token] {
      return state.consents[issued.consent].kept
    }
    return [:]
  }

  /// The code of a request. A provider that is sent none knows whom it is about from what came before, which is the
  /// newest consent here.
  private func code(of parameters: EndpointParameters) throws(Refusal) -> String? {
    if let code = try parameters.optional("code") { return code }
    guard parameters.isDropped("code") else { return nil }
    if let code = try parameters.carried("code", knowledge()) { return code }
    return state.codes.filter { !$0.value.isUsed }.max { $0.value.consent < $1.value.consent }?.key
  }

  /// The refresh token of a request; where none is sent, the one of the newest consent.
  private func refreshToken(of parameters: EndpointParameters) throws(Refusal) -> String? {
    if let token = try parameters.optional("refresh_token") { return token }
    guard parameters.isDropped("refresh_token") else { return nil }
    return try parameters.carried("refresh_token", knowledge()) ?? newestRefreshToken
  }

  private var newestRefreshToken: String? {
    state.refreshTokens.filter { $0.value.replacedAt == nil && !state.consents[$0.value.consent].isRevoked }
      .max { $0.value.consent < $1.value.consent }?.key
  }

  /// RFC 6749, 4.1.3 and 4.1.4; RFC 7636, 4.6.
  private mutating func exchange(
    _ parameters: EndpointParameters, _ content: inout AnswerContent, _ rules: ResponseRules
  ) throws(Refusal) {
    guard let code = try code(of: parameters) else {
      // Without codes, a refresh can be the same request (Microsoft's admin consent).
      guard parameters.isDropped("code"), let token = newestRefreshToken else {
        throw .request(.missing(parameters.wireName("code")))
      }
      return try refresh(token, &content, rules)
    }
    let redirectURI = try parameters.required("redirect_uri")
    let verifier = try parameters.optional("code_verifier")
    guard var issued = state.codes[code] else { throw .grant(.codeUnknown) }
    if issued.isUsed {
      // 4.1.2: whoever comes second may be the rightful one, so that neither keeps anything.
      state.log.count(.codeReuses)
      state.revoke(issued.consent)
      throw .grant(.codeUsedTwice)
    }
    guard now <= issued.expiresAt else { throw .grant(.codeExpired) }
    // A code that was shown to the wrong verifier is spent, too: nobody is to try again.
    issued.isUsed = true
    state.codes[code] = issued
    if issued.terms.isRedirectExplicit, let redirectURI, redirectURI != issued.terms.redirectURI {
      throw .grant(.redirectMismatch)
    }
    if let challenge = issued.terms.challenge {
      guard let verifier else { throw .request(.missing(parameters.wireName("code_verifier"))) }
      guard isChallenge(challenge, of: verifier) else { throw .grant(.verifierMismatch) }
    } else if verifier != nil {
      throw .request(.unwanted(parameters.wireName("code_verifier")))
    }
    try checkRevoked(issued.consent)
    issue(issued.consent, withRefreshToken: true, into: &content, rules)
    addIDToken(issued.consent, nonce: issued.terms.nonce, to: &content)
  }

  /// RFC 7636, 4.6. The engine's own functions are not asked: they are what is played against.
  private func isChallenge(_ challenge: String, of verifier: String) -> Bool {
    let hash = HashAlgorithm.sha256.digest(Array(verifier.utf8))
    return switch descriptor.pkce {
    case .s256: Base64.decodeURL(challenge) == hash
    case .s256Hexadecimal: Hexadecimal.decode(challenge) == hash
    case .plain: challenge == verifier
    case .none: false
    }
  }

  /// RFC 6749, 6, with rotation (RFC 9700, 4.14.2): a refresh token that comes again after it was replaced takes
  /// everything with it.
  private mutating func refresh(
    _ token: String, _ content: inout AnswerContent, _ rules: ResponseRules
  ) throws(Refusal) {
    guard var issued = state.refreshTokens[token] else { throw .grant(.refreshTokenUnknown) }
    try checkRevoked(issued.consent)
    guard now < issued.expiresAt else { throw .grant(.refreshTokenExpired) }
    if let replacedAt = issued.replacedAt, now > replacedAt + settings.grace * 1000 || settings.grace == 0 {
      state.log.count(.reuses)
      state.revoke(issued.consent)
      throw .grant(.refreshTokenReused)
    }
    state.log.count(.refreshes)
    let rotates = !hasFault(.noRotation)
    if rotates, issued.replacedAt == nil {
      issued.replacedAt = now
      state.refreshTokens[token] = issued
    }
    issue(issued.consent, withRefreshToken: rotates, into: &content, rules)
  }

  /// RFC 8693, 2.1: the token of a login becomes another, which lives longer, and the first one is spent.
  private mutating func exchangeToken(
    _ parameters: EndpointParameters, _ content: inout AnswerContent, _ rules: ResponseRules
  ) throws(Refusal) {
    let token = try subjectToken(parameters)
    guard let issued = state.tokens.removeValue(forKey: token) else { throw .grant(.tokenUnknown) }
    try checkRevoked(issued.consent)
    // Such a token is not refreshed, unless with itself (Instagram).
    let isRenewable = rules.source(of: .refreshToken).paths.first == rules.source(of: .accessToken).paths.first
    issue(issued.consent, withRefreshToken: isRenewable, into: &content, rules)
  }

  /// The token to exchange; a descriptor may drop the parameter and send the token under a template of its own.
  private func subjectToken(_ parameters: EndpointParameters) throws(Refusal) -> String {
    if parameters.isDropped("subject_token") {
      for rule in descriptor.endpoints[.tokenExchange]?.parameters ?? []
      where rule.value?.names.contains("access_token") == true {
        return try parameters.needed(rule.name)
      }
    }
    return try parameters.needed("subject_token")
  }

  /// RFC 6749, 4.4.2; without a refresh token (4.4.3).
  private mutating func clientCredentials(
    _ parameters: EndpointParameters, _ content: inout AnswerContent, _ rules: ResponseRules
  ) throws(Refusal) {
    var scope = try scopes(try parameters.optional("scope"))
    if scope.isEmpty { scope = descriptor.scope.requested }
    let consent = addConsent(account: SimulatedProvider.clientIdentifier, scope: scope)
    issue(consent, withRefreshToken: false, into: &content, rules)
  }

  func checkRevoked(_ consent: ConsentID) throws(Refusal) {
    if state.consents[consent].isRevoked { throw .grant(.revoked) }
  }

  /// OpenID Connect Core 1.0, 2 and 3.1.3.7: signed with the client's secret (HS256), where `openid` was asked for.
  private func addIDToken(_ consent: ConsentID, nonce: String?, to content: inout AnswerContent) {
    guard state.consents[consent].scope.contains("openid") else { return }
    let issued = now / 1000
    let header: JSONValue = ["alg": "HS256", "typ": "JWT"]
    var members: [JSONValue.Member] = [
      .init("iss", .string(issuer ?? origin)), .init("sub", .string(state.consents[consent].account)),
      .init("aud", .string(SimulatedProvider.clientIdentifier)), .init("iat", .integer(issued)),
      .init("exp", .integer(issued + lifetime)),
    ]
    if let nonce { members.append(.init("nonce", .string(nonce))) }
    let claims = JSONValue.object(members)
    let text = [header, claims].map { Base64.encodeURL(Array($0.encoded.utf8)) }.joined(separator: ".")
    let mark = HashAlgorithm.sha256.authenticationCode(for: Array(text.utf8), key: clientSecret.revealBytes())
    content.set(.idToken, .string(text + "." + Base64.encodeURL(mark)))
  }
}

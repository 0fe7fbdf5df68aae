import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

extension Simulation {
  /// Answers a token request: RFC 6749 (4.1.3, 4.4.2, 6), RFC 8628 (3.4) and RFC 8693 (2.1).
  mutating func token(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    if parameters.kind == .token, let grant = broughtGrant {
      return try exchangeBrought(by: grant, parameters, &answer)
    }
    let code = try? code(of: parameters)
    let refreshToken = try? refreshToken(of: parameters)
    // The account of the code or refresh token in the request.
    let consent = code.flatMap { state.codes[$0]?.consent } ?? refreshToken.flatMap { state.refreshTokens[$0]?.consent }
    try checkClient(parameters, kept: consent.map { state.consents[$0].kept } ?? [:])
    // RFC 6749, 5.2: a code or a refresh token belongs to one client.
    if let owner = consent.flatMap({ state.consents[$0].client }), try parameters.needed("client_id") != owner {
      throw .grantOfAnotherClient
    }
    if !parameters.isSet("grant_type"), !parameters.isDropped("grant_type") {
      guard try parameters.needed("grant_type") == parameters.kind.leg.grantType else { throw .unsupportedGrantType }
    }
    switch parameters.kind {
    case .tokenExchange: try exchangeToken(parameters, &answer)
    case .refresh:
      guard let token = try self.refreshToken(of: parameters) else {
        throw .missing(parameters.wireName("refresh_token"))
      }
      try refresh(token, &answer)
    case .clientCredentials:
      // RFC 6749, 4.4.2; no refresh token (4.4.3).
      let consent = addConsent(
        account: Self.clientIdentifier, scope: try scope(parameters), details: try details(parameters))
      issue(consent, withRefreshToken: false, into: &answer)
    case .deviceToken: _ = try poll(parameters.needed("device_code"), &answer)
    case .backchannelToken:
      let issued = try poll(parameters.needed("auth_req_id"), &answer)
      // CIBA Core 1.0, 10.1.1 requires an ID token.
      answer.set(.idToken, .string(idToken(issued.consent, for: issued.accessToken, isLogin: true)))
    default: try exchangeCode(parameters, &answer)
    }
  }

  /// Returns the code of a request. A provider that receives none remembers the user, so the simulator uses the newest
  /// consent.
  private func code(of parameters: EndpointParameters) throws(Refusal) -> String? {
    if let code = try parameters.optional("code", carrying: ["code"], knowledge()) { return code }
    guard parameters.isDropped("code") else { return nil }
    return state.codes.filter { !$0.value.isUsed }.max { $0.value.consent < $1.value.consent }?.key
  }

  /// Returns the refresh token of a request, or else the one of the newest consent.
  private func refreshToken(of parameters: EndpointParameters) throws(Refusal) -> String? {
    let token = try parameters.optional("refresh_token", carrying: ["refresh_token"], knowledge())
    return token ?? (parameters.isDropped("refresh_token") ? newestRefreshToken : nil)
  }

  private var newestRefreshToken: String? {
    state.refreshTokens.filter { $0.value.replacedAt == nil && !state.consents[$0.value.consent].isRevoked }
      .max { $0.value.consent < $1.value.consent }?.key
  }

  /// Exchanges a code (RFC 6749, 4.1.3 and 4.1.4; RFC 7636, 4.6).
  private mutating func exchangeCode(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    guard let code = try code(of: parameters) else {
      // Without codes, a refresh may be the same request (Microsoft's admin consent).
      guard parameters.isDropped("code"), let token = newestRefreshToken else {
        throw .missing(parameters.wireName("code"))
      }
      return try refresh(token, &answer)
    }
    let redirectURI = try parameters.required("redirect_uri")
    let verifier = try parameters.optional("code_verifier")
    guard var issued = state.codes[code] else { throw .codeUnknown }
    if issued.isUsed {
      // 4.1.2: the second caller may be the rightful one, so revoke the tokens of both.
      state.log.count(.codeReuses)
      state.consents[issued.consent].isRevoked = true
      throw .codeUsedTwice
    }
    guard now <= issued.expiresAt else { throw .codeExpired }
    // A wrong verifier also uses the code up, which prevents another try.
    issued.isUsed = true
    state.codes[code] = issued
    if let expected = issued.terms.redirectURI, let redirectURI, redirectURI != expected {
      throw .redirectMismatch.with(code: "invalid_grant")
    }
    if let challenge = issued.terms.challenge {
      guard let verifier else { throw .missing(parameters.wireName("code_verifier")) }
      guard isChallenge(challenge, of: verifier) else { throw .verifierMismatch }
    } else if verifier != nil {
      throw .unwanted(parameters.wireName("code_verifier"))
    }
    if let key = issued.terms.key, key != state.provenKey { throw .foreignKey }
    try checkRevoked(issued.consent)
    let token = issue(issued.consent, withRefreshToken: true, into: &answer)
    setIDToken(of: issued.consent, for: token, issued.terms, in: &answer)
  }

  /// Refreshes with rotation (RFC 6749, 6; RFC 9700, 4.14.2): reusing a replaced refresh token revokes the consent.
  private mutating func refresh(_ token: String, _ answer: inout AnswerContent) throws(Refusal) {
    guard let issued = state.refreshTokens[token] else { throw .refreshTokenUnknown }
    try checkRevoked(issued.consent)
    // The refresh token of a public client is bound (RFC 9449, 5; RFC 8705, 4). Other clients authenticate instead.
    if clientAuthentication == .none, issued.key != state.provenKey {
      throw bindsToCertificates ? .foreignCertificate : .foreignKey
    }
    let now = now
    guard issued.expiresAt.map({ now < $0 }) ?? true else { throw .refreshTokenExpired }
    if let replacedAt = issued.replacedAt, now > replacedAt + settings.grace || settings.grace == .zero {
      state.log.count(.reuses)
      state.consents[issued.consent].isRevoked = true
      throw .refreshTokenReused
    }
    state.log.count(.refreshes)
    let rotates = !hasFault(.noRotation)
    if rotates, issued.replacedAt == nil { state.refreshTokens[token]?.replacedAt = now }
    let accessToken = issue(issued.consent, withRefreshToken: rotates, into: &answer)
    setIDToken(of: issued.consent, for: accessToken, nil, in: &answer)
  }

  /// Adds an ID token if the login asked for one (OpenID Connect Core 1.0, 3.1.3.3 and 12.2).
  private func setIDToken(
    of consent: ConsentID, for accessToken: String, _ terms: AuthorizationTerms?, in answer: inout AnswerContent
  ) {
    guard state.consents[consent].scope.contains("openid") else { return }
    answer.set(.idToken, .string(idToken(consent, for: accessToken, isLogin: terms != nil, terms: terms)))
  }

  /// Exchanges a login's token for one that lives longer (RFC 8693, 2.1). The first token stops working.
  private mutating func exchangeToken(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    if answer.rules.fields[.accessToken]?.paths.isEmpty == true {
      // A further question, after which the first token stays valid.
      let presents = authentication(parameters.endpoint) == .accessToken
      let headers = parameters.endpoint.headers + descriptor.extraHeaders
      let token = presents ? try presentedToken(parameters.request, headers: headers) : nil
      let sent = try parameters.optional("subject_token", carrying: ["access_token"], knowledge())
      guard let token = token ?? sent, let issued = state.tokens[token] else {
        throw .tokenUnknown.with(code: "invalid_grant")
      }
      try checkRevoked(issued.consent)
      answer.set(kept: state.consents[issued.consent].kept, answer.rules.keep)
      return
    }
    let presents = authentication(parameters.endpoint) == .accessToken
    let token =
      presents
      ? try presentedToken(parameters.request, headers: parameters.endpoint.headers + descriptor.extraHeaders)
      : try parameters.optional("subject_token", carrying: ["access_token"], knowledge())
    guard let token else { throw .missing(parameters.wireName("subject_token")) }
    guard let issued = state.tokens.removeValue(forKey: token) else {
      throw .tokenUnknown.with(code: "invalid_grant")
    }
    try checkRevoked(issued.consent)
    issue(issued.consent, withRefreshToken: false, into: &answer)
  }
}

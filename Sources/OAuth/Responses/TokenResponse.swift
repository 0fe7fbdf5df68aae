import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

extension Answer {
  /// Returns the expiry. Prefers a duration, which does not depend on two clocks. Zero means "does not expire". An
  /// unreadable expiry counts as absent: rejecting the answer could lose a rotated refresh token.
  fileprivate func expiry(_ duration: ResponseField, _ moment: ResponseField, now: Moment, unknown: Moment?) -> Moment?
  {
    let lifetime = text(duration).flatMap { Duration(lifetime: $0, rules.source(of: duration).time) }
    if let lifetime, lifetime > .zero { return now + lifetime }
    guard let text = text(moment), text != "0" else {
      // A negative lifetime makes no sense, but it does not mean "never expires".
      return (lifetime ?? .zero) < .zero ? unknown : nil
    }
    guard let end = Moment(text, rules.source(of: moment).time) else { return nil }
    // The answer's date (RFC 9110, 6.6.1) is on the same clock, so it turns a moment into a lifetime.
    if let date { return now + (end - date) }
    return end > now ? end : unknown
  }

  /// The assumed lifetime of a token that seems expired when issued. The clocks must disagree, because no provider
  /// issues an expired token. Believing the expiry would cause a refresh at every call.
  fileprivate static let unknownLifetime = Duration.seconds(300)
}

extension Client {
  /// Reads the credential in the redirect (RFC 6749, 4.2.2).
  package func credential(_ response: AuthorizationResponse, now: Moment) throws(OAuthError) -> Credential {
    var credential = try credential(
      response.answer, grant: .implicit, scope: response.request.scope, now: now)
    credential.redirectURI = response.request.redirectURI
    try checkNonce(of: response.request, in: credential, from: response.answer)
    return credential
  }

  func rules(_ kind: EndpointKind, _ grant: Grant) throws(OAuthError) -> ResponseRules {
    var rules = try endpoint(kind).response
    // RFC 5849, 2.3: the answer is a form, unless the descriptor sets another format for this endpoint.
    if !grant.traits.hasOAuth2Defaults, kind != .tokenExchange, rules.format == .json,
      descriptor.endpoints[.temporaryCredentials]?.response.format == .form
    {
      rules.format = .form
    }
    return rules
  }

  /// Returns the granted scope; `nil` if empty. Tokens of GitHub Apps always have an empty scope, whatever their
  /// permissions.
  func grantedScope(_ answer: Answer) -> [String]? {
    let granted = answer.texts(.scope, separator: descriptor.scope.grantedSeparator)
    return granted?.isEmpty == false ? granted : nil
  }

  func credential(
    _ answer: Answer, grant: Grant, scope: [String], previous: Credential? = nil, kept: [String: String] = [:],
    now: Moment
  ) throws(OAuthError) -> Credential {
    try answer.requireSingle()
    let tokenField = grant.traits.tokenField
    // If the descriptor says that the answer has no token, the old one stays.
    let isKept = answer.rules.source(of: tokenField).paths.isEmpty
    guard let token = try answer.secret(tokenField) ?? (isKept ? previous?.accessToken : nil) else {
      throw .missingField(answer.kind, tokenField)
    }
    var credential = previous ?? Credential(grant: grant, accessToken: token, obtainedAt: now)
    if previous == nil { credential.issuer = issuer }
    credential.accessToken = token
    credential.obtainedAt = now
    credential.margin = descriptor.expiry.margin
    credential.isRejected = false
    // An exchange that says nothing about the time keeps that of the first token.
    let isSilent = answer.kind == .tokenExchange && answer.text(.expiresIn) == nil && answer.text(.expiresAt) == nil
    let end =
      isSilent
      ? previous?.expiresAt : answer.expiry(.expiresIn, .expiresAt, now: now, unknown: now + Answer.unknownLifetime)
    credential.expiresAt = end ?? descriptor.expiry.lifetime.map { now + $0 }
    let type = try answer.string(.tokenType)
    credential.proofKey = previous?.proofKey ?? bindingKey
    // An account from before the descriptor bound tokens stays a bearer account, unless each token is a new login.
    let stays = grant.traits.renewal == .login ? nil : previous?.isCertificateBound
    credential.isCertificateBound = stays ?? (descriptor.binding(of: grant).rule == .mutualTLS)
    if let expected = binding(of: credential).tokenType {
      // RFC 9449, 5 lets a server issue a bearer token instead, which the user did not ask for.
      if type == nil, !computing.isOnlyShown { throw .missingField(answer.kind, .tokenType) }
      if let type, type.lowercased() != expected.lowercased() { throw .tokenNotBound(answer.kind, type) }
    } else if let type, grant.traits.binding == .bearer, !descriptor.headerStyle.presents(tokenType: type) {
      throw .tokenType(answer.kind, type)
    }
    if !isKept, answer.kind == .tokenExchange || grant == .tokenExchange { try checkIssuedType(answer) }
    credential.tokenType = type ?? previous?.tokenType
    if let field = grant.traits.tokenSecretField {
      credential.tokenSecret = try answer.secret(field) ?? previous?.tokenSecret
    }
    credential.sessionHandle = answer.secretIfReadable(.oauthSessionHandle) ?? previous?.sessionHandle
    if let idToken = try idToken(answer, for: token, previous: previous, now: now), idToken != previous?.idToken {
      (credential.idToken, credential.isIDTokenVerified) = (idToken, false)
    }
    // A new refresh token has no known expiry unless the answer states one. An unchanged one keeps its expiry.
    let refreshEnd = answer.expiry(.refreshTokenExpiresIn, .refreshTokenExpiresAt, now: now, unknown: nil)
    if let refreshToken = answer.secretIfReadable(.refreshToken), refreshToken != previous?.refreshToken {
      credential.refreshToken = refreshToken
      credential.refreshTokenExpiresAt = refreshEnd
    } else {
      credential.refreshTokenExpiresAt = refreshEnd ?? previous?.refreshTokenExpiresAt
    }
    credential.requestedScope = scope
    credential.grantedScope = grantedScope(answer) ?? previous?.grantedScope
    credential.requestedDetails = previous.map(\.requestedDetails) ?? descriptor.authorizationDetails.requested
    // They are shown, so leave out an answer that repeats a secret in them.
    credential.grantedDetails = (answer.authorizationDetails ?? previous?.grantedDetails).flatMap {
      credential.holds($0.text) ? nil : $0
    }
    credential.keptSecrets.merge(try answer.keptSecrets()) { _, new in new }
    // Kept fields are shown, and one may be the account's name, so leave out secrets.
    let all = kept.merging(try self.kept(answer)) { _, fromToken in fromToken }
    credential.kept.merge(all.filter { !credential.holds($0.value) }) { _, new in new }
    return credential
  }
}

extension Client {
  /// Returns only the tokens of an answer, to revoke them if the login fails; `nil` if the answer has none.
  package func tokens(
    in response: HTTPResponse, of kind: EndpointKind, _ grant: Grant, now: Moment
  ) -> Credential? {
    guard let answer = try? Answer(response, of: kind, by: rules(kind, grant)),
      let token = answer.secretIfReadable(grant.traits.tokenField)
    else { return nil }
    var credential = Credential(grant: grant, accessToken: token, obtainedAt: now)
    credential.refreshToken = answer.secretIfReadable(.refreshToken)
    credential.tokenSecret = grant.traits.tokenSecretField.flatMap(answer.secretIfReadable)
    (credential.issuer, credential.proofKey) = (issuer, bindingKey)
    credential.isCertificateBound = descriptor.binding(of: grant).rule == .mutualTLS
    return credential
  }

  /// Throws if a token exchange issued a token that does not give access to an API (RFC 8693, 2.2.1 and 3), unless the
  /// descriptor requests its type. A type of the provider's own may give access.
  private func checkIssuedType(_ answer: Answer) throws(OAuthError) {
    let prefix = "urn:ietf:params:oauth:token-type:"
    guard let type = answer.text(FieldPath("issued_token_type")), type.hasPrefix(prefix),
      !["access_token", "jwt"].contains(type.dropFirst(prefix.count))
    else { return }
    let rules = descriptor.endpoints[answer.kind]?.parameters ?? []
    let requested = rules.last { $0.name == "requested_token_type" }?.value?.literal
    guard type == requested else { throw .issuedTokenType(answer.kind, type) }
  }
}

extension Credential {
  var secrets: [Secret] {
    [accessToken, refreshToken, idToken, tokenSecret, sessionHandle, proofKey, importedFrom].compactMap(\.self)
      + keptSecrets.values
  }

  /// Whether the text is or contains one of the secrets. Shorter ones may occur in it by chance.
  package func holds(_ text: String) -> Bool { secrets.contains { $0.isIn(text, atLeast: 12) } }

  package var withheldScope: [String] {
    guard let grantedScope else { return [] }
    return requestedScope.filter { !grantedScope.contains($0) }
  }
}

extension Secret {
  /// Whether the text is this secret, or contains it if it has at least `count` bytes.
  func isIn(_ text: String, atLeast count: Int) -> Bool {
    self == Secret(text) || (self.count >= count && text.firstPlace(of: reveal()) != nil)
  }
}

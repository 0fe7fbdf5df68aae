import Cryptography
import Descriptors
import HTTP
import Text

/// The answer of a token endpoint (RFC 6749, 5.1), read as the descriptor says.
package struct TokenResponse: Sendable {
  let accessToken: Secret
  let tokenType: String?
  let expiresAt: Int64?
  let refreshToken: Secret?
  let refreshTokenExpiresAt: Int64?
  let tokenSecret: Secret?
  let sessionHandle: Secret?
  let idToken: Secret?
  let scope: [String]?
  let kept: [String: String]

  init(_ answer: Answer, _ descriptor: Descriptor, _ grant: Grant, previous: Credential?, now: Int64)
    throws(OAuthError)
  {
    let tokenField = grant.traits.tokenField
    // A descriptor that says that the answer has no token means that the old one stays.
    let isKept = answer.rules.source(of: tokenField).paths.isEmpty
    guard let token = try answer.secret(tokenField) ?? (isKept ? previous?.accessToken : nil) else {
      throw .missingField(answer.kind, tokenField)
    }
    accessToken = token
    tokenType = answer.text(.tokenType)
    idToken = answer.secretIfReadable(.idToken)
    refreshToken = answer.secretIfReadable(.refreshToken)
    tokenSecret = grant.traits.binding == .signature ? try answer.secret(.oauthTokenSecret) : nil
    sessionHandle = answer.secretIfReadable(.oauthSessionHandle)
    expiresAt =
      Self.expiry(answer, .expiresIn, .expiresAt, now: now, unknown: now + Self.unknownLifetime)
      ?? descriptor.expiry.lifetime.map { now + min($0, Moment.longest) }
    refreshTokenExpiresAt = Self.expiry(answer, .refreshTokenExpiresIn, .refreshTokenExpiresAt, now: now, unknown: nil)
    // An empty list says nothing: tokens of GitHub Apps have one, whatever they may do.
    let granted = answer.texts(.scope, separator: descriptor.scope.grantedSeparator)
    scope = granted?.isEmpty == true ? nil : granted
    kept = answer.kept
  }

  /// A duration goes before a moment: it does not depend on whether two clocks agree. Zero means "does not expire".
  ///
  /// What cannot be read is taken for not said: the token is good all the same, and throwing the answer away would lose
  /// a refresh token that may have been rotated.
  private static func expiry(
    _ answer: Answer, _ duration: ResponseField, _ moment: ResponseField, now: Int64, unknown: Int64?
  ) -> Int64? {
    let seconds = answer.text(duration).flatMap { Moment.lifetime($0, answer.rules.source(of: duration).time) }
    if let seconds, seconds > 0 { return now + seconds }
    guard let text = answer.text(moment), text != "0" else {
      // Over before it began: whatever that means, it is not "for ever".
      return (seconds ?? 0) < 0 ? unknown : nil
    }
    guard let end = Moment.stated(text, answer.rules.source(of: moment).time) else { return nil }
    // A moment is by the provider's clock, and so is the date of the answer (RFC 9110, 6.6.1): with both it is a
    // lifetime.
    if let date = answer.date { return now + (end - date) }
    return end > now ? end : unknown
  }

  /// Seconds for which a token counts as good whose end lies before its beginning: nobody issues what is over already,
  /// so the clocks disagree, and one that counted as expired would be refreshed at every call.
  private static let unknownLifetime: Int64 = 300
}

extension Client {
  /// What the answer to a refresh leaves out stays as it was, the refresh token above all (RFC 6749, 6).
  package func credential(
    _ response: HTTPResponse, _ kind: EndpointKind, grant: Grant, scope: [String], previous: Credential? = nil,
    now: Int64
  ) throws(OAuthError) -> Credential {
    let answer = try Answer(response, kind, endpoint(kind).response)
    return try credential(answer, grant: grant, scope: scope, previous: previous, now: now)
  }

  /// The credential that is in the redirect itself (RFC 6749, 4.2.2).
  package func credential(_ response: AuthorizationResponse, now: Int64) throws(OAuthError) -> Credential {
    var credential = try credential(
      response.answer, grant: .implicit, scope: response.request.scope, previous: nil, now: now)
    credential.redirectURI = response.request.redirectURI
    try check(response.request.nonce, credential, isUnreadable: response.answer.unreadable.contains(.idToken))
    return credential
  }

  /// OpenID Connect Core 1.0, 3.1.3.7, 11. Whoever asked for an ID token of this login does not pass over one that
  /// cannot be read.
  private func check(_ nonce: String?, _ credential: Credential, isUnreadable: Bool) throws(OAuthError) {
    guard let nonce else { return }
    if isUnreadable { throw .malformedField(.token, .idToken) }
    guard let idToken = credential.idToken else { return }
    guard let found = JWTClaims.parse(idToken.reveal())?["nonce"]?.text, constantTimeEqual(found, nonce) else {
      throw .malformedField(.token, .idToken)
    }
  }

  /// With what the redirect brought besides the code (QuickBooks' `realmId`).
  package func credential(
    _ response: HTTPResponse, after authorization: AuthorizationResponse, now: Int64
  ) throws(OAuthError) -> Credential {
    var credential = try credential(
      response, .token, grant: .authorizationCode, scope: authorization.request.scope, now: now)
    let isUnreadable = unreadableFields(response, .token).contains(.idToken)
    try check(authorization.request.nonce, credential, isUnreadable: isUnreadable)
    credential.kept.merge(authorization.answer.kept) { fromToken, _ in fromToken }
    credential.redirectURI = authorization.request.redirectURI
    return credential
  }

  package func unreadableFields(_ response: HTTPResponse, _ kind: EndpointKind, grant: Grant = .authorizationCode)
    -> [ResponseField]
  {
    guard let rules = try? rules(kind, grant), let answer = try? Answer(response, kind, rules) else { return [] }
    return answer.unreadable
  }

  func rules(_ kind: EndpointKind, _ grant: Grant) throws(OAuthError) -> ResponseRules {
    var rules = try endpoint(kind).response
    // RFC 5849, 2.3: the answer is a form, unless the descriptor says otherwise for this very endpoint.
    if grant.traits.binding == .signature, kind != .tokenExchange, rules.format == .json,
      descriptor.endpoints[.temporaryCredentials]?.response.format == .form
    {
      rules.format = .form
    }
    return rules
  }

  func credential(
    _ answer: Answer, grant: Grant, scope: [String], previous: Credential?, now: Int64
  ) throws(OAuthError) -> Credential {
    let token = try TokenResponse(answer, descriptor, grant, previous: previous, now: now)
    var credential =
      previous
      ?? Credential(grant: grant, accessToken: token.accessToken, obtainedAt: now, margin: descriptor.expiry.margin)
    credential.accessToken = token.accessToken
    credential.obtainedAt = now
    credential.margin = descriptor.expiry.margin
    credential.isRejected = false
    credential.expiresAt = token.expiresAt
    credential.tokenType = token.tokenType ?? previous?.tokenType
    credential.tokenSecret = token.tokenSecret ?? previous?.tokenSecret
    credential.sessionHandle = token.sessionHandle ?? previous?.sessionHandle
    credential.idToken = token.idToken ?? previous?.idToken
    // A new refresh token without an expiry of its own has none that we know; the old one keeps the one it had.
    if let refreshToken = token.refreshToken, refreshToken != previous?.refreshToken {
      credential.refreshToken = refreshToken
      credential.refreshTokenExpiresAt = token.refreshTokenExpiresAt
    } else {
      credential.refreshTokenExpiresAt = token.refreshTokenExpiresAt ?? previous?.refreshTokenExpiresAt
    }
    credential.requestedScope = scope
    credential.grantedScope = token.scope ?? previous?.grantedScope
    credential.kept.merge(token.kept) { _, new in new }
    return credential
  }
}

extension Credential {
  package var withheldScope: [String] {
    guard let grantedScope else { return [] }
    return requestedScope.filter { !grantedScope.contains($0) }
  }
}

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// The claims of an ID token. Its issue checks everything except the signature, because the keys may be unreachable,
/// and the answer may be the only copy of the tokens. `Client.verified` checks the signature.
struct IDToken {
  let jwt: SignedJWT
  private var claims: JSONValue { jwt.claims }

  /// Parses an ID token; `nil` if the text is not a JWT with two JSON objects.
  init?(_ token: Secret) {
    guard let jwt = SignedJWT(token.reveal()) else { return nil }
    self.jwt = jwt
  }

  var subject: String? { claims["sub"]?.text }
  var nonce: String? { claims["nonce"]?.text }
  var authenticationContext: String? { claims["acr"]?.text }
  var authenticatedAt: Moment? { Self.moment(claims["auth_time"]) }
  var hasAccessTokenHash: Bool { claims["at_hash"] != nil }

  /// Some issuers include fractions of a second.
  static func moment(_ value: JSONValue?) -> Moment? {
    guard case .number(let text)? = value else { return nil }
    let seconds = Int64(text) ?? Double(text).flatMap { Int64(exactly: $0.rounded(.down)) }
    return seconds.map(Moment.init(secondsSince1970:))
  }

  private var audiences: [String] {
    claims["aud"].map { $0.elements?.compactMap(\.text) ?? [$0.text].compactMap(\.self) } ?? []
  }

  /// Throws unless `issuer` issued the ID token to this client, for this access token, and the ID token is valid at one
  /// of the moments (our clock and the provider's).
  func check(issuer: String?, client: String, accessToken: Secret, moments: [Moment]) throws(JWTFault) {
    try checkParties(issuer: issuer, client: client)
    guard let end = Self.moment(claims["exp"]) else { throw .missing(claim: "exp") }
    guard let beginning = Self.moment(claims["iat"]) else { throw .missing(claim: "iat") }
    guard moments.contains(where: { end > $0 - Self.leeway }) else { throw .expired }
    for start in [beginning, Self.moment(claims["nbf"])].compactMap(\.self) {
      guard moments.contains(where: { start < $0 + Self.leeway }) else { throw .issuedLater }
    }
    if hasAccessTokenHash, let hash = jwt.algorithmName.flatMap(Self.hash) {
      let digest = hash.digest(accessToken.revealBytes())
      let expected = Base64.encodeURL(Array(digest.prefix(digest.count / 2)))
      guard let found = claims["at_hash"]?.text, constantTimeEqual(found, expected) else { throw .accessTokenHash }
    }
  }

  /// Throws unless `issuer` issued the ID token to this client.
  func checkParties(issuer: String?, client: String) throws(JWTFault) {
    try jwt.checkHeader(types: ["jwt"])
    for claim in Self.claimNames where claims.repeats(claim) { throw .repeated(claim: claim) }
    guard let found = claims["iss"]?.text else { throw .missing(claim: "iss") }
    // One provider omits the scheme, which section 15.6.2 permits.
    if let issuer, found != issuer, "https://" + found != issuer { throw .issuer(expected: issuer, found: found) }
    guard subject?.isEmpty == false else { throw .missing(claim: "sub") }
    guard audiences.contains(client) else { throw .audience }
    let party = claims["azp"]
    if party != nil || audiences.count > 1, party?.text != client { throw .authorizedParty }
  }

  /// A refreshed ID token must keep its user, issuer, audience and login (12.2).
  func check(after previous: IDToken) throws(JWTFault) {
    guard subject == previous.subject else { throw .subject }
    if let expected = previous.claims["iss"]?.text, let found = claims["iss"]?.text, expected != found {
      throw .issuer(expected: expected, found: found)
    }
    guard Set(previous.audiences).isSubset(of: audiences) else { throw .audience }
    if let nonce, nonce != previous.nonce { throw .nonce }
  }

  static let leeway = Duration.seconds(300)  // How far two clocks may disagree.

  private static let claimNames = ["iss", "sub", "aud", "azp", "exp", "iat", "nonce", "at_hash", "acr", "auth_time"]

  /// Returns the hash for a signature algorithm (section 3.1.3.6; RFC 7518, 3.1; RFC 8037, 3.1); `nil` if unknown.
  static func hash(_ algorithm: String) -> HashAlgorithm? {
    switch algorithm.suffix(3) {
    case "256": .sha256
    case "384": .sha384
    case "512", "DSA": .sha512
    default: nil
    }
  }
}

extension Client {
  /// Returns the checked ID token of an answer; `nil` if absent or unreadable.
  func idToken(
    _ answer: Answer, for accessToken: Secret, previous: Credential?, now: Moment
  ) throws(OAuthError) -> Secret? {
    guard let text = answer.secretIfReadable(.idToken) else { return nil }
    if SignedJWT.isEncrypted(text.reveal()) { throw .idToken(answer.kind, .encrypted) }
    guard let token = IDToken(text) else { return nil }
    do throws(JWTFault) {
      try token.check(
        issuer: issuer, client: identifier, accessToken: accessToken,
        moments: [now] + [answer.date].compactMap(\.self))
      if verifiesIDTokens { try token.jwt.checkAlgorithm(signatureAlgorithms) }
      // An exchanged token may have another issuer.
      if answer.kind != .tokenExchange, let previous = previous?.idToken.flatMap({ IDToken($0) }) {
        try token.check(after: previous)
      }
    } catch {
      throw .idToken(answer.kind, error)
    }
    return text
  }

  /// Returns the credential with its ID token marked as verified. Throws unless a key of the set signed the ID token
  /// for this client (3.1.3.7, 2 to 8).
  package func verified(_ credential: Credential, with keys: KeySet?) throws(OAuthError) -> Credential {
    guard let text = credential.idToken else { return credential }
    guard let token = IDToken(text) else { throw .idToken(.token, .signature) }
    do throws(JWTFault) {
      try token.checkParties(issuer: issuer, client: identifier)
      try token.jwt.verify(with: keys, signatureAlgorithms, secret: secret?.shared)
    } catch {
      throw error == .noSignatures ? .noSignatures : .idToken(.token, error)
    }
    var credential = credential
    credential.isIDTokenVerified = true
    return credential
  }

  /// Checks that the ID token repeats the `nonce` of its login, if it had one (3.1.3.7, 11).
  func checkNonce(
    of request: AuthorizationRequest, in credential: Credential, from answer: Answer
  ) throws(OAuthError) {
    guard let nonce = request.nonce else { return }
    if answer.unreadable.contains(.idToken) { throw .malformedField(answer.kind, .idToken) }
    guard let token = credential.idToken.flatMap({ IDToken($0) }) else {
      // Some providers without keys know the scope, but not ID tokens.
      let isExpected = descriptor.nonce == true || verifiesIDTokens
      if request.asksIDToken, isExpected, !computing.isOnlyShown { throw .missingField(answer.kind, .idToken) }
      return
    }
    guard let found = token.nonce else { throw .idToken(answer.kind, .missing(claim: "nonce")) }
    guard constantTimeEqual(found, nonce) else { throw .idToken(answer.kind, .nonce) }
    // In a browser redirect, only the hash ties the ID token to the access token (3.2.2.9).
    if answer.kind == .authorization, !token.hasAccessTokenHash { throw .idToken(answer.kind, .accessTokenHash) }
  }

  /// Checks that the identity endpoint names the ID token's user (5.3.2). Only OpenID Connect names users by `sub`.
  func checkSubject(_ answer: Answer, of credential: Credential?) throws(OAuthError) {
    guard let token = credential?.idToken.flatMap({ IDToken($0) }) else { return }
    let path = FieldPath("sub")
    guard let found = answer.text(path) else {
      if descriptor.account.contains(path) { throw .idToken(answer.kind, .missing(claim: path.text)) }
      return
    }
    guard found == token.subject else { throw .idToken(answer.kind, .subject) }
  }
}

extension ConsentDemands {
  /// Returns whether the ID token shows that the user authenticated as a login that began at `start` demanded, and
  /// throws if the ID token contradicts the demand (3.1.3.7, 12 and 13). A provider may leave out `acr` (5.5.1.1), but
  /// not `auth_time` (2). Providers of OAuth alone issue no ID token, and only their API checks the demand (RFC 9470).
  /// The demand may be met by our clock or by the provider's, which is ahead by `difference`.
  package func areMet(
    by credential: Credential, since start: Moment, clockAheadBy difference: Duration = .zero
  ) throws(OAuthError) -> Bool {
    guard !isEmpty else { return true }
    guard let token = credential.idToken.flatMap({ IDToken($0) }) else { return false }
    func fail(_ fault: JWTFault) throws(OAuthError) -> Never {
      throw .idToken(credential.grant == .implicit ? .authorization : .token, fault)
    }
    let context = token.authenticationContext
    if let context, !authenticationContexts.isEmpty, !authenticationContexts.contains(context) {
      try fail(.authenticationContext(context))
    }
    if let maxAge {
      guard let authenticatedAt = token.authenticatedAt else { try fail(.missing(claim: "auth_time")) }
      let possible = [.zero, difference].filter { authenticatedAt <= credential.obtainedAt + $0 + IDToken.leeway }
      if possible.isEmpty { try fail(.authenticatedLater) }
      guard possible.contains(where: { start + $0 - authenticatedAt <= maxAge + IDToken.leeway }) else {
        try fail(.authenticatedEarlier)
      }
    }
    return authenticationContexts.isEmpty || context != nil
  }
}

extension Credential {
  /// OpenID Connect Core 1.0, 2, `exp`
  package var idTokenExpiresAt: Moment? { IDToken.moment(idTokenClaims?["exp"]) }

  /// The user's identifier in the ID token (OpenID Connect Core 1.0, 2, `sub`); `nil` without one.
  package var idTokenSubject: String? { idTokenClaims?["sub"]?.text }

  /// The claims of the ID token; `nil` without one.
  package var idTokenClaims: JSONValue? { idToken.flatMap { JWTClaims.parse($0.reveal()) } }
}

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

// JWT Secured Authorization Response Mode for OAuth 2.0 (JARM)
extension Client {
  /// Returns the parameters inside a signed answer (JARM, 2.1). Checks `state` before anything else, because an answer
  /// with another one does not belong to this login (2.4).
  func signedAnswer(
    _ parameters: FormParameters, to request: AuthorizationRequest, now: Moment
  ) throws(OAuthError) -> FormParameters {
    let texts = parameters.values(of: "response")
    guard texts.count == 1, let jwt = SignedJWT(texts[0]), let claims = jwt.claims.members else {
      if let text = texts.first, SignedJWT.isEncrypted(text) { throw .signedAnswer(.encrypted) }
      let states = parameters.values(of: "state")
      if texts.isEmpty, states.count == 1, constantTimeEqual(states[0], request.state) {
        throw .signedAnswer(.unsigned)
      }
      throw .stateMissing
    }
    guard let state = jwt.claims["state"]?.text else { throw .stateMissing }
    guard constantTimeEqual(state, request.state) else { throw .stateMismatch }
    if let name = jwt.claims.repeatedNames.min() { throw .signedAnswer(.repeated(claim: name)) }
    do throws(JWTFault) {
      try jwt.checkHeader(types: ["jwt", "oauth-authz-resp+jwt"])
      guard let found = jwt.claims["iss"]?.text else { throw .missing(claim: "iss") }
      if let issuer, found != issuer { throw .issuer(expected: issuer, found: found) }
      let audience = jwt.claims["aud"]
      guard audience?.text == identifier || audience?.elements == [.string(identifier)] else { throw .audience }
      guard let end = IDToken.moment(jwt.claims["exp"]) else { throw .missing(claim: "exp") }
      guard end > now - IDToken.leeway else { throw .expired }
      try jwt.verify(with: request.keys, signatureAlgorithms, secret: secret?.shared)
    } catch {
      throw error == .noSignatures ? .noSignatures : .signedAnswer(error)
    }
    let own = claims.filter { !["aud", "exp", "iat", "nbf", "jti"].contains($0.name) }
    return FormParameters(own.map { .init(name: $0.name, value: $0.value.text ?? $0.value.encoded) })
  }
}

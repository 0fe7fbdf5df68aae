import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import CredmgrText

/// The OAuth 1.0a grant (RFC 5849).
enum OAuth1Grant: GrantFlow {
  static func callback(_ client: Client) -> CallbackPart? { .query }

  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let (client, scope, callback) = (login.client, login.scope, login.redirectURI)
    return .send(
      Step.Exchange(kind: .temporaryCredentials) { nonce throws(OAuthError) in
        try client.temporaryCredentialsRequest(callback: callback, scope: scope, nonce: nonce)
      } read: { answer, _ throws(OAuthError) in
        .browse(try page(client.temporaryCredentials(answer, callback: callback), login))
      })
  }

  private static func page(_ temporary: TemporaryCredentials, _ login: LoginContext) throws(OAuthError) -> Step.Page {
    let (client, scope) = (login.client, login.scope)
    return Step.Page(
      uri: try client.authorizationPage(temporary, scope: scope, choosing: login.person, nonce: login.nonce),
      expected: [(.oauthToken, temporary.token.reveal())], brings: .oauthVerifier, login: login
    ) { parameters, _ throws(OAuthError) in
      let consent = try client.resourceOwnerAuthorization(parameters, to: temporary)
      return .send(
        Step.Exchange(kind: .token) { nonce throws(OAuthError) in
          try client.tokenRequest(temporary, consent, nonce: nonce)
        } read: { answer, now throws(OAuthError) in
          try client.end(client.outcome(answer, after: consent, scope: scope, now: now))
        })
    }
  }

  /// Builds the renewal request (OAuth Session 1.0 draft 1, 5).
  static func refreshRequest(
    _ credential: Credential, _ client: Client, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    guard let handle = credential.sessionHandle else { throw .notRefreshable }
    return try OAuth1Binding(client: client).signed(
      client.oauth1Request(.refresh, credential: credential, nonce: nonce),
      token: (credential.accessToken, credential.tokenSecret ?? Secret("")),
      [("oauth_session_handle", handle.reveal())], nonce: nonce, variables: credential.variables)
  }
}

/// The credentials that start an OAuth 1.0a login, also called the request token (RFC 5849, 2.1).
package struct TemporaryCredentials: Sendable, Redacted {
  package let token: Secret
  let secret: Secret
  package let callback: String
}

/// The user's consent (RFC 5849, 2.2).
package struct ResourceOwnerAuthorization: Sendable, Redacted {
  let verifier: String?
  let kept: [String: String]
}

extension Client {
  /// Builds the request for temporary credentials (RFC 5849, 2.1).
  package func temporaryCredentialsRequest(
    callback: String, scope: [String], nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let request = try oauth1Request(
      .temporaryCredentials, exchange: ["redirect_uri": callback, "scope": joined(scope)], nonce: nonce)
    let isHere = descriptor.oauth1.callback == .temporaryCredentials
    return try OAuth1Binding(client: self).signed(
      request, token: nil, isHere ? [("oauth_callback", callback)] : [], nonce: nonce)
  }

  /// Reads the temporary credentials (RFC 5849, 2.1).
  package func temporaryCredentials(
    _ response: HTTPResponse, callback: String
  ) throws(OAuthError) -> TemporaryCredentials {
    let kind = EndpointKind.temporaryCredentials
    let answer = try Answer(response, of: kind, by: endpoint(kind).response)
    guard let token = try answer.secret(.oauthToken) else { throw .missingField(kind, .oauthToken) }
    if descriptor.oauth1.requiresCallbackConfirmed, answer.text(.oauthCallbackConfirmed)?.lowercased() != "true" {
      throw .callbackNotConfirmed
    }
    return TemporaryCredentials(
      token: token, secret: try answer.secret(.oauthTokenSecret) ?? Secret(""), callback: callback)
  }

  /// Returns the page where the user consents (RFC 5849, 2.2).
  package func authorizationPage(
    _ temporary: TemporaryCredentials, scope: [String], choosing person: PersonChoice? = nil, nonce: RequestNonce
  ) throws(OAuthError) -> URI {
    var parameters: FormParameters = [("oauth_token", temporary.token.reveal())]
    if descriptor.oauth1.callback == .authorization { parameters.append("oauth_callback", temporary.callback) }
    return try request(
      .authorization, parameters,
      exchange: ["redirect_uri": temporary.callback, "scope": joined(scope)], proof: .signature, choosing: person,
      nonce: nonce
    ).uri
  }

  /// Reads the callback (RFC 5849, 2.2). Checks the token first, in constant time.
  package func resourceOwnerAuthorization(
    _ parameters: FormParameters, to temporary: TemporaryCredentials
  ) throws(OAuthError) -> ResourceOwnerAuthorization {
    let answer = Answer(redirect: parameters, try endpoint(.authorization).response)
    // When the user declines, Twitter returns the token only under this name.
    let denied = parameters[first: "denied"]
    if let name = answer.repeatedName([FieldPath("denied"), FieldPath("oauth_problem")]) {
      let isOurs = parameters.pairs.contains { constantTimeEqual($0.value, temporary.token.reveal()) }
      throw isOurs ? .repeated(.authorization, name: name) : .tokenMismatch
    }
    let token = answer.text(.oauthToken) ?? denied
    // Servers built on Authlib omit the token when the user declines. At worst, another page ends the login this way.
    guard token.map({ constantTimeEqual($0, temporary.token.reveal()) }) ?? (answer.error != nil) else {
      throw .tokenMismatch
    }
    // Most providers use this extension when the user declines.
    let problem = parameters[first: "oauth_problem"]
    if problem != nil || denied != nil {
      throw .refused(.authorization, ErrorResponse(code: "access_denied", words: problem, status: nil))
    }
    if let error = answer.error { throw answer.failure(error) }
    let verifier = answer.text(.oauthVerifier)
    if verifier == nil, descriptor.oauth1.requiresVerifier {
      throw .missingField(.authorization, .oauthVerifier)
    }
    return ResourceOwnerAuthorization(verifier: verifier, kept: try kept(answer).filter { $0.value != verifier })
  }

  /// Builds the token request (RFC 5849, 2.3).
  package func tokenRequest(
    _ temporary: TemporaryCredentials, _ authorization: ResourceOwnerAuthorization, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let parameters = FormParameters(authorization.verifier.map { [.init(name: "oauth_verifier", value: $0)] } ?? [])
    return try OAuth1Binding(client: self).signed(
      oauth1Request(.token, nonce: nonce), token: (temporary.token, temporary.secret), parameters, nonce: nonce)
  }

  /// Reads the token answer (RFC 5849, 2.3).
  package func outcome(
    _ response: HTTPResponse, after authorization: ResourceOwnerAuthorization, scope: [String], now: Moment
  ) -> TokenOutcome {
    outcome(response, .token, grant: .oauth1, scope: scope, kept: authorization.kept, now: now)
  }

  /// Builds a request without client authentication, because the signature will authenticate the client.
  fileprivate func oauth1Request(
    _ kind: EndpointKind, credential: Credential? = nil, exchange: [String: String] = [:], nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var request = try request(kind, [], credential: credential, exchange: exchange, proof: .signature, nonce: nonce)
    if request.body.isEmpty { request.fields.removeAll(named: "Content-Type") }
    return request
  }
}

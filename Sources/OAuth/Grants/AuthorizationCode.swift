import CredmgrDescriptors
import CredmgrHTTP

/// The authorization code grant (RFC 6749, 4.1).
enum AuthorizationCodeGrant: GrantFlow {
  static func callback(_ client: Client) -> CallbackPart? {
    client.descriptor.endpoints[.authorization]?.response.format == .fragment ? .fragment : .query
  }

  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let client = login.client
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: login.redirectURI, scope: login.scope, demanding: login.demands,
      choosing: login.person, random: login.random, nonce: login.nonce)
    guard client.descriptor.getsSignedAnswers else { return page(request, login) }
    // Keys that several issuers share would sign for each of them (JARM, 2.4).
    if client.issuer == nil { throw .noIssuer }
    guard client.needsKeySet else { return page(request, login) }
    // Without the keys, no answer would count, so get them before the browser opens.
    return .send(
      Step.Exchange(kind: .keySet) { nonce throws(OAuthError) in
        try client.keySetRequest(nonce: nonce)
      } read: { answer, _ throws(OAuthError) in
        var request = request
        request.keys = client.computing.isOnlyShown ? nil : try client.keySet(answer)
        return page(request, login)
      })
  }

  private static func page(_ request: AuthorizationRequest, _ login: LoginContext) -> Step {
    let client = login.client
    guard client.descriptor.endpoints[.pushedAuthorizationRequest] != nil else {
      return .browse(page(request, at: request.uri, login))
    }
    return .send(
      Step.Exchange(kind: .pushedAuthorizationRequest) { nonce throws(OAuthError) in
        try client.pushedRequest(request, nonce: nonce)
      } read: { answer, _ throws(OAuthError) in
        let pushed = try client.page(of: request, pushed: answer)
        var page = page(request, at: pushed.uri, login)
        page.validFor = pushed.validFor
        return .browse(page)
      })
  }

  private static func page(_ request: AuthorizationRequest, at uri: URI, _ login: LoginContext) -> Step.Page {
    let client = login.client
    return client.page(request, at: uri, login) { parameters, now throws(OAuthError) in
      let response = try client.authorizationResponse(parameters, to: request, now: now)
      return .send(
        Step.Exchange(kind: .token) { nonce throws(OAuthError) in
          try client.tokenRequest(response, nonce: nonce)
        } read: { answer, now throws(OAuthError) in
          try client.end(client.outcome(answer, after: response, now: now))
        })
    }
  }
}

/// Pushed authorization requests (RFC 9126).
extension Client {
  /// Builds the request that sends the parameters of the page directly to the server (RFC 9126, 2.1).
  package func pushedRequest(_ request: AuthorizationRequest, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    try self.request(
      .pushedAuthorizationRequest, request.parameters,
      exchange: ["redirect_uri": request.redirectURI, "scope": joined(request.scope)], nonce: nonce)
  }

  /// Returns the page for the browser, which sees only the reference to the pushed request (RFC 9126, 2.2 and 4), and
  /// how long the reference is valid; `nil` if the server does not say.
  package func page(
    of request: AuthorizationRequest, pushed response: HTTPResponse
  ) throws(OAuthError) -> (uri: URI, validFor: Duration?) {
    let kind = EndpointKind.pushedAuthorizationRequest
    let answer = try Answer(response, of: kind, by: endpoint(kind).response)
    guard let reference = answer.text(.requestURI), !reference.isEmpty else { throw .missingField(kind, .requestURI) }
    // The browser sends it in an address, for which servers have limits.
    guard reference.utf8.count <= 4096 else { throw .malformedField(kind, .requestURI) }
    let name = try endpoint(.authorization).rename["client_id"] ?? "client_id"
    let uri = request.page.adding(
      query: FormParameters([.init(name: name, value: identifier), .init(name: "request_uri", value: reference)]))
    return (uri, answer.text(.expiresIn).flatMap { Duration(lifetime: $0, .seconds) })
  }
}

extension Client {
  /// Builds the request that redeems the code (RFC 6749, 4.1.3; RFC 7636, 4.5).
  package func tokenRequest(_ response: AuthorizationResponse, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    let code = response.answer.text(.code) ?? ""
    let request = response.request
    var parameters: FormParameters = [
      ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", request.redirectURI),
    ]
    if let verifier = request.codeVerifier { parameters.append("code_verifier", verifier.text) }
    var exchange = response.answer.kept
    exchange["redirect_uri"] = request.redirectURI
    exchange["code"] = code
    exchange["state"] = request.state
    exchange["scope"] = joined(request.scope)
    return try self.request(.token, parameters, exchange: exchange, nonce: nonce)
  }
}

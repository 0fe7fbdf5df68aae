import CredmgrDescriptors
import CredmgrHTTP

extension Client {
  /// Whether the descriptor allows this host to receive the credential, over TLS or on loopback.
  package func presents(_ credential: Credential, to uri: URI) -> Bool {
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else { return false }
    return hosts(for: credential).contains { HostPattern($0).matches(uri) }
  }

  /// Returns the hosts that may receive the credential: those in the descriptor, or else its endpoints' hosts.
  package func hosts(for credential: Credential) -> [String] {
    let values = values(for: credential)
    guard descriptor.hosts.isEmpty else {
      return descriptor.hosts.compactMap { try? $0.host(values) }
    }
    return descriptor.endpoints.filter { !$0.key.leg.isPublic }.values.compactMap { endpoint in
      (try? endpoint.url.filled(values)).flatMap(HostPattern.authority)
    }
  }

  /// Adds the credential to a request. Throws if the descriptor does not name the host.
  package func presenting(
    _ credential: Credential, on request: HTTPRequest, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    guard presents(credential, to: request.uri) else {
      throw .foreignHost(HostPattern.authority(request.uri) ?? request.uri.scheme)
    }
    // Sending two credentials would be ambiguous, and dropping one silently would be worse.
    let secrets = ["access_token", "refresh_token", "token_secret", "client_secret", "assertion"]
    let carriers = descriptor.extraHeaders.filter { $0.value.names.contains(where: secrets.contains) }
    let names = binding(of: credential).fieldNames.union(carriers.map { $0.name.lowercased() })
    if let field = request.fields.first(where: { names.contains($0.name.lowercased()) }) {
      throw .credentialHeader(field.name)
    }
    return try presented(credential, on: request, nonce: nonce)
  }

  /// Returns the headers that present the credential. Signed providers require the request.
  package func headerFields(
    presenting credential: Credential, on request: HTTPRequest?, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPFields {
    let style = descriptor.headerStyle(of: credential.grant)
    switch style.location {
    case .query, .path, .body: throw .presentedInQuery
    case .header, .none: break
    }
    if style.isDigest { throw .challengeNeeded }
    if let request {
      let request = try withExtraQuery(request, of: credential, nonce)
      let presented = try presenting(credential, on: request, nonce: nonce)
      // Headers cannot carry a signature that belongs in the query or body.
      guard presented.uri == request.uri, presented.body == request.body else {
        // A signature may only have written the same query in another way.
        let isSame = presented.uri.queryParameters == request.uri.queryParameters && presented.body == request.body
        throw isSame ? .ambiguousQuery : .presentedInQuery
      }
      return presented.fields
    }
    let needsRequest = descriptor.extraHeaders.contains { $0.value.names.contains { $0.hasPrefix("request_") } }
    guard !needsRequest, var fields = try binding(of: credential).fields(presenting: credential, nonce: nonce)
    else { throw .signatureNeedsURL }
    for field in try filled(descriptor.extraHeaders, values: values(for: credential), calculator(nonce)) {
      fields.set(field.name, field.value)
    }
    return fields
  }

  /// Adds the credential without checking the host, for the provider's own endpoints. The request's own fields win.
  func presented(
    _ credential: Credential, on request: HTTPRequest, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let request = try withExtraQuery(request, of: credential, nonce)
    var signed = try binding(of: credential).sign(request, with: credential, nonce: nonce)
    for field in try filled(descriptor.extraHeaders, values: values(for: credential, of: request), calculator(nonce))
    where request.fields[field.name] == nil { signed.fields.set(field.name, field.value) }
    return signed
  }

  /// Adds the descriptor's parameters to the query. The request's own win, and one without a value is left out.
  private func withExtraQuery(
    _ request: HTTPRequest, of credential: Credential, _ nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var query: FormParameters = []
    let given = request.uri.queryParameters
    for rule in descriptor.extraQuery where !given.contains(rule.name) {
      let value = try filled(
        rule.value, values: values(for: credential, of: request), calculator(nonce), tooLong: { .malformedPath })
      if let value { query.append(rule.name, value) }
    }
    var request = request
    request.uri = request.uri.adding(query: query)
    return request
  }

  /// Whether the headers or signature of a request depend on its body.
  package func signsBody(of request: HTTPRequest, with credential: Credential) -> Bool {
    descriptor.extraHeaders.contains { $0.value.readsBody }
      || binding(of: credential).signsBody(of: request)
  }
}

extension Client {
  /// The distinct origins of all endpoints, in order.
  package var origins: [URI] {
    let origins = descriptor.endpoints.values.compactMap { try? $0.url.filled(values()).origin }
    return Set(origins).sorted().compactMap { try? URI(parsing: $0 + "/") }
  }
}

import Descriptors
import HTTP

extension Client {
  /// Whether the descriptor names this host as one that the credential is presented to, over TLS or on loopback.
  package func presents(_ credential: Credential, to uri: URI) -> Bool {
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else { return false }
    return hosts(for: credential).contains { HostPattern($0).matches(uri) }
  }

  /// The hosts that a credential is presented to: those that the descriptor names, or the hosts of its endpoints.
  package func hosts(for credential: Credential) -> [String] {
    let values = values(for: credential)
    guard descriptor.hosts.isEmpty else {
      return descriptor.hosts.compactMap { try? $0.host(values) }
    }
    return descriptor.endpoints.values.compactMap { endpoint in
      (try? endpoint.url.filled(values)).flatMap(HostPattern.authority)
    }
  }

  /// A request with the credential on it; a host that the descriptor does not name throws.
  package func presenting(
    _ credential: Credential, on request: HTTPRequest, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    guard presents(credential, to: request.uri) else {
      throw .foreignHost(HostPattern.authority(request.uri) ?? request.uri.scheme)
    }
    // Two of them would be ambiguous, and to drop one without a word would be worse.
    let secrets = ["access_token", "refresh_token", "token_secret", "client_secret", "assertion"]
    let carriers = descriptor.extraHeaders.filter { $0.value.names.contains(where: secrets.contains) }
    let names = binding(of: credential.grant).fieldNames.union(carriers.map { $0.name.lowercased() })
    if let field = request.fields.first(where: { names.contains($0.name.lowercased()) }) {
      throw .credentialHeader(field.name)
    }
    return try presented(credential, on: request, nonce: nonce)
  }

  /// The request is needed where requests are signed.
  package func headerFields(
    presenting credential: Credential, on request: HTTPRequest?, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPFields {
    if case .query = descriptor.headerStyle.location { throw .presentedInQuery }
    if let request {
      let presented = try presenting(credential, on: request, nonce: nonce)
      // A signature in the query or in the body is in no header.
      guard presented.uri == request.uri, presented.body == request.body else { throw .presentedInQuery }
      return presented.fields
    }
    let needsRequest = descriptor.extraHeaders.contains { $0.value.names.contains { $0.hasPrefix("request_") } }
    guard binding(of: credential.grant).isUsableAlone, !needsRequest else { throw .signatureNeedsURL }
    var fields = HTTPFields()
    if case .header(let name, _) = descriptor.headerStyle.location {
      fields.set(name, try BearerBinding(client: self).header(credential, of: nil, nonce: nonce) ?? "")
    }
    for field in try filled(descriptor.extraHeaders, values: values(for: credential), calculator(nonce)) {
      fields.set(field.name, field.value)
    }
    return fields
  }

  /// Without a look at the host: for the provider's own endpoints. What the request says itself stays.
  func presented(
    _ credential: Credential, on request: HTTPRequest, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var signed = try binding(of: credential.grant).sign(request, with: credential, nonce: nonce)
    for field in try filled(descriptor.extraHeaders, values: values(for: credential, of: request), calculator(nonce))
    where request.fields[field.name] == nil { signed.fields.set(field.name, field.value) }
    return signed
  }

  /// Whether what is sent with a request depends on its body.
  package func signsBody(of request: HTTPRequest, with credential: Credential) -> Bool {
    descriptor.extraHeaders.contains { $0.value.names.contains("request_body") }
      || binding(of: credential.grant).signsBody(of: request)
  }
}

/// A host in a descriptor: `api.example.com`, `*.example.com`, `127.0.0.1:8080`, or a base URL whose host is meant.
package struct HostPattern: Sendable, Equatable {
  private let host: String
  private let port: UInt16?
  private let matchesSubdomains: Bool

  /// A pattern as it is written in a descriptor, its places filled.
  package init(_ text: String) {
    var text = text.lowercased()
    if let uri = try? URI(parsing: text), let authority = Self.authority(uri) { text = authority }
    matchesSubdomains = text.hasPrefix("*.")
    if matchesSubdomains { text.removeFirst(2) }
    if let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) {
      host = String(text[..<colon])
      self.port = port
    } else {
      host = text
      port = nil
    }
  }

  /// Whether a URL's host is meant; without a port in the pattern, only the ordinary port of its scheme is.
  package func matches(_ uri: URI) -> Bool {
    guard let name = uri.host else { return false }
    guard uri.effectivePort == (port ?? (uri.isSecure ? 443 : 80)) else { return false }
    return matchesSubdomains ? name.hasSuffix("." + host) && name.count > host.count + 1 : name == host
  }

  /// Whether a URL's host is this very one.
  package func names(_ uri: URI) -> Bool { !matchesSubdomains && matches(uri) }

  /// Host and, where it is not the ordinary one, port of a URL.
  package static func authority(_ uri: URI) -> String? {
    guard let host = uri.host else { return nil }
    let ordinary: UInt16 = uri.isSecure ? 443 : 80
    guard let port = uri.port, port != ordinary else { return host }
    return host + ":" + String(port)
  }
}

extension Client {
  /// Scheme, host and port of every endpoint, each once, in order.
  package var origins: [URI] {
    let origins = descriptor.endpoints.values.compactMap { try? $0.url.filled(values()).origin }
    return Set(origins).sorted().compactMap { try? URI(parsing: $0 + "/") }
  }
}

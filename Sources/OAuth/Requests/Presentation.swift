import Cryptography
import Descriptors
import HTTP
import Text

extension Client {
  /// Whether the descriptor names this host as one that the credential is presented to, over TLS or on loopback.
  public func presents(_ credential: Credential, to uri: URI) -> Bool {
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else { return false }
    return hosts(for: credential).contains { HostPattern($0).matches(uri) }
  }

  /// The hosts that a credential is presented to: those that the descriptor names, or the hosts of its endpoints.
  public func hosts(for credential: Credential) -> [String] {
    let values = values(for: credential)
    guard descriptor.hosts.isEmpty else {
      return descriptor.hosts.compactMap { template in
        // Subdomains are given by who wrote the descriptor alone: a value, which may be the provider's, brings none.
        let host = try? template.filled { name in values(name).flatMap { $0.contains("*") ? nil : $0 } }
        guard let text = host else { return nil }
        // Where a whole base URL is meant, its host is.
        return (try? URI(parsing: text)).flatMap(HostPattern.authority) ?? text
      }
    }
    return descriptor.endpoints.values.compactMap { endpoint in
      (try? endpoint.url.filled(values)).flatMap(HostPattern.authority)
    }
  }

  /// A request with the credential on it.
  ///
  /// - Parameter nonce: for signed requests.
  /// - Throws: `OAuthError.foreignHost` for a host that the descriptor does not name; `.credentialHeader` for a request that has
  ///   the credential's header already; `.malformedHeader`; and what signing throws.
  public func presenting(
    _ credential: Credential, on request: HTTPRequest, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    guard presents(credential, to: request.uri) else {
      throw .foreignHost(HostPattern.authority(request.uri) ?? request.uri.scheme)
    }
    // Two of them would be ambiguous, and to drop one without a word would be worse.
    let carriers = credentialFields(credential)
    if let field = request.fields.first(where: { carriers.contains($0.name.lowercased()) }) {
      throw .credentialHeader(field.name)
    }
    return try presenting(credential, on: request, nonce: nonce, overwriting: true)
  }

  /// The header lines that present a credential.
  ///
  /// - Parameter request: what they are for; needed when requests are signed.
  /// - Throws: `OAuthError.presentedInQuery` when the token goes into the URL; `.signatureNeedsURL`; and what `presenting`
  ///   throws.
  public func headerFields(
    presenting credential: Credential, on request: HTTPRequest?, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPFields {
    if case .query = descriptor.headerStyle.location { throw .presentedInQuery }
    if let request {
      let presented = try presenting(credential, on: request, nonce: nonce)
      // A signature in the query or in the body is in no header.
      guard presented.uri == request.uri, presented.body == request.body else { throw .presentedInQuery }
      return presented.fields
    }
    if credential.grant == .oauth1 { throw .signatureNeedsURL }
    var fields = HTTPFields()
    try addHeaders(presenting: credential, on: nil, to: &fields)
    return fields
  }

  /// For the provider's own endpoints, which the descriptor names with their whole URL.
  ///
  /// - Parameter overwriting: whether extra headers go before what the request has already.
  func presenting(
    _ credential: Credential, on request: HTTPRequest, nonce: RequestNonce? = nil, overwriting: Bool
  ) throws(OAuthError) -> HTTPRequest {
    var request = request
    var fields = HTTPFields()
    try addHeaders(presenting: credential, on: request, to: &fields)
    var credentialField = "authorization"
    if case .header(let name, _) = descriptor.headerStyle.location { credentialField = name.lowercased() }
    for field in fields {
      // What the caller set itself stays, but for the credential: two would be ambiguous.
      if request.fields[field.name] == nil || (overwriting && field.name.lowercased() == credentialField) {
        request.fields.set(field.name, field.value)
      }
    }
    if case .query(let name) = descriptor.headerStyle.location {
      var query: FormParameters = [(name, credential.accessToken.reveal())]
      let given = request.uri.queryParameters
      let values = request.values(values(for: credential))
      let calculate = calculator(nonce ?? self.nonce?())
      // What the caller, or the endpoint, says itself stays.
      for parameter in descriptor.headerStyle.parameters where !given.contains(parameter.name) {
        guard let text = try? parameter.value.filled(values, calculate: calculate) else { continue }
        query.append(parameter.name, text)
      }
      request.uri = request.uri.adding(query: query)
    }
    if credential.grant == .oauth1, case .none = descriptor.headerStyle.location {
      guard let nonce else { throw .signatureNeedsURL }
      request = try signed(
        request, token: (credential.accessToken, credential.tokenSecret ?? Secret("")), nonce: nonce,
        variables: credential.variables)
    }
    return request
  }

  /// Whether what is sent with a request depends on its body: a form that OAuth 1.0a signs (RFC 5849, 3.4.1.3.1), or a
  /// header with `{request_body}` in it.
  public func signsBody(of request: HTTPRequest, with credential: Credential) -> Bool {
    let headers = descriptor.headerStyle.parameters + descriptor.extraHeaders
    if headers.contains(where: { $0.value.names.contains("request_body") }) { return true }
    guard credential.grant == .oauth1 else { return false }
    return request.fields["Content-Type"]?.lowercased().hasPrefix("application/x-www-form-urlencoded") == true
  }

  /// The names of the header fields that carry the credential, in lower case.
  private func credentialFields(_ credential: Credential) -> Set<String> {
    let secrets = ["access_token", "refresh_token", "token_secret", "client_secret", "assertion"]
    let carriers = descriptor.extraHeaders.filter { $0.value.names.contains(where: secrets.contains) }
    var names = Set(carriers.map { $0.name.lowercased() })
    if case .header(let name, _) = descriptor.headerStyle.location { names.insert(name.lowercased()) }
    if credential.grant == .oauth1, case .none = descriptor.headerStyle.location { names.insert("authorization") }
    return names
  }

  private func addHeaders(
    presenting credential: Credential, on request: HTTPRequest?, to fields: inout HTTPFields
  ) throws(OAuthError) {
    let ownValues = values(for: credential)
    let values = request?.values(ownValues) ?? ownValues
    let calculate = calculator(nonce?())
    if case .header(let name, let scheme) = descriptor.headerStyle.location {
      var value = (scheme.isEmpty ? "" : scheme + " ") + credential.accessToken.reveal()
      for parameter in descriptor.headerStyle.parameters {
        guard let text = try? parameter.value.filled(values, calculate: calculate) else { continue }
        guard !text.contains("\""), !text.contains("\\") else { throw .malformedHeader(name: parameter.name) }
        value += ", " + parameter.name + "=\"" + text + "\""
      }
      guard HTTPFields.isValid(value: value) else { throw .malformedHeader(name: name) }
      fields.set(name, value)
    }
    for header in descriptor.extraHeaders {
      // A header whose value is not known for this account, such as an institution's, is left out.
      if request == nil, header.value.names.contains(where: { $0.hasPrefix("request_") }) { throw .signatureNeedsURL }
      guard let value = try? header.value.filled(values, calculate: calculate) else { continue }
      guard HTTPFields.isValid(value: value) else { throw .malformedHeader(name: header.name) }
      fields.set(header.name, value)
    }
  }
}

/// A host in a descriptor: `api.example.com`, `*.example.com`, `127.0.0.1:8080`, or a base URL whose host is meant.
public struct HostPattern: Sendable, Equatable {
  private let host: String
  private let port: UInt16?
  private let matchesSubdomains: Bool

  /// A pattern as it is written in a descriptor, its places filled.
  public init(_ text: String) {
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
  public func matches(_ uri: URI) -> Bool {
    guard let name = uri.host else { return false }
    guard uri.effectivePort == (port ?? (uri.isSecure ? 443 : 80)) else { return false }
    return matchesSubdomains ? name.hasSuffix("." + host) && name.count > host.count + 1 : name == host
  }

  /// Host and, where it is not the ordinary one, port of a URL.
  public static func authority(_ uri: URI) -> String? {
    guard let host = uri.host else { return nil }
    let ordinary: UInt16 = uri.isSecure ? 443 : 80
    guard let port = uri.port, port != ordinary else { return host }
    return host + ":" + String(port)
  }
}

extension Client {
  /// Scheme, host and port of every endpoint, each once, in order.
  public var origins: [URI] {
    let values = values()
    let texts = descriptor.endpoints.values.compactMap { endpoint -> String? in
      guard let uri = try? endpoint.url.filled(values), let authority = HostPattern.authority(uri) else { return nil }
      return "\(uri.scheme)://\(authority)/"
    }
    return Set(texts).sorted().compactMap { try? URI(parsing: $0) }
  }
}

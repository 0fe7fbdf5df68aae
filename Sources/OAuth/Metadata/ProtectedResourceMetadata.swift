import CredmgrHTTP
import CredmgrJSON

/// Metadata of a protected resource, such as an API or an MCP server (RFC 9728, 2). Every value that is used has been
/// checked. It deserves no more trust than the resource does. `signed_metadata` is ignored, as section 2.2 allows,
/// because the keys that would prove it come from the same server.
package struct ProtectedResourceMetadata: Sendable, Equatable {
  /// The resource's own identifier, which requests for tokens repeat (RFC 8707, 2).
  package let resource: String
  package let location: URI
  package let authorizationServers: [Issuer]
  package let scopes: [String]?
  package let requiresProofs: Bool  // `dpop_bound_access_tokens_required` (RFC 9728, 2).
  package let proofAlgorithms: [String]?  // `dpop_signing_alg_values_supported` (RFC 9728, 2).

  package init(_ response: HTTPResponse, of address: Issuer, at location: URI) throws(MetadataError) {
    guard let value = try? JSONValue.parse(response.body), value.members != nil else { throw .notJSON }
    // Check the resource first: nothing else in another resource's metadata matters.
    if value.repeats("resource") { throw .repeated("resource") }
    guard let found = value["resource"] else { throw .missing("resource") }
    guard let found = found.text else { throw .malformed("resource") }
    guard Self.covers(found, address) else { throw .otherResource(found: MetadataReader.cut(found)) }
    resource = found
    self.location = location
    let reader = MetadataReader(value: value)
    scopes = try reader.texts("scopes_supported")
    requiresProofs = try reader.boolean("dpop_bound_access_tokens_required") ?? false
    proofAlgorithms = try reader.texts("dpop_signing_alg_values_supported")
    authorizationServers = try reader.servers(of: address)
  }

  /// Whether metadata with this identifier is about an address. RFC 9728, 3.3 demands the same identifier. The Model
  /// Context Protocol also has metadata for all addresses below one path of a server, which may be its root.
  private static func covers(_ resource: String, _ address: Issuer) -> Bool {
    if resource == address.text { return true }
    guard let uri = try? URI(parsing: resource), uri.query == nil, uri.fragment == nil,
      uri.origin == address.uri.origin
    else { return false }
    func segments(_ uri: URI) -> [Substring] {
      let path = uri.path.hasSuffix("/") ? uri.path.dropLast() : uri.path[...]
      return path.split(separator: "/", omittingEmptySubsequences: false)
    }
    return segments(address.uri).starts(with: segments(uri))
  }

  static let suffix = "oauth-protected-resource"
  static let folder = MetadataLocation.folder + suffix

  /// Returns the locations in the order to try: that of RFC 9728, 3.1, and the one for the whole server, which the
  /// Model Context Protocol adds.
  package static func locations(of address: Issuer) -> [URI] {
    let path = address.uri.path == "/" ? "" : address.uri.path
    let places = path.isEmpty ? [folder] : [folder + path, folder]
    return places.compactMap { try? URI(parsing: address.uri.origin + $0) }
  }

  /// Returns the location that a refusing resource names (RFC 9728, 5.1), or `nil`. Throws if another server would
  /// speak for the resource.
  package static func location(in challenges: [Challenge], of address: Issuer) throws(MetadataError) -> URI? {
    guard let text = challenges.lazy.compactMap({ $0["resource_metadata"] }).first else { return nil }
    guard let uri = try? URI(parsing: text), uri.fragment == nil else {
      throw .invalidURL("resource_metadata", text: MetadataReader.cut(text))
    }
    guard uri.origin == address.uri.origin else { throw .foreignMetadata(MetadataReader.cut(text)) }
    return uri
  }

  package static func request(at location: URI) -> HTTPRequest {
    HTTPRequest(method: "GET", uri: location, fields: ["Accept": "application/json"])
  }
}

extension ProtectedResourceMetadata {
  /// Returns the authorization server to use: the only one, or the user's choice (RFC 9728, 7.6).
  package func authorizationServer(named name: String?) throws(MetadataError) -> Issuer {
    let texts = authorizationServers.map(\.text)
    guard let name else {
      guard authorizationServers.count == 1 else { throw .severalServers(texts) }
      return authorizationServers[0]
    }
    guard let server = authorizationServers.first(where: { ([$0.text] + $0.rootSpellings).contains(name) }) else {
      throw .unknownServer(name, offered: texts)
    }
    return server
  }
}

extension MetadataReader {
  /// Returns the issuers of the resource's authorization servers (RFC 9728, 2).
  fileprivate func servers(of address: Issuer) throws(MetadataError) -> [Issuer] {
    let name = "authorization_servers"
    guard let texts = try texts(name), !texts.isEmpty else { throw .missing(name) }
    var servers: [Issuer] = []
    for text in texts {
      guard let issuer = try? Issuer(text), issuer.text == text else { throw .invalidURL(name, text: Self.cut(text)) }
      guard issuer.isSecure else { throw .insecure(name, text: Self.cut(text)) }
      // A remote resource must not direct our requests to this machine or its private network.
      if issuer.uri.isInward, issuer.uri.host != address.uri.host { throw .inwardAddress(name, text: Self.cut(text)) }
      if !servers.contains(issuer) { servers.append(issuer) }
    }
    return servers
  }
}

/// The authorization of an MCP server of the revision 2025-03-26, which has no metadata of its own: its authorization
/// server is at its origin, with these endpoints unless metadata there names others.
package enum MCPDefaults {
  package static func metadata(of issuer: Issuer, challengedAt address: URI) throws(MetadataError)
    -> AuthorizationServerMetadata
  {
    let origin = issuer.uri.origin
    let document: JSONValue = [
      "issuer": .string(issuer.text), "authorization_endpoint": .string(origin + "/authorize"),
      "token_endpoint": .string(origin + "/token"), "registration_endpoint": .string(origin + "/register"),
      "grant_types_supported": ["authorization_code"], "response_types_supported": ["code"],
      "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
    ]
    return try AuthorizationServerMetadata(
      HTTPResponse(status: 200, body: Array(document.encoded.utf8)), of: issuer,
      at: MetadataLocation(uri: address, specification: "endpoints that MCP 2025-03-26 assumes without metadata"))
  }
}

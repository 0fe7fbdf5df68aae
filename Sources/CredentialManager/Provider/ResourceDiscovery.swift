import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform

/// A protected resource (RFC 9728), such as an API or an MCP server, and what it demands.
struct DiscoveredResource {
  let address: Issuer
  /// `nil` for an MCP server of the revision 2025-03-26, which publishes none.
  let metadata: ProtectedResourceMetadata?
  /// The scopes that the refusal of a request without a token names (RFC 6750, 3); `nil` if it names none.
  let challengedScope: [String]?
}

/// The result of a discovery: an authorization server, and the resource if the address is one.
struct DiscoveredServer {
  let metadata: AuthorizationServerMetadata
  let resource: DiscoveredResource?  // `nil` if the address is the issuer's own.
}

extension CredentialSource {
  /// Finds out whether an address is a protected resource or an issuer. A resource says so when it refuses a request
  /// without a token, or publishes its metadata. `server` is one of its authorization servers.
  func server(at address: Issuer, choosing server: String?) throws(CredentialError) -> DiscoveredServer {
    let head = try head(at: address)
    let challenges = head?.status == 401 ? head?.challenges ?? [] : []
    let isRefused = head?.status == 401
    let scope = challenges.lazy.filter { $0.scheme != "basic" }.compactMap { $0["scope"] }.first
    func found(_ metadata: ProtectedResourceMetadata) throws(CredentialError) -> DiscoveredServer {
      let issuer = try wrapping(Self.discoveryError(address), metadata.authorizationServer(named: server))
      let resource = DiscoveredResource(
        address: address, metadata: metadata, challengedScope: scope.map(RequiredScope.tokens))
      return DiscoveredServer(metadata: try serverMetadata(of: issuer), resource: resource)
    }
    if let location = try wrapping(
      Self.discoveryError(address), ProtectedResourceMetadata.location(in: challenges, of: address))
    {
      return try found(resourceMetadata(of: address, at: location))
    }
    if isRefused || address.isResource, let metadata = try publishedMetadata(of: address) { return try found(metadata) }
    do throws(CredentialError) {
      return DiscoveredServer(metadata: try metadata(of: address), resource: nil)
    } catch .discovery(let error, _) where error.isAboutAnotherAddress {
      if isRefused {
        if challenges.isEmpty || challenges.contains(where: { $0.scheme == "bearer" }) {
          return try serverWithoutMetadata(at: address, scope: scope.map(RequiredScope.tokens))
        }
      } else if let metadata = try publishedMetadata(of: address) {
        return try found(metadata)
      }
      if case .otherIssuer(let found) = error, address.rootSpellings.contains(found) {
        return DiscoveredServer(metadata: try serverMetadata(of: address), resource: nil)
      }
      if let head, let other = address.withSlash(after: head) { return try self.server(at: other, choosing: server) }
      if case .absent(let attempts) = error, let head, (200..<300).contains(head.status), address.uri.path.count > 1 {
        throw .discovery(.open(attempts), issuer: address.text)
      }
      throw .discovery(error, issuer: address.text)
    }
  }

  /// Sends a request without a token. Reads only the head of the answer, because an MCP server without authorization
  /// may answer with an endless stream of events. Returns `nil` for the address of an issuer's metadata.
  private func head(at address: Issuer) throws(CredentialError) -> HTTPResponse? {
    if address.isFromMetadata, !address.isResource { return nil }
    return try headWithoutCredential(
      to: address.text, HTTPRequest(method: "GET", uri: address.uri, fields: ["Accept": "application/json"]))
  }

  /// Reads the metadata of a resource's authorization server. SDKs write its root with a slash in one document and
  /// without it in the other; both mean the same (RFC 3986, 6.2.3).
  private func serverMetadata(of issuer: Issuer) throws(CredentialError) -> AuthorizationServerMetadata {
    do throws(CredentialError) { return try metadata(of: issuer) } catch .discovery(.otherIssuer(let found), _)
      where issuer.rootSpellings.contains(found)
    {
      return try metadata(of: wrapping({ CredentialError.http($0, provider: found) }, Issuer(found)))
    }
  }

  private func publishedMetadata(of address: Issuer) throws(CredentialError) -> ProtectedResourceMetadata? {
    for location in ProtectedResourceMetadata.locations(of: address) {
      let response = try sendWithoutCredential(to: address.text, ProtectedResourceMetadata.request(at: location))
      if !MetadataLocation.isElsewhere(response) { return try metadata(in: response, of: address, at: location) }
    }
    return nil
  }

  private func resourceMetadata(
    of address: Issuer, at location: URI
  ) throws(CredentialError) -> ProtectedResourceMetadata {
    let response = try sendWithoutCredential(to: address.text, ProtectedResourceMetadata.request(at: location))
    if MetadataLocation.isElsewhere(response) {
      throw .discovery(.absent([MetadataError.Attempt(location, response)]), issuer: address.text)
    }
    return try metadata(in: response, of: address, at: location)
  }

  private func metadata(
    in response: HTTPResponse, of address: Issuer, at location: URI
  ) throws(CredentialError) -> ProtectedResourceMetadata {
    guard (200..<300).contains(response.status) else {
      throw .discovery(.unavailable(MetadataError.Attempt(location, response)), issuer: address.text)
    }
    return try wrapping(
      Self.discoveryError(address), ProtectedResourceMetadata(response, of: address, at: location))
  }

  /// Finds the authorization server of an MCP server of the revision 2025-03-26: at its origin, with or without
  /// metadata.
  private func serverWithoutMetadata(
    at address: Issuer, scope: [String]?
  ) throws(CredentialError) -> DiscoveredServer {
    let origin = address.uri.origin
    let issuer = try wrapping({ CredentialError.http($0, provider: origin) }, Issuer(origin))
    let metadata: AuthorizationServerMetadata
    do throws(CredentialError) { metadata = try serverMetadata(of: issuer) } catch .discovery(.absent, _) {
      metadata = try wrapping(
        Self.discoveryError(address), MCPDefaults.metadata(of: issuer, challengedAt: address.uri))
    }
    let resource = DiscoveredResource(address: address, metadata: nil, challengedScope: scope)
    return DiscoveredServer(metadata: metadata, resource: resource)
  }
}

extension Issuer {
  /// Returns the address with a slash at its end if the response redirects there, as web frameworks do for the path of
  /// a mounted application. Servers behind a proxy may name another scheme. Other redirects return `nil`.
  fileprivate func withSlash(after response: HTTPResponse) -> Issuer? {
    guard (300..<400).contains(response.status), let location = response.fields["Location"],
      let target = uri.resolving(location), target.host == uri.host, target.path == uri.path + "/"
    else { return nil }
    return try? Issuer(text + "/")
  }
}

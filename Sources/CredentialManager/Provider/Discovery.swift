import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors

package struct Discovery: Sendable {
  package let addition: ProviderAddition
  package let text: String
  package let location: String
  package let authorizationServer: String?  // The one of a protected resource; `nil` if the address is an issuer.
  /// Endpoints on hosts other than the issuer's, by their names in the metadata.
  package let foreignEndpoints: [(name: String, host: String)]
  /// The methods of PKCE in the metadata, if S256 is not one of them; `nil` if the metadata lists none.
  package var otherProofKeys: [String]?
}

extension CredentialSource {
  /// Makes a descriptor from the metadata of an issuer (RFC 8414; OpenID Connect Discovery 1.0), or from that of a
  /// protected resource (RFC 9728) and one of its authorization servers, which `server` names. Does not follow
  /// redirects, because metadata is trusted only from its own host over TLS.
  package func discover(
    _ text: String, as name: String?, from server: String? = nil
  ) throws(CredentialError) -> Discovery {
    let issuer = try wrapping({ CredentialError.http($0, provider: text) }, Issuer(text))
    guard issuer.isSecure else { throw .discovery(.insecure("issuer", text: text), issuer: text) }
    let identifier = name ?? Self.identifier(of: issuer)
    guard DescriptorLibrary.isIdentifier(identifier) else { throw .provider(.malformedIdentifier(identifier)) }
    let found = try self.server(at: issuer, choosing: server)
    let metadata = found.metadata
    let previous = try accountsIfAny()?.registration(of: identifier)
    let redirect =
      found.resource == nil
      ? previous.map { $0.redirect ?? Descriptor.sharedRedirect } : Descriptor.redirectWithPort(of: identifier)
    let descriptor = try wrapping(
      Self.discoveryError(found.resource == nil ? issuer : metadata.issuer),
      DiscoveredDescriptor(
        metadata, of: found.resource, identifier: identifier,
        redirect: redirect ?? Descriptor.standardRedirect(of: identifier)))
    let addition = try addition(Array(descriptor.text.utf8), named: identifier + ".yaml", as: nil)
    let foreign = EndpointKind.allCases.compactMap { kind in
      metadata.endpoints[kind]?.host.flatMap { host in
        host == metadata.issuer.uri.host ? nil : (name: kind.leg.metadataName ?? "", host: host)
      }
    }
    let locations = [found.resource?.metadata?.location, metadata.location.uri].compactMap(\.self).map(\.text)
    return Discovery(
      addition: addition, text: descriptor.text, location: locations.joined(separator: " and "),
      authorizationServer: found.resource == nil ? nil : metadata.issuer.text, foreignEndpoints: foreign,
      otherProofKeys: metadata.announcesProofKey || !addition.descriptor.grants.contains(where: \.traits.redirects)
        ? nil : metadata.codeChallengeMethods ?? [])
  }

  static func discoveryError(_ issuer: Issuer) -> (MetadataError) -> CredentialError {
    { .discovery($0, issuer: issuer.text) }
  }

  /// Returns the name under which an address is added: that of its published descriptor, or of the issuer.
  package func name(ofAddress text: String) throws(CredentialError) -> String {
    if Self.isDescriptor(at: text), let file = text.split(separator: "/").last?.prefix(while: { $0 != "." }),
      DescriptorLibrary.isIdentifier(String(file))
    {
      return String(file)
    }
    return Self.identifier(of: try wrapping({ CredentialError.http($0, provider: text) }, Issuer(text)))
  }

  private static func identifier(of issuer: Issuer) -> String {
    let host = issuer.uri.host ?? ""
    let whole = ([host] + issuer.uri.path.lowercased().split(separator: "/").map(String.init)).joined(separator: "-")
    return DescriptorLibrary.isIdentifier(whole) ? whole : host
  }

  func metadata(of issuer: Issuer) throws(CredentialError) -> AuthorizationServerMetadata {
    var attempts: [MetadataError.Attempt] = []
    for location in MetadataLocation.all(for: issuer) {
      let response = try sendWithoutCredential(to: issuer.text, location.request)
      let attempt = MetadataError.Attempt(location, response)
      if MetadataLocation.isElsewhere(response) {
        attempts.append(attempt)
        continue
      }
      guard (200..<300).contains(response.status) else { throw .discovery(.unavailable(attempt), issuer: issuer.text) }
      return try wrapping(
        Self.discoveryError(issuer), AuthorizationServerMetadata(response, of: issuer, at: location))
    }
    throw .discovery(.absent(attempts), issuer: issuer.text)
  }
}

// MARK: Registration

extension CredentialSource {
  /// Whether adding a provider registers a client, also again if its redirect, endpoint or secret no longer fits.
  func registers(_ client: Client, given: String?, previous: Registration?) throws(CredentialError) -> Bool {
    guard given == nil, client.descriptor.client.identifier == nil, client.descriptor.endpoints[.registration] != nil
    else { return false }
    guard let previous else { return true }
    if previous.isOfOtherIssuer(than: client.descriptor) { return true }
    guard let registered = previous.registered else { return false }
    if let expiresAt = registered.secretExpiresAt, expiresAt <= clock.now() { return true }
    let (place, redirectURI) = (try place(client), try redirectURI(client))
    return registered.place != place || registered.redirectURI != redirectURI
  }

  func register(
    _ permit: Permit, variables: [String: String], initialAccessToken: Secret?
  ) throws(CredentialError) -> Registration {
    let (provider, client) = (permit.provider, permit.client)
    let redirectURI = try redirectURI(client)
    let response = try send(to: permit) { nonce throws(OAuthError) in
      try client.registrationRequest(redirectURI: redirectURI, initialAccessToken: initialAccessToken, nonce: nonce)
    }
    let registration = try core(provider, client.clientRegistration(response))
    // credmgr shows the identifier (RFC 6749, 2.2).
    guard !secrets.reveals(registration.identifier) else {
      throw .oauth(.malformedField(.registration, .clientID), provider: provider)
    }
    return Registration(
      clientIdentifier: registration.identifier, clientSecret: registration.secret, variables: variables,
      registered: Registration.Registered(
        place: try place(client), redirectURI: redirectURI, authentication: registration.authentication,
        secretExpiresAt: registration.secretExpiresAt, accessToken: registration.accessToken, uri: registration.uri))
  }

  private func place(_ client: Client) throws(CredentialError) -> String {
    let request = try core(
      client.descriptor.identifier, client.registrationRequest(redirectURI: nil, initialAccessToken: nil, nonce: nonce))
    return request.uri.withoutQueryAndFragment.text
  }

  func redirectURI(_ client: Client) throws(CredentialError) -> String? {
    guard client.descriptor.grants.contains(where: { $0.traits.responseType != nil }) else { return nil }
    let redirect = try core(client.descriptor.identifier, client.redirect())
    return switch redirect {
    case .loopback(let uri): uri.text
    case .elsewhere(let text): text
    // A provider does not know the descriptor's abbreviation.
    case .outOfBand: "urn:ietf:wg:oauth:2.0:oob"
    }
  }
}

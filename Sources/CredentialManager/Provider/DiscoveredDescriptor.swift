import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrText

/// A readable descriptor for an issuer, or for a protected resource and its issuer, that notes each value's origin.
/// It includes only metadata read as a URL, a scope or a known name, quoted so that YAML reads exactly that text.
struct DiscoveredDescriptor {
  let text: String

  /// Creates the text. `redirect` is the default; a client added earlier keeps its own.
  init(
    _ metadata: AuthorizationServerMetadata, of resource: DiscoveredResource? = nil, identifier: String,
    redirect: String
  ) throws(MetadataError) {
    let scope = Self.requested(metadata, resource)
    // Without its scope, the identity endpoint of OpenID Connect refuses the token of a resource.
    let leavesOut: [EndpointKind] = resource != nil && !scope.contains("openid") ? [.identity] : []
    let grants = try Self.grants(metadata)
    let authentication = try Self.authentication(metadata, ofResource: resource != nil)
    let hasRedirect = grants.contains(where: \.traits.redirects)
    if resource?.metadata != nil, hasRedirect, !metadata.announcesProofKey {
      throw .noProofKey(offered: metadata.codeChallengeMethods)
    }
    if let protected = resource?.metadata, protected.requiresProofs {
      for case let offered? in [protected.proofAlgorithms, metadata.proofAlgorithms] where !offered.contains("ES256") {
        throw .noAlgorithm(in: "dpop_signing_alg_values_supported", offered: offered)
      }
    }
    var lines = Self.origin(metadata, resource)
    lines += [
      "# Each comment after a value names its source in the metadata.", "provider: \(Scalar.written(identifier))",
      "title: \(Scalar.written((resource?.address ?? metadata.issuer).uri.host ?? identifier))",
    ]
    let profile = Self.profile(metadata)
    if let profile { lines.append("profile: \(profile.rawValue)  # The metadata demands everything in it.") }
    lines += [
      "grant: [\(grants.map(\.rawValue).joined(separator: ", "))]", "",
    ]
    if hasRedirect {
      lines += [
        "variables:",
        resource == nil
          ? "  # Any port (RFC 8252, 7.3). If the provider compares the whole URI, set a port: "
            + redirect.exchanging("127.0.0.1/", for: "127.0.0.1:8417/")
          : "  # Many MCP servers compare the whole URI, so it has a port, despite RFC 8252, 7.3.",
        "  redirect_uri:",
        "    default: \(redirect)",
        "    format: redirect",
        "    help: the redirect URI exactly as registered",
        "",
      ]
    }
    lines += Self.endpoints(metadata, of: resource, authentication, scope: scope, without: leavesOut)
    lines += [
      "", "# Compared with the \"iss\" of a redirect (RFC 9207).",
      "issuer: \(Scalar.written(Self.template(metadata.issuer.text)))",
    ]
    if let resource = resource?.metadata?.resource {
      lines.append("resource: \(Scalar.written(Self.template(resource)))  # resource")
    }
    if metadata.requiresSignedRequests, hasRedirect, profile != .fapi2MessageSigning {
      lines.append("request_object: true  # require_signed_request_object")
    }
    if metadata.namesIssuer { lines.append("iss: required  # authorization_response_iss_parameter_supported") }
    if hasRedirect {
      lines.append("redirect: \"{redirect_uri}\"")
      lines += Self.pkce(metadata)
    }
    lines += Self.binding(metadata, of: resource, authentication).lines
    lines += Self.assertion(metadata, authentication)
    lines += ["", "client:", "  authentication: \(authentication.rawValue)  # token_endpoint_auth_methods_supported"]
    if metadata.takesDocuments {
      lines.append("  metadata_document: true  # client_id_metadata_document_supported")
    }
    if let page = metadata.documentation?.text {
      lines.append("  register: \(Scalar.written(page))  # service_documentation")
    }
    lines += Self.scopes(metadata, resource, requested: scope, hasRedirect: hasRedirect, without: leavesOut)
    if let types = metadata.detailsTypes, !types.isEmpty {
      let list = types.prefix(Self.shownScopes).map(Scalar.written).joined(separator: ", ")
      lines += ["", "# authorization_details_types_supported", "authorization_details: { types: [\(list)] }"]
    }
    lines += Self.hosts(metadata, resource, without: leavesOut)
    text = lines.joined(separator: "\n") + "\n"
  }

  // MARK: Pieces

  private static func origin(_ metadata: AuthorizationServerMetadata, _ resource: DiscoveredResource?) -> [String] {
    let source = [
      "\(metadata.issuer.uri.withoutQueryAndFragment.text) at",
      "# \(metadata.location.uri.text) (\(metadata.location.specification)).",
    ]
    guard let resource else { return ["# Made from the metadata of " + source[0], source[1]] }
    let whole = "\(resource.address.uri.text) at"
    guard let location = resource.metadata?.location.text else {
      return [
        "# Made for the resource \(resource.address.uri.text),", "# from the metadata of " + source[0], source[1],
      ]
    }
    return [
      "# Made from the metadata of the resource " + whole, "# \(location) (RFC 9728, 3),",
      "# and from that of its authorization server " + source[0], source[1],
    ]
  }

  private static func grants(_ metadata: AuthorizationServerMetadata) throws(MetadataError) -> [Grant] {
    let types = metadata.grantTypes
    let hasToken = metadata.endpoints[.token] != nil
    let hasPage = metadata.endpoints[.authorization] != nil
    func answers(_ type: String) -> Bool { metadata.responseTypes?.contains(type) ?? true }
    var grants: [Grant] = []
    if types.contains("authorization_code"), answers("code") {
      // Metadata that lists the grant but omits its endpoint is faulty.
      if !hasPage { throw .missing("authorization_endpoint") }
      if !hasToken { throw .missing("token_endpoint") }
      grants.append(.authorizationCode)
    }
    // A server with a device endpoint supports the grant even if it does not list it (RFC 8628, 4).
    if metadata.endpoints[.deviceAuthorization] != nil, hasToken { grants.append(.deviceCode) }
    if metadata.pollsBackchannel, hasToken { grants.append(.ciba) }
    if types.contains("client_credentials"), hasToken { grants.append(.clientCredentials) }
    if grants.isEmpty, types.contains("implicit"), answers("token"), hasPage { grants.append(.implicit) }
    if grants.isEmpty { throw .noGrant(offered: types) }
    return grants
  }

  /// The methods for a client with its own secret, simplest first. A client without one does not authenticate.
  private static let methods: [ClientAuthentication] = [
    .clientSecretBasic, .clientSecretPost, .none, .clientSecretJWT, .privateKeyJWT, .tlsClientAuth,
    .selfSignedTLSClientAuth,
  ]

  /// Some servers of resources want `client_id` in the form of each request, which only the other methods send.
  private static func authentication(
    _ metadata: AuthorizationServerMetadata, ofResource: Bool
  ) throws(MetadataError) -> ClientAuthentication {
    let offered = metadata.authenticationMethods
    let methods = ofResource ? [.clientSecretPost] + methods : methods
    let known = methods.filter { offered.contains($0.rawValue) }
    if known.isEmpty { throw .noAuthentication(offered: offered) }
    guard let method = known.first(where: { algorithms(metadata, of: $0)?.isEmpty != true }) else {
      throw .noAlgorithm(
        in: "token_endpoint_auth_signing_alg_values_supported", offered: metadata.assertionAlgorithms ?? [])
    }
    return method
  }

  /// Returns the algorithms that credmgr and the server support for the client's assertions; `nil` for a method without
  /// assertions, and for a server that does not say.
  private static func algorithms(
    _ metadata: AuthorizationServerMetadata, of method: ClientAuthentication
  ) -> [AssertionAlgorithm]? {
    guard let offered = metadata.assertionAlgorithms, let usual = method.usualAlgorithm else { return nil }
    return AssertionAlgorithm.allCases.filter {
      $0.isSymmetric == usual.isSymmetric && offered.contains($0.rawValue)
    }
  }

  private static func endpoints(
    _ metadata: AuthorizationServerMetadata, of resource: DiscoveredResource?, _ authentication: ClientAuthentication,
    scope: [String], without others: [EndpointKind]
  ) -> [String] {
    let binding = binding(metadata, of: resource, authentication)
    let presentsCertificate = authentication.usesCertificate || binding.isCertificate
    let asksForConsent = scope.contains("offline_access") && metadata.prompts?.contains("consent") != false
    var lines = ["endpoints:"]
    for kind in EndpointKind.allCases where !others.contains(kind) {
      // Only requests of the client itself present its certificate.
      let certified = kind.leg.authenticatesClient || kind == .identity ? metadata.aliases[kind] : nil
      let alias = presentsCertificate ? certified : nil
      guard let uri = alias ?? metadata.endpoints[kind], let member = kind.leg.metadataName else { continue }
      if let certified, alias == nil, binding.isCertificateOptional {
        let value = Scalar.written(template(certified.text))
        lines.append("  # With mutual_tls: \(value)  # mtls_endpoint_aliases.\(member)")
      }
      let name = (alias == nil ? "" : "mtls_endpoint_aliases.") + member
      // Without polling, the provider would call an address of the client, and a command has none.
      if kind == .backchannelAuthentication, !metadata.pollsBackchannel { continue }
      let value = Scalar.written(template(uri.text))
      let foreign = uri.host == metadata.issuer.uri.host ? "" : ", on a different host than the issuer"
      // Some servers refuse public clients here, so a line of the user's turns on what the server leaves optional.
      if let demand = kind.leg.demand, !metadata.demanded.contains(kind) {
        lines.append("  # \(kind.rawValue): \(value)  # \(name)\(foreign); optional (\(demand.specification))")
        continue
      }
      if kind == .authorization, asksForConsent {
        lines += [
          "  authorization:", "    url: \(value)  # \(name)\(foreign)",
          "    parameters: { prompt: consent }  # demanded with offline_access (OpenID Connect Core 1.0, 11)",
        ]
        continue
      }
      var own: String?
      if kind == .revocation { own = other(metadata.revocationMethods, than: authentication) }
      if kind == .introspection { own = other(metadata.introspectionMethods, than: authentication) }
      if let own {
        lines += [
          "  \(kind.rawValue):", "    url: \(value)  # \(name)\(foreign)",
          "    authentication: \(own)  # \(name)_auth_methods_supported",
        ]
      } else {
        lines.append("  \(kind.rawValue): \(value)  # \(name)\(foreign)")
      }
    }
    return lines
  }

  /// The profile of a server that serves only clients that meet it; `nil` if it also serves others.
  private static func profile(_ metadata: AuthorizationServerMetadata) -> SecurityProfile? {
    let isFAPI2 =
      metadata.demanded.contains(.pushedAuthorizationRequest) && metadata.namesIssuer
      && metadata.codeChallengeMethods == ["S256"]
      && metadata.assertionAlgorithms.map { offered in
        SecurityProfile.algorithms.contains { offered.contains($0.rawValue) }
      } != false
      && metadata.authenticationMethods.allSatisfy { method in
        ClientAuthentication(rawValue: method).map { $0 == .privateKeyJWT || $0.usesCertificate } ?? false
      } && (metadata.proofAlgorithms?.contains("ES256") == true || metadata.bindsToCertificates)
    guard isFAPI2 else { return nil }
    let signs = metadata.requiresSignedRequests && metadata.responseModes == ["jwt"]
    return signs && metadata.endpoints[.keySet] != nil ? .fapi2MessageSigning : .fapi2
  }

  /// Binding tokens is the user's choice, because other programs cannot use bound tokens. A client with a certificate,
  /// a client of the profile, and a client of a resource that requires bound tokens have no choice. `isCertificate`
  /// says whether a certificate binds them, and `isCertificateOptional` whether it does if the user chooses so.
  private static func binding(
    _ metadata: AuthorizationServerMetadata, of resource: DiscoveredResource?, _ authentication: ClientAuthentication
  ) -> (lines: [String], isCertificate: Bool, isCertificateOptional: Bool) {
    if resource?.metadata?.requiresProofs == true {
      return (["token_binding: dpop  # dpop_bound_access_tokens_required"], false, false)
    }
    let hasProofs = metadata.proofAlgorithms?.contains("ES256") == true
    let isCertified = metadata.bindsToCertificates && (authentication.usesCertificate || !hasProofs)
    guard isCertified || hasProofs else { return ([], false, false) }
    let isOn = profile(metadata) != nil || (isCertified && authentication.usesCertificate)
    let (value, source) =
      isCertified
      ? ("mutual_tls", "tls_client_certificate_bound_access_tokens") : ("dpop", "dpop_signing_alg_values_supported")
    return (["\(isOn ? "" : "# ")token_binding: \(value)  # \(source)"], isOn && isCertified, !isOn && isCertified)
  }

  /// Names the algorithm of the client's assertions if the server does not verify the usual one.
  private static func assertion(
    _ metadata: AuthorizationServerMetadata, _ authentication: ClientAuthentication
  ) -> [String] {
    guard let usual = authentication.usualAlgorithm, let all = algorithms(metadata, of: authentication) else {
      return []
    }
    let isProfile = profile(metadata) != nil
    let candidates = all.filter { !isProfile || SecurityProfile.algorithms.contains($0) }
    guard let first = candidates.first, !candidates.contains(isProfile ? .es256 : usual) else { return [] }
    return ["assertion: { algorithm: \(first.rawValue) }  # token_endpoint_auth_signing_alg_values_supported"]
  }

  private static func other(_ offered: [String]?, than method: ClientAuthentication) -> String? {
    guard let offered, !offered.contains(method.rawValue) else { return nil }
    return methods.first { offered.contains($0.rawValue) }?.rawValue
  }

  static let announcedProofKey = "pkce: S256  # code_challenge_methods_supported"

  private static func pkce(_ metadata: AuthorizationServerMetadata) -> [String] {
    guard let offered = metadata.codeChallengeMethods else {
      return ["pkce: S256  # not in the metadata; servers ignore unknown parameters (RFC 6749, 3.1)"]
    }
    if offered.contains("S256") { return [announcedProofKey] }
    // Altered metadata must not disable this protection (RFC 9700, 2.1.1).
    return [
      "# code_challenge_methods_supported lacks S256; servers ignore unknown parameters (RFC 6749, 3.1).",
      "pkce: S256",
    ]
  }

  /// The scopes that allow refreshing and that name the user.
  private static let wanted = ["openid", "profile", "email", "offline_access"]

  private static let shownScopes = 100

  /// Returns the scopes to request. Of a resource: those that it demands, or else those that it supports, and the one
  /// for refreshing, as MCP (Scope Selection Strategy; Refresh Tokens) says.
  private static func requested(
    _ metadata: AuthorizationServerMetadata, _ resource: DiscoveredResource?
  ) -> [String] {
    if let resource {
      let scope = resource.challengedScope ?? resource.metadata?.scopes ?? []
      let refreshes = metadata.scopes?.contains("offline_access") == true && !scope.contains("offline_access")
      return scope + (refreshes ? ["offline_access"] : [])
    }
    let requested = wanted.filter { metadata.scopes?.contains($0) ?? false }
    // OpenID Connect Core 1.0, 5.3: the identity endpoint requires this scope.
    let needsIdentity = requested.isEmpty && metadata.scopes == nil && metadata.endpoints[.identity] != nil
    return needsIdentity ? ["openid"] : requested
  }

  private static func scopes(
    _ metadata: AuthorizationServerMetadata, _ resource: DiscoveredResource?, requested: [String], hasRedirect: Bool,
    without others: [EndpointKind]
  ) -> [String] {
    let hasIdentity = metadata.endpoints[.identity] != nil && !others.contains(.identity)
    var lines = [""]
    if let scopes = resource == nil ? metadata.scopes : resource?.metadata?.scopes {
      lines.append("# scopes_supported:")
      lines += wrapped(Array(scopes.prefix(shownScopes)))
      if scopes.count > shownScopes { lines.append("#   and \(scopes.count - shownScopes) more") }
    }
    let source = resource?.challengedScope == nil ? "" : "  # scope of the refusal without a token"
    lines.append("scope: [\(requested.map(Scalar.written).joined(separator: ", "))]" + source)
    if hasIdentity { lines.append("account: [preferred_username, email, sub]  # OpenID Connect Core 1.0, 5.1") }
    return lines
  }

  private static func wrapped(_ words: [String]) -> [String] {
    var lines: [String] = []
    var line = "#  "
    for word in words {
      if line.count + word.count > 110, line.count > 3 {
        lines.append(line)
        line = "#  "
      }
      line += " " + word
    }
    return lines + [line]
  }

  private static func hosts(
    _ metadata: AuthorizationServerMetadata, _ resource: DiscoveredResource?, without others: [EndpointKind]
  ) -> [String] {
    let identity = others.contains(.identity) ? nil : metadata.endpoints[.identity]
    let uris = [resource?.address.uri ?? metadata.issuer.uri, identity].compactMap { $0 }
    var hosts: [String] = []
    for uri in uris {
      // `hosts` cannot contain an IPv6 address; without entries, the endpoints' hosts apply.
      guard let host = uri.host, !host.hasPrefix("[") else { return [] }
      let authority = host + (uri.port.map { ":\($0)" } ?? "")
      if !hosts.contains(authority) { hosts.append(authority) }
    }
    return [
      "", "# The hosts that receive the token." + (resource == nil ? " Add the hosts of the API." : ""),
      "hosts: [\(hosts.map(Scalar.written).joined(separator: ", "))]",
    ]
  }

  private static func template(_ text: String) -> String { text.exchanging("{", for: "{{").exchanging("}", for: "}}") }
}

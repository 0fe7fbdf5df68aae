import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// Why an issuer's metadata is rejected. Texts from the metadata are shortened and may contain any characters.
package enum MetadataError: Error, Sendable, Equatable {
  case absent([Attempt])
  case open([Attempt])  // No metadata was found, and the address answers without a token.
  case unavailable(Attempt)
  case notJSON
  case otherIssuer(found: String)  // RFC 8414, 3.3
  case missing(String)
  case malformed(String)
  case repeated(String)  // A member that is there several times.
  case invalidURL(String, text: String)
  case insecure(String, text: String)
  case inwardAddress(String, text: String)
  case noGrant(offered: [String])
  case noAuthentication(offered: [String])
  case noAlgorithm(in: String, offered: [String])  // credmgr makes no signature that the server accepts.
  case otherResource(found: String)  // RFC 9728, 3.3
  case foreignMetadata(String)  // The address in `resource_metadata` is on another server than the resource.
  case noProofKey(offered: [String]?)  // Without PKCE, credmgr gets no token for a protected resource.
  case lostProofKey(provider: String, offered: [String]?)  // Earlier metadata announced PKCE with S256.
  case severalServers([String])  // The user must choose one.
  case unknownServer(String, offered: [String])  // The chosen one is not in the metadata.

  package struct Attempt: Sendable, Equatable {
    package let url: String
    package let status: Int
    /// The redirect target, which is not followed: another server cannot speak for this issuer.
    package let location: String?

    package init(_ place: MetadataLocation, _ response: HTTPResponse) {
      self.init(place.uri, response)
    }

    package init(_ uri: URI, _ response: HTTPResponse) {
      url = uri.text
      status = response.status
      location = response.fields["Location"].map(MetadataReader.cut)
    }
  }
}

/// An issuer as the user names it. Its metadata must repeat this name exactly (RFC 8414, 2 and 3.3).
package struct Issuer: Sendable, Equatable {
  package let text: String
  package let uri: URI
  package let isFromMetadata: Bool  // Whether the user gave the address of the metadata.
  package let isResource: Bool  // Whether that is the address of a protected resource's metadata (RFC 9728, 3).

  /// Reads an issuer, or derives it from the address of its metadata. Throws if there is a query or a fragment.
  package init(_ given: String) throws(HTTPError) {
    var text = given
    isResource = given.firstPlace(of: ProtectedResourceMetadata.folder) != nil
    for suffix in MetadataLocation.suffixes + [ProtectedResourceMetadata.suffix] {
      let path = MetadataLocation.folder + suffix
      if text.hasSuffix(path) {
        text = String(text.dropLast(path.count))
      } else if let range = text.firstPlace(of: path + "/") {
        text = text[..<range.lowerBound] + "/" + text[range.upperBound...]
      }
    }
    uri = try URI(parsing: text)
    for mark in ["?", "#"] as [Character] where text.contains(mark) {
      throw .invalidURI(text: uri.withoutQueryAndFragment.text, reason: .character(mark.utf8.first ?? 0))
    }
    self.text = text
    isFromMetadata = text != given
  }

  /// The two ways to write the root of a server; empty for an issuer with a path.
  package var rootSpellings: [String] { ["", "/"].contains(uri.path) ? [uri.origin, uri.origin + "/"] : [] }

  package var isSecure: Bool { uri.isSecure || (uri.scheme == "http" && uri.isLoopback) }
}

extension MetadataError {
  /// Whether the metadata is missing or another issuer's, so that the address may be something else than an issuer.
  package var isAboutAnotherAddress: Bool {
    switch self {
    case .absent, .otherIssuer: true
    default: false
    }
  }
}

package struct MetadataLocation: Sendable, Equatable {
  package let uri: URI
  package let specification: String

  package init(uri: URI, specification: String) { (self.uri, self.specification) = (uri, specification) }

  static let folder = "/.well-known/"
  static let suffixes = ["openid-configuration", "oauth-authorization-server"]

  /// Returns the locations in the order to try. Only OpenID Connect metadata names the identity endpoint.
  package static func all(for issuer: Issuer) -> [MetadataLocation] {
    let path = issuer.uri.path.hasSuffix("/") ? String(issuer.uri.path.dropLast()) : issuer.uri.path
    let candidates = [
      (path + folder + suffixes[0], "OpenID Connect Discovery 1.0, 4"), (folder + suffixes[1] + path, "RFC 8414, 3"),
      (folder + suffixes[0] + path, "RFC 8414, 5"),
    ]
    var locations: [MetadataLocation] = []
    for (path, specification) in candidates {
      guard let uri = try? URI(parsing: issuer.uri.origin + path), !locations.contains(where: { $0.uri == uri })
      else { continue }
      locations.append(MetadataLocation(uri: uri, specification: specification))
    }
    return locations
  }

  /// The request for the metadata (RFC 8414, 3.1).
  package var request: HTTPRequest { HTTPRequest(method: "GET", uri: uri, fields: ["Accept": "application/json"]) }

  /// Whether to try the next location, because the answer is missing or is a web page.
  package static func isElsewhere(_ response: HTTPResponse) -> Bool {
    if (200..<300).contains(response.status) { return response.mediaType == "text/html" }
    return (300..<500).contains(response.status) && response.status != 429
  }
}

/// Authorization server metadata (RFC 8414, 2; OpenID Connect Discovery 1.0, 3). Every value that is used has been
/// checked. It deserves no more trust than the issuer does.
package struct AuthorizationServerMetadata: Sendable, Equatable {
  package let issuer: Issuer
  package let location: MetadataLocation
  package let endpoints: [EndpointKind: URI]
  package let grantTypes: [String]
  package let responseTypes: [String]?
  package let scopes: [String]?
  package let codeChallengeMethods: [String]?
  package let authenticationMethods: [String]
  package let assertionAlgorithms: [String]?  // `token_endpoint_auth_signing_alg_values_supported` (RFC 8414, 2).
  package let revocationMethods: [String]?
  package let introspectionMethods: [String]?
  package let namesIssuer: Bool  // `authorization_response_iss_parameter_supported` (RFC 9207, 3).
  package let aliases: [EndpointKind: URI]  // `mtls_endpoint_aliases` (RFC 8705, 5).
  package let bindsToCertificates: Bool  // `tls_client_certificate_bound_access_tokens` (RFC 8705, 3.3).
  package let proofAlgorithms: [String]?  // `dpop_signing_alg_values_supported` (RFC 9449, 5.1).
  package let demanded: Set<EndpointKind>  // The legs that clients may not leave out, such as pushed requests.
  package let requiresSignedRequests: Bool  // `require_signed_request_object` (RFC 9101, 10.5).
  package let responseModes: [String]?  // `response_modes_supported` (RFC 8414, 2).
  package let prompts: [String]?  // `prompt_values_supported` (Initiating User Registration via OpenID Connect 1.0).
  package let detailsTypes: [String]?  // `authorization_details_types_supported` (RFC 9396, 10).
  /// Whether the client may poll for the result of a question to the user's device:
  /// `backchannel_token_delivery_modes_supported` (CIBA Core 1.0, 4).
  package let pollsBackchannel: Bool
  package let documentation: URI?
  /// `client_id_metadata_document_supported` (draft-ietf-oauth-client-id-metadata-document-01, 5).
  package let takesDocuments: Bool

  package init(_ response: HTTPResponse, of issuer: Issuer, at location: MetadataLocation) throws(MetadataError) {
    guard let value = try? JSONValue.parse(response.body), value.members != nil else { throw .notJSON }
    let reader = MetadataReader(value: value)
    // Check the issuer first: nothing else in another issuer's metadata matters.
    if value.repeats("issuer") { throw .repeated("issuer") }
    guard let found = value["issuer"] else { throw .missing("issuer") }
    guard let found = found.text else { throw .malformed("issuer") }
    guard found == issuer.text else { throw .otherIssuer(found: MetadataReader.cut(found)) }
    self.issuer = issuer
    self.location = location
    var endpoints: [EndpointKind: URI] = [:]
    var demanded: Set<EndpointKind> = []
    for kind in EndpointKind.allCases {
      guard let name = kind.leg.metadataName else { continue }
      endpoints[kind] = try reader.endpoint(name, of: issuer)
      if let demand = kind.leg.demand, try reader.boolean(demand.name) == true {
        if endpoints[kind] == nil { throw .missing(name) }
        demanded.insert(kind)
      }
    }
    (self.endpoints, self.demanded) = (endpoints, demanded)
    aliases = try reader.aliases(of: issuer)
    // RFC 8414, 2 defines these defaults.
    grantTypes = try reader.texts("grant_types_supported") ?? ["authorization_code", "implicit"]
    responseTypes = try reader.texts("response_types_supported")
    scopes = try reader.texts("scopes_supported")
    codeChallengeMethods = try reader.texts("code_challenge_methods_supported")
    authenticationMethods = try reader.texts("token_endpoint_auth_methods_supported") ?? ["client_secret_basic"]
    assertionAlgorithms = try reader.texts("token_endpoint_auth_signing_alg_values_supported")
    revocationMethods = try reader.texts("revocation_endpoint_auth_methods_supported")
    introspectionMethods = try reader.texts("introspection_endpoint_auth_methods_supported")
    namesIssuer = try reader.boolean("authorization_response_iss_parameter_supported") ?? false
    bindsToCertificates = try reader.boolean("tls_client_certificate_bound_access_tokens") ?? false
    proofAlgorithms = try reader.texts("dpop_signing_alg_values_supported")
    requiresSignedRequests = try reader.boolean("require_signed_request_object") ?? false
    responseModes = try reader.texts("response_modes_supported")
    prompts = try reader.texts("prompt_values_supported")
    detailsTypes = try reader.texts("authorization_details_types_supported")
    let modes = try reader.texts("backchannel_token_delivery_modes_supported") ?? []
    pollsBackchannel =
      modes.contains("poll") && endpoints[.backchannelAuthentication] != nil
      && grantTypes.contains("urn:openid:params:grant-type:ciba")
    takesDocuments = try reader.boolean("client_id_metadata_document_supported") ?? false
    documentation = value["service_documentation"]?.text.flatMap { try? URI(parsing: $0) }.flatMap {
      $0.isSecure ? $0 : nil
    }
  }
}

extension AuthorizationServerMetadata {
  /// Whether the server says that it verifies the challenge of each login.
  package var announcesProofKey: Bool { codeChallengeMethods?.contains("S256") == true }
}

struct MetadataReader {
  let value: JSONValue

  // The metadata of real providers stays below these limits.
  static let mostItems = 1000
  static let longestText = 2048

  /// Throws for a repeated member, of which another program could read the other value.
  private func member(_ name: String) throws(MetadataError) -> JSONValue? {
    if value.repeats(name) { throw .repeated(name) }
    return value[name].flatMap { $0 == .null ? nil : $0 }
  }

  /// Returns a list of texts in printable ASCII without spaces (RFC 6749, 3.3 and A).
  func texts(_ name: String) throws(MetadataError) -> [String]? {
    guard let member = try member(name) else { return nil }
    guard let elements = member.elements, elements.count <= Self.mostItems else { throw .malformed(name) }
    var texts: [String] = []
    for element in elements {
      guard let text = element.text, !text.isEmpty, text.utf8.count <= Self.longestText else { throw .malformed(name) }
      // A response type may consist of several words, so it may contain spaces.
      let isPrintable = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C || $0 == 0x20 }
      guard isPrintable else { throw .malformed(name) }
      texts.append(text)
    }
    return texts
  }

  func boolean(_ name: String) throws(MetadataError) -> Bool? {
    guard let member = try member(name) else { return nil }
    guard case .boolean(let value) = member else { throw .malformed(name) }
    return value
  }

  /// Returns the endpoints for clients with a certificate (RFC 8705, 5), with the same rules as for other endpoints.
  func aliases(of issuer: Issuer) throws(MetadataError) -> [EndpointKind: URI] {
    guard let member = try member("mtls_endpoint_aliases") else { return [:] }
    guard member.members != nil else { throw .malformed("mtls_endpoint_aliases") }
    let reader = MetadataReader(value: member)
    var aliases: [EndpointKind: URI] = [:]
    for kind in EndpointKind.allCases where kind != .authorization {
      if let name = kind.leg.metadataName { aliases[kind] = try reader.endpoint(name, of: issuer) }
    }
    return aliases
  }

  func endpoint(_ name: String, of issuer: Issuer) throws(MetadataError) -> URI? {
    guard let member = try member(name) else { return nil }
    guard let text = member.text else { throw .malformed(name) }
    // Endpoint URLs have no fragment (RFC 6749, 3.1 and 3.2).
    guard text.utf8.count <= Self.longestText, let uri = try? URI(parsing: text), uri.fragment == nil else {
      throw .invalidURL(name, text: Self.cut(text))
    }
    guard uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else { throw .insecure(name, text: Self.cut(text)) }
    // A remote issuer must not direct our requests to this machine or its private network.
    if uri.isInward, uri.host != issuer.uri.host { throw .inwardAddress(name, text: Self.cut(text)) }
    return uri
  }

  static func cut(_ text: String) -> String {
    text.unicodeScalars.count <= 200 ? text : String(String.UnicodeScalarView(text.unicodeScalars.prefix(200))) + "…"
  }
}

extension URI {
  /// Whether the host is a literal address of this machine, its link, a private network, or a shared range (RFC 6890).
  /// Names are not resolved, because the next lookup could return a different address.
  package var isInward: Bool {
    guard let host else { return false }
    let name = host.hasSuffix(".") ? String(host.dropLast()) : host
    return name == "localhost" || name.hasSuffix(".localhost") || address.map(Self.isInward) == true
  }

  private static func isInward(_ address: [UInt8]) -> Bool {
    guard address.count == 16 else { return isInwardIPv4(address[...]) }
    func begins(_ prefix: UInt8...) -> Bool { address.starts(with: prefix) }
    switch address[0] {
    case 0 where begins(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0): return true  // Also ::a.b.c.d (RFC 4291, 2.5.5.1)
    // RFC 4291, 2.5.5.2
    case 0 where begins(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF): return isInwardIPv4(address[12...])
    case 0 where begins(0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0): return true  // RFC 2765, 2.1
    case 0 where begins(0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0): return isInwardIPv4(address[12...])  // RFC 6052
    case 0 where begins(0, 0x64, 0xFF, 0x9B, 0, 1): return true  // RFC 8215
    case 1 where begins(1, 0, 0, 0, 0, 0, 0, 0): return true  // Discarded (RFC 6666)
    case 0x20 where begins(0x20, 0x02): return isInwardIPv4(address[2..<6])  // RFC 3056
    case 0x20 where begins(0x20, 0x01, 0, 0): return true  // Teredo, an IPv4 address behind a relay (RFC 4380)
    case 0xFC, 0xFD, 0xFF: return true  // Unique local (RFC 4193), multicast
    case 0xFE: return address[1] >= 0x80  // Link-local and deprecated site-local (RFC 3879)
    default: return false
    }
  }

  private static func isInwardIPv4(_ address: ArraySlice<UInt8>) -> Bool {
    let bytes = Array(address)
    switch (bytes[0], bytes[1]) {
    case (0, _), (10, _), (127, _), (169, 254), (192, 168), (224..., _): return true
    case (172, 16...31), (100, 64...127), (198, 18...19): return true
    case (192, 0): return bytes[2] == 0  // RFC 6890, 2.2.2
    default: return false
    }
  }
}

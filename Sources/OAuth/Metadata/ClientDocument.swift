import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON

/// The document with a client's metadata at the URL that is the client's identifier
/// (draft-ietf-oauth-client-id-metadata-document-01).
package enum ClientDocument {
  /// A reason for a provider to refuse a document.
  package enum Fault: Sendable, Equatable {
    case unavailable(status: Int)
    case notJSON
    case otherIdentifier
    case noRedirect(String)
    case secret
  }

  /// Whether a URL can be a client identifier (section 3).
  package static func isLocation(_ text: String) -> Bool {
    guard let uri = try? URI(parsing: text), uri.isSecure, uri.fragment == nil, uri.query == nil else { return false }
    let segments = uri.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    return !segments.isEmpty && !segments.contains { [".", ".."].contains($0) }
  }

  /// Returns why a provider would refuse the document at `location` for a client with this redirect (section 4).
  package static func fault(of response: HTTPResponse, at location: String, redirectURI: String?) -> Fault? {
    guard response.status == 200 else { return .unavailable(status: response.status) }
    guard let value = try? JSONValue.parse(response.body), value.members != nil else { return .notJSON }
    guard value["client_id"]?.text == location else { return .otherIdentifier }
    let method = value["token_endpoint_auth_method"]?.text ?? ""
    guard value["client_secret"] == nil, !method.hasPrefix("client_secret_") else { return .secret }
    guard let redirectURI else { return nil }
    let redirects = value["redirect_uris"]?.elements?.compactMap(\.text) ?? []
    return redirects.contains(redirectURI) ? nil : .noRedirect(redirectURI)
  }
}

extension Client {
  /// Returns the document to publish at `location`, for this client and others with the same identifier.
  package func document(at location: String, redirectURIs: [String]) -> JSONValue {
    // A client without a secret gets no token without a user.
    let grants = descriptor.grants.filter(\.traits.needsPerson)
    let metadata = metadata(of: grants, redirectURIs: redirectURIs, authentication: .none)
    return .object([.init("client_id", .string(location))] + metadata)
  }
}

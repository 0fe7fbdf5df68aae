import CredmgrHTTP
import CredmgrJSON

/// Clients whose identifier is the URL of a document with their metadata
/// (draft-ietf-oauth-client-id-metadata-document-01), checked with code of its own.
extension Simulation {
  /// Fetches the document of a client again for each login, if its identifier is a URL. The standard server runs on
  /// this machine, so it may read a document from there (section 6.5), and reads none from elsewhere.
  mutating func readDocument(of client: String) throws(Refusal) {
    guard isStandard, client.hasPrefix("https://") else { return }
    state.documents[client] = nil
    guard let uri = try? URI(parsing: client), uri.isLoopback, uri.origin != origin else { throw .documentElsewhere }
    guard uri.path.count > 1, uri.query == nil, uri.fragment == nil, let response = fetch(uri), response.status == 200,
      response.body.count <= 5 << 10, let document = try? JSONValue.parse(response.body),
      document["client_id"]?.text == client, document["token_endpoint_auth_method"]?.text == "none",
      document["client_secret"] == nil, let redirects = document["redirect_uris"]?.elements?.compactMap(\.text)
    else { throw .documentUnusable }
    state.documents[client] = redirects
  }

  /// Whether a document lists a redirect. Loopback ones may have any port (RFC 8252, 7.3).
  static func isListed(redirect: String, in redirects: [String]) -> Bool {
    func bare(_ text: String) -> String {
      guard let uri = try? URI(parsing: text), uri.scheme == "http", uri.isLoopback else { return text }
      return uri.replacing(port: nil).text
    }
    return redirects.contains { bare($0) == bare(redirect) }
  }
}

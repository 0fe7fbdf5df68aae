import CredmgrHTTP
import CredmgrJSON
import Testing

@testable import CredmgrOAuth

/// Tests the document at a URL that is a client identifier (draft-ietf-oauth-client-id-metadata-document-01).
struct ClientDocumentTests {
  private static let location = "https://a.example/client.json"
  private static let redirect = "http://127.0.0.1/callback/notes"

  @Test func locations() {
    for text in [Self.location, "https://a.example/", "https://a.example:8443/x/y.json"] {
      #expect(ClientDocument.isLocation(text), "\(text)")
    }
    for text in [
      "https://a.example", "http://a.example/x", "https://a.example/x#y", "https://a.example/x?y",
      "https://user@a.example/x", "https://a.example/../x", "https://a.example/./x", "a.example/x", "",
    ] { #expect(!ClientDocument.isLocation(text), "\(text)") }
  }

  @Test func aDocumentIsOfAPublicClient() throws {
    let client = try Fixture.client("scope: [read, write]", grant: "[authorization_code, client_credentials]")
    #expect(
      client.document(at: Self.location, redirectURIs: [Self.redirect]) == [
        "client_id": .string(Self.location), "client_name": "credmgr", "application_type": "native",
        "redirect_uris": [.string(Self.redirect)], "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"], "token_endpoint_auth_method": "none", "scope": "read write",
      ])
  }

  @Test func aDocumentThatTheProviderRefuses() throws {
    let client = try Fixture.client()
    let good = client.document(at: Self.location, redirectURIs: [Self.redirect]).encoded
    func fault(_ text: String, status: Int = 200) -> ClientDocument.Fault? {
      ClientDocument.fault(
        of: HTTPResponse(status: status, fields: [:], body: Array(text.utf8)), at: Self.location,
        redirectURI: Self.redirect)
    }
    #expect(fault(good) == nil)
    #expect(fault(good, status: 302) == .unavailable(status: 302))
    #expect(fault("<html>") == .notJSON)
    #expect(fault("[]") == .notJSON)
    #expect(fault(good.replacing("client.json", with: "other.json")) == .otherIdentifier)
    #expect(fault(good.replacing("notes", with: "other")) == .noRedirect(Self.redirect))
    #expect(fault(good.replacing("none", with: "client_secret_basic")) == .secret)
  }
}

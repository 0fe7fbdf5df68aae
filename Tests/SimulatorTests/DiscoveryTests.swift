import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrDescriptors
import Testing

@testable import CredmgrSimulator

/// Tests the metadata of a simulated provider, and registering a client there.
struct DiscoveryTests {
  private static let text = """
    provider: odd
    grant: [authorization_code, device_code]
    endpoints:
      authorization: https://odd.example/authorize
      token: https://odd.example/token
      device_authorization: https://odd.example/device
      registration: https://odd.example/register
    scope: [read]
    client: { authentication: client_secret_post }
    """

  private static func play(_ text: String = text) throws -> Play {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    return try Play(library.load(Array(text.utf8), name: "odd.yaml").descriptor, secret: Secret("s3cret"))
  }

  @Test func metadataIsThatOfTheDescriptor() throws {
    let play = try Self.play()
    let issuer = try Issuer(Play.origin)
    for location in MetadataLocation.all(for: issuer) {
      let metadata = try AuthorizationServerMetadata(play.send(location.request), of: issuer, at: location)
      #expect(metadata.endpoints[.token] == (try play.client.descriptor.endpoints[.token]?.url.filled { _ in nil }))
      #expect(metadata.grantTypes == ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"])
      #expect(metadata.authenticationMethods == ["client_secret_post"])
      #expect(metadata.scopes == ["read"])
      #expect(metadata.codeChallengeMethods == ["S256"])
    }
  }

  /// The address of the resource leads to the authorization server (RFC 9728).
  @Test func theResourceHasMetadata() throws {
    let play = try Self.play()
    let address = try Issuer(Play.origin + "/simulator/resource")
    let refusal = play.send(HTTPRequest(method: "GET", uri: address.uri))
    #expect(refusal.status == 401)
    let location = try #require(
      try ProtectedResourceMetadata.location(in: refusal.challenges, of: address))
    let metadata = try ProtectedResourceMetadata(
      play.send(ProtectedResourceMetadata.request(at: location)), of: address, at: location)
    #expect(metadata.authorizationServers.map(\.text) == [Play.origin])
    #expect(metadata.scopes == ["read"])
    #expect(metadata.resource == address.text)
  }

  @Test func anIssuerElsewhereHasNoMetadataHere() throws {
    let play = try Self.play(Self.text + "\nissuer: https://odd.example")
    let location = try #require(MetadataLocation.all(for: Issuer(Play.origin)).first)
    #expect(play.send(location.request).status == 404)
  }

  @Test func aClientIsRegistered() throws {
    let play = try Self.play()
    let request = try play.client.registrationRequest(
      redirectURI: "http://127.0.0.1/callback", initialAccessToken: nil, nonce: play.nonce())
    let registration = try play.client.clientRegistration(play.send(request))
    #expect(registration.identifier == play.client.identifier)
    #expect(registration.secret == Secret("s3cret"))
    #expect(registration.authentication == .clientSecretPost)
    let nowhere = try play.client.registrationRequest(redirectURI: nil, initialAccessToken: nil, nonce: play.nonce())
    #expect(throws: OAuthError.self) { try play.client.clientRegistration(play.send(nowhere)) }
    let bad = try play.client.registrationRequest(
      redirectURI: "not a url", initialAccessToken: nil, nonce: play.nonce())
    let error = try #require(throws: OAuthError.self) { try play.client.clientRegistration(play.send(bad)) }
    guard case .refused(.registration, let refusal) = error else { throw error }
    #expect(refusal.code == "invalid_redirect_uri")
  }
}

import CredmgrCommands
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrTLS
import CredmgrText
import Testing

@testable import CredmgrSimulator

/// Tests certificates of clients (RFC 8705) in both directions.
struct ClientCertificateTests {
  private static func play(_ client: String, secret: Secret = Secret("s3cret")) throws -> Play {
    try Play(
      Sample(
        text: """
          provider: certified
          grant: [authorization_code, client_credentials]
          endpoints:
            authorization: https://certified.example/authorize
            token: https://certified.example/token
            introspection: https://certified.example/introspect
            identity: https://certified.example/me
          token_binding: mutual_tls
          client: { authentication: \(client) }
          scope: [read]
          account: sub
          hosts: [certified.example]
          """), secret: secret)
  }

  /// Returns a certificate with its key, as a file of the client has them.
  private static func client(
    _ subject: String = Simulation.clientIdentifier, by authority: CertificateAuthority? = nil
  ) throws -> Secret {
    let key = ECPrivateKey.pem(random: SystemRandomSource())
    let certificate =
      try authority?.certificate(of: subject, key: key, .client)
      ?? CertificateAuthority.selfSigned(subject, key: key)
    return Secret(key.reveal() + certificate.pem)
  }

  private static func with(_ secret: Secret?, _ request: HTTPRequest) -> HTTPRequest {
    var request = request
    request.clientCertificate = secret?.revealBytes()
    return request
  }

  @Test(arguments: [
    "tls_client_auth", "self_signed_tls_client_auth", "private_key_jwt", "none", "client_secret_basic",
    "client_secret_post", "client_secret_jwt",
  ])
  func loginRequestRefreshAndIntrospection(_ method: String) throws {
    let play = try Self.play(method)
    // Browsers would ask their user for a certificate.
    #expect(play.client.descriptor.endpoints[.authorization]?.url.template.text.hasPrefix(Play.origin) == true)
    let credential = try play.login(scope: ["read"])
    #expect(credential.isCertificateBound)
    #expect(try play.resource(credential).status == 200)
    let refreshed = try play.refresh(credential)
    #expect(try play.resource(refreshed).status == 200)
    let identity = play.send(try play.client.identityRequest(refreshed, nonce: play.nonce()))
    #expect(try play.client.identity(identity).name == "ada")
    let (_, request) = try play.client.validationRequest(refreshed, nonce: play.nonce())
    let answer = try play.send(request).json()
    let own = try #require(Certificate.all(inPEM: play.simulation.value.clientSecret.reveal()).first)
    #expect(answer["active"] == .boolean(true) && answer["cnf"]?["x5t#S256"]?.text == own.thumbprint)
    #expect(try play.log("refusals") == 0)
  }

  @Test func onlyTheAuthorityAndTheSubjectCount() throws {
    let play = try Self.play("tls_client_auth")
    let request = try play.client.clientCredentialsRequest(scope: [], nonce: play.nonce())
    let authority = try Play.authority.get()
    let other = try CertificateAuthority(name: "authority", random: SystemRandomSource())
    #expect(play.send(Self.with(try Self.client(by: authority), request)).status == 200)
    for (certificate, reason) in [
      (nil, "the client presents no certificate"),
      (try Self.client(), "the certificate is from an unknown authority"),
      (try Self.client(by: other), "the certificate is from an unknown authority"),
      (try Self.client("other", by: authority), "the certificate has another subject than the registered one"),
    ] {
      let answer = play.send(Self.with(certificate, request))
      #expect(answer.status == 401)
      #expect(try answer.json()["error"]?.text == "invalid_client")
      #expect(try play.lastRefusal() == reason)
    }
  }

  @Test func onlyTheRegisteredCertificateCounts() throws {
    let play = try Self.play("self_signed_tls_client_auth")
    let request = try play.client.clientCredentialsRequest(scope: [], nonce: play.nonce())
    #expect(play.send(request).status == 200)
    for other in [try Self.client(), try Self.client(by: Play.authority.get())] {
      #expect(play.send(Self.with(other, request)).status == 401)
      #expect(try play.lastRefusal() == "the certificate is not the registered one")
    }
  }

  /// The certificates are valid from 2025 to 2124.
  @Test(arguments: [-100, 100]) func anExpiredCertificateIsRefused(_ years: Double) throws {
    let play = try Self.play("self_signed_tls_client_auth")
    let request = try play.client.clientCredentialsRequest(scope: [], nonce: play.nonce())
    play.clock.advance(seconds: years * 366 * 86_400)
    #expect(try play.send(request).json()["error"]?.text == "invalid_client")
    #expect(try play.lastRefusal() == "the certificate has expired or is not valid yet")
  }

  @Test func aStolenTokenIsOfNoUse() throws {
    let play = try Self.play("tls_client_auth")
    let credential = try play.login(scope: ["read"])
    let uri = try URI(parsing: Play.certifiedOrigin + "/simulator/resource")
    var request = try play.client.presenting(credential, on: HTTPRequest(method: "GET", uri: uri), nonce: play.nonce())
    #expect(play.send(request).status == 200)
    for other in [nil, try Self.client(by: Play.authority.get())] {
      let answer = play.send(Self.with(other, request))
      #expect(answer.status == 401)
      let challenge = try #require(answer.challenges.first)
      #expect(challenge.scheme == "bearer" && challenge["error"] == "invalid_token")
    }
    #expect(try play.lastRefusal() == "the token is bound to another certificate")
    // Without TLS, nothing proves that the client has the key.
    request.uri = try URI(parsing: Play.origin + "/simulator/resource")
    #expect(play.send(request).status == 401)
    // Another certificate of the client renews a token, which is bound to that certificate.
    let refresh = try play.client.refreshRequest(credential, nonce: play.nonce())
    #expect(play.send(Self.with(try Self.client(), refresh)).status == 401)
    #expect(play.send(Self.with(try Self.client(by: Play.authority.get()), refresh)).status == 200)
  }

  /// RFC 8705, 4.
  @Test func theRefreshTokenOfAPublicClientIsBound() throws {
    let play = try Self.play("none")
    let credential = try play.login(scope: ["read"])
    let request = try play.client.refreshRequest(credential, nonce: play.nonce())
    let answer = play.send(Self.with(try Self.client(), request))
    #expect(try answer.json()["error"]?.text == "invalid_grant")
    let missing = play.send(Self.with(nil, request))
    #expect(try missing.json()["error"]?.text == "invalid_request")
    #expect(play.send(request).status == 200)
  }

  @Test func theMetadataNamesTheAliases() throws {
    let play = try Self.play("tls_client_auth")
    let metadata = try play.get(Play.origin + "/.well-known/oauth-authorization-server").json()
    #expect(metadata["token_endpoint_auth_methods_supported"] == ["tls_client_auth"])
    #expect(metadata["tls_client_certificate_bound_access_tokens"] == .boolean(true))
    #expect(metadata["token_endpoint"]?.text == Play.origin + "/certified.example/token")
    let aliases = try #require(metadata["mtls_endpoint_aliases"])
    #expect(aliases["token_endpoint"]?.text == Play.certifiedOrigin + "/certified.example/token")
    #expect(aliases["userinfo_endpoint"]?.text == Play.certifiedOrigin + "/certified.example/me")
    #expect(aliases["authorization_endpoint"] == nil)
    // The usual address sees no certificate.
    var request = try play.client.clientCredentialsRequest(scope: [], nonce: play.nonce())
    request.uri = try URI(parsing: Play.origin + "/certified.example/token")
    #expect(try play.send(request).json()["error"]?.text == "invalid_client")
  }

  /// No other server can speak for a resource (RFC 9728, 3.3 and 7.3), also beside a standard server.
  @Test(arguments: ["tls_client_auth }", "tls_client_auth }\nissuer: https://certified.example #"])
  func eachAddressHasItsOwnMetadata(_ method: String) throws {
    let play = try Self.play(method + " #")
    for server in [Play.origin, Play.certifiedOrigin] {
      let challenge = try #require(try play.get(server + "/simulator/resource").challenges.first)
      let address = server + "/.well-known/oauth-protected-resource/simulator/resource"
      #expect(challenge["resource_metadata"] == address)
      let metadata = try play.get(address).json()
      #expect(metadata["resource"]?.text == server + "/simulator/resource")
      #expect(metadata["authorization_servers"] == [.string(Play.origin)])
    }
  }

  /// `add-provider` would refuse them.
  @Test func aUselessFileOfTheClientIsRefused() throws {
    func refusal(_ method: String, _ file: String, years: Double = 0) throws -> String? {
      let authority = try Play.authority.get().certificate
      let (origin, server) = (try URI(parsing: Play.origin), try URI(parsing: Play.certifiedOrigin))
      let (descriptor, clock) = (try Self.play(method).client.descriptor, TestClock())
      clock.advance(seconds: years * 366 * 86_400)
      do throws(CommandError) {
        _ = try Simulation(
          descriptor, at: origin, settings: SimulationSettings(), clientSecret: Secret(file),
          clock: { clock.time }, random: TestRandom(), certified: (server, authority))
      } catch { return error.message?.text }
      return nil
    }
    let (file, other) = (try Self.client().reveal(), ECPrivateKey.pem(random: SystemRandomSource()).reveal())
    let certificate = try #require(file.firstRange(of: "-----BEGIN CERT")).lowerBound
    let method = "self_signed_tls_client_auth"
    #expect(try refusal(method, file) == nil)
    for (file, years, method, reason) in [
      (String(file[certificate...]), 0.0, method, "the private key is missing or not valid"),
      (other + file[certificate...], 0, method, "the private key belongs to another certificate"),
      (file, 100, method, "the certificate has expired"), (file, -100, method, "the certificate is not valid yet"),
      (file, 0, "client_secret_post", "its first line is not the client secret"),
    ] {
      let text = try refusal(method, file, years: years)
      #expect(text == "cannot use the file of \"--client-secret-file\": \(reason)")
    }
    #expect(try refusal("client_secret_post", "s3cret\n" + file) == nil)
  }

  @Test func aFileOfTheClientBringsItsOwnAuthority() throws {
    let authority = try CertificateAuthority(name: "own", random: SystemRandomSource())
    let file = try Self.client("ours", by: authority).reveal() + authority.certificate.pem
    let play = try Self.play("tls_client_auth", secret: Secret(file))
    let request = try play.client.clientCredentialsRequest(scope: [], nonce: play.nonce())
    #expect(play.send(request).status == 200)
    #expect(play.send(Self.with(try Self.client("ours", by: authority), request)).status == 200)
    #expect(play.send(Self.with(try Self.client("other", by: authority), request)).status == 401)
  }
}

import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth
import CredmgrText

/// Tests the endpoints of RFC 5849, section 2, and where signatures go (3.5).
struct OAuth1FlowTests {
  private static func client(_ rules: String = "", more: String = "") throws -> Client {
    try Fixture.client(
      """
      oauth1: { version: false\(rules.isEmpty ? "" : ", " + rules) }
      hosts: [photos.example.net]
      \(more)
      """, grant: "oauth1", endpoints: "temporary_credentials: https://photos.example.net/initiate",
      id: "dpf43f3p2l4k3l03", secret: "kd94hf93k423kf44")
  }

  /// Matches RFC 5849, 1.2, with the RFC's realm, which is not signed.
  @Test func temporaryCredentialsOfTheRFC() throws {
    let client = try Self.client("realm: Photos")
    let request = try client.temporaryCredentialsRequest(
      callback: "http://printer.example.com/ready", scope: [],
      nonce: RequestNonce(timestamp: 137_131_200, text: "wIjqoS"))
    #expect(
      request.wire == """
        POST https://photos.example.net/initiate
        Authorization: OAuth realm="Photos", oauth_consumer_key="dpf43f3p2l4k3l03", \
        oauth_signature_method="HMAC-SHA1", oauth_timestamp="137131200", oauth_nonce="wIjqoS", \
        oauth_callback="http%3A%2F%2Fprinter.example.com%2Fready", oauth_signature="74KNZJeDHnMBp0EMJ9ZHt%2FXKycU%3D"

        """)
  }

  /// Matches RFC 5849, 1.2.
  @Test func protectedResourceOfTheRFC() throws {
    let client = try Self.client()
    var credential = Fixture.credential("nnch734d00sl2jdk", grant: .oauth1)
    credential.tokenSecret = Secret("pfkkdhi9sl3r4s00")
    let request = HTTPRequest(
      method: "GET", uri: try URI(parsing: "https://photos.example.net/photos?file=vacation.jpg&size=original"))
    let signed = try client.presenting(
      credential, on: request, nonce: RequestNonce(timestamp: 137_131_202, text: "chapoH"))
    // The RFC's own signature is for `http`, over which credmgr sends no credential.
    #expect(
      signed.fields["Authorization"] == """
        OAuth oauth_consumer_key="dpf43f3p2l4k3l03", oauth_token="nnch734d00sl2jdk", \
        oauth_signature_method="HMAC-SHA1", oauth_timestamp="137131202", oauth_nonce="chapoH", \
        oauth_signature="\(PercentEncoding.encode(try Self.signature(
          "GET&https%3A%2F%2Fphotos.example.net%2Fphotos&file%3Dvacation.jpg%26oauth_consumer_key%3Ddpf43f3p2l4k3l03"
            + "%26oauth_nonce%3DchapoH%26oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D137131202"
            + "%26oauth_token%3Dnnch734d00sl2jdk%26size%3Doriginal", "pfkkdhi9sl3r4s00")))"
        """)
  }

  private static func signature(_ baseString: String, _ tokenSecret: String) throws -> String {
    Base64.encode(
      HashAlgorithm.sha1.authenticationCode(
        for: Array(baseString.utf8), key: Array(("kd94hf93k423kf44&" + tokenSecret).utf8)))
  }

  private static let protocolForm =
    "oauth_consumer_key=dpf43f3p2l4k3l03&oauth_signature_method=PLAINTEXT&oauth_timestamp=137131200"
    + "&oauth_nonce=nonce-1&oauth_callback=oob&oauth_signature=kd94hf93k423kf44%26"

  @Test func inTheBody() throws {
    let client = try Self.client("transport: body, signature_method: PLAINTEXT")
    let request = try client.temporaryCredentialsRequest(callback: "oob", scope: [], nonce: Fixture.nonce)
    #expect(
      request.wire == """
        POST https://photos.example.net/initiate
        Content-Type: application/x-www-form-urlencoded

        \(Self.protocolForm)

        """)
  }

  @Test func inTheBodyAfterOtherParameters() throws {
    let client = try Fixture.client(
      "oauth1: { version: false, transport: body, signature_method: PLAINTEXT }", grant: "oauth1",
      endpoints: """
        temporary_credentials:
          url: https://photos.example.net/initiate
          parameters: { scope: "{scope}" }
        """, id: "dpf43f3p2l4k3l03", secret: "kd94hf93k423kf44")
    let request = try client.temporaryCredentialsRequest(
      callback: "oob", scope: ["read", "write"], nonce: Fixture.nonce)
    #expect(request.form == "scope=read%20write&" + Self.protocolForm)
  }

  @Test func inTheQuery() throws {
    let client = try Self.client("transport: query, signature_method: PLAINTEXT")
    let request = try client.temporaryCredentialsRequest(callback: "oob", scope: [], nonce: Fixture.nonce)
    #expect(request.wire == "POST https://photos.example.net/initiate?\(Self.protocolForm)\n")
  }

  /// Only a form can carry parameters (3.5.2).
  @Test(arguments: ["GET", "HEAD", "PUT"]) func bodyTransportFallsBackToTheHeader(_ method: String) throws {
    let client = try Self.client("transport: body, signature_method: PLAINTEXT")
    var request = HTTPRequest(method: method, uri: try URI(parsing: "https://photos.example.net/p"))
    if method == "PUT" {
      request.fields.set("Content-Type", "text/xml")
      request.body = Array("<a/>".utf8)
    }
    let signed = try client.presenting(Fixture.credential(grant: .oauth1), on: request, nonce: Fixture.nonce)
    #expect(signed.fields["Authorization"]?.hasPrefix("OAuth oauth_consumer_key=") == true)
    #expect(signed.body == request.body)
    #expect(signed.uri == request.uri)
  }

  @Test func versionIsSentUnlessItIsSwitchedOff() throws {
    let client = try Fixture.client(
      grant: "oauth1", endpoints: "temporary_credentials: https://provider.example/initiate")
    let request = try client.temporaryCredentialsRequest(callback: "oob", scope: [], nonce: Fixture.nonce)
    #expect(request.fields["Authorization"]?.contains("oauth_version=\"1.0\"") == true)
  }

  /// The fields of a caller's form are signed; a plus sign in a form means a space.
  @Test func formOfTheCallerIsSigned() throws {
    let client = try Self.client()
    let request = HTTPRequest(
      method: "POST", uri: try URI(parsing: "https://photos.example.net/p"),
      fields: ["Content-Type": "application/x-www-form-urlencoded; charset=utf-8"], body: Array("a=b+c".utf8))
    var credential = Fixture.credential("tk", grant: .oauth1)
    credential.tokenSecret = Secret("ts")
    let signed = try client.presenting(credential, on: request, nonce: Fixture.nonce)
    let expected = try Self.signature(
      "POST&https%3A%2F%2Fphotos.example.net%2Fp&a%3Db%2520c%26oauth_consumer_key%3Ddpf43f3p2l4k3l03%26oauth_nonce"
        + "%3Dnonce-1%26oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D137131200%26oauth_token%3Dtk", "ts")
    let field = try #require(signed.fields["Authorization"])
    #expect(field.hasSuffix("oauth_signature=\"\(PercentEncoding.encode(expected))\""))
    #expect(signed.form == "a=b+c")
  }

  @Test func realmWithAQuote() throws {
    let client = try Fixture.client(
      "variables: { realm: {} }\noauth1: { realm: \"{realm}\" }", grant: "oauth1",
      endpoints: "temporary_credentials: https://provider.example/initiate", variables: ["realm": "a\"b"])
    #expect(throws: OAuthError.malformedHeader(name: "Authorization")) {
      try client.temporaryCredentialsRequest(callback: "oob", scope: [], nonce: Fixture.nonce)
    }
  }

  @Test func unknownMethodInAVariable() throws {
    let descriptor = try Fixture.descriptor(
      """
      grant: oauth1
      variables: { method: {} }
      oauth1: { signature_method: "{method}" }
      endpoints:
        temporary_credentials: https://provider.example/i
        authorization: https://provider.example/a
        token: https://provider.example/t
      """)
    let client = try Client(
      descriptor: descriptor, identifier: "c", secret: Secret("s"), variables: ["method": "HMAC-MD5"])
    #expect(throws: OAuthError.unknownSignature("HMAC-MD5")) {
      try client.temporaryCredentialsRequest(callback: "oob", scope: [], nonce: Fixture.nonce)
    }
  }

  // MARK: Answers

  private static func temporary(_ client: Client) throws -> TemporaryCredentials {
    try client.temporaryCredentials(
      .form("oauth_token=hh5s93j4hdidpola&oauth_token_secret=hdhd0244k9j7ao03&oauth_callback_confirmed=true"),
      callback: "http://127.0.0.1:1/callback")
  }

  @Test func page() throws {
    let client = try Self.client()
    let page = try client.authorizationPage(Self.temporary(client), scope: [], nonce: Fixture.nonce)
    #expect(page.text == "https://provider.example/authorize?oauth_token=hh5s93j4hdidpola")
  }

  /// Servers built on oauthlib accept nonces of 20 to 30 letters and digits, so this is the default.
  @Test func nonce() throws {
    let nonce = RequestNonce(now: Fixture.now, random: SystemRandomSource())
    let request = try Self.client("transport: query").temporaryCredentialsRequest(
      callback: "oob", scope: [], nonce: nonce)
    let text = try #require(request.uri.queryParameters[first: "oauth_nonce"])
    #expect((24...30).contains(text.utf8.count))
    #expect(text.allSatisfy { $0.isASCII && ($0.isNumber || $0.isLowercase) })
  }

  /// Servers built on Authlib write it this way.
  @Test func callbackConfirmedInUpperCase() throws {
    let response = HTTPResponse.form("oauth_token=t&oauth_token_secret=s&oauth_callback_confirmed=True")
    #expect(try Self.client().temporaryCredentials(response, callback: "oob").token == Secret("t"))
  }

  /// The "problem reporting" extension works by default.
  @Test(arguments: [EndpointKind.temporaryCredentials, .token]) func problem(_ kind: EndpointKind) throws {
    let client = try Self.client()
    let answer = HTTPResponse(
      status: 401, fields: ["Content-Type": "text/plain"],
      body: Array("oauth_problem=signature_invalid&oauth_problem_advice=look%20at%20the%20key".utf8))
    let refusal = ErrorResponse(code: "signature_invalid", words: "look at the key", status: 401)
    #expect(throws: OAuthError.refused(kind, refusal)) {
      if kind == .temporaryCredentials {
        _ = try client.temporaryCredentials(answer, callback: "oob")
      } else {
        _ = try client.outcome(answer, kind, grant: .oauth1, scope: [], now: Fixture.now).issued()
      }
    }
  }

  /// Some servers report the problem in the challenge. The descriptor may explain a code, which stays unchanged.
  @Test(arguments: ["", "{}", "{\"error\": \"\"}", "401 Unauthorized"])
  func problemInTheChallenge(_ body: String) throws {
    let client = try Self.client(more: "response: { errors: { meanings: { signature_invalid: invalid_client } } }")
    func refusal(_ challenge: String) -> OAuthError? {
      let fields: HTTPFields = ["WWW-Authenticate": challenge]
      let answer = HTTPResponse(status: 401, fields: fields, body: Array(body.utf8))
      do throws(OAuthError) { _ = try client.temporaryCredentials(answer, callback: "oob") } catch { return error }
      return nil
    }
    func told(_ code: String, _ words: String?) -> OAuthError {
      .refused(.temporaryCredentials, ErrorResponse(code: code, words: words, status: 401))
    }
    #expect(
      refusal("OAuth realm=\"a, b\", oauth_problem=\"timestamp_refused\"") == told("timestamp_refused", nil))
    #expect(
      refusal("OAuth oauth_problem=signature_invalid, oauth_problem_advice=\"check%20it\"")
        == told("invalid_client", "signature_invalid: check it"))
    #expect(refusal("Basic realm=\"x\", oauth_problem=\"other\"") == told("http_401", nil))
  }

  @Test(arguments: ["", "&oauth_callback_confirmed=false", "&oauth_callback_confirmed="])
  func callbackThatIsNotConfirmed(_ rest: String) throws {
    let response = HTTPResponse.form("oauth_token=t&oauth_token_secret=s" + rest)
    let strict = try Self.client()
    #expect(throws: OAuthError.callbackNotConfirmed) { try strict.temporaryCredentials(response, callback: "oob") }
    let lax = try Self.client("callback_confirmed: optional")
    #expect(try lax.temporaryCredentials(response, callback: "oob").callback == "oob")
  }

  @Test func verifierGoesIntoTheTokenRequest() throws {
    let client = try Self.client()
    let temporary = try Self.temporary(client)
    let consent = try client.resourceOwnerAuthorization(
      [("oauth_token", "hh5s93j4hdidpola"), ("oauth_verifier", "hfdp7dh39dks9884")], to: temporary)
    let request = try client.tokenRequest(
      temporary, consent, nonce: RequestNonce(timestamp: 137_131_201, text: "walatlh"))
    let signature = try Self.signature(
      "POST&https%3A%2F%2Fprovider.example%2Ftoken&oauth_consumer_key%3Ddpf43f3p2l4k3l03%26oauth_nonce%3Dwalatlh"
        + "%26oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D137131201%26oauth_token%3Dhh5s93j4hdidpola"
        + "%26oauth_verifier%3Dhfdp7dh39dks9884", "hdhd0244k9j7ao03")
    #expect(
      request.fields["Authorization"] == """
        OAuth oauth_consumer_key="dpf43f3p2l4k3l03", oauth_token="hh5s93j4hdidpola", \
        oauth_signature_method="HMAC-SHA1", oauth_timestamp="137131201", oauth_nonce="walatlh", \
        oauth_verifier="hfdp7dh39dks9884", oauth_signature="\(PercentEncoding.encode(signature))"
        """)
  }

  @Test(
    arguments: [
      ([("oauth_verifier", "v")], OAuthError.tokenMismatch),
      ([("oauth_token", "other"), ("oauth_verifier", "v")], .tokenMismatch),
      ([("oauth_token", ""), ("oauth_verifier", "v")], .tokenMismatch), ([("denied", "other")], .tokenMismatch),
      ([("oauth_token", "hh5s93j4hdidpola")], .missingField(.authorization, .oauthVerifier)),
      (
        [("oauth_token", "hh5s93j4hdidpola"), ("oauth_problem", "user_refused")],
        .refused(.authorization, ErrorResponse(code: "access_denied", words: "user_refused", status: nil))
      ),
      // Servers built on Authlib omit the token.
      (
        [("error", "access_denied"), ("error_description", "no")],
        .refused(.authorization, ErrorResponse(code: "access_denied", words: "no", status: nil))
      ),
      ([("oauth_token", "other"), ("error", "access_denied")], .tokenMismatch),
      (
        [("denied", "hh5s93j4hdidpola")],
        .refused(.authorization, ErrorResponse(code: "access_denied", words: nil, status: nil))
      ),
      (
        [("oauth_token", "hh5s93j4hdidpola"), ("error", "server_error"), ("error_description", "late")],
        .unavailable(.authorization, status: nil, words: "late", retryAfter: nil)
      ),
    ] as [([(String, String)], OAuthError)])
  func callbackThatIsRefused(_ pairs: [(String, String)], _ error: OAuthError) throws {
    let client = try Self.client()
    let temporary = try Self.temporary(client)
    #expect(throws: error) {
      try client.resourceOwnerAuthorization(FormParameters(pairs.map { .init(name: $0.0, value: $0.1) }), to: temporary)
    }
  }

  @Test func withoutVerifierWhereNoneIsNeeded() throws {
    let client = try Self.client("verifier: optional")
    let temporary = try Self.temporary(client)
    let consent = try client.resourceOwnerAuthorization([("oauth_token", "hh5s93j4hdidpola")], to: temporary)
    let request = try client.tokenRequest(temporary, consent, nonce: Fixture.nonce)
    #expect(request.fields["Authorization"]?.contains("oauth_verifier") == false)
  }

  @Test func credentialWithASession() throws {
    let client = try Self.client(
      more: """
        response:
          fields: { expires_in: oauth_expires_in, refresh_token_expires_in: oauth_authorization_expires_in }
          keep: [xoauth_yahoo_guid]
        """)
    let answer = HTTPResponse.form(
      "oauth_token=A%3D1&oauth_token_secret=s1&oauth_session_handle=h1&oauth_expires_in=3600"
        + "&oauth_authorization_expires_in=7200&xoauth_yahoo_guid=G")
    let credential = try client.outcome(answer, .token, grant: .oauth1, scope: [], now: Fixture.now).issued().credential
    #expect(credential.grant == .oauth1)
    #expect(credential.accessToken == Secret("A=1"))
    #expect(credential.tokenSecret == Secret("s1"))
    #expect(credential.expiresAt == Fixture.now + .seconds(3600))
    #expect(credential.refreshTokenExpiresAt == Fixture.now + .seconds(7200))
    #expect(credential.kept == ["xoauth_yahoo_guid": "G"])
    #expect(credential.refreshedWith == Secret("h1"))

    let request = try client.refreshRequest(credential, nonce: Fixture.nonce)
    let field = try #require(request.fields["Authorization"])
    #expect(request.uri.text == "https://provider.example/token")
    #expect(field.contains("oauth_token=\"A%3D1\""))
    #expect(field.contains("oauth_session_handle=\"h1\""))

    // Values that a refresh omits stay.
    let refreshed = try client.outcome(
      .form("oauth_token=B"), .refresh, refreshing: credential, now: Fixture.now + .seconds(3600)
    ).issued().credential
    #expect(refreshed.accessToken == Secret("B"))
    #expect(refreshed.tokenSecret == Secret("s1"))
    #expect(refreshed.sessionHandle == Secret("h1"))
    #expect(refreshed.refreshTokenExpiresAt == Fixture.now + .seconds(7200))
  }

  @Test func noSessionNoRefresh() throws {
    let client = try Self.client()
    let credential = Fixture.credential(grant: .oauth1)
    #expect(credential.refreshedWith == nil)
    #expect(throws: OAuthError.notRefreshable) { try client.refreshRequest(credential, nonce: Fixture.nonce) }
  }
}

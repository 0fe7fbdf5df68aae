import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrText
import Testing

@testable import CredmgrOAuth

/// The examples of RFCs for signed requests and assertions.
struct RFCExampleTests {
  /// The request object of RFC 9101, 4.
  private static let requestObject =
    "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsyYmRjIn0.ewogICAgImlzcyI6ICJzNkJoZFJrcXQzIiwKICAgICJhdWQiOiAiaHR0cHM6Ly9zZXJ2ZXIu"
    + "ZXhhbXBsZS5jb20iLAogICAgInJlc3BvbnNlX3R5cGUiOiAiY29kZSBpZF90b2tlbiIsCiAgICAiY2xpZW50X2lkIjogInM2QmhkUmtxdDMiLA"
    + "ogICAgInJlZGlyZWN0X3VyaSI6ICJodHRwczovL2NsaWVudC5leGFtcGxlLm9yZy9jYiIsCiAgICAic2NvcGUiOiAib3BlbmlkIiwKICAgICJz"
    + "dGF0ZSI6ICJhZjBpZmpzbGRraiIsCiAgICAibm9uY2UiOiAibi0wUzZfV3pBMk1qIiwKICAgICJtYXhfYWdlIjogODY0MDAKfQ.Nsxa_18VUEl"
    + "VaPjqW_ToI1yrEJ67BgKb5xsuZRVqzGkfKrOIX7BCx0biSxYGmjK9KJPctH1OC0iQJwXu5YVY-vnW0_PLJb1C2HG-ztVzcnKZC2gE4i0vgQcpk"
    + "UOCpW3SEYXnyWnKzuKzqSb1wAZALo5f89B_p6QA6j6JwBSRvdVsDPdulW8lKxGTbH82czCaQ50rLAg3EYLYaCb4ik4I1zGXE4fvim9FIMs8OCM"
    + "mzwIB5S-ujFfzwFjoyuPEV4hJnoVUmXR_W9typPf846lGwA8h9G9oNTIuX8Ft2jfpnZdFmLg3_wr3Wa5q3a-lfbgF3S9H_8nN3j1i7tLR_5Nz-"
    + "g"

  private static let modulus =
    "x5RbkAZkmpRxia65qRQ1wwSMSxQUnS7gcpVTV_cdHmfmG2ltd2yabEO9XadD8pJNZubINPpmgHh3J1aD9WRwS05ucmFq3CfFsluLt13_7oX5"
    + "yDRSKX7poXmT_5ko8k4NJZPMAO8fPToDTH7kHYbONSE2FYa5GZ60CUsFhSonI-dcMDJ0Ary9lxIw5k2z4TAdARVWcS7sD07VhlMMshrwsPHB"
    + "QgTatlkxyIHXbYdtak8fqvNAwr7OlVEvM_Ipf5OfmdB8Sd-wjzaBsyP4VhJKoi_qdgSzpC694XZeYPq45Sw-q51iFUlcOlTCI7z6jltUtnR6"
    + "ySn6XDGFnzH5Fe5ypw"

  @Test func aRequestObject() throws {
    let example = try #require(SignedJWT(Self.requestObject))
    let key: JSONValue = ["kty": "RSA", "kid": "k2bdc", "n": .string(Self.modulus), "e": "AQAB"]
    try example.verify(with: KeySet(["keys": .array([key])]), [.rs256], secret: nil)
    // credmgr makes the same claims of the same parameters, beside those that limit the use of the object.
    let client = try Fixture.client(
      "client: { authentication: private_key_jwt }\nassertion: { algorithm: ES256 }\nissuer: https://server.example.com",
      id: "s6BhdRkqt3", secret: DPoPTests.key.reveal())
    let object = try client.requestObject(
      [
        ("response_type", "code id_token"), ("client_id", "s6BhdRkqt3"),
        ("redirect_uri", "https://client.example.org/cb"), ("scope", "openid"), ("state", "af0ifjsldkj"),
        ("nonce", "n-0S6_WzA2Mj"), ("max_age", "86400"),
      ], for: URI(parsing: "https://server.example.com/authorize"), nonce: Fixture.nonce)
    let claims = try #require(JWTClaims.parse(object)?.members)
    #expect(JSONValue.object(claims.filter { !["jti", "iat", "nbf", "exp"].contains($0.name) }) == example.claims)
  }

  /// The request of RFC 7523, 2.1, and the claims of its section 4.
  @Test func anAssertionOfAGrant() throws {
    let client = try Fixture.client(
      """
      variables: { private_key: { at_login: true, secret: true } }
      key: { file: private_key }
      assertion:
        algorithm: ES256
        key: "{private_key}"
        lifetime: 1h
        header: { kid: "16", typ: null }
        claims:
          iss: https://jwt-idp.example.com
          sub: mailto:mike@example.com
          aud: https://jwt-rp.example.net
          jti: null
          iat: null
      """, grant: "jwt_bearer", endpoints: "token: https://jwt-rp.example.net/token.oauth2", id: "", secret: nil)
    var credential = Credential(grant: .jwtBearer, accessToken: Secret(""), obtainedAt: Fixture.now)
    credential.variables["private_key"] = DPoPTests.key.reveal()
    let nonce = RequestNonce(timestamp: 1_300_815_780, text: "nonce-1")
    let request = try client.refreshRequest(credential, nonce: nonce)
    #expect(request.method == "POST" && request.uri.text == "https://jwt-rp.example.net/token.oauth2")
    let form = FormParameters(decoding: request.form)
    #expect(form.names == ["grant_type", "assertion"])
    #expect(form[first: "grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer")
    let text = try #require(form[first: "assertion"])
    let assertion = try #require(SignedJWT(text))
    #expect(assertion.header == ["alg": "ES256", "kid": "16"])
    #expect(
      assertion.claims == [
        "aud": "https://jwt-rp.example.net", "exp": 1_300_819_380, "iss": "https://jwt-idp.example.com",
        "sub": "mailto:mike@example.com",
      ])
  }

  /// The request of RFC 7523, 2.2.
  @Test func anAssertionOfAClient() throws {
    let client = try Fixture.client(
      "client: { authentication: private_key_jwt }\nassertion: { algorithm: ES256 }", secret: DPoPTests.key.reveal())
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1/", scope: [], random: KnownRandom(), nonce: Fixture.nonce)
    let response = try client.authorizationResponse(
      [("code", "n0esc3NRze7LTCu7iYzS6a5acc3f0ogp4"), ("state", request.state)], to: request)
    let form = FormParameters(decoding: try client.tokenRequest(response, nonce: Fixture.nonce).form)
    #expect(form[first: "grant_type"] == "authorization_code")
    #expect(form[first: "code"] == "n0esc3NRze7LTCu7iYzS6a5acc3f0ogp4")
    #expect(form[first: "client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
    let text = try #require(form[first: "client_assertion"])
    let claims = try #require(JWTClaims.parse(text))
    // RFC 7523, 3 (2): the subject is the client.
    #expect(claims["iss"]?.text == "client-1" && claims["sub"]?.text == "client-1")
  }
}

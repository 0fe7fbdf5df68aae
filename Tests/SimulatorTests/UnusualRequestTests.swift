import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrDescriptors
import Testing

@testable import CredmgrSimulator
import CredmgrText

/// Tests requests with missing or repeated parts, as some providers require them.
struct UnusualRequestTests {
  private static let ends = """
    scope: [read]
    pkce: none
    hosts: [api.example]
    """

  /// An account of a client that the provider does not know yet.
  private static let nobody: Credential = {
    var credential = Credential(grant: .authorizationCode, accessToken: Secret("a"), obtainedAt: 0)
    credential.refreshToken = Secret("r")
    return credential
  }()

  private func play(_ endpoints: String) throws -> Play {
    let head = "provider: unusual\ngrant: authorization_code\nendpoints:\n"
    return try Play(Sample(text: head + endpoints + "\n" + Self.ends))
  }

  @Test("a client that authenticates in a header of the descriptor") func writtenHeader() throws {
    let play = try play(
      """
        authorization: https://api.example/authorize
        token:
          url: https://api.example/token
          authentication: none
          headers: { Authorization: 'Basic {base64(client_secret, ":")}' }
          parameters: { client_id: null }
        refresh: { parameters: { client_id: null } }
      """)
    let credential = try play.login(scope: ["read"])
    #expect(try play.resource(play.refresh(credential)).status == 200)
    var request = try play.client.refreshRequest(credential, nonce: play.nonce())
    request.fields.set("Authorization", "")
    #expect(play.send(request).status == 400)
    #expect(try play.lastRefusal() == Refusal.wrongValue("Authorization", kind: Refusal.header).sentence)
  }

  @Test("a parameter of the URL may also be in the body") func parameterInTheURL() throws {
    let play = try play(
      """
        authorization: https://api.example/authorize
        token:
          url: https://api.example/token?redirect_uri={redirect_uri}
          send: json
        refresh: https://api.example/refresh
      client: { authentication: client_secret_post }
      """)
    _ = try play.login(scope: ["read"])
    #expect(try play.lastRefusal() == nil)
    // A parameter that the URL does not contain stays where the descriptor says.
    let authorization = try play.authorization(.authorizationCode, scope: ["read"])
    let target = try play.decide(authorization.uri)
    let answer = try play.client.authorizationResponse(target.queryParameters, to: authorization)
    var request = try play.client.tokenRequest(answer, nonce: play.nonce())
    request.uri = request.uri.adding(query: [("code", target.queryParameters[first: "code"] ?? "")])
    #expect(play.send(request).status == 400)
  }

  @Test("a parameter that only the URL contains") func parameterOnlyInTheURL() throws {
    let play = try play(
      """
        authorization: https://api.example/authorize
        token:
          url: https://api.example/token?grant={code}
          parameters: { code: null }
      """)
    #expect(try play.resource(play.login(scope: ["read"])).status == 200)
  }

  @Test("without a code, the newest consent counts, and the same request refreshes") func noCode() throws {
    let play = try play(
      """
        authorization:
          url: https://api.example/adminconsent
          parameters: { response_type: null, scope: null }
          response: { fields: { code: tenant }, keep: [tenant] }
        token:
          url: https://api.example/{tenant}/token
          parameters: { grant_type: client_credentials, code: null, redirect_uri: null, scope: "{scope}" }
        refresh:
          parameters: { grant_type: client_credentials, refresh_token: null, scope: "{scope}" }
      response: { fields: { refresh_token: access_token } }
      """)
    let first = try play.login(scope: ["read"], account: "ada")
    let second = try play.login(scope: ["read"], account: "grace")
    #expect(try play.resource(first).json()["account"]?.text == "ada")
    #expect(try play.resource(second).json()["account"]?.text == "grace")
    let refreshed = try play.refresh(second)
    #expect(refreshed.accessToken != second.accessToken)
    #expect(try play.resource(refreshed).json()["account"]?.text == "grace")
  }

  @Test("a code in a parameter with another name") func carriedCode() throws {
    let play = try play(
      """
        authorization: https://api.example/authorize
        token:
          url: https://api.example/token
          parameters: { code: null, assertion: "code:{code}" }
      """)
    let first = try play.authorization(.authorizationCode, scope: ["read"])
    let answer = try play.client.authorizationResponse(
      play.decide(first.uri, account: "ada").queryParameters, to: first)
    // A newer consent does not replace the intended one.
    _ = try play.login(scope: ["read"], account: "grace")
    let credential = try play.client.outcome(
      play.send(play.client.tokenRequest(answer, nonce: play.nonce())), after: answer, now: play.clock.now
    ).issued().credential
    #expect(try play.resource(credential).json()["account"]?.text == "ada")
  }

  @Test("a refresh without a token") func noRefreshToken() throws {
    let play = try play(
      """
        authorization: https://api.example/authorize
        token: { url: https://api.example/token, send: json }
        refresh:
          url: https://api.example/refresh
          send: query
          parameters: { grant_type: null, refresh_token: null }
      response: { fields: { refresh_token: access_token } }
      """)
    let early = play.send(try play.client.refreshRequest(Self.nobody, nonce: play.nonce()))
    #expect(early.status == 400)
    #expect(try play.lastRefusal() == Refusal.missing("refresh_token").sentence)
    let credential = try play.login(scope: ["read"])
    let refreshed = try play.refresh(credential)
    #expect(refreshed.accessToken != credential.accessToken)
    #expect(try play.resource(refreshed).status == 200)
  }

  @Test("identity and introspection at one URL") func identityAndIntrospection() throws {
    let play = try play(
      """
        authorization: https://api.example/authorize
        token: https://api.example/token
        identity: https://api.example/check
        introspection:
          url: https://api.example/check
          method: GET
          authentication: access_token
          parameters: { token: null, token_type_hint: null }
          response: { active: ok }
      account: user
      """)
    let credential = try play.login(scope: ["read"])
    let identity = play.send(try play.client.identityRequest(credential, nonce: play.nonce()))
    #expect(try play.client.identity(identity).name == "ada")
    #expect(try play.client.validationRequest(credential, nonce: play.nonce()).0 == .introspection)
    #expect(try play.validity(credential) == .active)
    play.clock.advance(seconds: 7200)
    #expect(try play.validity(credential) == .inactive)
  }
}

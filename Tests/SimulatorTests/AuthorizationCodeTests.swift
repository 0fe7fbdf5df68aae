import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
@testable import CredmgrOAuth
import CredmgrDescriptors
import Testing

@testable import CredmgrSimulator
import CredmgrText

struct AuthorizationCodeTests {
  @Test("a login, a request, the identity, and a refresh", arguments: [Descriptors.linkedIn, Descriptors.gitHub])
  func wholeWay(_ sample: Sample) throws {
    let play = try Play(sample)
    let credential = try play.login(account: "grace")
    #expect(credential.expiresAt == play.clock.now + .seconds(3600))
    #expect(credential.grantedScope == ["read", "write"])
    let answer = try play.resource(credential, "PUT")
    #expect(answer.status == 200)
    #expect(try answer.json()["account"]?.text == "grace")
    #expect(try answer.json()["method"]?.text == "PUT")
    #expect(try answer.json()["path"]?.text == "/simulator/resource/x")
    #expect(try answer.json()["scopes"] == ["read", "write"])
    let identity = play.send(try play.client.identityRequest(credential, nonce: play.nonce()))
    #expect(try play.client.identity(identity).name == "grace")
    let refreshed = try play.refresh(credential)
    #expect(refreshed.accessToken != credential.accessToken)
    #expect(refreshed.refreshToken != credential.refreshToken)
    #expect(try play.resource(refreshed).status == 200)
    #expect(try play.log("logins") == 1)
    #expect(try play.log("tokens") == 2)
    #expect(try play.log("refreshes") == 1)
    #expect(try play.log("resource_ok") == 2)
    #expect(try play.log("refusals") == 0)
  }

  @Test("a client that signs, a nonce, a token exchange, and a token that contains its expiry")
  func rarities() throws {
    let play = try Play(Descriptors.rare)
    let short = try play.login(scope: ["openid", "read"])
    #expect(short.idToken != nil && short.expiresAt == play.clock.now + .seconds(3600))
    #expect(short.refreshToken == short.accessToken)
    let request = try play.client.tokenExchangeRequest(short, nonce: play.nonce())
    let long = try play.client.outcome(play.send(request), .tokenExchange, refreshing: short, now: play.clock.now)
      .issued().credential
    #expect(try play.resource(long).status == 200)
    #expect(try play.resource(short).status == 401)
    let refreshed = try play.refresh(long)
    #expect(refreshed.accessToken != long.accessToken)
    #expect(try play.resource(refreshed).status == 200)
    let identity = play.send(try play.client.identityRequest(refreshed, nonce: play.nonce()))
    #expect(try play.client.identity(identity).name == "ada")
    #expect(try play.log("refusals") == 1)
    var forged = try play.client.clientCredentialsRequest(scope: [], nonce: play.nonce())
    let text = String(decoding: forged.body, as: UTF8.self)
    forged.body = Array(text.replacing("\"client_assertion\":\"", with: "\"client_assertion\":\"x").utf8)
    #expect(play.send(forged).status == 401)
    #expect(play.send(try play.client.clientCredentialsRequest(scope: [], nonce: play.nonce())).status == 200)
  }

  @Test("a provider that renames or moves every parameter") func oddities() throws {
    let play = try Play(Descriptors.odd)
    let request = try play.authorization(.authorizationCode, scope: ["a", "c"])
    #expect(request.uri.queryParameters.names.contains("response_type") == false)
    let target = try play.decide(request.uri)
    #expect(target.queryParameters[first: "iss"] == Play.origin + "/odd.example")
    let response = try play.client.authorizationResponse(target.queryParameters, to: request)
    let answer = play.send(try play.client.tokenRequest(response, nonce: play.nonce()))
    let json = try answer.json()
    #expect(json["ok"] == .boolean(true))
    #expect(json["data"]?["ttl"]?.integer == 7_200_000)
    #expect(json["data"]?["tokens"]?.elements?.first?["value"]?.text?.hasPrefix("refresh-") == true)
    let credential = try play.client.outcome(answer, after: response, now: play.clock.now).issued().credential
    #expect(credential.kept == ["team": "ada"])
    #expect(try play.resource(credential).status == 200)
    let refreshed = try play.refresh(credential)
    #expect(refreshed.expiresAt == play.clock.now + .seconds(7200))
    let client = play.send(try play.client.clientCredentialsRequest(scope: ["a"], nonce: play.nonce()))
    #expect(try client.json()["access_token"]?.text?.hasPrefix("access-") == true)
    #expect(try client.json()["refresh_token"] == nil)
  }

  @Test("the answer is a form, with commas between scopes, and an error has status 200") func forms() throws {
    let play = try Play(Descriptors.gitHub)
    let request = try play.tokenRequest(scope: ["repo", "gist"])
    let answer = play.send(request)
    #expect(answer.mediaType == "application/x-www-form-urlencoded")
    #expect(answer.form[first: "scope"] == "repo,gist")
    #expect(answer.form[first: "token_type"] == "bearer")
    let again = play.send(request)
    #expect(again.status == 200)
    #expect(again.form[first: "error"] == "bad_verification_code")
    #expect(try play.log("code_reuses") == 1)
    // Using the code twice revokes its first token.
    let credential = try play.client.outcome(answer, .token, grant: .authorizationCode, scope: [], now: 0).issued()
      .credential
    #expect(try play.resource(credential).status == 401)
  }

  @Test("a code is valid for one minute") func expiry() throws {
    let play = try Play(Descriptors.linkedIn)
    let request = try play.tokenRequest()
    play.clock.advance(seconds: 61)
    let answer = play.send(request)
    #expect(answer.status == 400)
    #expect(try answer.json()["error"]?.text == "invalid_grant")
    #expect(try play.lastRefusal() == "the code has expired")
  }

  @Test("a reused refresh token revokes all tokens of the consent") func reuse() throws {
    let play = try Play(Descriptors.linkedIn)
    let credential = try play.login()
    let refreshed = try play.refresh(credential)
    let answer = play.send(try play.client.refreshRequest(credential, nonce: play.nonce()))
    #expect(try answer.json()["error"]?.text == "invalid_grant")
    #expect(try play.log("reuses") == 1)
    #expect(try play.resource(refreshed).status == 401)
    #expect(throws: OAuthError.self) { try play.refresh(refreshed) }
  }

  @Test("within the grace period, a reused refresh token revokes nothing") func grace() throws {
    let play = try Play(Descriptors.linkedIn, SimulationSettings(grace: .seconds(10)))
    let credential = try play.login()
    let first = try play.refresh(credential)
    play.clock.advance(seconds: 10)
    let second = try play.refresh(credential)
    #expect(try play.resource(first).status == 200)
    #expect(try play.resource(second).status == 200)
    play.clock.advance(seconds: 1)
    #expect(throws: OAuthError.self) { try play.refresh(credential) }
    #expect(try play.log("reuses") == 1)
  }

  @Test("a token is valid for the chosen lifetime, or until a request makes it expire") func lifetimes() throws {
    let play = try Play(Descriptors.linkedIn, SimulationSettings(lifetime: .seconds(5)))
    let credential = try play.login()
    #expect(credential.expiresAt == play.clock.now + .seconds(5))
    play.clock.advance(seconds: 4)
    #expect(try play.resource(credential).status == 200)
    play.clock.advance(seconds: 1)
    let answer = try play.resource(credential)
    #expect(answer.status == 401)
    let challenge = try #require(answer.challenges.first)
    #expect(challenge.scheme == "bearer" && challenge["realm"] == "simulator" && challenge["error"] == "invalid_token")
    #expect(!answer.text.contains(credential.accessToken.reveal()))
    let refreshed = try play.refresh(credential)
    #expect(try play.resource(refreshed).status == 200)
    #expect(try play.post("/simulator/expire").status == 200)
    #expect(try play.resource(refreshed).status == 401)
    let third = try play.refresh(refreshed)
    #expect(try play.post("/simulator/revoke").status == 200)
    #expect(try play.resource(third).status == 401)
    #expect(throws: OAuthError.self) { try play.refresh(third) }
  }

  @Test("a denial reaches the client, and a page works once") func denial() throws {
    let play = try Play(Descriptors.linkedIn)
    let request = try play.authorization(.authorizationCode, scope: [])
    let target = try play.decide(request.uri, "deny")
    #expect(target.queryParameters[first: "error"] == "access_denied")
    #expect(target.queryParameters[first: "state"] == request.state)
    let page = play.send(HTTPRequest(method: "GET", uri: request.uri)).text
    let form: FormParameters = [("request", page.hidden("request") ?? ""), ("account", "ada"), ("decision", "approve")]
    #expect(try play.post("/simulator/consent", form).status == 302)
    #expect(try play.post("/simulator/consent", form).status == 400)
  }

  // MARK: Strictness

  struct Change: CustomTestStringConvertible {
    let testDescription: String
    let reason: String
    let change: @Sendable (inout FormParameters) -> Void

    init(_ description: String, _ reason: String, change: @escaping @Sendable (inout FormParameters) -> Void) {
      testDescription = description
      self.reason = reason
      self.change = change
    }

    init(_ description: String, _ refusal: Refusal, change: @escaping @Sendable (inout FormParameters) -> Void) {
      self.init(description, refusal.sentence, change: change)
    }
  }

  static let authorizationChanges = [
    Change("no state", "\"state\" is missing") { $0.remove("state") },
    Change("no challenge", "\"code_challenge\" is missing") { $0.remove("code_challenge") },
    Change("short challenge", Refusal.malformedChallenge) { $0.set("code_challenge", "abc") },
    Change("plain challenge", Refusal.wrongValue("code_challenge_method")) { $0.set("code_challenge_method", "plain") },
    Change("implicit", Refusal.unsupportedResponseType) { $0.set("response_type", "token") },
    Change("commas", Refusal.wrongScopeSeparator(expected: " ")) { $0.set("scope", "repo,gist") },
    Change("state twice", "\"state\" occurs twice") { $0.append("state", "x") },
  ]

  @Test("a wrong authorization request is refused in a redirect", arguments: authorizationChanges)
  func authorizationRefusals(_ change: Change) throws {
    let play = try Play(Descriptors.gitHub)
    let answer = try answer(play, scope: ["repo"], change)
    #expect(answer.status == 302)
    let target = try URI(parsing: try #require(answer.fields["Location"]))
    #expect(target.queryParameters[first: "error_description"] == change.reason)
    #expect(try play.lastRefusal() == change.reason)
  }

  static let untrusted = [
    Change("another client", "client") { $0.set("client_id", "other") },
    Change("another path", "redirect") { $0.set("redirect_uri", "http://127.0.0.1:1/other") },
    Change("another host", "redirect") { $0.set("redirect_uri", "http://localhost/callback") },
    Change("no redirect", "redirect") { $0.remove("redirect_uri") },
  ]

  @Test("the browser is not redirected to an unregistered address", arguments: untrusted)
  func untrustedRedirects(_ change: Change) throws {
    let play = try Play(Descriptors.gitHub)
    let answer = try answer(play, scope: ["repo"], change)
    #expect(answer.status == 400)
    #expect(answer.fields["Location"] == nil)
    #expect(answer.text.contains(change.reason))
  }

  static let renamings = [
    Change("standard name", "\"state\" is called \"customState\" here") {
      $0.set("state", $0[first: "customState"] ?? "")
      $0.remove("customState")
    }, Change("not added", "\"audience\" is missing") { $0.remove("audience") },
    Change("another value", Refusal.wrongValue("audience")) { $0.set("audience", "x") },
    Change("not dropped", "\"response_type\" is not allowed") { $0.append("response_type", "code") },
    Change("spaces", Refusal.wrongScopeSeparator(expected: ",")) { $0.set("scopes", "a b") },
  ]

  @Test("renamed, added and dropped parameters are checked", arguments: renamings)
  func renamedParameters(_ change: Change) throws {
    let play = try Play(Descriptors.odd)
    let answer = try answer(play, scope: ["a", "b"], change)
    #expect(answer.status == 302)
    #expect(try play.lastRefusal() == change.reason)
  }

  static let tokenChanges = [
    Change("another redirect", Refusal.redirectMismatch) { $0.set("redirect_uri", "http://127.0.0.1:2/callback") },
    Change("another verifier", Refusal.verifierMismatch) { $0.set("code_verifier", String(repeating: "v", count: 43)) },
    Change("no verifier", "\"code_verifier\" is missing") { $0.remove("code_verifier") },
    Change("another secret", Refusal.unknownClient) { $0.set("client_secret", "x") },
    Change("no secret", Refusal.wrongClientAuthentication(expected: .clientSecretPost)) { $0.remove("client_secret") },
    Change("another code", Refusal.codeUnknown) { $0.set("code", "x") },
    Change("another grant type", Refusal.unsupportedGrantType) { $0.set("grant_type", "password") },
  ]

  @Test("a wrong token request is refused", arguments: tokenChanges)
  func tokenRefusals(_ change: Change) throws {
    let play = try Play(Descriptors.gitHub)
    var request = try play.tokenRequest(scope: ["repo"])
    var form = FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
    change.change(&form)
    request.body = Array(form.encoded.utf8)
    let answer = play.send(request)
    #expect(answer.form[first: "access_token"] == nil)
    #expect(answer.form[first: "error_description"] == change.reason)
  }

  @Test("parameters in the wrong place or type, and two authentications, are refused")
  func misplaced() throws {
    let play = try Play(Descriptors.gitHub)
    let right = try play.tokenRequest(scope: ["repo"])
    let form = FormParameters(decoding: String(decoding: right.body, as: UTF8.self))
    var inQuery = right
    inQuery.uri = right.uri.adding(query: form)
    inQuery.body = []
    #expect(play.send(inQuery).form[first: "error_description"]?.hasSuffix("must be in the form body") == true)
    var wrongType = right
    wrongType.fields.set("Content-Type", "text/plain")
    let type = "the body must have the type application/x-www-form-urlencoded"
    #expect(play.send(wrongType).form[first: "error_description"] == type)
    var both = right
    both.fields.set("Authorization", "Basic " + Base64.encode(Array("simulator-client:s3cret".utf8)))
    #expect(play.send(both).form[first: "error_description"] == Refusal.twoClientAuthentications.sentence)
    #expect(try play.log("tokens") == 0)
    #expect(play.send(right).form[first: "access_token"] != nil)
  }

  @Test("Basic works only for the registered client, without another identifier") func basic() throws {
    let play = try Play(Descriptors.odd)
    let right = try play.client.clientCredentialsRequest(scope: ["a"], nonce: play.nonce())
    func reason(_ request: HTTPRequest) throws -> String? {
      #expect(try play.send(request).json()["access_token"] == nil)
      return try play.lastRefusal()
    }
    var request = right
    request.uri = right.uri.adding(query: [("client_id", "other")])
    #expect(try reason(request) == Refusal.unknownClient.sentence)
    for pair in ["simulator-client:wrong", "other:s3cret", "simulator-client"] {
      request = right
      request.fields.set("Authorization", "Basic " + Base64.encode(Array(pair.utf8)))
      _ = try reason(request)
    }
    request = right
    request.fields.removeAll(named: "Authorization")
    let wanted = Refusal.wrongClientAuthentication(expected: .clientSecretBasic)
    #expect(try reason(request) == wanted.sentence)
    request.uri = right.uri.adding(query: [("client_id", "simulator-client"), ("client_secret", "s3cret")])
    #expect(try reason(request) == wanted.sentence)
    #expect(try play.log("tokens") == 0)
    #expect(try play.send(right).json()["access_token"] != nil)
  }

  @Test("a request with a wrong method, path or host is refused") func elsewhere() throws {
    let play = try Play(Descriptors.gitHub)
    var request = try play.tokenRequest(scope: ["repo"])
    request.method = "GET"
    #expect(play.send(request).status == 405)
    #expect(try play.get(Play.origin + "/github.example/login").status == 404)
    #expect(try play.get("http://localhost:4711/simulator/log").status == 421)
  }

  /// Returns the answer to a changed authorization request.
  private func answer(_ play: Play, scope: [String], _ change: Change) throws -> HTTPResponse {
    let request = try play.authorization(.authorizationCode, scope: scope)
    var parameters = request.uri.queryParameters
    change.change(&parameters)
    return try play.get(request.uri.withoutQueryAndFragment.adding(query: parameters).text)
  }
}

extension FormParameters {
  mutating func set(_ name: String, _ value: String) {
    remove(name)
    append(name, value)
  }
}

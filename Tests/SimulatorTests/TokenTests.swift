import CredmgrHTTP
import CredmgrJSON
@testable import CredmgrOAuth
import CredmgrDescriptors
import CredmgrMessages
import CredmgrText
import Testing

@testable import CredmgrCommands
@testable import CredmgrSimulator

struct InspectionTests {
  @Test("a token is valid until it, or its refresh token, is revoked") func introspection() throws {
    let play = try Play(Descriptors.linkedIn)
    let credential = try play.login()
    #expect(try play.validity(credential) == .active)
    try play.revoke(credential)
    #expect(try play.validity(credential) == .inactive)
    #expect(try play.resource(credential).status == 401)
    #expect(try play.log("introspections") == 2)
    #expect(try play.log("revocations") == 2)
  }

  @Test("the same for a provider with its own names, at a URL that several endpoints share") func l2p() throws {
    let play = try Play(Descriptors.l2p)
    let authorization = try play.deviceAuthorization()
    _ = try play.post("/simulator/approve-device")
    let credential = try #require(play.poll(authorization, after: 0).credential)
    let (leg, request) = try play.client.validationRequest(credential, nonce: play.nonce())
    let good = play.send(request)
    #expect(try good.json()["state"]?.text == "valid")
    #expect(try play.client.validity(good, leg) == .active)
    #expect(try play.client.revocationRequests(credential, nonce: play.nonce()).count == 1)
    try play.revoke(credential)
    #expect(try play.client.validity(play.send(request), leg) == .inactive)
    #expect(throws: OAuthError.self) { try play.refresh(credential) }
  }

  /// RFC 9470, 3: a resource that needs another authentication, and the login that satisfies it.
  @Test func aStrongerAuthentication() throws {
    let play = try Play(Descriptors.linkedIn)
    func answer(_ credential: Credential, _ needs: String) throws -> HTTPResponse {
      let request = HTTPRequest(method: "GET", uri: try URI(parsing: Play.origin + "/simulator/resource?" + needs))
      return play.send(try play.client.presenting(credential, on: request, nonce: play.nonce()))
    }
    let plain = try play.login()
    #expect(try answer(plain, "needs_max_age=60").status == 200)
    let refused = try answer(plain, "needs_acr=gold+silver&needs_max_age=60")
    #expect(refused.status == 401)
    let challenge = try #require(refused.challenges.first)
    #expect(challenge["error"] == "insufficient_user_authentication")
    #expect(challenge["acr_values"] == "gold silver" && challenge["max_age"] == "60" && challenge["scope"] == nil)
    // A value cannot end the challenge, or the header.
    let odd = try answer(plain, "needs_acr=a%22%0d%0aSet-Cookie:%20b")
    #expect(odd.challenges.first?["acr_values"] == "aSet-Cookie: b")
    let request = try play.client.authorizationRequest(
      .authorizationCode, redirectURI: play.redirectURI, scope: ["read"],
      demanding: ConsentDemands(authenticationContexts: ["silver"], maxAge: .seconds(60)), random: TestRandom(),
      nonce: play.nonce())
    let response = try play.client.authorizationResponse(play.decide(request.uri).queryParameters, to: request)
    let strong = try play.client.outcome(
      play.send(play.client.tokenRequest(response, nonce: play.nonce())), after: response, now: play.clock.now
    ).issued().credential
    #expect(try answer(strong, "needs_acr=gold+silver&needs_max_age=60").status == 200)
    play.clock.advance(seconds: 61)
    #expect(try answer(strong, "needs_acr=gold+silver").status == 200)
    #expect(try answer(strong, "needs_max_age=60").challenges.first?["max_age"] == "60")
  }

  /// No login could meet these demands.
  @Test(arguments: [
    ("needs_max_age=abc", "\"needs_max_age\" must be a number of seconds, and at least 1"),
    ("needs_max_age=-5", "\"needs_max_age\" must be a number of seconds, and at least 1"),
    ("needs_max_age=", "\"needs_max_age\" must be a number of seconds, and at least 1"),
    ("needs_acr=", "\"needs_acr\" must have a value"), ("needs_acr=+", "\"needs_acr\" must have a value"),
    ("needs=", "\"needs\" must have a value"),
  ])
  func aDemandThatNoTokenMeets(_ query: String, _ reason: String) throws {
    let play = try Play(Descriptors.linkedIn)
    let answer = try play.get(Play.origin + "/simulator/resource?" + query)
    #expect(answer.status == 400 && answer.challenges.isEmpty)
    #expect(try answer.json()["error_description"]?.text == reason)
    #expect(try play.lastRefusal() == reason)
  }

  @Test("a revocation by another method, authentication and body") func gitHub() throws {
    let play = try Play(Descriptors.gitHub)
    let credential = try play.login()
    let requests = try play.client.revocationRequests(credential, nonce: play.nonce())
    #expect(requests.map(\.method) == ["DELETE"])
    let other = try play.login()
    for request in requests { try play.client.checkRevocation(play.send(request)) }
    #expect(try play.resource(credential).status == 401)
    #expect(try play.resource(other).status == 200)
  }
}

struct PresentationTests {
  struct Wrong: CustomTestStringConvertible {
    let testDescription: String
    let change: @Sendable (inout HTTPRequest, String) -> Void
  }

  static let wrong = [
    Wrong(testDescription: "another scheme") { $0.fields.set("Authorization", "Bearer " + $1) },
    Wrong(testDescription: "the scheme in upper case") { $0.fields.set("Authorization", "Token " + $1) },
    Wrong(testDescription: "no scheme") { $0.fields.set("Authorization", $1) },
    Wrong(testDescription: "another header") {
      $0.fields.removeAll(named: "Authorization")
      $0.fields.set("X-Token", $1)
    }, Wrong(testDescription: "twice") { $0.fields.append("Authorization", "token " + $1) },
    Wrong(testDescription: "in the query, too") { $0.uri = $0.uri.adding(query: [("access_token", $1)]) },
    Wrong(testDescription: "without the extra header") { request, _ in
      request.fields.removeAll(named: "X-GitHub-Api-Version")
    },
    Wrong(testDescription: "with another extra header") { request, _ in
      request.fields.set("X-GitHub-Api-Version", "2020-01-01")
    },
    Wrong(testDescription: "something behind the token") {
      $0.fields.set("Authorization", "token " + $1 + ", a=\"b\"")
    },
    Wrong(testDescription: "an unknown token") { request, _ in request.fields.set("Authorization", "token abc") },
    Wrong(testDescription: "nothing") { request, _ in request.fields = [:] },
  ]

  @Test("only the declared presentation is accepted", arguments: wrong) func strictness(_ wrong: Wrong) throws {
    let play = try Play(Descriptors.gitHub)
    let credential = try play.login()
    let uri = try URI(parsing: Play.origin + "/simulator/resource")
    var request = try play.client.presenting(
      credential, on: HTTPRequest(method: "POST", uri: uri, body: [1, 2, 3]), nonce: play.nonce())
    #expect(try play.send(request).json()["length"]?.integer == 3)
    let token = credential.accessToken.reveal()
    wrong.change(&request, token)
    let answer = play.send(request)
    #expect(answer.status == 401)
    #expect(answer.fields["WWW-Authenticate"]?.hasPrefix("token realm=") == true)
    #expect(!answer.text.contains(token))
    #expect(try play.log("resource_refused") == 1)
    let log = try play.get(Play.origin + "/simulator/log").text
    #expect(!log.contains(token))
  }
}

struct FaultTests {
  private func tokenAnswer(_ settings: SimulationSettings) throws -> (Play, LoopbackServer.Answer) {
    let play = try Play(Descriptors.linkedIn, settings)
    return (play, play.answer(try play.tokenRequest()))
  }

  @Test(
    "a broken answer is one that the engine refuses",
    arguments: [Fault.html, .notJSON, .redirect, .errorWithSuccess, .serverError])
  func broken(_ fault: Fault) throws {
    let (play, answer) = try tokenAnswer(SimulationSettings(faults: [fault]))
    #expect(throws: OAuthError.self) {
      try play.client.outcome(answer.response, .token, grant: .authorizationCode, scope: [], now: 0).issued().credential
    }
    #expect(try play.log("tokens") == 0)
  }

  @Test("an answer of more than one MiB, a late answer, and a missing answer") func transport() throws {
    #expect(try tokenAnswer(SimulationSettings(faults: [.huge])).1.response.body.count > 1 << 20)
    #expect(try tokenAnswer(SimulationSettings(delay: .milliseconds(300))).1.delay == .milliseconds(300))
    let (play, answer) = try tokenAnswer(SimulationSettings(faults: [.drop]))
    #expect(answer.isDropped)
    // The provider did its work, so the lost token stays lost.
    #expect(try play.log("tokens") == 1)
  }

  @Test("an answer without expiry, and a refresh without a new refresh token") func leftOut() throws {
    let (play, answer) = try tokenAnswer(SimulationSettings(faults: [.noExpiry]))
    let credential = try play.client.outcome(answer.response, .token, grant: .authorizationCode, scope: [], now: 0)
      .issued().credential
    #expect(credential.expiresAt == nil)
    let other = try Play(Descriptors.linkedIn, SimulationSettings(faults: [.noRotation]))
    let first = try other.login()
    let second = try other.refresh(first)
    #expect(second.refreshToken == first.refreshToken)
    #expect(try other.resource(other.refresh(second)).status == 200)
    #expect(try other.log("reuses") == 0)
  }

  @Test("a redirect with a wrong state or issuer") func redirects() throws {
    func refusal(_ sample: Sample, _ fault: Fault) throws -> OAuthError? {
      let play = try Play(sample, SimulationSettings(faults: [fault]))
      let request = try play.authorization(.authorizationCode, scope: [])
      let target = try play.decide(request.uri)
      do {
        _ = try play.client.authorizationResponse(target.queryParameters, to: request)
        return nil
      } catch { return error }
    }
    #expect(try refusal(Descriptors.linkedIn, .wrongState) == .stateMismatch)
    let found = "https://wrong-issuer.example"
    let expected = OAuthError.issuerMismatch(expected: Play.origin + "/odd.example", found: found)
    #expect(try refusal(Descriptors.odd, .wrongIssuer) == expected)
  }
}

struct OptionTests {
  @Test func datesAreThoseOfHTTP() {
    let date = Moment(secondsSince1970: 784_111_777).httpDate
    #expect(date == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(Moment(httpDate: date) == 784_111_777)
  }

  private func settings(_ arguments: [String]) throws -> SimulationSettings {
    try SimulateCommand.settings(Invocation(#require(Command.named("simulate")), arguments))
  }

  @Test("the whole command line") func everything() throws {
    let settings = try settings([
      "github", "--port", "99", "--set", "host=a=b", "--lifetime=5", "--fault", "slow=7", "--fault", "drop",
      "--git-host", "127.0.0.1:1", "--grace", "2m", "--descriptors", "a", "--descriptors", "b", "--keep-redirect",
    ])
    #expect(settings.variables == ["host": "a=b"])
    #expect(settings.lifetime == .seconds(5))
    #expect(settings.grace == .minutes(2))
    #expect(settings.delay == .milliseconds(7) && settings.faults == [.drop])
    #expect(settings.gitHosts == ["127.0.0.1:1"])
    #expect(settings.keepsRedirect)
  }

  @Test(
    "invalid values are refused",
    arguments: [
      ["a", "--set", "x"], ["a", "--lifetime", "0"], ["a", "--lifetime", "x"], ["a", "--grace", "-1"],
      ["a", "--fault", "x"], ["a", "--git-host", "a/b"], ["a", "--fault", "slow"], ["a", "--fault", "slow="],
      ["a", "--fault", "slow=x"], ["a", "--fault", "slow=-1"], ["a", "--fault", "HTML"], ["a", "--fault", ""],
    ])
  func refusals(_ arguments: [String]) throws {
    let error = #expect(throws: CommandError.self) { try settings(arguments) }
    #expect(error?.message?.status == .usage)
  }
}

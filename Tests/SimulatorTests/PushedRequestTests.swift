import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import Testing

@testable import CredmgrSimulator

/// Tests pushed authorization requests (RFC 9126) in both directions.
struct PushedRequestTests {
  @Test func theBrowserSeesOnlyTheReference() throws {
    let play = try Play(Descriptors.pushed)
    let request = try play.authorization(.authorizationCode, scope: ["read"])
    let push = try play.client.pushedRequest(request, nonce: play.nonce())
    let body = FormParameters(decoding: String(decoding: push.body, as: UTF8.self))
    #expect(push.method == "POST" && push.uri.path == "/pushed.example/par")
    #expect(
      body.names == [
        "response_type", "app", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method",
        "access_type", "client_id", "client_secret",
      ])
    let answer = play.send(push)
    #expect(answer.status == 201)
    let page = try play.client.page(of: request, pushed: answer)
    #expect(page.validFor == .seconds(60))
    #expect(page.uri.queryParameters.names == ["tenant", "app", "request_uri"])
    let credential = try play.login()
    #expect(try play.resource(credential).status == 200)
    #expect(try play.resource(play.refresh(credential)).status == 200)
    #expect(try play.log("refusals") == 0)
  }

  @Test func aReferenceWorksOnceAndForOneMinute() throws {
    let play = try Play(Descriptors.pushed)
    func page() throws -> HTTPRequest {
      HTTPRequest(method: "GET", uri: try play.page(of: play.authorization(.authorizationCode, scope: [])))
    }
    let used = try page()
    #expect(play.send(used).status == 200)
    #expect(play.send(used).status == 400)
    #expect(try play.lastRefusal() == "the pushed request is unknown or was already used")
    let late = try page()
    play.clock.advance(seconds: 61)
    #expect(play.send(late).status == 400)
    #expect(try play.lastRefusal() == "the pushed request has expired")
  }

  @Test func thePageTakesNothingThatWasNotPushed() throws {
    let play = try Play(Descriptors.pushed)
    let request = try play.authorization(.authorizationCode, scope: [])
    #expect(play.send(HTTPRequest(method: "GET", uri: request.uri)).status == 400)
    #expect(try play.lastRefusal() == "the page accepts only requests that were pushed before (RFC 9126)")
    let page = try play.page(of: request).adding(query: [("scope", "admin")])
    #expect(play.send(HTTPRequest(method: "GET", uri: page)).status == 400)
    #expect(try play.lastRefusal() == "\"scope\" is not allowed")
    let other = try play.page(of: request).text.replacing("app=", with: "app=x")
    #expect(play.send(HTTPRequest(method: "GET", uri: try URI(parsing: other))).status == 400)
  }

  @Test(arguments: [
    ("client_secret=s3cret", "client_secret=wrong", 401, "invalid_client"),
    ("code_challenge_method=S256", "code_challenge_method=plain", 400, "invalid_request"),
    ("&access_type=offline", "", 400, "invalid_request"),
    ("&access_type=offline", "&access_type=offline&request_uri=urn%3Ax", 400, "invalid_request"),
    ("redirect_uri=http", "redirect_uri=https", 400, "invalid_request"),
  ])
  func thePushIsChecked(_ part: String, _ other: String, _ status: Int, _ code: String) throws {
    let play = try Play(Descriptors.pushed)
    let request = try play.authorization(.authorizationCode, scope: [])
    var push = try play.client.pushedRequest(request, nonce: play.nonce())
    let body = String(decoding: push.body, as: UTF8.self)
    #expect(body.contains(part))
    push.body = Array(body.replacing(part, with: other).utf8)
    let answer = play.send(push)
    #expect(answer.status == status)
    #expect(try answer.json()["error"]?.text == code)
    let error = #expect(throws: OAuthError.self) { try play.client.page(of: request, pushed: answer) }
    guard case .refused(.pushedAuthorizationRequest, let refusal)? = error else { throw OAuthError.malformedPath }
    #expect(refusal.code == code)
  }
}

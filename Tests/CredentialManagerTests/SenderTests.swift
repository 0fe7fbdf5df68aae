import CredmgrHTTP
import CredmgrOAuth
import Testing

@testable import CredmgrCredentialManager
import CredmgrText

struct SenderTests {
  /// Demands another try after every 401, as a provider's nonce does (RFC 9449, 8).
  private struct Demanding: TokenBinding {
    let authenticatesClient = false
    let fieldNames: Set<String> = []
    func signsBody(of request: HTTPRequest) -> Bool { false }
    func sign(_ request: HTTPRequest, with: Credential, nonce: RequestNonce) -> HTTPRequest { request }
    func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce? {
      response.status == 401 ? RequestNonce(timestamp: nonce.timestamp + .seconds(1), text: "demanded") : nil
    }
  }

  /// Builds and sends the demanded request once more, and returns one answer to the caller.
  @Test(arguments: [[401, 200], [401, 401], [200]], [true, false])
  func anAnswerMayDemandASecondTry(_ statuses: [Int], _ isStreamed: Bool) throws {
    let fixture = try Fixture.added()
    let permit = try fixture.source.permit(.validate, "example")
    for status in statuses { fixture.http.then(HTTPResponse(status: status)) }
    var values: [String] = []
    var heads: [Int] = []
    let uri = try URI(parsing: "https://provider.example/")
    func make(_ nonce: RequestNonce) -> HTTPRequest {
      values.append(nonce.text)
      return HTTPRequest(method: "GET", uri: uri)
    }
    let response =
      if isStreamed {
        try fixture.source.stream(to: permit, limits: HTTPLimits(), bound: Demanding(), make) { part in
          if case .head(let head) = part { heads.append(head.status) }
          return true
        }
      } else { try fixture.source.send(to: permit, bound: Demanding(), make) }
    #expect(response.status == statuses.last)
    #expect(heads == (isStreamed ? [response.status] : []))
    #expect(values.count == statuses.count)
    #expect(values.dropFirst().allSatisfy { $0 == "demanded" } && values.first != "demanded")
  }

  /// No request leaves for an origin that was not agreed to, whichever code built it.
  @Test(arguments: ["https://evil.example/", "https://provider.example:8443/", "http://127.0.0.1/"])
  func aRequestToAnotherOriginIsNotSent(_ url: String) throws {
    let fixture = try Fixture.added()
    let permit = try fixture.source.permit(.validate, "example")
    let uri = try URI(parsing: url)
    #expect(throws: CredentialError.notAgreed(provider: "example", origin: uri.origin, .validate)) {
      try fixture.source.send(to: permit) { _ in HTTPRequest(method: "GET", uri: uri) }
    }
    #expect(fixture.http.requests.isEmpty)
  }
}

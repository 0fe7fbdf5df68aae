import CredmgrOAuth
import CredmgrPlatform
import Testing

@testable import CredmgrCredentialManager

/// Tests a plugin that runs again after a refused token, without being told so.
struct RepeatedRequestTests {
  private let fixture: Fixture
  private let kubectl = ProcessIdentity(number: 70, start: "1", program: "/kubectl")

  init() throws { fixture = try Fixture.added(credential: Fixture.credential("old")) }

  private func ask(_ process: ProcessIdentity, server: String = "https://a.example") throws -> String {
    var account = try fixture.fresh()
    if try fixture.source.rejectIfRepeated(account, process: process, server: server) {
      account = try fixture.fresh()
    }
    return account.credential.accessToken.reveal()
  }

  @Test func aRepeatedRequestMeansARefusal() throws {
    fixture.http.then(.token("new"))
    #expect(try ask(kubectl) == "old")
    #expect(try ask(kubectl) == "new")
    // A server that refuses everything does not cause one refresh after another.
    #expect(try ask(kubectl) == "new")
    #expect(fixture.http.requests.count == 1)
    // A token that was valid for a while may be revoked later.
    fixture.clock.advance(.seconds(61))
    #expect(try ask(kubectl) == "new")
    fixture.http.then(.token("newer"))
    #expect(try ask(kubectl) == "newer")
  }

  @Test func aFirstRequestIsNoRefusal() throws {
    #expect(try ask(kubectl) == "old")
    #expect(try ask(ProcessIdentity(number: 71, start: "1", program: "/kubectl")) == "old")
    // None of these repeats the request: another program, another process with the same number, another cluster.
    #expect(try ask(ProcessIdentity(number: 71, start: "1", program: "/kubectl.1")) == "old")
    #expect(try ask(ProcessIdentity(number: 70, start: "2", program: "/kubectl")) == "old")
    #expect(try ask(ProcessIdentity(number: 70, start: "2", program: "/kubectl"), server: "https://b.example") == "old")
    #expect(fixture.http.requests.isEmpty)
  }

  @Test func aRefusedTokenIsNotReturned() throws {
    #expect(try ask(kubectl) == "old")
    fixture.http.then(.token("new"))
    _ = try fixture.fresh(RefreshPolicy(always: true))
    #expect(try ask(kubectl) == "new")
    #expect(fixture.http.requests.count == 1)
  }

  @Test func unrefreshableTokensStay() throws {
    try fixture.store(Fixture.credential("old", refresh: nil))
    #expect(try ask(kubectl) == "old")
    #expect(try ask(kubectl) == "old")
  }
}

import Cryptography
import OAuth
import Platform
import Testing

@testable import CredentialManager

/// A plugin that is run anew when a token was refused, and told nothing of it.
struct AskerTests {
  private let fixture: Fixture
  private let kubectl = Asker(process: "70.1.2.3.4", number: 70, question: "https://a.example")

  init() throws {
    fixture = try Fixture()
    try fixture.add()
    try fixture.store(Fixture.credential("old"))
  }

  /// Asks as the plugin does, and says what it is given.
  private func ask(_ asker: Asker, until: Int64? = Fixture.now + 600) throws -> String {
    try fixture.source.rejectIfAskedAgain(asker, nil, of: "example")
    let account = try fixture.source.freshAccount(nil, of: "example")
    fixture.source.remember(asker, account, until: until)
    return account.credential.accessToken.reveal()
  }

  @Test func whoAsksAgainWasRefused() throws {
    fixture.http.then(.token("new"))
    #expect(try ask(kubectl) == "old")
    #expect(try ask(kubectl) == "new")
    // A server that takes nothing is not given one after the other.
    #expect(try ask(kubectl) == "new")
    #expect(fixture.http.requests.count == 1)
    // What was good for a while may be revoked, too.
    fixture.clock.advance(61)
    fixture.http.then(.token("newer"))
    #expect(try ask(kubectl) == "newer")
  }

  @Test func whoAsksForTheFirstTimeWasNot() throws {
    for asker in [
      kubectl, Asker(process: "71.1.2.3.4", number: 71, question: "https://a.example"),
      // Another program in the same process, another process of the same number, another cluster.
      Asker(process: "70.1.5.6.7", number: 70, question: "https://a.example"),
      Asker(process: "70.9.2.3.4", number: 70, question: "https://a.example"),
      Asker(process: "70.9.2.3.4", number: 70, question: "https://b.example"),
    ] {
      #expect(try ask(asker) == "old")
    }
    #expect(fixture.http.requests.isEmpty)
  }

  @Test func whoAsksWhenToldToWasNot() throws {
    #expect(try ask(kubectl, until: Fixture.now + 10) == "old")
    fixture.clock.advance(10)
    #expect(try ask(kubectl) == "old")
    #expect(fixture.http.requests.isEmpty)
  }

  @Test func anotherTokenThanTheRefusedOneIsHandedOut() throws {
    #expect(try ask(kubectl) == "old")
    fixture.http.then(.token("new"))
    _ = try fixture.source.freshAccount(nil, of: "example", Freshen(always: true))
    #expect(try ask(kubectl) == "new")
    #expect(fixture.http.requests.count == 1)
  }

  @Test func whatCannotBeRefreshedStays() throws {
    try fixture.store(Fixture.credential("old", refresh: nil))
    #expect(try ask(kubectl) == "old")
    #expect(try ask(kubectl) == "old")
  }
}

import Cryptography
import Descriptors
import HTTP
import OAuth
import Store
import Testing

@testable import CredentialManager

/// What one provider must not get of another one (RFC 9700, 4.4), and the redirect that tells them apart.
struct MixUpTests {
  private static func endpoints(_ page: String, _ token: String, _ more: String = "") -> String {
    "grant: authorization_code\nendpoints: { authorization: \"\(page)\", token: \"\(token)\" }\n\(more)"
  }

  /// With an honest provider beside the one that logs in.
  private static func fixture(_ text: String, honest: String = "") throws -> Fixture {
    let fixture = try Fixture()
    try fixture.add(endpoints("https://honest.example/authorize", "https://honest.example/token", honest), "honest")
    try fixture.add(text)
    return fixture
  }

  private static func login(_ fixture: Fixture, issuer: String? = nil) throws -> Account {
    fixture.user.consent([("code", "code-1"), ("state", "state")] + (issuer.map { [("iss", $0)] } ?? []))
    return try fixture.login()
  }

  @Test(arguments: [
    ("https://evil.example/authorize", "https://evil.example/token", "issuer: https://honest.example"),
    ("https://evil.example/authorize", "https://evil.example/token", "issuer: https://honest.example/other"),
    ("https://honest.example/authorize", "https://evil.example/token", ""),
    ("https://honest.example/other", "https://evil.example/token", ""),
    ("https://HONEST.example:443/authorize", "https://evil.example/token", ""),
    ("https://honest.example./authorize", "https://evil.example/token", ""),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1/callback/honest"),
    ("https://evil.example/authorize", "https://evil.example/token", "redirect: http://127.0.0.1//callback/h%6Fnest/"),
  ]) func aDescriptorThatBorrowsFromAnotherIsNotUsed(_ page: String, _ token: String, _ more: String) throws {
    let fixture = try Self.fixture(Self.endpoints(page, token, more), honest: "issuer: https://honest.example")
    guard case .loginsRefused(.mixUp(provider: "example", other: "honest", _))? = fixture.notices.last else {
      throw CredentialError.interrupted
    }
    let error = #expect(throws: CredentialError.self) { try fixture.login() }
    guard case .mixUp(provider: "example", other: "honest", _)? = error else { throw CredentialError.interrupted }
    #expect(fixture.user.opened.isEmpty)
  }

  /// The same server twice, and servers that have nothing to do with each other.
  @Test(arguments: [
    ("https://honest.example/authorize", "https://honest.example/token", "issuer: https://honest.example"),
    ("https://honest.example/other", "https://api.honest.example/token", ""),
    ("https://honest.example/other", "https://tokens.example/token", ""),
    ("https://other.example/authorize", "https://other.example/token", "issuer: https://other.example"),
    ("https://other.example/authorize", "https://other.example/token", "redirect: http://127.0.0.1/callback"),
  ]) func providersBesideEachOther(_ page: String, _ token: String, _ more: String) throws {
    let fixture = try Self.fixture(
      Self.endpoints(page, token, more), honest: "issuer: https://honest.example\nhosts: [tokens.example]")
    #expect(fixture.notices.isEmpty)
    fixture.http.then(.token("token-1"))
    #expect(try Self.login(fixture).credential.accessToken == Secret("token-1"))
  }

  /// The code of another server is not posted anywhere.
  @Test(arguments: ["https://honest.example", "https://example.org/shared/honest"])
  func anAnswerOfAnotherProvider(_ issuer: String) throws {
    let text = Self.endpoints("https://example.org/shared/evil/authorize", "https://honest.example/token")
    let fixture = try Self.fixture(text, honest: "issuer: https://example.org/shared/honest")
    #expect(
      throws: CredentialError.mixUp(provider: "example", other: "honest", .answer(issuer: issuer))
    ) { try Self.login(fixture, issuer: issuer) }
    #expect(fixture.http.requests.isEmpty)
    fixture.http.then(.token("token-1"))
    _ = try Self.login(fixture, issuer: "https://example.org/shared")
  }

  // MARK: The redirect

  @Test func anEarlierRegistrationKeepsItsRedirect() throws {
    let fixture = try Fixture.added()
    var registration = try #require(try fixture.registration())
    registration.redirect = nil
    _ = try fixture.another().accounts(.readWrite).store.apply([
      .store(registration.encoded, as: Accounts.registration("example"))
    ])
    try fixture.add(fixture.source.addition(shipped: "example", as: nil), id: nil, replaces: true)
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try Self.login(fixture)
    #expect(try URI(parsing: #require(fixture.page[first: "redirect_uri"])).path == "/callback")
  }
}

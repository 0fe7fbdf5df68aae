import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrStore
import Testing

@testable import CredmgrCredentialManager

/// Tests what other programs, users and web pages can do to a login in a browser.
struct LoginPageTests {
  private static let implicit = """
    grant: implicit
    state: optional
    endpoints: { authorization: https://provider.example/authorize }
    response: { keep: [principalID] }
    account: principalID
    """

  private static let image = [
    ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image"),
  ]
  private static let navigation = [
    ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"),
  ]

  /// All users of a machine can see a browser's arguments.
  @Test func theBrowserIsRedirectedToThePage() throws {
    let fixture = try Fixture.added()
    let browser = fixture.user
    browser.visit { redirect, state in
      let start = try Visit.get(#require(browser.launched.last), [])
      let again = try Visit.get(#require(browser.launched.last), [])
      return [start, again, try Visit.get(redirect, [("code", "code-1"), ("state", state)])]
    }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login()
    let page = try #require(fixture.user.opened.first)
    #expect(fixture.user.steps == [.open(url: page), .reopened])
    let start = try #require(fixture.user.launched.first)
    #expect(start.hasPrefix("http://127.0.0.1:"))
    #expect(!start.contains(try #require(fixture.page[first: "state"])))
    #expect(try fixture.user.visits.map { try $0.status } == ["302", "410", "200"])
    #expect(try fixture.user.visits[0].answer().contains("\r\nLocation: \(page)\r\n"))
  }

  /// The page shows the result of the login, not only of the consent.
  @Test func thePageShowsTheEnd() throws {
    let fixture = try Fixture.added()
    func login(_ answers: HTTPResponse...) throws -> String {
      for answer in answers { fixture.http.then(answer) }
      fixture.consent()
      _ = try? fixture.login()
      return try #require(fixture.user.visits.last).answer()
    }
    let done = try login(.token("token-1"), .identity("ana"))
    #expect(done.contains("<h1>Logged in: ") && done.contains("You are logged in as ana.\n"))
    let refused = try login(.json("{\"error\": \"invalid_grant\", \"error_description\": \"<b>No.</b>\"}", status: 400))
    #expect(refused.contains("<blockquote><p>&lt;b&gt;No.&lt;/b&gt;</p></blockquote>"))
    let lost = try login(.json("{}"))
    #expect(lost.contains("<h1>Login failed: ") && !lost.contains("blockquote>"))
  }

  /// A browser on the user's own machine, opened over SSH, cannot reach a port of this machine.
  @Test func aBrowserElsewhereGetsThePageItself() throws {
    let fixture = try Fixture.added()
    fixture.consent(.token("token-1"), .identity("ana"))
    _ = try fixture.login { $0.hasLocalBrowser = false }
    #expect(fixture.user.launched == fixture.user.opened)
    #expect(fixture.user.launched[0].hasPrefix("https://provider.example/authorize?"))
  }

  /// Any page can redirect the browser to an address with a token in its query, but this provider uses the fragment.
  @Test func aTokenInTheQueryIsIgnored() throws {
    let fixture = try Fixture.added(Self.implicit, secret: nil)
    let forged: FormParameters = [("access_token", "forged"), ("principalID", "eve"), ("state", "s")]
    fixture.user.visit { redirect, state in
      [
        try Visit.get(redirect, [("access_token", "forged"), ("principalID", "eve")], fields: Self.image),
        try Visit.get(redirect, [("access_token", "forged"), ("principalID", "eve")], fields: Self.navigation),
        try Visit.get(redirect, forged), try Visit.get(redirect, [], fields: Self.navigation),
        try Visit.post(redirect, [("access_token", "tk_1"), ("principalID", "p-1"), ("state", state)]),
      ]
    }
    let account = try fixture.login()
    #expect(account.name == "p-1")
    #expect(account.credential.accessToken == Secret("tk_1"))
    #expect(try fixture.user.visits.map { try $0.status } == ["403", "400", "400", "200", "200"])
    #expect(fixture.user.steps.dropFirst() == [.strayRedirect(count: 1), .strayRedirect(count: 2)])
  }

  /// A provider may report in the query why it issues no token.
  @Test func aRefusalInTheQueryIsAnAnswer() throws {
    let fixture = try Fixture.added(Self.implicit, secret: nil)
    fixture.user.consent([("error", "access_denied"), ("access_token", "forged"), ("state", "state")])
    let refusal = ErrorResponse(code: "access_denied", words: nil, status: nil)
    #expect(throws: CredentialError.oauth(.refused(.authorization, refusal), provider: "example")) {
      try fixture.login()
    }
  }

  /// Without a `state` and a proof key, an image or form of another page could inject its own code.
  @Test func aCodeOfAnotherPageIsIgnored() throws {
    let fixture = try Fixture.added(Fixture.endpoints + "\nstate: optional\npkce: none")
    fixture.user.visit { redirect, state in
      [
        try Visit.get(redirect, [("code", "forged")], fields: Self.image),
        // The request seems to come from another origin's page.
        try Visit.post(redirect, [("code", "forged")]),
        // The request seems to come from a page that hides its origin.
        try Visit.post(redirect, [("code", "forged")], origin: "null"),
        try Visit.get(redirect, [("code", "code-1"), ("state", state)], fields: Self.navigation),
      ]
    }
    fixture.http.then(.token("token-1"), .identity("ana"))
    _ = try fixture.login()
    #expect(fixture.http.requests[0].parameters[first: "code"] == "code-1")
    #expect(try fixture.user.visits.map { try $0.status } == ["403", "403", "403", "200"])
  }

  /// Another user of the browser's machine could listen at a predictable port.
  @Test func pastingUsesARandomPort() throws {
    let fixture = try Fixture.added()
    var ports: Set<UInt16> = []
    for _ in 0..<3 {
      fixture.user.paste { redirect, state in ["\(redirect)?code=code-1&state=\(state)"] }
      fixture.http.then(.token("token-1"), .identity("ana"))
      _ = try fixture.login { $0.pastes = true }
      let redirect = try #require(try fixture.page[first: "redirect_uri"])
      ports.insert(try #require(try URI(parsing: redirect).port))
    }
    #expect(ports.count == 3)
    #expect(ports.allSatisfy { $0 >= 0xC000 })
  }

  @Test func aTokenIsNotPastedFromAPort() throws {
    let fixture = try Fixture.added(Self.implicit, secret: nil)
    #expect(throws: CredentialError.pasteExposesToken(provider: "example")) { try fixture.login { $0.pastes = true } }
    #expect(fixture.user.steps.isEmpty)
    try fixture.expectNothingLeft()
  }

  /// An address contains nothing that a shell in a browser's command, or a terminal's link, would act on.
  @Test func addressesAreHarmless() throws {
    let text = Fixture.endpoints.replacing("/authorize\n", with: "/authorize?ui=$(calc.exe)`a`\n")
    let fixture = try Fixture.added(text)
    fixture.consent(.token("token-1"), .identity("ana"))
    _ = try fixture.login()
    #expect(fixture.user.opened[0].contains("/authorize?ui=%24%28calc.exe%29%60a%60&"))
    fixture.http.then(
      .json(
        """
        {"device_code": "d", "user_code": "U", "verification_uri": "https://provider.example/d", "expires_in": 900,
         "verification_uri_complete": "https://provider.example/d?c=$(calc.exe)"}
        """), .token("token-2"), .identity("ana"))
    _ = try fixture.login { $0.grant = .deviceCode }
    #expect(fixture.user.opened.last == "https://provider.example/d?c=%24%28calc.exe%29")
    guard case .device(_, _, let complete, _, _)? = fixture.user.steps.last else { throw CredentialError.interrupted }
    #expect(complete == "https://provider.example/d?c=%24%28calc.exe%29")
  }
}

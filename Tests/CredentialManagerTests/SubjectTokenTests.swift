import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText
import Testing

@testable import CredmgrCredentialManager

/// Logins of machines with the token of another issuer (RFC 8693; RFC 7523, 2.1 and 2.2), which is never stored.
struct SubjectTokenTests {
  static let exchange = """
    grant: token_exchange
    variables: { team: { at_login: true } }
    endpoints:
      token:
        url: https://provider.example/token
        parameters: { audience: "team-{team}" }
    scope: [read]
    account: team
    hosts: [api.provider.example]
    """

  static let session = """
    grant: session
    variables: { proof: { at_exchange: true, help: ID token }, team: { at_login: true } }
    endpoints:
      token: { url: https://provider.example/mint, send: json, parameters: { token: "{proof}" } }
    account: team
    hosts: [api.provider.example]
    """

  /// A JWT that expires at a moment.
  static func jwt(_ expiry: Moment = Fixture.now + .seconds(600), _ id: String = "1") -> String {
    ["{\"alg\":\"RS256\"}", "{\"jti\":\"\(id)\",\"exp\":\(expiry.secondsSince1970)}", "signature"]
      .map { Base64.encodeURL(Array($0.utf8)) }.joined(separator: ".")
  }

  static func login(_ fixture: Fixture, _ place: SubjectTokenPlace) throws -> Account {
    try fixture.login { $0.variables = ["team": "blue", "subject_token": place.text] }
  }

  static func shipped(_ text: String, _ token: String?) throws -> (Fixture, file: String) {
    let fixture = try KeyLoginTests.shipped(text, typed: nil)
    let file = fixture.root + "/token"
    if let token { try File.replace(file, Array(token.utf8)) }
    return (fixture, file)
  }

  @Test func eachExchangeReadsTheFileAgain() throws {
    let (fixture, file) = try Self.shipped(Self.exchange, Self.jwt() + "\n")
    fixture.http.then(ServiceAccountTests.token("token-1"), ServiceAccountTests.token("token-2"))
    let account = try Self.login(fixture, .file(file))
    #expect(account.name == "blue" && account.credential.accessToken == Secret("token-1"))
    #expect(
      ServiceAccountTests.form(fixture.http.requests[0]).pairs.map(\.name) == [
        "grant_type", "subject_token", "subject_token_type", "scope", "audience",
      ])
    let form = ServiceAccountTests.form(fixture.http.requests[0])
    #expect(form[first: "grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange")
    #expect(form[first: "subject_token"] == Self.jwt() && form[first: "audience"] == "team-blue")
    // The cluster replaced the file.
    let later = Self.jwt(Fixture.now + .hours(2), "2")
    try File.replace(file, Array(later.utf8))
    fixture.clock.advance(.seconds(3600))
    let renewed = try fixture.another(http: fixture.http).handOut(nil, of: "example", by: .token, to: .caller)
    #expect(renewed.credential.accessToken == Secret("token-2"))
    #expect(ServiceAccountTests.form(fixture.http.requests[1])[first: "subject_token"] == later)
    // Neither token is at rest, and no request to the API has one.
    let stored = String(decoding: renewed.credential.encoded.revealBytes(), as: UTF8.self)
    #expect(!stored.contains(Self.jwt()) && !stored.contains(later) && stored.contains("file:" + file))
    #expect(
      try fixture.another().permit(.request, "example", variables: renewed.credential.variables)
        .client.variables["subject_token"] == nil)
    try fixture.expectNothingLeft()
  }

  /// An account in an export names a file or a variable of this machine.
  /// RFC 8693, 2.1: a token of the acting party goes with its type, and only if the descriptor has it.
  @Test func anActorToken() throws {
    let kind = "urn:ietf:params:oauth:token-type:jwt"
    let text = Self.exchange.replacing("team: {", with: "actor: { at_login: true }, team: {")
      .replacing("team-{team}\"", with: "team-{team}\", actor_token: \"{actor}\", actor_token_type: \(kind)")
    let (fixture, file) = try Self.shipped(text, Self.jwt())
    fixture.http.then(ServiceAccountTests.token("token-1"))
    _ = try fixture.login {
      $0.variables = ["team": "blue", "actor": "actor-1", "subject_token": SubjectTokenPlace.file(file).text]
    }
    let form = ServiceAccountTests.form(fixture.http.requests[0])
    #expect(form[first: "actor_token"] == "actor-1" && form[first: "actor_token_type"] == kind)
  }

  @Test func anImportAsksBeforeItReads() throws {
    let (fixture, other) = (try Fixture(), try Fixture())
    for each in [fixture, other] { try each.add(each.file(Self.session), id: nil) }
    var credential = Fixture.credential()
    credential.variables = ["proof": "env:OTHER_SECRET", "team": "blue"]
    try other.store(credential, "zed")
    var asked: [String] = []
    let bytes = try TransferTests.plain(other)
    _ = try? fixture.source.importVault(bytes, acceptsPlain: true, replaces: false) { _, places in
      asked += places.map(\.name)
      return false
    }
    #expect(asked == ["env:OTHER_SECRET"])
    #expect(try fixture.stored("zed") == nil)
  }

  @Test func anEnvironmentVariable() throws {
    let (fixture, _) = try Self.shipped(Self.session, nil)
    fixture.http.then(ServiceAccountTests.token("token-1"))
    let keys = KeySources(environment: { $0 == "CI_ID_TOKEN" ? Self.jwt() : nil })
    let source = CredentialSource(
      home: fixture.home, http: fixture.http, clock: fixture.clock, random: SystemRandomSource(), keys: keys)
    var options = LoginOptions()
    options.variables = ["team": "blue", "proof": SubjectTokenPlace.environment("CI_ID_TOKEN").text]
    #expect(try source.login("example", options, user: fixture.user).credential.accessToken == Secret("token-1"))
    #expect(String(decoding: fixture.http.requests[0].body, as: UTF8.self) == "{\"token\":\"\(Self.jwt())\"}")
    // Another process, without the variable, keeps the account.
    fixture.clock.advance(.seconds(3600))
    let error = #expect(throws: CredentialError.self) {
      try fixture.another(http: fixture.http).handOut(nil, of: "example", by: .token, to: .caller)
    }
    guard case .subjectToken("example", _, .environment("CI_ID_TOKEN")?, .unset)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try fixture.stored("blue")?.accessToken == Secret("token-1"))
    try fixture.expectNothingLeft()
  }

  @Test(arguments: [
    (nil, SubjectTokenFault?.none), ("", .empty), (" \n", .empty), ("a\nb", .notText), ("t\u{F6}ken", .notText),
    (jwt(Fixture.now - .seconds(61)), .expired(Fixture.now - .seconds(61))),
  ]) func aBadTokenIsNotSent(_ token: String?, _ fault: SubjectTokenFault?) throws {
    let (fixture, file) = try Self.shipped(Self.exchange, token)
    let error = #expect(throws: CredentialError.self) { try Self.login(fixture, .file(file)) }
    guard case .subjectToken("example", _, .file(let path)?, let found)? = error, path == file else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(found == fault ?? .unreadable(.notFound(path: file)))
    #expect(fixture.http.requests.isEmpty)
    #expect(try fixture.another().accountsIfAny() == nil)
  }

  /// A clock that is a little slow or fast, and a token that is not a JWT: the server decides.
  @Test(arguments: [jwt(Fixture.now - .seconds(59)), "opaque"]) func aTokenThatMayBeGood(_ token: String) throws {
    let (fixture, file) = try Self.shipped(Self.exchange, token)
    fixture.http.then(ServiceAccountTests.token("token-1"))
    _ = try Self.login(fixture, .file(file))
  }

  /// Attack and control: a descriptor of a stranger names a file as the default.
  @Test func aDescriptorNamesNoFile() throws {
    let (fixture, file) = try Self.shipped(
      Self.session.replacing("at_exchange: true", with: "at_exchange: true, default: \"file:/etc/hostname\""), "x")
    fixture.http.then(ServiceAccountTests.token("token-1"), ServiceAccountTests.token("token-2"))
    _ = try fixture.login { $0.variables = ["team": "blue"] }
    #expect(String(decoding: fixture.http.requests[0].body, as: UTF8.self) == #"{"token":"file:/etc/hostname"}"#)
    _ = try fixture.login { $0.variables = ["team": "blue", "proof": SubjectTokenPlace.file(file).text] }
    #expect(String(decoding: fixture.http.requests[1].body, as: UTF8.self) == #"{"token":"x"}"#)
  }

  /// Attack and control: after the login, the descriptor sends the token elsewhere.
  @Test func aChangedDescriptorGetsNoToken() throws {
    let (fixture, file) = try Self.shipped(Self.exchange, "opaque")
    fixture.http.then(ServiceAccountTests.token("token-1"))
    _ = try Self.login(fixture, .file(file))
    fixture.clock.advance(.seconds(3600))
    try fixture.ship(Self.exchange.replacing("https://provider.example/token", with: "https://evil.example/token"))
    let source = fixture.another(http: fixture.http)
    let error = #expect(throws: CredentialError.self) {
      try source.handOut(nil, of: "example", by: .token, to: .caller)
    }
    guard case .descriptorChanged? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(fixture.http.requests.count == 1)
  }

  @Test func withoutAPlace() throws {
    let (fixture, _) = try Self.shipped(Self.exchange, nil)
    let error = #expect(throws: CredentialError.self) { try fixture.login { $0.variables = ["team": "blue"] } }
    guard case .subjectToken("example", let variable, nil, .unset)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(variable.name == "subject_token" && variable.isSecret && variable.isAtLogin)
    #expect(fixture.user.prompts.isEmpty)
  }

  /// The next token of the machine may be accepted, so a refusal does not end the account.
  @Test func aRefusalConcernsOneToken() throws {
    let (fixture, file) = try Self.shipped(Self.exchange, "opaque-1")
    let refusal = HTTPResponse.json(#"{"error":"invalid_request","error_description":"expired"}"#, status: 400)
    fixture.http.then(ServiceAccountTests.token("token-1"), refusal, ServiceAccountTests.token("token-2"))
    _ = try Self.login(fixture, .file(file))
    fixture.clock.advance(.seconds(3600))
    let error = #expect(throws: CredentialError.self) {
      try fixture.source.handOut(nil, of: "example", by: .token, to: .caller)
    }
    guard case .oauth(.refused(.token, _), _)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    let later = try fixture.another(http: fixture.http).handOut(nil, of: "example", by: .token, to: .caller)
    #expect(later.credential.accessToken == Secret("token-2"))
  }

  /// RFC 7523, 2.1: the assertion comes from another issuer, so no key signs one.
  @Test func anAssertionOfAnotherIssuer() throws {
    let (fixture, file) = try Self.shipped(
      """
      grant: jwt_bearer
      variables: { subject_token: { at_exchange: true } }
      endpoints: { token: { url: https://provider.example/token, parameters: { assertion: "{subject_token}" } } }
      hosts: [api.provider.example]
      """, Self.jwt())
    fixture.http.then(ServiceAccountTests.token("token-1"))
    _ = try fixture.login { $0.variables = ["subject_token": SubjectTokenPlace.file(file).text] }
    let form = ServiceAccountTests.form(fixture.http.requests[0])
    #expect(form[first: "grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer")
    #expect(form[first: "assertion"] == Self.jwt())
  }

  /// A further login without a place uses the one of the account.
  @Test func aLoginRepeatsThePlace() throws {
    let (fixture, file) = try Self.shipped(Self.exchange, Self.jwt())
    fixture.http.then(ServiceAccountTests.token("token-1"), ServiceAccountTests.token("token-2"))
    _ = try Self.login(fixture, .file(file))
    #expect(try fixture.login { $0.account = "blue" }.credential.accessToken == Secret("token-2"))
  }
}

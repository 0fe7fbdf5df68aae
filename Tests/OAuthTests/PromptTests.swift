import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText
import Testing

@testable import CredmgrOAuth

/// Keys, passwords and several values that a user types.
struct PromptTests {
  typealias Field = Step.Prompt.Field

  static func client(_ text: String, _ variables: [String: String] = [:]) throws -> Client {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let descriptor = try library.load(Array(("provider: test\n" + text).utf8), name: "test").descriptor
    return try Client(descriptor: descriptor, identifier: "", secret: nil, variables: variables)
  }

  static func prompt(_ client: Client) throws -> Step.Prompt? {
    let grant = client.descriptor.grants[0]
    let login = LoginContext(
      grant, client, scope: [], redirectURI: "", random: KnownRandom(), nonce: Fixture.nonce)
    guard case .prompt(let prompt) = try login.begin() else { return nil }
    return prompt
  }

  static func credential(_ client: Client, _ texts: [String]) throws -> Credential? {
    guard let prompt = try prompt(client),
      case .done(let credential, _) = try prompt.read(prompt.values(of: texts), Fixture.now)
    else { return nil }
    return credential
  }

  static func header(_ text: String, _ texts: [String]) throws -> String? {
    let client = try client(text)
    let credential = try #require(try credential(client, texts))
    return try client.headerFields(presenting: credential, on: nil, nonce: Fixture.nonce)["Authorization"]
  }

  // MARK: Pasted texts

  private static func field(
    _ label: String, _ content: Field.Content, _ more: String = "key: { pattern: sk-.* }\n"
  ) throws -> Field {
    Field(typed: label, as: content, of: try client(more + key).descriptor)
  }

  @Test(arguments: [
    "sk-1", " sk-1 ", "sk-1\n", "\r\n\tsk-1\r\n", "\u{FEFF}sk-1\n", "\u{A0}sk-1\u{200B}",
  ]) func blanksAroundAKeyAreRemoved(_ text: String) throws {
    #expect(try Self.field("API key", .key).value(of: text) == "sk-1")
  }

  @Test(arguments: [
    ("", PasteFault.empty("API key")), (" \n", .empty("API key")), ("sk-1\nsk-2", .lines("API key")),
    ("sk-1\r\nsk-2\r\n", .lines("API key")), ("Bearer pk-1", .pattern("API key")),
    ("sk-\u{1B}[A", .character("API key")),
    ("sk-ä", .character("API key")), ("sk-\u{A0}1", .character("API key")), ("pk-1", .pattern("API key")),
    (String(repeating: "s", count: 1 << 20), .tooLong("API key", bytes: 65536)),
  ]) func aWrongPaste(_ text: String, _ fault: PasteFault) {
    #expect(throws: fault) { try Self.field("API key", .key).value(of: text) }
  }

  @Test func aPasswordKeepsItsBlanks() throws {
    let field = try Self.field("password", .password, "")
    #expect(try field.value(of: " pässword \n") == " pässword ")
    #expect(throws: PasteFault.character("password")) { try field.value(of: "a\u{7}b") }
    #expect(throws: PasteFault.empty("password")) { try field.value(of: "\n") }
  }

  // MARK: How it is presented

  private static let key = "grant: api_key\nendpoints: {}\nhosts: [api.test.example]\n"

  @Test func aKeyIsABearerTokenUnlessTheDescriptorSaysOtherwise() throws {
    #expect(try Self.header(Self.key, ["key-1"]) == "Bearer key-1")
    #expect(try Self.header(Self.key + "header_style: Token", ["key-1"]) == "Token key-1")
    let pair = { (name: String, password: String) in "Basic " + Base64.encode(Array("\(name):\(password)".utf8)) }
    #expect(try Self.header(Self.key + "header_style: { username: api }", ["key-1"]) == pair("api", "key-1"))
    #expect(try Self.header(Self.key + "header_style: { password: x }", ["key-1"]) == pair("key-1", "x"))
    #expect(try Self.header(Self.key + "header_style: { password: '' }", ["key-1"]) == pair("key-1", ""))
  }

  @Test func aKeyInAHeaderOrAQuery() throws {
    let client = try Self.client(Self.key + "header_style: { header: X-Key }")
    let credential = try #require(try Self.credential(client, ["key-1"]))
    #expect(try client.headerFields(presenting: credential, on: nil, nonce: Fixture.nonce)["X-Key"] == "key-1")
    let other = try Self.client(Self.key + "header_style: { query: key }")
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://api.test.example/x?a=b"))
    let sent = try other.presenting(credential, on: request, nonce: Fixture.nonce)
    #expect(sent.uri.text == "https://api.test.example/x?a=b&key=key-1")
    let foreign = HTTPRequest(method: "GET", uri: try URI(parsing: "https://evil.example/x"))
    #expect(throws: OAuthError.foreignHost("evil.example")) {
      try other.presenting(credential, on: foreign, nonce: Fixture.nonce)
    }
  }

  /// Some providers show a key with the scheme before it.
  @Test(arguments: [
    ("Bearer ex-1", "ex-1"), ("token  ex-1\n", "ex-1"), ("V1 ex-1", "ex-1"), ("Own ex-1", nil), ("own ex-1", nil),
    ("Bearer token ex-1", nil), ("ex 1", nil),
  ]) func aKeyAfterAScheme(_ text: String, _ key: String?) throws {
    let client = try Self.client("header_style: { token_types: [V1] }\n" + Self.key)
    if let key {
      #expect(try Self.credential(client, [text])?.accessToken == Secret(key))
    } else {
      #expect(throws: PasteFault.blank("API key")) { try Self.credential(client, [text]) }
    }
    let own = try Self.client("header_style: Own\n" + Self.key)
    let isOwn = text.lowercased().hasPrefix("own ")
    if isOwn { #expect(try Self.credential(own, [text])?.accessToken == Secret("ex-1")) }
  }

  @Test(arguments: ["", "key: { pattern: .* }\n"]) func theAddressOfAPageIsNoKey(_ pattern: String) throws {
    let client = try Self.client(pattern + Self.key)
    for text in ["https://api.test.example/keys", "Bearer http://api.test.example"] {
      #expect(throws: PasteFault.address("API key")) { try Self.credential(client, [text]) }
    }
  }

  @Test func aUserNameAndAPassword() throws {
    let text = "grant: basic\nendpoints: {}\nhosts: [api.test.example]"
    let client = try Self.client(text)
    let prompt = try #require(try Self.prompt(client))
    #expect(prompt.fields.map(\.label) == ["user name", "password"])
    #expect(prompt.fields.map(\.isSecret) == [false, true])
    let credential = try #require(try Self.credential(client, ["Ada", "p w:ä\n"]))
    #expect(credential.grant == .basic && credential.isTyped && credential.variables == ["username": "Ada"])
    #expect(
      try client.headerFields(presenting: credential, on: nil, nonce: Fixture.nonce)["Authorization"]
        == "Basic " + Base64.encode(Array("Ada:p w:ä".utf8)))
    #expect(client.accountName(in: credential) == "Ada")
    #expect(throws: PasteFault.pattern("user name")) { try Self.credential(client, ["a:b", "x"]) }
    let own = try Self.client("variables: { username: { at_login: true, help: mail address } }\n" + text)
    #expect(throws: PasteFault.pattern("mail address")) { try Self.credential(own, ["a:b", "x"]) }
    let given = try Self.client(text, ["username": "Ada"])
    #expect(try Self.prompt(given)?.fields.map(\.label) == ["password"])
  }

  @Test func severalValues() throws {
    let client = try Self.client(
      """
      grant: secrets
      variables:
        region: { at_login: true, choices: [eu, us] }
        id: { at_login: true, secret: true, help: access key }
        secret: { at_login: true, secret: true, optional: true }
      endpoints: {}
      header_style: { header: X-Id }
      extra_headers: { X-Secret: "{secret}", X-Region: "{region}" }
      hosts: ["{region}.test.example"]
      """)
    #expect(try Self.prompt(client)?.fields.map(\.label) == ["region", "access key", "secret"])
    let credential = try #require(try Self.credential(client, ["eu", "id-1", ""]))
    #expect(credential.accessToken == Secret("id-1"))
    #expect(credential.variables == ["region": "eu", "id": "id-1"])
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://eu.test.example/"))
    let sent = try client.presenting(credential, on: request, nonce: Fixture.nonce)
    #expect(sent.fields["X-Id"] == "id-1" && sent.fields["X-Region"] == "eu" && sent.fields["X-Secret"] == nil)
    #expect(throws: PasteFault.choice("region", ["eu", "us"])) { try Self.credential(client, ["asia", "id-1", ""]) }
  }

  /// A user who typed a wrong value need not type the others.
  @Test func theFirstWrongValueEndsThePrompts() throws {
    let client = try Self.client(
      """
      grant: secrets
      variables:
        port: { at_login: true, format: integer, help: the port }
        id: { at_login: true, secret: true }
      endpoints: {}
      hosts: [api.test.example]
      """)
    let prompt = try #require(try Self.prompt(client))
    #expect(prompt.accepts(["1"]) && prompt.accepts(["1", "id-1"]))
    #expect(!prompt.accepts(["x"]) && !prompt.accepts(["1", ""]))
    #expect(throws: PasteFault.format("the port", .integer)) { try prompt.values(of: ["x"]) }
  }

  /// A server reads the key up to the first colon.
  @Test func aKeyAsAUserNameHasNoColon() throws {
    let client = try Self.client(Self.key + "header_style: { password: x }")
    #expect(throws: PasteFault.colon("API key")) { try Self.credential(client, ["key:1"]) }
    #expect(try Self.credential(client, ["key-1"]) != nil)
    #expect(try Self.credential(Self.client(Self.key + "header_style: { username: x }"), ["key:1"]) != nil)
  }

  @Test func aKeyIsNeverRefreshed() throws {
    let client = try Self.client(Self.key + "key: { lifetime: 30d }")
    let credential = try #require(try Self.credential(client, ["key-1"]))
    #expect(credential.expiresAt == Fixture.now + .days(30) && credential.refreshedWith == nil)
    #expect(throws: OAuthError.notRefreshable) { try client.refreshRequest(credential, nonce: Fixture.nonce) }
    #expect(try Credential(decoding: credential.encoded) == credential)
  }

  @Test func aDryRunAsksForTheSameValues() throws {
    let client = try Self.client(
      "grant: basic\nendpoints: { identity: https://api.test.example/me }\nkey: { page: https://test.example/keys }")
    let showing = try Client(showing: client.descriptor, identifier: nil, hasSecret: false, variables: [:])
    let planned = try LoginRequests(.basic, showing, scope: [], hasToken: false)
    #expect(planned.typed.fields.map(\.label) == ["user name", "password"])
    #expect(planned.typed.page == "https://test.example/keys")
    #expect(planned.requests.map(\.kind) == [.identity])
    let field = HTTPField(name: "Authorization", value: "Basic base64(<username>:<access_token>)")
    #expect(planned.requests[0].fields.contains(field))
  }
}

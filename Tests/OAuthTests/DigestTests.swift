import CredmgrDescriptors
import CredmgrHTTP
import Testing

@testable import CredmgrOAuth

/// HTTP Digest (RFC 7616).
struct DigestTests {
  /// The example of RFC 7616, 3.9.1.
  private static let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
  private static let opaque = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
  private static let clientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"

  private static func challenge(_ algorithm: String, more: String = "qop=\"auth, auth-int\"") -> String {
    "Digest realm=\"http-auth@example.org\", \(more), algorithm=\(algorithm), nonce=\"\(nonce)\", opaque=\"\(opaque)\""
  }

  private static func response(_ challenges: [String], status: Int = 401) -> HTTPResponse {
    HTTPResponse(status: status, fields: HTTPFields(challenges.map { HTTPField(name: "WWW-Authenticate", value: $0) }))
  }

  private static func client(_ style: String = "Digest", grant: String = "basic") throws -> Client {
    let text = "grant: \(grant)\nendpoints: {}\nheader_style: \(style)\nhosts: [www.example.org]\n"
    return try Client(descriptor: Fixture.descriptor(text), identifier: "", secret: nil, variables: [:])
  }

  private static func credential(name: String = "Mufasa") -> Credential {
    var credential = Fixture.credential("Circle of Life", grant: .basic)
    credential.variables = ["username": name]
    return credential
  }

  /// Presents the credential after an answer with these challenges; `nil` if they do not lead to a second try.
  private static func answer(
    _ challenges: [String], client: Client? = nil, credential: Credential = credential(),
    url: String = "https://www.example.org/dir/index.html", method: String = "GET"
  ) throws -> String? {
    let client = try client ?? Self.client()
    let first = RequestNonce(timestamp: Fixture.now, text: clientNonce)
    let request = HTTPRequest(method: method, uri: try URI(parsing: url))
    let unsigned = try client.presenting(credential, on: request, nonce: first)
    #expect(unsigned.fields["Authorization"] == nil && unsigned.uri == request.uri && unsigned.body == [])
    let binding = client.binding(of: credential.grant)
    guard let second = binding.nonce(demandedBy: response(challenges), after: first) else { return nil }
    return try client.presenting(credential, on: request, nonce: second).fields["Authorization"]
  }

  @Test(arguments: [
    ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
  ]) func theExampleOfTheRFC(_ algorithm: String, _ digest: String) throws {
    #expect(
      try Self.answer([Self.challenge(algorithm)])
        == "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", uri=\"/dir/index.html\", "
        + "algorithm=\(algorithm), nonce=\"\(Self.nonce)\", nc=00000001, cnonce=\"\(Self.clientNonce)\", qop=auth, "
        + "response=\"\(digest)\", opaque=\"\(Self.opaque)\"")
  }

  @Test func theStrongerAlgorithmIsChosen() throws {
    let challenges = ["Basic realm=\"x\"", Self.challenge("MD5"), Self.challenge("sha-256")]
    #expect(try Self.answer(challenges)?.contains("algorithm=SHA-256") == true)
    #expect(try Self.answer([Self.challenge("MD5").replacing("algorithm=MD5, ", with: "")])?.contains("8ca5") == true)
  }

  @Test(arguments: [
    "Basic realm=\"x\"", challenge("SHA-512-256"), challenge("MD5-sess"), challenge("MD5", more: "qop=\"auth-int\""),
    challenge("MD5", more: "stale=false"), "Digest", "Digest qop=auth", "Digest realm=\"a\", qop=auth, nonce=\"\"",
    challenge("MD5").replacing("realm=", with: "name="),
  ]) func otherChallenges(_ challenge: String) throws { #expect(try Self.answer([challenge]) == nil) }

  @Test func onlyOneRepetitionAndOnlyAfter401() throws {
    let binding = try Self.client().binding(of: .basic)
    let nonce = Fixture.nonce
    for status in [200, 403, 407] {
      #expect(binding.nonce(demandedBy: Self.response([Self.challenge("MD5")], status: status), after: nonce) == nil)
    }
    let next = binding.nonce(demandedBy: Self.response([Self.challenge("MD5")]), after: nonce)
    #expect(next?.text == nonce.text && next?.timestamp == nonce.timestamp)
  }

  @Test func theTargetAndTheMethodCount() throws {
    let url = "https://www.example.org/dir/index.html"
    let plain = try Self.answer([Self.challenge("MD5")])
    let query = try #require(try Self.answer([Self.challenge("MD5")], url: url + "?a=%20b&c#d"))
    #expect(query.contains("uri=\"/dir/index.html?a=%20b&c\""))
    #expect(try query != plain && Self.answer([Self.challenge("MD5")], method: "HEAD") != plain)
    #expect(try Self.answer([Self.challenge("MD5")], url: "https://www.example.org")?.contains("uri=\"/\"") == true)
  }

  /// Quotes in what the server sends, and in the name, stay inside of their quoted strings (RFC 9110, 5.6.4).
  @Test func quotedTexts() throws {
    let challenge = "Digest qop=auth, realm=\"a\\\"b\\\\c\", nonce=\"x, y=\\\"z\""
    let header = try #require(try Self.answer([challenge], credential: Self.credential(name: "Mu\"fasa")))
    #expect(header.hasPrefix("Digest username=\"Mu\\\"fasa\", realm=\"a\\\"b\\\\c\", uri="))
    #expect(header.contains("nonce=\"x, y=\\\"z\", nc="))
    let other = try #require(try Self.answer([challenge], credential: Self.credential(name: "Jäsøn")))
    #expect(other.hasPrefix("Digest username*=UTF-8''J%C3%A4s%C3%B8n, realm="))
    for name in ["a:b", "a\nb"] {
      #expect(throws: OAuthError.malformedHeader(name: "Authorization")) {
        try Self.answer([challenge], credential: Self.credential(name: name))
      }
    }
  }

  @Test func theTokenMayBeTheUserName() throws {
    let client = try Self.client("{ scheme: digest, password: \"\" }", grant: "api_key")
    let credential = Fixture.credential("key-1", grant: .apiKey)
    #expect(
      try Self.answer([Self.challenge("MD5")], client: client, credential: credential)?
        .hasPrefix("Digest username=\"key-1\", ") == true)
  }

  /// The header exists only after a challenge, and other programs cannot use the password alone.
  @Test func noHeaderWithoutAChallenge() throws {
    let client = try Self.client()
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://www.example.org/"))
    for given in [nil, request] {
      #expect(throws: OAuthError.challengeNeeded) {
        try client.headerFields(presenting: Self.credential(), on: given, nonce: Fixture.nonce)
      }
    }
    #expect(!client.descriptor.binding(of: .basic).isUsableAlone)
    #expect(throws: OAuthError.foreignHost("other.example")) {
      try Self.answer([Self.challenge("MD5")], url: "https://other.example/")
    }
  }
}

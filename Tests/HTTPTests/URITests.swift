import Testing

@testable import CredmgrHTTP

struct URITests {
  @Test(
    arguments: [
      ("https://example.com", "https://example.com", "example.com", nil, ""),
      ("HTTPS://EXAMPLE.com:443/A%2fb", "https://example.com:443/A%2fb", "example.com", 443, "/A%2fb"),
      ("http://EXAMPLE.COM:80/r%20v/X?id=123", "http://example.com:80/r%20v/X?id=123", "example.com", 80, "/r%20v/X"),
      ("http://www.example.com:/", "http://www.example.com/", "www.example.com", nil, "/"),
      (
        "https://[123:db8:fd00:1000::5]:13000/", "https://[123:db8:fd00:1000::5]:13000/", "[123:db8:fd00:1000::5]",
        13000, "/"
      ), ("https://192.168.0.1:13000", "https://192.168.0.1:13000", "192.168.0.1", 13000, ""),
      ("https://my_host.example./@user", "https://my_host.example./@user", "my_host.example.", nil, "/@user"),
      ("ncipapp:/x", "ncipapp:/x", nil, nil, "/x"),
      ("urn:ietf:wg:oauth:2.0:oob", "urn:ietf:wg:oauth:2.0:oob", nil, nil, "ietf:wg:oauth:2.0:oob"),
      ("grokgithub://?a=b", "grokgithub://?a=b", "", nil, ""),
      ("com.example.app://callback/x", "com.example.app://callback/x", "callback", nil, "/x"),
      ("https://h/?filter[a]=b|c#d?e", "https://h/?filter[a]=b|c#d?e", "h", nil, "/"),
    ] as [(String, String, String?, UInt16?, String)])
  func parses(text: String, whole: String, host: String?, port: UInt16?, path: String) throws {
    let uri = try URI(parsing: text)
    #expect(uri.text == whole)
    #expect(uri.host == host)
    #expect(uri.port == port)
    #expect(uri.path == path)
    #expect(try URI(parsing: uri.text) == uri)
  }

  /// The first ten are cases of OAuth 1's base string URI (RFC 5849, section 3.4.1.2).
  @Test(
    arguments: [
      ("", .noScheme), ("example.com", .noScheme), ("http:", .noHost), ("http://", .noHost), ("http://:8080", .noHost),
      ("http://eg.com:0", .port), ("http://eg.com:-1", .port), ("http://eg.com:65536", .port),
      ("http://eg.com:BAD", .port), ("http://eg.com:42:42", .port), ("//example.com/", .noScheme), ("/path", .noScheme),
      ("1a:/", .noScheme), ("https://user@example.com/", .userInformation),
      ("https://user:pw@example.com/", .userInformation), ("https://example.com\\@evil.com/", .userInformation),
      ("https://example.com\\evil.com/", .character(0x5C)), ("https://example.com/a b", .character(0x20)),
      ("https://example.com/\r\nX: y", .character(0x0D)), ("https://example.com/?a=\n", .character(0x0A)),
      ("https://example.com/\u{7F}", .character(0x7F)), ("https://example.com/\0", .character(0)),
      ("https://example.com/é", .character(0xC3)), ("https://exämple.com/", .character(0xC3)),
      ("https://example.com/?a=\\", .character(0x5C)), ("https://example.com/<", .character(0x3C)),
      ("https://example.com/#a#b", .character(0x23)), ("https://example.com/%", .percentEscape),
      ("https://example.com/%4", .percentEscape), ("https://example.com/?%zz", .percentEscape),
      ("https://example.com/#%1g", .percentEscape), ("https://a..b/", .host), ("https://.a/", .host),
      ("https://a%41/", .host), ("https://./", .host), ("https://127.1/", .host), ("https://0x7f000001/", .host),
      ("https://2130706433/", .host), ("https://256.1.1.1/", .host), ("https://01.2.3.4/", .host),
      ("https://[::1/", .host), ("https://[::1]x/", .host), ("https://[1:2:3:4:5:6:7]/", .host),
      ("https://[1::2::3]/", .host), ("https://[::1%25eth0]/", .host), ("https://[:1:2:3:4:5:6:7]/", .host),
      ("https://[]/", .host), ("https://[1:2:3:4:5:6:7::8:9]/", .host), ("https://[::12345]/", .host),
      ("https://[:::]/", .host),
    ] as [(String, HTTPError.InvalidURI)])
  func refuses(text: String, reason: HTTPError.InvalidURI) {
    let error = #expect(throws: HTTPError.self) { try URI(parsing: text) }
    guard case .invalidURI(_, let found) = error else {
      Issue.record("another error: \(String(describing: error))")
      return
    }
    #expect(found == reason)
  }

  @Test(arguments: [
    "https://[::]/", "https://[::1]/", "https://[1::]/", "https://[1:2:3:4:5:6:7:8]/", "https://[1:2:3:4:5:6:7::]/",
    "https://[::ffff:1.2.3.4]/", "https://[1:2:3:4:5:6:1.2.3.4]/",
  ]) func knowsIPv6(text: String) throws { #expect(try URI(parsing: text).text == text) }

  @Test(arguments: [
    ("https://user:secret@example.com/?code=secret", "…@example.com/"), ("x y?secret", "x y"),
    ("https://h:bad/p#secret", "https://h:bad/p"),
  ]) func errorsShowNoSecrets(text: String, shown: String) {
    let error = #expect(throws: HTTPError.self) { try URI(parsing: text) }
    guard case .invalidURI(let text, _) = error else {
      Issue.record("another error")
      return
    }
    #expect(text == shown)
  }

  @Test func descriptionHidesQueryAndFragment() throws {
    let uri = try URI(parsing: "https://h/p?code=secret#token=secret")
    #expect("\(uri)" == "https://h/p?…#…")
    var dumped = ""
    dump(uri, to: &dumped)
    #expect(!dumped.contains("secret"))
    #expect(!String(reflecting: uri).contains("secret"))
  }

  @Test(arguments: [
    ("http://127.0.0.1:80/", true), ("http://127.255.0.9", true), ("http://[::1]:1/", true),
    ("http://LOCALHOST/", true), ("http://localhost.example.com/", false), ("http://127.0.0.1.example.com/", false),
    ("http://128.0.0.1/", false), ("http://[::2]/", false), ("urn:localhost", false),
  ]) func loopbackByTextAlone(text: String, expected: Bool) throws {
    #expect(try URI(parsing: text).isLoopback == expected)
  }

  @Test(
    arguments: [
      ("https://h:443/x", "https://h", 443), ("http://h:80/", "http://h", 80), ("http://h:443/", "http://h:443", 443),
      ("https://h", "https://h", 443), ("app://x", "app://x", nil), ("urn:a", "urn:", nil),
    ] as [(String, String, UInt16?)])
  func originAndPort(text: String, origin: String, port: UInt16?) throws {
    let uri = try URI(parsing: text)
    #expect(uri.origin == origin)
    #expect(uri.effectivePort == port)
  }

  @Test(arguments: [
    ("https://h/p", "https://h/p?a%20b=c%2Bd&e="), ("https://h/p?", "https://h/p?a%20b=c%2Bd&e="),
    ("https://h/p?x=%2f&y", "https://h/p?x=%2f&y&a%20b=c%2Bd&e="),
    ("https://h/p?x=1&", "https://h/p?x=1&a%20b=c%2Bd&e="), ("https://h#f", "https://h?a%20b=c%2Bd&e=#f"),
  ]) func addsQuery(text: String, expected: String) throws {
    let uri = try URI(parsing: text)
    #expect(uri.adding(query: [("a b", "c+d"), ("e", "")]).text == expected)
    #expect(uri.adding(query: []) == uri)
  }

  @Test func addsEncodedQuery() throws {
    let uri = try URI(parsing: "https://h/p?x=1")
    #expect(try uri.adding(encodedQuery: "scope=a:b+c").text == "https://h/p?x=1&scope=a:b+c")
    #expect(throws: HTTPError.invalidURI(text: "https://h/p", reason: .character(0x23))) {
      try uri.adding(encodedQuery: "a=#")
    }
    #expect(throws: HTTPError.invalidURI(text: "https://h/p", reason: .percentEscape)) {
      try uri.adding(encodedQuery: "a=%")
    }
  }

  @Test func replacesParts() throws {
    let uri = try URI(parsing: "http://h:1/p?q#f")
    #expect(uri.replacing(port: 2).text == "http://h:2/p?q#f")
    #expect(uri.replacing(port: nil).text == "http://h/p?q#f")
    #expect(uri.with(fragment: nil).text == "http://h:1/p?q")
    #expect(uri.with(fragment: "a b%20c%").text == "http://h:1/p?q#a%20b%20c%25")
    #expect(uri.withoutQueryAndFragment.text == "http://h:1/p")
    #expect(try URI(parsing: "urn:a").replacing(port: 5).text == "urn:a")
    #expect(try URI(parsing: "http://h?a=1&b=%20").queryParameters == [("a", "1"), ("b", " ")])
  }
}

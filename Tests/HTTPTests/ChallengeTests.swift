import CredmgrHTTP
import Testing

/// Challenges of `WWW-Authenticate` (RFC 9110, 11.6.1), as servers really write them.
struct ChallengeTests {
  private static func written(_ values: [String]) -> [String] {
    Challenge.all(in: values).map { challenge in
      ([challenge.scheme] + challenge.parameters.pairs.map { $0.name + "=" + $0.value }).joined(separator: " | ")
    }
  }

  static let challenges: [(String, [String])] = [
    (#"OAuth realm="a, b=c", oauth_problem="x""#, ["oauth | realm=a, b=c | oauth_problem=x"]),
    ("Negotiate", ["negotiate"]), (#"OAuth a=""#, ["oauth | a="]),
    (#"Bearer error=invalid_token,scope="a b""#, ["bearer | error=invalid_token | scope=a b"]),
    (#"Basic realm="x", OAuth oauth_problem=y"#, ["basic | realm=x", "oauth | oauth_problem=y"]),
    // RFC 9110, 11.6.1
    (
      #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#,
      ["basic | realm=simple", #"newauth | realm=apps | type=1 | title=Login to "apps""#]
    ),
    ("Negotiate YIIabc/+==, NTLM", ["negotiate", "ntlm"]),
    ("Bearer , ,realm=x ,, scope = \"a\"", ["bearer | realm=x | scope=a"]),
    (
      "Bearer resource_metadata=https://a.example/x?y=z, BEARER Scope=\"b\"",
      ["bearer | resource_metadata=https://a.example/x?y=z", "bearer | scope=b"]
    ),
    ("", []), (", ,", []), ("=x, \"quoted, text\" Bearer realm=x", []), ("realm=x", ["realm"]),
    ("Bearer error=\"a\\", ["bearer | error=a\\"]),
    ("Bearer \u{1} realm=x, é=y, Basic realm=z", ["bearer", "basic | realm=z"]),
  ]

  @Test(arguments: challenges) func challenge(_ text: String, _ expected: [String]) {
    #expect(Self.written([text]) == expected)
  }

  @Test func severalFields() {
    #expect(Self.written(["Basic realm=\"x\"", "Bearer scope=\"a\""]) == ["basic | realm=x", "bearer | scope=a"])
  }

  /// RFC 9110, 11.2: a parameter occurs only once, so which value counts is unknown.
  @Test func aRepeatedParameterHasNoValue() {
    let challenge = Challenge.all(in: ["Bearer scope=a, scope=b, error=c"])[0]
    #expect(challenge["scope"] == nil)
    #expect(challenge["error"] == "c")
  }
}

import CredmgrDescriptors
import Testing

@Suite struct ErrorRulesTests {
  static let rules: ErrorRules = {
    var rules = ErrorRules()
    rules.success = ["ok", "0"]
    rules.meanings = [
      "authorization pending": "authorization_pending", "slow down": "slow_down",
      "authorization invalid": "invalid_grant", "BAD_TOKEN": "invalid_token",
    ]
    return rules
  }()

  /// L2P's texts as its clients have seen them, with variations.
  static let codes: [(code: String, canonical: String?)] = [
    ("ok", nil), ("OK", nil), (" ok ", nil), ("ok.", nil), ("0", nil),
    ("error: authorization pending.", "authorization_pending"),
    ("error: authorization pending", "authorization_pending"),
    ("authorization pending", "authorization_pending"),
    ("Error:  Authorization Pending.. ", "authorization_pending"),
    ("error:authorization pending", "authorization_pending"),
    ("error: slow down", "slow_down"), ("slow down.", "slow_down"),
    ("authorization invalid.", "invalid_grant"), ("bad_token", "invalid_token"),
    // Codes without a given meaning stay unchanged.
    ("error: device code invalid.", "error: device code invalid."), ("authorization_pending", "authorization_pending"),
    ("invalid_client", "invalid_client"), ("authorization pending now", "authorization pending now"), ("", ""),
  ]

  @Test(arguments: codes) func codesBecomeThoseOfTheRFC(_ code: String, _ canonical: String?) {
    #expect(Self.rules.canonical(code) == canonical)
  }

  @Test func codesStayTheSameWithoutRules() {
    #expect(ErrorRules().canonical("ok") == "ok")
    #expect(ErrorRules().code == ["error", "oauth_problem"].map { FieldPath($0) })
    #expect(ErrorRules().description == ["error_description", "oauth_problem_advice"].map { FieldPath($0) })
  }
}

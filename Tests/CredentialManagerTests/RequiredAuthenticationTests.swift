import CredmgrHTTP
import Testing

@testable import CredmgrCredentialManager

/// Reads what a server demands of the user's authentication (RFC 9470, 3).
struct RequiredAuthenticationTests {
  private static func options(_ challenge: String) -> [String]? {
    RequiredAuthentication(HTTPResponse(status: 401, fields: ["WWW-Authenticate": challenge]))?.loginOptions
  }

  static let demands: [(String, [String]?)] = [
    // The examples of RFC 9470, 3.
    (
      #"Bearer error="insufficient_user_authentication", error_description="A different authentication level is required", acr_values="myACR""#,
      ["--step-up", "--acr", "myACR"]
    ),
    (
      #"Bearer error="insufficient_user_authentication", error_description="More recent authentication is required", max_age="5""#,
      ["--step-up", "--max-age", "5s"]
    ),
    (
      #"Basic realm="x", DPoP error="insufficient_user_authentication", acr_values="a b", max_age=0, scope="write""#,
      ["--step-up", "--scope", "write", "--acr", "a", "--acr", "b", "--max-age", "0s"]
    ),
    // A level must not look like an option, and a time must be one.
    (
      #"Bearer error="insufficient_user_authentication", acr_values="--yes x", max_age="-1""#,
      ["--step-up", "--acr", "x"]
    ),
    (#"Bearer error="insufficient_user_authentication", max_age="99999999999999999999""#, ["--step-up"]),
    (
      "Bearer error=\"insufficient_user_authentication\", acr_values=\"\(String(repeating: "s", count: 257)) x\"",
      ["--step-up", "--acr", "x"]
    ),
    (#"Bearer error="invalid_token", acr_values="a""#, nil), ("garbage \u{1}", nil),
  ]

  @Test(arguments: demands) func demand(_ challenge: String, _ expected: [String]?) {
    #expect(Self.options(challenge) == expected)
  }
}

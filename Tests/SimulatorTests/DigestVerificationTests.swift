import CredmgrHTTP
import Testing

@testable import CredmgrSimulator

/// The digests were computed by a program that shares no code with credmgr.
struct DigestVerificationTests {
  private static func header(_ algorithm: String = "MD5", response: String, more: String = "") -> String {
    "Digest username=\"ada\", realm=\"simulator\", nonce=\"n1\", uri=\"/a/b?c=%20d\", algorithm=\(algorithm), "
      + "cnonce=\"c1\", nc=00000001, qop=auth, response=\"\(response)\", opaque=\"o\"" + more
  }

  private static let md5 = "c1de0dc7a9b0c087245f5dd715102aa2"
  private static let sha256 = "6eeb428e07292ad16af726f7aeaea83e6f3cf9e5a5f08bd2d710b8c255b56a31"

  private static func isMade(
    _ header: String, password: String = "s3cret", method: String = "GET", target: String = "/a/b?c=%20d"
  ) throws -> Bool {
    let request = HTTPRequest(method: method, uri: try URI(parsing: "http://127.0.0.1:8080" + target))
    return DigestVerification(header)?.isMade(by: password, for: request) == true
  }

  @Test func digestsOfAnotherProgram() throws {
    #expect(try Self.isMade(Self.header(response: Self.md5)))
    #expect(try Self.isMade(Self.header("SHA-256", response: Self.sha256)))
  }

  @Test func otherRequests() throws {
    let header = Self.header(response: Self.md5)
    #expect(try !Self.isMade(header, password: "other"))
    #expect(try !Self.isMade(header, method: "POST"))
    #expect(try !Self.isMade(header, target: "/a/b"))
    #expect(try !Self.isMade(Self.header("SHA-256", response: Self.md5)))
    #expect(try !Self.isMade(Self.header("MD5-sess", response: Self.md5)))
    for (part, other) in [
      ("ada", "bob"), ("n1", "n2"), ("c1", "c2"), ("qop=auth", "qop=auth-int"), ("nc=00000001", "nc=00000002"),
      ("simulator", "other"), ("\"o\"", "\"p\""),
    ] { #expect(try !Self.isMade(header.replacing(part, with: other)), "\(part)") }
    #expect(try !Self.isMade(Self.header(response: Self.md5, more: ", nonce=\"n1\"")))
    #expect(DigestVerification("Basic YTpi") == nil)
  }
}

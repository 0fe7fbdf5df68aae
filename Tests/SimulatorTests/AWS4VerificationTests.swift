import CredmgrCryptography
import CredmgrHTTP
import Testing

@testable import CredmgrSimulator

/// The signatures were computed by a program that shares no code with credmgr.
struct AWS4VerificationTests {
  private static let ses = "6076a22f58b60f56874e24ed5c624dc57f8c57e622134ddb26cd032ba9f6bdb8"
  private static let s3 = "bcdea87130489939f9b60d725d4e1d731266b64780d79cedb3a8e89500b109ba"

  private static func request(
    _ method: String = "POST", to target: String = "/a%20b//c/?b=%20&a=2&a=1", type: String = "application/json",
    _ body: String = "{\"x\":1}"
  ) throws -> HTTPRequest {
    var request = HTTPRequest(method: method, uri: try URI(parsing: "http://127.0.0.1:8080" + target))
    request.body = Array(body.utf8)
    request.fields.set("Content-Type", type)
    request.fields.set("X-Amz-Content-Sha256", Hexadecimal.encode(HashAlgorithm.sha256.digest(request.body)))
    request.fields.set("X-Amz-Date", "20261101T120000Z")
    return request
  }

  private static func isMade(
    _ signature: String, _ service: String, secret: String = "secret-1", without name: String = "",
    for request: HTTPRequest
  ) -> Bool {
    let names = ["content-type", "host", "x-amz-content-sha256", "x-amz-date"].filter { $0 != name }
    let header =
      "AWS4-HMAC-SHA256 Credential=AKIA1/20261101/eu-central-1/\(service)/aws4_request, "
      + "SignedHeaders=\(names.joined(separator: ";")), Signature=\(signature)"
    return AWS4Verification(header)?.isMade(by: secret, for: request) == true
  }

  @Test func signaturesOfAnotherProgram() throws {
    #expect(try Self.isMade(Self.ses, "ses", for: Self.request()))
    #expect(try Self.isMade(Self.s3, "s3", for: Self.request()))
  }

  @Test func anotherRequest() throws {
    #expect(try !Self.isMade(Self.ses, "sts", for: Self.request()))
    #expect(try !Self.isMade(Self.ses, "ses", secret: "secret-2", for: Self.request()))
    #expect(try !Self.isMade(Self.ses, "ses", for: Self.request("PUT")))
    #expect(try !Self.isMade(Self.ses, "ses", for: Self.request(to: "/a%20b/?b=%20&a=2&a=1")))
    #expect(try !Self.isMade(Self.ses, "ses", for: Self.request(to: "/a%20b//c/?b=%20&a=2")))
    #expect(try !Self.isMade(Self.ses, "ses", for: Self.request(type: "text/plain")))
    #expect(try !Self.isMade(Self.ses, "ses", for: Self.request("POST", "{}")))
    for name in ["host", "x-amz-date"] {
      #expect(try !Self.isMade(Self.ses, "ses", without: name, for: Self.request()))
    }
    #expect(AWS4Verification("AWS4-HMAC-SHA256 Credential=AKIA1/20261101/eu-central-1/ses, Signature=x") == nil)
    #expect(AWS4Verification("Bearer x") == nil)
  }
}

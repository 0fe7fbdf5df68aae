import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrPlatform
import CredmgrText
import Testing

@testable import CredmgrOAuth

struct AWS4SignatureTests {
  struct Vector: CustomTestStringConvertible {
    let value: JSONValue
    var testDescription: String { text("method") + " " + text("url") }
    func text(_ name: String) -> String { value[name]?.text ?? "" }
  }

  static let vectors: [Vector] = {
    let path = String(#filePath.dropLast("AWS4SignatureTests.swift".count)) + "Vectors/aws4.json"
    let whole = (try? File.read(path, limit: 1 << 20)).flatMap { try? JSONValue.parse($0) }
    return (whole?["vectors"]?.elements ?? []).map { Vector(value: $0) }
  }()

  /// 2015-08-30T12:36:00Z
  private static let nonce = RequestNonce(timestamp: 1_440_938_160, text: "n")

  private static func client(_ rules: String, hosts: String = "\"*.amazonaws.com\"") throws -> Client {
    let text = """
      grant: secrets
      endpoints: {}
      variables: { session: { at_login: true, secret: true, optional: true }, region: { default: us-east-1 } }
      aws4: { key_id: AKIDEXAMPLE, session_token: "{session}", \(rules) }
      hosts: [\(hosts)]
      """
    return try Client(descriptor: Fixture.descriptor(text), identifier: "", secret: nil, variables: [:])
  }

  private static func signed(
    _ request: HTTPRequest,
    _ rules: String = "region: '{region}', "
      + "services: { ses: [email, mail], awsssoportal: portal.sso, market: ['*-m2', m3] }, families: ['*-chime', geo-*]",
    hosts: String = "\"*.amazonaws.com\", \"*.amazonaws.com:8443\", \"*.api.aws\"", session: String = ""
  ) throws -> HTTPRequest {
    var credential = Fixture.credential("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", grant: .secrets)
    if !session.isEmpty { credential.variables = ["session": session] }
    return try client(rules, hosts: hosts).presenting(credential, on: request, nonce: nonce)
  }

  @Test(arguments: vectors) func aVectorOfAnotherImplementation(_ vector: Vector) throws {
    var request = HTTPRequest(
      method: vector.text("method"), uri: try URI(parsing: vector.text("url")), body: Array(vector.text("body").utf8))
    for member in vector.value["headers"]?.members ?? [] { request.fields.set(member.name, member.value.text ?? "") }
    let made = try Self.signed(request, session: vector.text("session_token"))
    let scope = "/20150830/\(vector.text("region"))/\(vector.text("service"))/aws4_request,"
    let header = try #require(made.fields["Authorization"])
    #expect(header.contains("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE" + scope))
    #expect(header.hasSuffix("Signature=" + vector.text("signature")))
    #expect(made.fields["X-Amz-Date"] == "20150830T123600Z")
    #expect(!made.wire.contains("wJalr"))
  }

  @Test func vectorsExist() { #expect(Self.vectors.count > 7) }

  @Test(arguments: [
    ("sts.amazonaws.com", "us-east-1/sts"), ("bucket.s3.amazonaws.com", "us-east-1/s3"),
    ("a.b.s3.eu-central-1.amazonaws.com", "eu-central-1/s3"), ("email.us-west-2.amazonaws.com", "us-west-2/ses"),
    ("s3-bucket-1.amazonaws.com", "us-east-1/s3-bucket-1"), ("eu-east-1.s3.amazonaws.com", "us-east-1/s3"),
    ("b.s3-us-west-2.amazonaws.com", "us-west-2/s3"), ("b.s3.dualstack.eu-west-1.amazonaws.com", "eu-west-1/s3"),
    ("b.s3express-usw2-az1.us-west-2.amazonaws.com", "us-west-2/s3express"),
    ("s3express-control.us-west-2.amazonaws.com", "us-west-2/s3express"),
    ("search-x-1.eu-west-1.es.amazonaws.com", "eu-west-1/es"), ("us-east-2.queue.amazonaws.com", "us-east-2/queue"),
    ("x.us-east-1.aoss.amazonaws.com", "us-east-1/aoss"),
    (
      "api.sagemaker.eusc-de-east-1.amazonaws.com",
      "eusc-de-east-1/sagemaker"
    ),
    ("vpce-1a-2b.sqs.eu-west-1.vpce.amazonaws.com", "eu-west-1/sqs"),
    ("bucket.vpce-1a-2b.s3.eu-west-1.vpce.amazonaws.com", "eu-west-1/s3"),
    ("sts-fips.us-east-2.amazonaws.com", "us-east-2/sts"), ("fips.batch.us-east-2.amazonaws.com", "us-east-2/batch"),
    ("runtime-fips.sagemaker.us-gov-west-1.amazonaws.com", "us-gov-west-1/sagemaker"),
    ("iam.us-gov.amazonaws.com", "us-gov-west-1/iam"), ("portal.sso.eu-west-1.amazonaws.com", "eu-west-1/awsssoportal"),
    ("sso.eu-west-1.amazonaws.com", "eu-west-1/sso"), ("ec2.eu-west-1.api.aws", "eu-west-1/ec2"),
    ("route53.global.api.aws", "us-east-1/route53"), ("mail-fips.us-west-2.amazonaws.com", "us-west-2/ses"),
    ("voice-chime.eu-west-1.amazonaws.com", "eu-west-1/chime"), ("geo-x-y.eu-west-1.api.aws", "eu-west-1/geo"),
    ("a-m2.eu-west-1.amazonaws.com", "eu-west-1/market"), ("m3.eu-west-1.amazonaws.com", "eu-west-1/market"),
    ("-m2.eu-west-1.amazonaws.com", "eu-west-1/-m2"), ("geo-x.s3.eu-west-1.amazonaws.com", "eu-west-1/s3"),
    ("geo.eu-west-1.amazonaws.com", "eu-west-1/geo"),
  ]) func theHostNamesServiceAndRegion(_ host: String, _ scope: String) throws {
    let made = try Self.signed(HTTPRequest(method: "GET", uri: try URI(parsing: "https://\(host)/")))
    #expect(made.fields["Authorization"]?.contains("/20150830/\(scope)/aws4_request") == true)
  }

  @Test func theDescriptorNamesServiceAndRegion() throws {
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://acme.store.example/"))
    let made = try Self.signed(request, "region: auto, service: s3", hosts: "acme.store.example")
    #expect(made.fields["Authorization"]?.contains("/auto/s3/aws4_request") == true)
  }

  /// The user may name the service of hosts whose names do not tell it.
  @Test(arguments: [
    ("abc.amazonaws.com", "us-east-1/execute-api"), ("sts.eu-west-1.amazonaws.com", "eu-west-1/sts"),
  ]) func theUserNamesTheService(_ host: String, _ scope: String) throws {
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://\(host)/"))
    let made = try Self.signed(request, "region: '{region}', global_service: execute-api")
    #expect(made.fields["Authorization"]?.contains("/20150830/\(scope)/aws4_request") == true)
  }

  /// Only S3 accepts a body that is not signed, and only TLS protects such a body.
  @Test func bodiesAreSignedUnlessS3StreamsThem() throws {
    for (host, isSigned) in [("s3.eu-west-1.amazonaws.com", false), ("sqs.eu-west-1.amazonaws.com", true)] {
      let request = HTTPRequest(method: "PUT", uri: try URI(parsing: "https://\(host)/b/x"))
      let client = try Self.client("region: '{region}'")
      #expect(client.signsBody(of: request, with: Fixture.credential()) == isSigned)
      let sum = try Self.signed(request).fields["X-Amz-Content-Sha256"]
      #expect((sum == "UNSIGNED-PAYLOAD") != isSigned)
    }
  }

  @Test func aPlusInAQueryIsASpace() throws {
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://iam.amazonaws.com/?a=1+2"))
    #expect(try Self.signed(request).uri.query == "a=1%202")
  }

  @Test func aHeaderNeedsTheAddress() throws {
    let client = try Self.client("region: '{region}'")
    #expect(throws: OAuthError.signatureNeedsURL) {
      try client.headerFields(presenting: Fixture.credential(), on: nil, nonce: Self.nonce)
    }
    let request = HTTPRequest(method: "GET", uri: try URI(parsing: "https://iam.amazonaws.com/"))
    let fields = try client.headerFields(presenting: Fixture.credential(), on: request, nonce: Self.nonce)
    #expect(fields.map(\.name).sorted() == ["Authorization", "X-Amz-Content-Sha256", "X-Amz-Date"])
    let ambiguous = HTTPRequest(method: "GET", uri: try URI(parsing: "https://iam.amazonaws.com/?a=b+c"))
    #expect(throws: OAuthError.ambiguousQuery) {
      try client.headerFields(presenting: Fixture.credential(), on: ambiguous, nonce: Self.nonce)
    }
  }
}

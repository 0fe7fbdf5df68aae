import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth

/// A signed request from another implementation or RFC 5849.
struct SignatureVector: CustomTestStringConvertible, Sendable {
  let name: String
  let request: HTTPRequest
  let parameters: FormParameters
  let method: SignatureMethod
  let clientSecret: String
  let tokenSecret: String
  let baseString: String?
  /// Whether to sign the text itself, instead of a request.
  let isFixed: Bool
  let signature: String

  var testDescription: String { name }

  static func all() throws -> [SignatureVector] { try Vectors.load("oauth1").map { try Self($0) } }

  private init(_ value: JSONValue) throws {
    func text(_ key: String) throws -> String { try #require(value[key]?.text, "\(key)") }
    name = try text("name")
    method = try #require(SignatureMethod(rawValue: text("signature_method")))
    clientSecret = value["rsa_private_key_pem"]?.text ?? value["consumer_secret"]?.text ?? ""
    tokenSecret = value["token_secret"]?.text ?? ""
    baseString = value["expected_base_string"]?.text
    isFixed = value["base_string_fixed"] == .boolean(true)
    signature = try text("expected_signature")
    var request = HTTPRequest(method: try text("method"), uri: try URI(parsing: text("url")))
    let body = try Self.pairs(value["params"])
    if !body.isEmpty {
      request.fields.set("Content-Type", "application/x-www-form-urlencoded")
      request.body = Array(body.encoded.utf8)
    }
    self.request = request
    var parameters: FormParameters = [
      ("oauth_consumer_key", try text("consumer_key")), ("oauth_signature_method", method.rawValue),
    ]
    for key in ["token", "timestamp", "nonce"] {
      if let text = value[key]?.text { parameters.append("oauth_" + key, text) }
    }
    parameters.append(contentsOf: try Self.pairs(value["oauth_extra"]))
    self.parameters = parameters
  }

  private static func pairs(_ value: JSONValue?) throws -> FormParameters {
    FormParameters(
      try #require(value?.elements).map { pair in
        let texts = try #require(pair.elements).compactMap(\.text)
        try #require(texts.count == 2)
        return .init(name: texts[0], value: texts[1])
      })
  }
}

struct OAuth1SignatureTests {
  @Test(arguments: try SignatureVector.all()) func baseString(_ vector: SignatureVector) {
    guard let expected = vector.baseString, !vector.isFixed else { return }
    #expect(OAuth1Signature.baseString(vector.request, vector.parameters) == expected)
  }

  @Test(arguments: try SignatureVector.all()) func signature(_ vector: SignatureVector) throws {
    let baseString =
      vector.isFixed ? try #require(vector.baseString) : OAuth1Signature.baseString(vector.request, vector.parameters)
    let signature = try OAuth1Signature.sign(
      baseString, vector.method, clientSecret: Secret(vector.clientSecret), tokenSecret: Secret(vector.tokenSecret))
    #expect(signature == vector.signature)
  }

  @Test func everyMethodOfTheRFCHasAVector() throws {
    let methods = Set(try SignatureVector.all().map(\.method))
    #expect(methods.isSuperset(of: [.hmacSHA1, .hmacSHA256, .rsaSHA1, .plaintext]))
  }

  /// The signature in RFC 5849, 3.4.1.1 is wrong; erratum 2550 corrects it.
  @Test func theErratumAndNotTheRFC() throws {
    let vector = try #require(try SignatureVector.all().first { $0.name == "rfc5849-3.4.1-erratum2550" })
    #expect(vector.signature == "r6/TJjbCOr97/+UU0NsvSne7s5g=")
    let signature = try OAuth1Signature.sign(
      OAuth1Signature.baseString(vector.request, vector.parameters), .hmacSHA1,
      clientSecret: Secret(vector.clientSecret), tokenSecret: Secret(vector.tokenSecret))
    #expect(signature != "bYT5CMsGcbgUdFHObYMEfcx6bsw=")
  }

  @Test(arguments: [SignatureMethod.hmacSHA512, .rsaSHA256, .rsaSHA512]) func longerHashes(_ method: SignatureMethod)
    throws
  {
    let vector = try #require(try SignatureVector.all().first { $0.method == (method.isRSA ? .rsaSHA1 : .hmacSHA1) })
    let text = "GET&https%3A%2F%2Fexample.com%2F&a%3Db"
    let signature = try OAuth1Signature.sign(
      text, method, clientSecret: Secret(vector.clientSecret), tokenSecret: Secret("t"))
    let bytes = try #require(Base64.decode(signature))
    if method.isRSA, let hash = method.hash {
      let key = try RSAPrivateKey(pem: Secret(vector.clientSecret))
      #expect(key.isValid(signature: bytes, for: Array(text.utf8), hash))
    } else {
      #expect(bytes.count == 64)
      #expect(
        bytes
          == HashAlgorithm.sha512.authenticationCode(
            for: Array(text.utf8), key: Array((vector.clientSecret + "&t").utf8)))
    }
  }

  @Test func rsaWithoutAKey() {
    #expect(throws: OAuthError.clientKeyMalformed) {
      try OAuth1Signature.sign("bs", .rsaSHA1, clientSecret: Secret("no key"), tokenSecret: Secret(""))
    }
  }

  @Test(arguments: try Vectors.load("oauth1-normalization", "percent_encoding"))
  func percentEncoding(_ vector: JSONValue) throws {
    #expect(try PercentEncoding.encode(#require(vector["in"]?.text)) == vector["out"]?.text)
  }

  @Test(
    arguments: try Vectors.load(
      "oauth1-normalization", "normalized_parameters"))
  func normalizedParameters(_ vector: JSONValue) throws {
    let parameters = FormParameters(decoding: try #require(vector["query"]?.text))
    #expect(parameters.normalized == vector["normalized"]?.text)
  }

  @Test(arguments: try Vectors.load("oauth1-normalization", "base_string_uri"))
  func baseStringURI(_ vector: JSONValue) throws {
    let uri = try URI(parsing: #require(vector["url"]?.text))
    #expect(OAuth1Signature.baseStringURI(uri) == vector["base_uri"]?.text)
  }

  @Test(arguments: try Vectors.load("oauth1-normalization", "base_string_uri_errors"))
  func noBaseStringURI(_ vector: JSONValue) throws {
    let text = try #require(vector.text)
    #expect(throws: HTTPError.self) { try URI(parsing: text) }
  }

  @Test(
    arguments: try Vectors.load(
      "oauth1-normalization", "base_strings"))
  func baseStringWithoutParameters(_ vector: JSONValue) throws {
    let request = HTTPRequest(
      method: try #require(vector["method"]?.text), uri: try URI(parsing: #require(vector["url"]?.text)))
    #expect(OAuth1Signature.baseString(request, []) == vector["base_string"]?.text)
  }

  /// Extensions are up to the caller: a body that is not a form is not part of the base string, and its hash is one
  /// more parameter.
  @Test(
    arguments: try Vectors.load(
      "oauth1-normalization", "body_hash"))
  func aBodyOfAnotherType(_ vector: JSONValue) throws {
    func text(_ key: String) throws -> String { try #require(vector[key]?.text, "\(key)") }
    let body = Array(try text("body").utf8)
    #expect(try Base64.encode(HashAlgorithm.sha1.digest(body)) == text("expected_body_hash"))
    var request = HTTPRequest(method: try text("method"), uri: try URI(parsing: text("url")), body: body)
    if let type = vector["content_type"]?.text { request.fields.set("Content-Type", type) }
    let parameters: FormParameters = [
      ("oauth_body_hash", try text("expected_body_hash")), ("oauth_consumer_key", try text("consumer_key")),
      ("oauth_nonce", try text("nonce")), ("oauth_signature_method", try text("signature_method")),
      ("oauth_timestamp", try text("timestamp")), ("oauth_token", try text("token")), ("oauth_version", "1.0"),
    ]
    #expect(try OAuth1Signature.baseString(request, parameters) == text("expected_base_string"))
  }
}

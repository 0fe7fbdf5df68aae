import CredentialManager
import Cryptography
import HTTP
import JSON
import OAuth
import Platform
import Descriptors
import Vault

/// Steps that are too short to be seen in the time of a process.
enum Micro {
  /// A JSON object: the name of each step, and the median of its microseconds.
  ///
  /// - Parameter keyFile: an RSA private key in PEM.
  static func report(providers folder: String, keyFile: String) throws -> String {
    let random = SystemRandomSource()
    let key = try SealingKey(random: random)
    let plaintext = Filling.credential(random).encoded
    let associatedData = random.bytes(32)
    let nonce = random.bytes(SealingKey.nonceByteCount)
    let sealed = try key.seal(plaintext, associatedData: associatedData, nonce: nonce)

    let request = HTTPRequest(
      method: "GET", uri: try URI(parsing: "https://api.example.org/v1/photos?size=original&file=vacation.jpg"))
    let parameters: FormParameters = [
      ("oauth_consumer_key", "dpf43f3p2l4k3l03"), ("oauth_token", "nnch734d00sl2jdk"),
      ("oauth_signature_method", "HMAC-SHA1"), ("oauth_timestamp", "1191242096"),
      ("oauth_nonce", "kllo9940pd9333jh"), ("oauth_version", "1.0"),
    ]
    let rsaKey = Secret(bytes: try File.read(keyFile, limit: 1 << 16))
    let (clientSecret, tokenSecret) = (Secret("kd94hf93k423kf44"), Secret("pfkkdhi9sl3r4s00"))

    var steps: [JSONValue.Member] = [
      .init("record_bytes", .integer(Int64(plaintext.count))),
      .init("seal", try microseconds { _ = try key.seal(plaintext, associatedData: associatedData, nonce: nonce) }),
      .init(
        "open",
        try microseconds {
          guard try key.open(sealed, associatedData: associatedData, nonce: nonce).count == plaintext.count else {
            throw Failure.wrongResult
          }
        }),
      .init("decode", try microseconds { _ = try Credential(decoding: plaintext) }),
    ]
    for (name, method, clientSecret) in [
      ("sign_hmac_sha1", SignatureMethod.hmacSHA1, clientSecret), ("sign_hmac_sha256", .hmacSHA256, clientSecret),
      ("sign_rsa_sha1", .rsaSHA1, rsaKey),
    ] {
      steps.append(
        .init(
          name,
          try microseconds(calls: method == .rsaSHA1 ? 5 : 200) {
            let text = OAuth1Signature.baseString(request, parameters)
            _ = try OAuth1Signature.sign(text, method, clientSecret: clientSecret, tokenSecret: tokenSecret)
          }))
    }

    let library = DescriptorLibrary(directories: [folder]) { try? File.read($0, limit: 1 << 20) }
    var descriptors: [JSONValue.Member] = []
    for name in try File.names(in: folder).sorted() where name.hasSuffix(".yaml") {
      let path = folder + "/" + name
      let bytes = try File.read(path, limit: 1 << 20)
      descriptors.append(.init(name, try microseconds(rounds: 41, calls: 5) { _ = library.check(bytes, name: path) }))
    }
    steps.append(.init("check", .object(descriptors)))
    return JSONValue.object(steps).encoded
  }

  enum Failure: Error { case wrongResult }

  /// The median over rounds of the time of a call.
  private static func microseconds(
    rounds: Int = 101, calls: Int = 200, _ body: () throws -> Void
  ) throws -> JSONValue {
    let clock = SystemClock()
    var times: [Double] = []
    for _ in 0..<rounds {
      let start = clock.monotonic()
      for _ in 0..<calls { try body() }
      times.append((clock.monotonic() - start) / Double(calls) * 1e6)
    }
    times.sort()
    let hundredths = Int64((times[times.count / 2] * 100).rounded())
    return .number("\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)")
  }
}

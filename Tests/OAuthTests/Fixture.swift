import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrPlatform
import CredmgrDescriptors
import Synchronization
import Testing

@testable import CredmgrOAuth
import CredmgrText

/// Returns known bytes that differ at each call.
final class KnownRandom: RandomSource {
  private let calls = Mutex<UInt8>(0)

  func bytes(_ count: Int) -> [UInt8] {
    let call = calls.withLock { calls in
      calls &+= 1
      return calls
    }
    return (0..<count).map { call &* 16 &+ UInt8(truncatingIfNeeded: $0) }
  }
}

/// Common values of the tests.
enum Fixture {
  /// The project's directory.
  static let project = String(#filePath.split(separator: "/Tests/OAuthTests/")[0])

  /// A fixed time.
  static let now: Moment = 1_700_000_000

  static let nonce = RequestNonce(timestamp: 137_131_200, text: "nonce-1")

  /// Parses a descriptor; throws its findings if there are any.
  static func descriptor(_ text: String) throws -> Descriptor {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    return try library.load(Array(("provider: example\n" + text).utf8), name: "example.yaml").descriptor
  }

  /// Returns a client of a provider with the two endpoints that most tests need, unless `endpoints` replaces them;
  /// `more` is appended to the descriptor.
  static func client(
    _ more: String = "", grant: String = "authorization_code", endpoints: String = "", id: String = "client-1",
    secret: String? = "secret-1", variables: [String: String] = [:]
  ) throws -> Client {
    var legs = endpoints.split(separator: "\n").map(String.init)
    for (leg, path) in [("token", "token"), ("authorization", "authorize")]
    where !legs.contains(where: { $0.hasPrefix(leg + ":") }) {
      legs.insert("\(leg): https://provider.example/\(path)", at: 0)
    }
    let text = "grant: \(grant)\nendpoints:\n\(legs.map { "  \($0)\n" }.joined())\(more)\n"
    return try Client(
      descriptor: descriptor(text), identifier: id, secret: secret.map { Secret($0) }, variables: variables)
  }

  static func credential(_ token: String = "token-1", grant: Grant = .authorizationCode) -> Credential {
    Credential(grant: grant, accessToken: Secret(token), obtainedAt: now)
  }
}

extension HTTPResponse {
  static func json(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, fields: ["Content-Type": "application/json"], body: Array(text.utf8))
  }

  static func form(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, fields: ["Content-Type": "application/x-www-form-urlencoded"], body: Array(text.utf8))
  }

  static func html(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, fields: ["Content-Type": "text/html; charset=utf-8"], body: Array(text.utf8))
  }
}

extension HTTPRequest {
  /// The complete request as text, in the order in which it is sent.
  var wire: String {
    let lines = ["\(method) \(uri.text)"] + fields.map { "\($0.name): \($0.value)" }
    return lines.joined(separator: "\n") + "\n" + (body.isEmpty ? "" : "\n\(form)\n")
  }

  var form: String { String(decoding: body, as: UTF8.self) }
}

/// Test vectors of the RFCs and other implementations.
enum Vectors {
  /// Loads the vectors of a file, or of one member; fails without vectors.
  static func load(_ name: String, _ member: String? = nil) throws -> [JSONValue] {
    let folder = String(#filePath.dropLast("Fixture.swift".count)) + "Vectors/"
    let file = try JSONValue.parse(File.read(folder + name + ".json", limit: 1 << 20))
    let elements = try #require(member.map { file[$0] } ?? file).elements ?? []
    try #require(!elements.isEmpty)
    return elements
  }
}

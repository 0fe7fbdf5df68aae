import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrText

/// Computes template functions and signatures for requests.
protocol RequestComputing: Sendable {
  /// Whether the requests are only shown, so no provider answers.
  var isOnlyShown: Bool { get }

  func value(of function: Template.Function, _ arguments: [[UInt8]], _ nonce: RequestNonce) -> [UInt8]?

  /// Returns the result of `sign`. A dry run returns a placeholder with the name instead.
  func signature(_ name: String, _ sign: () throws(OAuthError) -> String) throws(OAuthError) -> String
}

struct RequestComputation: RequestComputing {
  var isOnlyShown: Bool { false }

  func value(of function: Template.Function, _ arguments: [[UInt8]], _ nonce: RequestNonce) -> [UInt8]? {
    let joined = Array(arguments.joined())
    switch function {
    case .base64: return Array(Base64.encode(joined).utf8)
    case .hex: return Array(Hexadecimal.encode(joined).utf8)
    case .sha1: return HashAlgorithm.sha1.digest(joined)
    case .sha256: return HashAlgorithm.sha256.digest(joined)
    case .hmacSHA1: return Self.authenticationCode(.sha1, arguments)
    case .hmacSHA256: return Self.authenticationCode(.sha256, arguments)
    case .now:
      let text = String(decoding: joined, as: UTF8.self)
      let isPast = text.hasPrefix("-")
      let wait = text.isEmpty ? Duration.zero : Duration(isPast ? String(text.dropFirst()) : text)
      guard let wait, wait.wholeSeconds < Moment.farthest else { return nil }
      return Array(String((nonce.timestamp + (isPast ? .zero - wait : wait)).secondsSince1970).utf8)
    case .date: return moment(joined).map { Array($0.text.prefix(10).utf8) }
    case .datetime: return moment(joined).map { Array($0.text.utf8) }
    case .httpDate: return moment(joined).map { Array($0.httpDate.utf8) }
    case .random: return Array(nonce.text.utf8)
    case .json:
      return Array(JSONValue.string(String(decoding: joined, as: UTF8.self)).encoded.utf8.dropFirst().dropLast())
    case .lowercase, .uppercase: return nil
    }
  }

  func signature(_ name: String, _ sign: () throws(OAuthError) -> String) throws(OAuthError) -> String { try sign() }

  private static func authenticationCode(_ algorithm: HashAlgorithm, _ arguments: [[UInt8]]) -> [UInt8] {
    algorithm.authenticationCode(for: Array(arguments.dropFirst().joined()), key: arguments.first ?? [])
  }

  private func moment(_ text: [UInt8]) -> Moment? {
    Int64(String(decoding: text, as: UTF8.self)).map { Moment(secondsSince1970: $0) }
  }
}

extension Client {
  /// Returns a calculator that uses the same moment and random text throughout one request.
  func calculator(_ nonce: RequestNonce) -> Template.Calculator {
    { function, arguments in computing.value(of: function, arguments, nonce) }
  }
}

/// The time and random text that make a request unique (RFC 5849, 3.3; RFC 7519, 4.1.7).
package struct RequestNonce: Sendable {
  package let timestamp: Moment
  package let text: String
  package var demanded: String?  // A server nonce that the repeated request must include (RFC 9449, 8).

  package init(now: Moment, random: some RandomSource) {
    timestamp = now
    text = Hexadecimal.encode(random.bytes(16))
  }

  package init(timestamp: Moment, text: String) {
    self.timestamp = timestamp
    self.text = text
  }

  /// Another random text for the same request, for a second signature in it or for its repetition.
  package func text(for use: String) -> String {
    Hexadecimal.encode(Array(HashAlgorithm.sha256.digest(Array((text + " " + use).utf8)).prefix(16)))
  }
}

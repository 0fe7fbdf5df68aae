import Cryptography
import JSON
import Providers

/// Computes the functions of templates, all of one request with the same moment and random text.
struct RequestCalculator {
  let freshness: Freshness?

  init(_ freshness: Freshness?) { self.freshness = freshness }

  /// The value of a function; `nil` where there is none.
  func calculate(_ function: Template.Function, _ arguments: [[UInt8]]) -> [UInt8]? {
    let joined = Array(arguments.joined())
    switch function {
    case .base64: return Array(Base64.encode(joined).utf8)
    case .hex: return Array(Hexadecimal.encode(joined).utf8)
    case .sha256: return HashAlgorithm.sha256.digest(joined)
    case .hmacSHA256:
      return HashAlgorithm.sha256.authenticationCode(
        for: Array(arguments.dropFirst().joined()), key: arguments.first ?? [])
    case .now:
      let wait = arguments.isEmpty ? 0 : seconds(ofDuration: String(decoding: joined, as: UTF8.self))
      guard let freshness, let wait, wait < Moment.longest else { return nil }
      return Array(String(freshness.timestamp + wait).utf8)
    case .date: return moment(joined).map { Array($0.prefix(10).utf8) }
    case .datetime: return moment(joined).map { Array($0.utf8) }
    case .random: return freshness.map { Array($0.nonce.utf8) }
    case .json:
      return Array(JSONValue.string(String(decoding: joined, as: UTF8.self)).encoded.utf8.dropFirst().dropLast())
    case .lowercase, .uppercase: return nil
    }
  }

  private func moment(_ text: [UInt8]) -> String? {
    Int64(String(decoding: text, as: UTF8.self)).map(Moment.format)
  }
}

import Cryptography
import Descriptors
import JSON
import Text

/// Computes the functions of templates, all of one request with the same moment and random text.
struct RequestCalculator {
  let nonce: RequestNonce?
  /// Whether a computation is written down instead of made.
  private let rehearses: Bool

  init(_ nonce: RequestNonce?, rehearses: Bool = false) {
    self.nonce = nonce
    self.rehearses = rehearses
  }

  /// The value of a function; `nil` where there is none.
  func calculate(_ function: Template.Function, _ arguments: [[UInt8]]) -> [UInt8]? {
    let joined = Array(arguments.joined())
    if rehearses { return written(function, arguments) }
    switch function {
    case .base64: return Array(Base64.encode(joined).utf8)
    case .hex: return Array(Hexadecimal.encode(joined).utf8)
    case .sha256: return HashAlgorithm.sha256.digest(joined)
    case .hmacSHA256:
      return HashAlgorithm.sha256.authenticationCode(
        for: Array(arguments.dropFirst().joined()), key: arguments.first ?? [])
    case .now:
      let wait = arguments.isEmpty ? 0 : seconds(ofDuration: String(decoding: joined, as: UTF8.self))
      guard let nonce, let wait, wait < Moment.longest else { return nil }
      return Array(String(nonce.timestamp + wait).utf8)
    case .date: return moment(joined).map { Array($0.prefix(10).utf8) }
    case .datetime: return moment(joined).map { Array($0.utf8) }
    case .random: return nonce.map { Array($0.text.utf8) }
    case .json:
      return Array(JSONValue.string(String(decoding: joined, as: UTF8.self)).encoded.utf8.dropFirst().dropLast())
    case .lowercase, .uppercase: return nil
    }
  }

  /// `hex(sha256(<client_secret>))`, in one line.
  private func written(_ function: Template.Function, _ arguments: [[UInt8]]) -> [UInt8] {
    let texts = arguments.map { String(decoding: $0, as: UTF8.self).exchanging("\n", for: "\\n") }
    switch function {
    case .now where texts.isEmpty: return Array("\(Placeholder.moment)".utf8)
    case .random: return Array(Placeholder.text("random").utf8)
    // Inside of a JSON text it has to be one.
    case .json: return Array(texts.joined().utf8)
    default: return Array("\(function.rawValue)(\(texts.joined(separator: ", ")))".utf8)
    }
  }

  private func moment(_ text: [UInt8]) -> String? {
    Int64(String(decoding: text, as: UTF8.self)).map(Moment.format)
  }
}

extension Template {
  /// A function that a template may apply to values.
  package enum Function: String, Sendable, CaseIterable {
    case lowercase
    case uppercase
    /// The arguments, one behind the other, in Base64 (RFC 4648, 4).
    case base64
    /// The arguments, one behind the other, in hexadecimal (RFC 4648, 8), lower case.
    case hex
    /// The SHA-256 of the arguments, one behind the other.
    case sha256
    /// The HMAC-SHA-256 (RFC 2104) of what follows the first argument, with that as its key.
    case hmacSHA256 = "hmac_sha256"
    /// Seconds since 1970; with an argument, such as `"7d"`, in so long a time.
    case now
    /// The day of a number of seconds since 1970, `2026-11-21` (UTC).
    case date
    /// The moment of a number of seconds since 1970, `2026-11-21T02:16:06Z` (RFC 3339).
    case datetime
    /// 32 hexadecimal digits, the same in all of one request.
    case random
    /// A text as it stands inside a JSON string (RFC 8259, 7), without the quotes.
    case json

    /// How many arguments there may be.
    var argumentCounts: ClosedRange<Int> {
      switch self {
      case .lowercase, .uppercase, .date, .datetime, .json: 1...1
      case .base64, .hex, .sha256: 1...32
      case .hmacSHA256: 2...32
      case .now: 0...1
      case .random: 0...0
      }
    }
  }
}

extension Template.Term {
  /// Whether the term yields bytes that are no text.
  var isDigest: Bool {
    if case .call(let function, _) = self { function == .sha256 || function == .hmacSHA256 } else { false }
  }
}

import Cryptography

/// The moment and the random text that make a request unlike any other (RFC 5849, 3.3; RFC 7519, 4.1.7).
package struct RequestNonce: Sendable {
  /// Seconds since 1970.
  package let timestamp: Int64
  /// A text that is not used twice with this timestamp.
  package let text: String

  /// The nonce of a request that is made now.
  package init(now: Int64, random: some RandomSource) {
    timestamp = now
    text = Hexadecimal.encode(random.bytes(16))
  }

  /// The nonce with this timestamp and text.
  package init(timestamp: Int64, text: String) {
    self.timestamp = timestamp
    self.text = text
  }
}

import Cryptography

/// The moment and the random text that make a request unlike any other (RFC 5849, 3.3; RFC 7519, 4.1.7).
package struct RequestNonce: Sendable {
  package let timestamp: Int64
  package let text: String

  package init(now: Int64, random: some RandomSource) {
    timestamp = now
    text = Hexadecimal.encode(random.bytes(16))
  }

  package init(timestamp: Int64, text: String) {
    self.timestamp = timestamp
    self.text = text
  }
}

import HTTP

/// Where the provider sends the person's browser after the consent (RFC 6749, 3.1.2).
package enum Redirect: Sendable, Equatable {
  /// To a port of this machine (RFC 8252, 7.3); any free one where the URI has none.
  case loopback(URI)
  /// The person pastes the address. As it is written: a provider compares it as a text (RFC 6749, 3.1.2.3), and a `URI`
  /// has its scheme and host in lower case.
  case elsewhere(String)
  case outOfBand(String)
}

import HTTP

/// Where the provider sends the person's browser after the consent (RFC 6749, 3.1.2).
package enum Redirect: Sendable, Equatable {
  /// To a port of this machine (RFC 8252, 7.3); any free one where the URI has none.
  case loopback(URI)
  /// To a page or a scheme that we do not serve: the person pastes the address. As it is written: a provider compares
  /// it with what is registered as a text (RFC 6749, 3.1.2.3), and a `URI` has its scheme and host in lower case.
  case elsewhere(String)
  /// Nowhere: the provider shows a code.
  case outOfBand(String)
}

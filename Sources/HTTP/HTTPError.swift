/// An error of an HTTP exchange. No case holds a query, a fragment, user information or a body, which may be secret.
package enum HTTPError: Error, Equatable, Sendable {
  case invalidURI(text: String, reason: InvalidURI)
  case invalidMethod(String)  // The method is not a token (RFC 9110, section 9.1).
  case invalidField(name: String)
  case unreachable(host: String, reason: Unreachable)
  case bodyTooLarge(limit: Int)  // In bytes.
  case portUnavailable(port: UInt16)
  case receiverTimedOut
  case interrupted
  case libraryMissing(String)  // Loading libcurl failed.
  case system(call: String, code: Int32)  // `errno`

  package enum InvalidURI: Error, Equatable, Sendable {
    case noScheme  // The text does not begin with `scheme:` (RFC 3986, section 3.1).
    case noHost
    /// The host is not a name, an IPv4 address of four decimal numbers, or an IPv6 address in brackets.
    case host
    case userInformation  // A user name or a password precedes the host.
    case port  // The port is not a decimal number from 1 to 65535.
    /// The text contains a byte that a URI cannot contain, such as a space, a control character or a backslash.
    case character(UInt8)
    case percentEscape  // Two hexadecimal digits do not follow a `%`.
  }

  package enum Unreachable: Equatable, Sendable {
    case nameNotResolved  // The host's name cannot be resolved. Nothing was sent.
    case connectionRefused  // No server listens at the address, or it is unreachable. Nothing was sent.
    case timedOut
    case tls(detail: String)  // No trusted connection; `detail` is the TLS library's sentence. Nothing was sent.
    case proxy  // Nothing was sent.
    case broken
    case other(code: Int32, text: String)
  }
}

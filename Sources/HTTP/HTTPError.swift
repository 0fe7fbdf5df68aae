/// No case ever holds a query, a fragment, user information or a body: they may be secret.
package enum HTTPError: Error, Equatable, Sendable {
  case invalidURI(text: String, reason: InvalidURI)
  case invalidMethod(String)  // The method is no token (RFC 9110, section 9.1).
  case invalidField(name: String)
  case unreachable(host: String, reason: Unreachable)
  case bodyTooLarge(limit: Int)  // In bytes.
  case portUnavailable(port: UInt16)
  case receiverTimedOut
  case interrupted
  case libraryMissing(String)  // libcurl is loaded when it is needed.
  case system(call: String, code: Int32)  // `errno`

  package enum InvalidURI: Error, Equatable, Sendable {
    case noScheme  // There is no `scheme:` at the beginning (RFC 3986, section 3.1).
    case noHost
    /// The host is neither a name, nor an IPv4 address of four decimal numbers, nor an IPv6 address in brackets.
    case host
    case userInformation  // A user name or a password stands before the host.
    case port  // The port is no decimal number from 1 to 65535.
    /// A byte that a URI cannot contain: a space, a control, a backslash, anything outside ASCII, …
    case character(UInt8)
    case percentEscape  // A `%` without two hexadecimal digits behind it.
  }

  package enum Unreachable: Equatable, Sendable {
    case nameNotResolved  // The host's name has no address. Nothing was sent.
    case connectionRefused  // Nobody listens at the address, or there is no way to it. Nothing was sent.
    case timedOut
    case tls(detail: String)  // No trusted connection; `detail` is the TLS library's sentence. Nothing was sent.
    case proxy  // Nothing was sent.
    case broken
    case other(code: Int32, text: String)
  }
}

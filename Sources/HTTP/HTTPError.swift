/// No case ever holds a query, a fragment, user information or a body: they may be secret.
package enum HTTPError: Error, Equatable, Sendable {
  /// The text is no URI that we accept. `text` is what was given, without its query, fragment and user information.
  case invalidURI(text: String, reason: InvalidURI)
  /// The method is no token (RFC 9110, section 9.1).
  case invalidMethod(String)
  /// The field of this name cannot be sent: the name or the value breaks RFC 9110, section 5, or the client owns it.
  case invalidField(name: String)
  /// There is no answer from `host`, and whether it has seen the request is not known unless `reason` says so.
  case unreachable(host: String, reason: Unreachable)
  /// The answer was longer than `limit` bytes, and is discarded.
  case bodyTooLarge(limit: Int)
  case portUnavailable(port: UInt16)
  case receiverTimedOut
  case interrupted
  /// A system call failed; `code` is its `errno`.
  case system(call: String, code: Int32)

  /// Why a text is no URI.
  package enum InvalidURI: Error, Equatable, Sendable {
    /// There is no `scheme:` at the beginning (RFC 3986, section 3.1).
    case noScheme
    case noHost
    /// The host is neither a name, nor an IPv4 address of four decimal numbers, nor an IPv6 address in brackets.
    case host
    /// A user name or a password stands before the host.
    case userInformation
    /// The port is no decimal number from 1 to 65535.
    case port
    /// A byte that a URI cannot contain: a space, a control, a backslash, anything outside ASCII, …
    case character(UInt8)
    /// A `%` without two hexadecimal digits behind it.
    case percentEscape
  }

  package enum Unreachable: Equatable, Sendable {
    /// The host's name has no address. Nothing was sent.
    case nameNotResolved
    /// Nobody listens at the address, or there is no way to it. Nothing was sent.
    case connectionRefused
    case timedOut
    /// No trusted connection; `detail` is the TLS library's sentence. Nothing was sent.
    case tls(detail: String)
    /// Nothing was sent.
    case proxy
    case broken
    case other(code: Int32, text: String)
  }
}

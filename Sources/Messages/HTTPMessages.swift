import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

extension HTTPError {
  /// - Parameter title: the name by which the user knows the provider.
  package func message(provider: String? = nil, title: String? = nil) -> Message {
    let whom = (title ?? provider.map(quoted)).map { " of " + $0 } ?? ""
    return switch self {
    case .invalidURI(let text, _) where !text.contains { ":/.".contains($0) } && mayBeKey(text): .usage("invalid URL")
    case .invalidURI(let text, let reason): .usage("invalid URL \(quoted(text)): \(reason.sentence)")
    case .invalidMethod(let method): .usage("invalid HTTP method \(quoted(method))")
    case .invalidField(let name): .usage("cannot send the header \(quoted(name))")
    case .unreachable(let host, let reason):
      .unreachable("cannot reach the host \(quoted(host))\(whom): \(reason.sentence)").with(hints: reachHints(provider))
    case .bodyTooLarge(let limit):
      .refused(
        "cannot read the answer\(whom): it exceeds \(limit < 1 << 20 ? "\(limit >> 10) KiB" : "\(limit >> 20) MiB")"
      ).with(hints: provider == nil ? [] : answerHints(provider))
    case .portUnavailable(let port):
      .unexpected("another program uses port \(port), which the redirect\(whom) requires")
        .hint("\(add: "--paste") to log in without the port")
        .hint("\(run: "ss", "-ltnp", "sport = :\(port)") to find that program")
    case .receiverTimedOut: .refused("timed out waiting for the browser")
    case .interrupted: Message("interrupted", status: .interrupted)
    case .libraryMissing(let name): .unexpected("cannot load the library \(name); check that it is installed")
    case .system(let call, let code): .unexpected("system call \(call) failed: \(systemWords(code))")
    }
  }
}

extension HTTPError.InvalidURI {
  package var sentence: String {
    switch self {
    case .noScheme: "it must begin with a scheme such as https://"
    case .noHost: "the host is missing"
    case .host: "the host is not a valid name or address"
    case .userInformation: "a user name or password before the host is not allowed"
    case .port: "the port must be a number from 1 to 65535"
    case .character(let byte): "the character 0x\(String(byte, radix: 16)) is not allowed"
    case .percentEscape: "\"%\" must be followed by two hexadecimal digits"
    }
  }
}

extension HTTPError.Unreachable {
  package var sentence: String {
    switch self {
    case .nameNotResolved: "cannot resolve the host name"
    case .connectionRefused: "connection refused"
    case .timedOut: "timed out"
    case .tls(let detail): "no trusted TLS connection (\(detail))"
    case .proxy: "the proxy refused the connection"
    case .broken: "the connection was lost"
    case .other(_, let text): text
    }
  }
}

/// Returns hints for a provider or issuer that is unreachable.
func reachHints(_ provider: String?) -> [Remedy] {
  guard let provider, !provider.isEmpty else { return [] }
  return DescriptorLibrary.isIdentifier(provider)
    ? ["\(credmgr: "doctor", provider)"] : ["\(credmgr: "doctor") to check certificates and proxy"]
}

func answerHints(_ provider: String?) -> [Remedy] {
  reachHints(provider) + ["\(add: "--trace") to see the answer"]
}

import Descriptors
import HTTP
import OAuth
import Text

extension OAuthError {
  /// What is wrong with a provider's answer, or with what was to be sent.
  func message(provider: String) -> Message {
    let name = quoted(provider)
    switch self {
    case .noEndpoint(let kind):
      return Message(
        "the descriptor of \(name) has no endpoint \(quoted(kind.rawValue))",
        hint: "name it in the descriptor: \(command: "credmgr", "providers", provider) shows which file that is",
        status: .usage)
    case .url(let kind, let error):
      return Message("the URL of the endpoint \(quoted(kind.rawValue)) of \(name): \(error.sentence)", status: .usage)
    case .missingValue(let kind, let value):
      return Message(
        "the endpoint \(quoted(kind.rawValue)) of \(name) needs a value for \(quoted(value))",
        hint: "\(credmgr: "add-provider", provider, "--replace", "--set", "\(value)=VALUE")", status: .usage)
    case .refused(let kind, let response):
      let words = response.words.map { ": \($0)" } ?? ""
      let status = response.status.map { ["status \($0)"] } ?? []
      // Where the provider gives no code, the core makes one of the status, which would say the same twice.
      let code = response.code.hasPrefix("http_") ? [] : [response.code]
      return Message(
        "\(name) refused at the endpoint \(quoted(kind.rawValue)) (\((code + status).joined(separator: ", ")))\(words)",
        hint: hint(response.code, provider), status: .refused)
    case .unavailable(let kind, let status, let words, let retryAfter):
      return Message(
        "\(name) cannot answer now at the endpoint \(quoted(kind.rawValue))" + (status.map { " (status \($0))" } ?? "")
          + (words.map { ": \($0)" } ?? ""),
        hint: retryAfter.map { "try again in \(patience($0))" } ?? "try again later", status: .unreachable)
    case .redirected(let kind, let status):
      return Message(
        "\(name) redirects at the endpoint \(quoted(kind.rawValue)) (status \(status)), which is not followed: it "
          + "would carry secrets along",
        hint: comparing(provider), status: .refused)
    case .unreadable(let kind, let expected, let mediaType):
      let found = mediaType.map { "is \($0)" } ?? "is not told"
      return Message(
        "the answer of \(name) at the endpoint \(quoted(kind.rawValue)) cannot be read as \(expected.words); its "
          + "type \(found)",
        hints: answerHints(provider), status: .refused)
    case .missingField(let kind, let field):
      return Message(
        "the answer of \(name) at the endpoint \(quoted(kind.rawValue)) has no \(quoted(field.rawValue))",
        hints: answerHints(provider), status: .refused)
    case .malformedField(let kind, let field):
      return Message(
        "the \(quoted(field.rawValue)) in the answer of \(name) at the endpoint \(quoted(kind.rawValue)) cannot be "
          + "read",
        hints: answerHints(provider), status: .refused)
    case .stateMismatch:
      return Message(
        "the redirect does not belong to this login: its state is another one",
        hint: "\(credmgr: "login", provider) again",
        status: .refused)
    case .stateMissing:
      return Message(
        "the redirect does not belong to this login: it has no state", hint: "\(credmgr: "login", provider) again",
        status: .refused)
    case .issuerMismatch(let expected, let found):
      return Message("the redirect comes from \(quoted(found)), and not from \(quoted(expected))", status: .refused)
    case .issuerMissing(let expected):
      return Message(
        "the redirect does not say that it comes from \(quoted(expected)), which always says so", status: .refused)
    case .unknownAuthentication(let method):
      return Message(
        "\(name) registered a client that has to show who it is by \(quoted(method)), which credmgr cannot",
        hint: "register a client yourself, and \(add: "--client-id", "ID")", status: .refused)
    case .notARedirect:
      return Message(
        "what was pasted is not the address of the page where the browser ended up",
        hint: "\(credmgr: "login", provider) again, and paste the whole address", status: .usage)
    case .foreignRedirect(let expected):
      return Message(
        "what was pasted is not an address that begins with \(quoted(expected))",
        hint: "\(credmgr: "login", provider) again, and paste the whole address where the browser ended up",
        status: .usage)
    case .tokenMismatch:
      return Message(
        "the redirect does not belong to this login: its token is another one",
        hint: "\(credmgr: "login", provider) again",
        status: .refused)
    case .callbackNotConfirmed:
      return Message(
        "\(name) did not confirm the callback, as OAuth 1.0a asks it to",
        hint: "a provider that never does needs \"callback_confirmed: optional\" below \"oauth1\" in its descriptor",
        status: .refused)
    case .deviceCodeExpired:
      return Message(
        "the code was not confirmed in time", hint: "\(credmgr: "login", provider) again", status: .refused)
    case .clientSecretMissing:
      return Message(
        "\(name) asks for a client secret, and none was given",
        hint: "\(credmgr: "add-provider", provider, "--replace", "--client-secret-file", "FILE")", status: .usage)
    case .clientKeyMalformed:
      return Message(
        "the client secret of \(name) is no RSA private key in PEM, which the signature method needs",
        hint: "\(credmgr: "add-provider", provider, "--replace", "--client-secret-file", "FILE")", status: .usage)
    case .noSignatures:
      return Message("this program is static and cannot sign with a private key", status: .unexpected)
    case .unknownSignature(let text):
      return Message("\(quoted(text)) is neither a signature method nor a transport of OAuth 1.0a", status: .usage)
    case .notRefreshable:
      return Message(
        "there is nothing to refresh the token of \(name) with", hint: "\(credmgr: "login", provider)",
        status: .loginNeeded)
    case .foreignHost(let host):
      return Message(
        "the descriptor of \(name) does not name the host \(quoted(host)), so the credential is not sent there",
        hint: "the hosts are below \"hosts\" in the descriptor: \(credmgr: "providers", provider)", status: .usage)
    case .presentedInQuery:
      return Message(
        "the credential of \(name) goes into the URL or the body of a request, not into a header",
        hint: "\(credmgr: "request", provider, "URL")",
        status: .usage)
    case .credentialHeader(let header):
      return Message(
        "the header \(quoted(header)) carries the credential of \(name), and cannot be given besides",
        hint: "leave \"--header\" out for it", status: .usage)
    case .signatureNeedsURL:
      return Message(
        "requests to \(name) are signed, so the header depends on the URL", hint: "\(add: "--url", "URL")",
        status: .usage)
    case .malformedHeader(let header):
      return Message(
        "the value of the header \(quoted(header)) has characters that a header cannot have", status: .refused)
    case .malformedCredential:
      return Message(
        "a credential of \(name) in the vault cannot be read", hint: "\(credmgr: "login", provider)", status: .vault
      )
    }
  }

  private func hint(_ code: String, _ provider: String) -> Remedy? {
    let secret = ["--client-secret-file", "FILE"]
    return switch code {
    case "invalid_client", "incorrect_client_credentials":
      "check the client with "
        + "\(command: ["credmgr", "add-provider", provider, "--replace", "--client-id", "ID"] + secret)"
    case "access_denied", "invalid_grant": "\(credmgr: "login", provider) again"
    case "invalid_scope": "name other scopes with \(command: "credmgr", "login", provider, "--scope", "SCOPE")"
    case "http_404", "http_405": comparing(provider)
    case "redirect_uri_mismatch": "register the redirect URI that \(command: "credmgr", "providers", provider) shows"
    default: "\(add: "--trace") to see what was sent and answered"
    }
  }
}

/// What to do where it is not what the descriptor says that it is.
func comparing(_ provider: String) -> Remedy {
  "compare the addresses that \(command: "credmgr", "providers", provider) shows with the provider's own page"
}

/// What leads on where a provider, or the issuer at an address, was not reached.
private func reachHints(_ provider: String?) -> [Remedy] {
  guard let provider, !provider.isEmpty else { return [] }
  return DescriptorLibrary.isIdentifier(provider)
    ? ["\(credmgr: "doctor", provider)"] : ["\(credmgr: "doctor") to check certificates and proxy"]
}

/// The same where it was reached, and its answer is of no use.
private func answerHints(_ provider: String?) -> [Remedy] {
  reachHints(provider) + ["\(add: "--trace") to see what was answered"]
}

extension ResponseFormat {
  fileprivate var words: String {
    switch self {
    case .json: "JSON"
    case .form: "a form (application/x-www-form-urlencoded)"
    case .fragment: "a fragment"
    case .query: "a query"
    }
  }
}

extension URLTemplateError {
  var sentence: String {
    switch self {
    case .template(let error): error.sentence
    case .authority(let value): "\(quoted(value)) cannot stand in a host"
    case .path(let template):
      "a value makes a \".\" or \"..\" in the path of \(quoted(template)), which would be another path"
    case .base(let template): "the base address in \(quoted(template)) has a query or a fragment"
    case .url(let text): "\(quoted(text)) is not an absolute URL"
    case .insecure(let text): "\(quoted(text)) is not https; http is for this machine's own addresses only"
    }
  }
}

extension HTTPError {
  /// What went wrong on the way.
  ///
  /// - Parameter provider: whom it was about, where it was about one.
  func message(provider: String? = nil) -> Message {
    let whom = provider.map { " of \(quoted($0))" } ?? ""
    switch self {
    case .invalidURI(let text, let reason):
      return Message("\(quoted(text)) is not a URL that can be used: \(reason.sentence)", status: .usage)
    case .invalidMethod(let method): return Message("\(quoted(method)) is no HTTP method", status: .usage)
    case .invalidField(let name): return Message("the header \(quoted(name)) cannot be sent", status: .usage)
    case .unreachable(let host, let reason):
      return Message(
        "cannot reach the host \(quoted(host))\(whom): \(reason.sentence)", hints: reachHints(provider),
        status: .unreachable)
    case .bodyTooLarge(let limit):
      let size = limit < 1 << 20 ? "\(limit >> 10) KiB" : "\(limit >> 20) MiB"
      return Message(
        "the answer\(whom) is longer than \(size), and was not read",
        hints: provider == nil ? [] : answerHints(provider), status: .refused)
    case .portUnavailable(let port):
      return Message(
        "port \(port) of this machine is taken, and the redirect\(whom) needs it",
        hints: [
          "\(run: "ss", "-ltnp", "sport = :\(port)") to see which program has it",
          "\(add: "--paste") to do without it",
        ],
        status: .unexpected)
    case .receiverTimedOut: return Message("nobody answered in time", status: .refused)
    case .interrupted: return Message("interrupted", status: .interrupted)
    case .system(let call, let code):
      return Message("the system call \(call) failed: \(systemWords(code))", status: .unexpected)
    }
  }
}

extension HTTPError.InvalidURI {
  var sentence: String {
    switch self {
    case .noScheme: "there is no scheme, such as https, at the beginning"
    case .noHost: "there is no host"
    case .host: "the host is neither a name nor an address"
    case .userInformation: "a user name or a password stands before the host"
    case .port: "the port is not a number from 1 to 65535"
    case .character(let byte): "it has a character that a URL cannot have (0x\(String(byte, radix: 16)))"
    case .percentEscape: "a \"%\" without two hexadecimal digits behind it"
    }
  }
}

extension HTTPError.Unreachable {
  var sentence: String {
    switch self {
    case .nameNotResolved: "its name has no address"
    case .connectionRefused: "nobody answers there"
    case .timedOut: "no answer in time"
    case .tls(let detail): "no trusted connection (\(detail))"
    case .proxy: "the proxy does not let us through"
    case .broken: "the connection broke off"
    case .other(_, let text): text
    }
  }
}

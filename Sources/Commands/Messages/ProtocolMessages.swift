import Descriptors
import HTTP
import OAuth
import Text

extension OAuthError {
  func message(provider: String) -> Message {
    let name = quoted(provider)
    func at(_ kind: EndpointKind) -> String { "\(name) at the endpoint \(quoted(kind.rawValue))" }
    func answer(_ text: String) -> Message { Message(text, hints: answerHints(provider), status: .refused) }
    let login: Remedy = "\(credmgr: "login", provider)"
    let whole: Remedy = login + " again, and paste the whole address"
    let file: Remedy = "\(command: "credmgr", "providers", provider) shows which file that is"
    let newSecret: Remedy = "\(credmgr: "add-provider", provider, "--replace", "--client-secret-file", "FILE")"
    return switch self {
    case .noEndpoint(let kind):
      .usage("the descriptor of \(name) has no endpoint \(quoted(kind.rawValue))")
        .hint("name it in the descriptor: \(file)")
    case .url(let kind, let error):
      .usage("the URL of the endpoint \(quoted(kind.rawValue)) of \(name): \(error.sentence)")
    case .missingValue(let kind, let value):
      .usage("the endpoint \(quoted(kind.rawValue)) of \(name) needs a value for \(quoted(value))")
        .hint("\(credmgr: "add-provider", provider, "--replace", "--set", "\(value)=VALUE")")
    case .refused(let kind, let response):
      .refused("\(name) refused at the endpoint \(quoted(kind.rawValue)) \(response.reason)")
        // Nothing but the client shows who it is there.
        .hint(
          kind == .temporaryCredentials && response.status == 401
            ? hint("invalid_client", provider) : hint(response.code, provider))
    case .unavailable(let kind, let status, let words, let retryAfter):
      .unreachable(
        "\(name) cannot answer now at the endpoint \(quoted(kind.rawValue))" + (status.map { " (status \($0))" } ?? "")
          + (words.map { ": \($0)" } ?? "")
      ).hint(retryAfter.map { "try again in \(patience($0))" } ?? "try again later")
    case .redirected(let kind, let status):
      .refused(
        "\(name) redirects at the endpoint \(quoted(kind.rawValue)) (status \(status)), which is not followed: it "
          + "would carry secrets along"
      ).hint(comparing(provider))
    case .unreadable(let kind, let expected, let mediaType):
      answer(
        "the answer of \(at(kind)) cannot be read as \(expected == .json ? "JSON" : "a " + expected.rawValue); "
          + "its type " + (mediaType.map { "is \($0)" } ?? "is not told"))
    case .missingField(let kind, let field): answer("the answer of \(at(kind)) has no \(quoted(field.rawValue))")
    case .malformedField(let kind, let field):
      answer("the \(quoted(field.rawValue)) in the answer of \(at(kind)) cannot be read")
    case .repeated(let kind, let member):
      answer("the answer of \(at(kind)) has \(quoted(member)) more than once, and each could be the right one")
    case .tokenType(let kind, let type):
      answer(
        "the token in the answer of \(at(kind)) is of the type \(quoted(type)), which credmgr cannot present"
      ).hint("if the provider takes it as it takes a Bearer token, \"token_types\" below \"header_style\" says so")
    case .idToken(let kind, let fault):
      answer("the ID token in the answer of \(at(kind)) is refused: \(fault.sentence)")
    case .foreignAssertion(let kind, let origin):
      .usage(
        "the endpoint \(quoted(kind.rawValue)) of \(name) is at \(quoted(origin)), not at the token endpoint's origin; "
          + "the client's signed assertion is not for that server, so it is not sent"
      ).hint("look at its endpoints: \(file)")
    case .foreignAudience(let audience):
      .usage(
        "the descriptor of \(name) makes an assertion for \(quoted(audience)), which is another server than that of "
          + "its token endpoint, so it is not sent"
      ).hint("look at \"claims\": \(file)")
    case .valueOutOfBounds(let kind, let value):
      answer("the \(quoted(value)) in the answer of \(at(kind)) is not what the descriptor allows there")
    case .computedValueTooLong(let kind, let value):
      .usage(
        "the value of \(quoted(value)) of \(at(kind)) becomes longer than \(Template.longest / 1024) KiB, or all "
          + "values than 1 MiB")
    case .insecurePage(let field):
      answer("the \(quoted(field.rawValue)) in the answer of \(name) is not an https address, so it is not shown")
    case .foreignPage(let origin):
      .usage("the page for the code of \(name) would be at \(quoted(origin)), where the provider has no endpoint")
        .hint("correct \"verification_uri_complete\" in the descriptor: \(file)")
    case .secretAccount:
      .usage("the field that the descriptor of \(name) says is the account's name is a secret")
        .hint("name another field below \"account\" in the descriptor: \(file)")
    case .stateMismatch:
      .refused("the redirect does not belong to this login: its state is another one").hint(login + " again")
    case .stateMissing: .refused("the redirect does not belong to this login: it has no state").hint(login + " again")
    case .tokenMismatch:
      .refused("the redirect does not belong to this login: its token is another one").hint(login + " again")
    case .issuerMismatch(let expected, let found):
      .refused("the redirect comes from \(quoted(found)), and not from \(quoted(expected))")
    case .foreignIssuer(let found, let host):
      .refused("the redirect comes from \(quoted(found)), which is another server than \(quoted(host))")
        .hint(
          "the page of \(name) sent the browser there; \(command: "credmgr", "remove-provider", provider) if you do "
            + "not trust it")
    case .ownedParameter(let kind, let parameter):
      .usage("the address of \(at(kind)) sets the parameter \(quoted(parameter)), which only credmgr sets")
    case .issuerMissing(let expected):
      .refused("the redirect does not say that it comes from \(quoted(expected)), which always says so")
    case .unknownAuthentication(let method):
      .refused("\(name) registered a client that has to show who it is by \(quoted(method)), which credmgr cannot")
        .hint("register a client yourself, and \(add: "--client-id", "ID")")
    case .notARedirect: .usage("what was pasted is not the address of the page where the browser ended up").hint(whole)
    case .foreignRedirect(let expected):
      .usage("what was pasted is not an address that begins with \(quoted(expected))")
        .hint(whole + " where the browser ended up")
    case .callbackNotConfirmed:
      .refused("\(name) did not confirm the callback, as OAuth 1.0a asks it to")
        .hint("a provider that never does needs \"callback_confirmed: optional\" below \"oauth1\" in its descriptor")
    case .deviceCodeExpired: .refused("the code was not confirmed in time").hint(login + " again")
    case .clientSecretMissing: .usage("\(name) asks for a client secret, and none was given").hint(newSecret)
    case .privateKeyIsNotSent:
      .usage("the descriptor of \(name) sends the client secret, and a private key is kept as that; it was not sent")
        .hint("look at \"authentication\" in the descriptor")
    case .clientKeyMalformed:
      .usage("the client secret of \(name) is not a private key in PEM that fits the signature method")
        .hint(newSecret)
    case .noSignatures: .unexpected("this program is static and cannot sign with a private key")
    case .unknownSignature(let text):
      .usage("\(quoted(text)) is neither a signature method nor a transport of OAuth 1.0a")
    case .notRefreshable: .loginNeeded("there is nothing to refresh the token of \(name) with").hint(login)
    case .foreignHost(let host):
      .usage("the descriptor of \(name) does not name the host \(quoted(host)), so the credential is not sent there")
        .hint("the hosts are below \"hosts\" in the descriptor: \(credmgr: "providers", provider)")
    case .presentedInQuery:
      .usage("the credential of \(name) goes into the URL or the body of a request, not into a header")
        .hint("\(credmgr: "request", provider, "URL")")
    case .credentialHeader(let header):
      .usage("the header \(quoted(header)) carries the credential of \(name), and cannot be given besides")
        .hint("leave \"--header\" out for it")
    case .signatureNeedsURL:
      .usage("requests to \(name) are signed, so the header depends on the URL").hint("\(add: "--url", "URL")")
    case .malformedHeader(let header):
      .refused("the value of the header \(quoted(header)) has characters that a header cannot have")
    case .malformedCredential: .vault("a credential of \(name) in the vault cannot be read").hint(login)
    }
  }

  private func hint(_ code: String, _ provider: String) -> Remedy {
    let client = ["add-provider", provider, "--replace", "--client-id", "ID", "--client-secret-file", "FILE"]
    return switch code {
    case "invalid_client", "incorrect_client_credentials": "check the client with \(command: ["credmgr"] + client)"
    case "access_denied", "invalid_grant": "\(credmgr: "login", provider) again"
    case "invalid_scope": "name other scopes with \(command: "credmgr", "login", provider, "--scope", "SCOPE")"
    case "http_404", "http_405": comparing(provider)
    case "redirect_uri_mismatch": "register the redirect URI that \(command: "credmgr", "providers", provider) shows"
    default: "\(add: "--trace") to see what was sent and answered"
    }
  }
}

func comparing(_ provider: String) -> Remedy {
  "compare the addresses that \(command: "credmgr", "providers", provider) shows with the provider's own page"
}

/// What leads on where a provider, or the issuer at an address, was not reached.
private func reachHints(_ provider: String?) -> [Remedy] {
  guard let provider, !provider.isEmpty else { return [] }
  return DescriptorLibrary.isIdentifier(provider)
    ? ["\(credmgr: "doctor", provider)"] : ["\(credmgr: "doctor") to check certificates and proxy"]
}

private func answerHints(_ provider: String?) -> [Remedy] {
  reachHints(provider) + ["\(add: "--trace") to see what was answered"]
}

extension ErrorResponse {
  fileprivate var reason: String {
    // Where the provider gives no code, the core makes one of the status, which would say the same twice.
    let facts = (code.hasPrefix("http_") ? [] : [code]) + (status.map { ["status \($0)"] } ?? [])
    return "(\(facts.joined(separator: ", ")))" + (words.map { ": \($0)" } ?? "")
  }
}

extension IDTokenFault {
  var sentence: String {
    switch self {
    case .unsigned: "it is not signed"
    case .missing(let claim): "there is no \(quoted(claim))"
    case .repeated(let claim): "it has \(quoted(claim)) more than once"
    case .issuer(let expected, let found): "its issuer is \(quoted(found)), and not \(quoted(expected))"
    case .audience: "it is for another client (\"aud\")"
    case .authorizedParty: "it was issued to another client (\"azp\")"
    case .expired: "it has expired (\"exp\"); the clock of this machine may be wrong"
    case .issuedLater: "it is from the future (\"iat\"); the clock of this machine may be wrong"
    case .nonce: "its \"nonce\" is that of another login"
    case .accessTokenHash: "it does not belong to the access token (\"at_hash\")"
    case .subject: "it is for another person (\"sub\")"
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
  func message(provider: String? = nil) -> Message {
    let whom = provider.map { " of \(quoted($0))" } ?? ""
    return switch self {
    case .invalidURI(let text, let reason): .usage("\(quoted(text)) is not a URL that can be used: \(reason.sentence)")
    case .invalidMethod(let method): .usage("\(quoted(method)) is no HTTP method")
    case .invalidField(let name): .usage("the header \(quoted(name)) cannot be sent")
    case .unreachable(let host, let reason):
      .unreachable("cannot reach the host \(quoted(host))\(whom): \(reason.sentence)").with(hints: reachHints(provider))
    case .bodyTooLarge(let limit):
      .refused(
        "the answer\(whom) is longer than \(limit < 1 << 20 ? "\(limit >> 10) KiB" : "\(limit >> 20) MiB"), "
          + "and was not read"
      ).with(hints: provider == nil ? [] : answerHints(provider))
    case .portUnavailable(let port):
      .unexpected("port \(port) of this machine is taken, and the redirect\(whom) needs it")
        .hint("\(run: "ss", "-ltnp", "sport = :\(port)") to see which program has it")
        .hint("\(add: "--paste") to do without it")
    case .receiverTimedOut: .refused("nobody answered in time")
    case .interrupted: Message("interrupted", status: .interrupted)
    case .libraryMissing(let name): .unexpected("the library \(name) cannot be loaded: is it installed?")
    case .system(let call, let code): .unexpected("the system call \(call) failed: \(systemWords(code))")
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

extension MetadataError {
  func message(issuer: String) -> Message {
    let name = quoted(issuer)
    func its(_ member: String, _ text: String) -> String {
      "the \(quoted(member)) in the metadata of \(name) is \(quoted(text)), "
    }
    func tried(_ attempt: Attempt) -> String {
      "\(attempt.url) (status \(attempt.status)" + (attempt.location.map { ", sends to \($0)" } ?? "") + ")"
    }
    return switch self {
    case .absent(let attempts):
      .refused(
        "\(name) has no metadata that could be discovered; looked at "
          + attempts.map(tried).joined(separator: ", ")
      )
      .hint(
        "check the issuer in the provider's documentation, or write a descriptor: "
          + "\(run: "man", "credmgr-descriptor")")
    case .unavailable(let attempt):
      .unreachable("\(name) cannot answer now at \(attempt.url) (status \(attempt.status))").hint("try again later")
    case .notJSON: .refused("the metadata of \(name) is no JSON object")
    case .otherIssuer(let found):
      Message(
        "the metadata at \(name) is that of the issuer \(quoted(found)), and both have to be the same to the letter",
        // Only where it is the same server: who is asked for one issuer does not choose another.
        hint: Self.isAlmost(found, issuer) ? "\(credmgr: "add-provider", found)" : nil, status: .refused)
    case .missing(let member): .refused("the metadata of \(name) has no \(quoted(member))")
    case .malformed(let member): .refused("the \(quoted(member)) in the metadata of \(name) cannot be read")
    case .invalidURL(let member, let text): .refused(its(member, text) + "which is no URL of an endpoint")
    case .insecure("issuer", _): .usage("\(name) is not https; http is for this machine's own addresses only")
    case .insecure(let member, let text): .refused(its(member, text) + "which is not https")
    case .inwardAddress(let member, let text): .refused(its(member, text) + "an address of this machine or its network")
    case .noGrant(let offered):
      .refused("the metadata of \(name) has no grant that credmgr knows; it has \(listed(offered.prefix(8)))")
    case .noAuthentication(let offered):
      .refused("a client shows \(name) who it is only in ways that credmgr does not know: \(listed(offered.prefix(8)))")
    }
  }

  /// Whether two issuers differ in a slash at the end, or in the case of letters alone.
  private static func isAlmost(_ one: String, _ other: String) -> Bool {
    func plain(_ text: String) -> String { (text.hasSuffix("/") ? String(text.dropLast()) : text).lowercased() }
    return plain(one) == plain(other)
  }
}

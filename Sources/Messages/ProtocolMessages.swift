import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrText

extension OAuthError {
  /// - Parameter title: the name by which the user knows the provider.
  package func message(provider: String, title: String? = nil) -> Message {
    let name = title ?? quoted(provider)
    func at(_ kind: EndpointKind) -> String { "the \(quoted(kind.rawValue)) endpoint of \(name)" }
    func answer(_ text: String) -> Message { Message(text, hints: answerHints(provider), status: .refused) }
    let login: Remedy = "\(credmgr: "login", provider)"
    let whole: Remedy = login + " again and paste the whole address"
    let file: Remedy = "\(credmgr: "providers", provider) to see its file"
    let newSecret: Remedy = "\(credmgr: "add-provider", provider, "--replace", "--client-secret-file", "FILE")"
    let newCertificate = Remedy.replacingCertificate(of: provider)
    return switch self {
    case .noEndpoint(let kind):
      .usage("the descriptor of \(name) has no \(quoted(kind.rawValue)) endpoint")
        .hint("add the endpoint to the descriptor; \(file)")
    case .noIssuer:
      .usage("the issuer of \(name) is not known, so its signatures cannot be verified")
        .hint("add \"issuer\" to the descriptor; \(file)")
    case .url(let kind, let error):
      .usage("invalid URL of \(at(kind)): \(error.sentence)")
    case .missingValue(let kind, let value):
      .usage("\(at(kind)) requires a value for \(quoted(value))")
        .hint("\(credmgr: "add-provider", provider, "--replace", "--set", "\(value)=VALUE")")
    case .refused(let kind, let response):
      .refused("\(name) refused the \(quoted(kind.rawValue)) request \(response.reason)\(response.clock)")
        // That request contains no other credentials than the client's.
        .hint(
          response.clockDifference != nil
            ? .checkingClock
            : kind == .temporaryCredentials && response.code == "http_401"
              ? hint("invalid_client", provider) : hint(response.code, provider))
    case .unavailable(let kind, let status, let words, let retryAfter):
      .unreachable(
        "\(at(kind)) is unavailable" + (status.map { " (status \($0))" } ?? "") + (words.map { ": \($0)" } ?? "")
      ).hint(retryAfter.map { "try again in \(patience($0))" } ?? "try again later")
    case .redirected(let kind, let status):
      .refused(
        "\(at(kind)) redirects (status \(status)); "
          + (kind.leg.isPublic
            ? "credmgr does not trust keys at another address" : "credmgr does not send secrets to another address")
      ).hint(comparing(provider))
    case .unreadable(let kind, let expected, let mediaType):
      answer(
        expected.isNamed(by: mediaType)
          ? "the answer of \(at(kind)) is not \(expected == .text ? "" : "valid ")\(expected.words)"
          : "cannot read the answer of \(at(kind)) as \(expected.words): "
            + (mediaType.map { "its type is \(clipped($0))" } ?? "it has no content type"))
    case .unreadableXML(let kind, let fault):
      answer("cannot read the answer of \(at(kind)) as XML: \(fault.words)")
    case .noKeys: answer("the answer of \(at(.keySet)) lacks a list of \"keys\"")
    case .noEvidence(let kind):
      answer("the answer of \(at(kind)) does not show that the provider knows the credential")
    case .noChallenge(let kind):
      answer("\(at(kind)) did not ask for the password with a challenge that credmgr can answer")
    case .missingField(let kind, let field): answer("the answer of \(at(kind)) lacks \(quoted(field.rawValue))")
    case .malformedField(let kind, let field):
      answer("invalid \(quoted(field.rawValue)) in the answer of \(at(kind))")
    case .repeated(let kind, let member):
      answer("the answer of \(at(kind)) contains \(shortened(member)) more than once")
    case .tokenType(let kind, let type):
      answer(
        "unsupported token type \(shortened(type)) in the answer of \(at(kind))"
      ).with(hints: ["if the provider accepts it like Bearer, add it to \"token_types\" under \"header_style\""])
    case .issuedTokenType(let kind, let type):
      answer("the token in the answer of \(at(kind)) is not an access token: its type is \(shortened(type))")
        .with(hints: ["if the API accepts it, add it as \"requested_token_type\" to \"parameters\" of the endpoint"])
    case .tokenNotBound(let kind, let type):
      answer(
        "the token in the answer of \(at(kind)) is not bound to the key of the account: its type is \(shortened(type))"
      )
      .with(hints: ["if the provider cannot bind tokens to keys, remove \"token_binding\" from the descriptor"])
    case .idToken(let kind, .missing(claim: "nonce")):
      answer("the ID token in the answer of \(at(kind)) lacks the \"nonce\" of the login")
        .with(hints: ["if the provider never returns it, add \"nonce: false\" to the descriptor"])
    case .idToken(.identity, .missing(claim: "sub")):
      answer("the answer of \(at(.identity)) does not name the user of the ID token (\"sub\")").with(hints: [
        "if this is not OpenID Connect's \"userinfo\", name the field of the user as \"subject\" in the descriptor"
      ])
    case .idToken(.identity, .subject):
      answer("the answer of \(at(.identity)) is about another user than the ID token (\"sub\")")
    case .idToken(let kind, .algorithm(let name)) where AssertionAlgorithm(rawValue: name) != nil:
      answer("invalid ID token in the answer of \(at(kind)): \(JWTFault.algorithm(name).sentence)")
        .with(hints: [
          "if its documentation names this algorithm, add \"id_token_signed_response_alg: \(name)\" to the descriptor"
        ])
    case .idToken(let kind, let fault):
      answer("invalid ID token in the answer of \(at(kind)): \(fault.sentence)")
    case .signedAnswer(let fault): answer("invalid signed redirect from \(name): \(fault.sentence)")
    case .foreignAssertion(let kind, let origin):
      .usage(
        "cannot send the signed assertion to \(at(kind)): its server (\(quoted(origin))) is neither that of the token "
          + "endpoint nor that of the audience"
      ).hint("check the endpoints in the descriptor; \(file)")
    case .foreignAudience(let audience):
      .usage(
        "cannot send the assertion of \(name): it is for \(quoted(audience)), and the token endpoint is on another "
          + "server"
      ).hint("check \"claims\" in the descriptor; \(file)")
    case .valueOutOfBounds(let kind, let value):
      answer("the descriptor does not allow this value of \(quoted(value)) in the answer of \(at(kind))")
    case .elementMissing(let kind):
      answer("no entry in the answer of \(at(kind)) fits the descriptor and the variables of the login")
    case .elementUnknown(let kind):
      answer("not exactly one entry in the answer of \(at(kind)) has the values that the account keeps")
    case .computedValueTooLong(let kind, let value):
      .usage(
        "the value of \(quoted(value)) for \(at(kind)) exceeds \(Template.longest / 1024) KiB, or all values "
          + "together exceed 1 MiB")
    case .insecurePage(let field):
      answer("cannot show the \(quoted(field.rawValue)) in the answer of \(name): it is not an https address")
    case .foreignPage(let origin):
      .usage("the page for the code of \(name) is at \(shortened(origin)), which is not one of its servers")
        .hint("correct \"verification_uri_complete\" in the descriptor; \(file)")
    case .secretAccount:
      .usage("cannot name the account: the descriptor of \(name) takes the name from a secret field")
        .hint("name another field under \"account\" in the descriptor; \(file)")
    case .stateMismatch:
      .refused("the redirect does not belong to this login: its state is different").hint(login + " again")
    case .stateMissing: .refused("the redirect does not belong to this login: it has no state").hint(login + " again")
    case .tokenMismatch:
      .refused("the redirect does not belong to this login: its token is different").hint(login + " again")
    case .issuerMismatch(let expected, let found):
      .refused("the redirect comes from \(shortened(found)) instead of \(quoted(expected))")
    case .foreignIssuer(let found, let host):
      .refused("the redirect comes from \(shortened(found)) instead of the server \(quoted(host))")
        .hint("\(credmgr: "remove-provider", provider) if you do not trust the author of its descriptor")
    case .ownedParameter(let kind, let parameter):
      .usage("the URL of \(at(kind)) sets the parameter \(quoted(parameter)), which only credmgr may set")
    case .issuerMissing(let expected):
      .refused("the redirect does not name its issuer, as \(quoted(expected)) always does")
    case .unknownAuthentication(let method):
      .refused("\(name) registered a client with an unsupported authentication method: \(shortened(method))")
        .hint("register a client yourself, then \(add: "--client-id", "ID")")
    case .notARedirect: .usage("the pasted text is not the address of the last page in the browser").hint(whole)
    case .foreignRedirect(let expected):
      .usage("the pasted text is not an address that begins with \(quoted(expected))")
        .hint(whole + " of the last page in the browser")
    case .callbackNotConfirmed:
      .refused("\(name) did not confirm the callback, as OAuth 1.0a requires")
        .hint("if it never does, add \"callback_confirmed: optional\" under \"oauth1\" in its descriptor")
    case .deviceCodeExpired: .refused("the code expired before it was confirmed").hint(login + " again")
    case .clientSecretMissing: .usage("\(name) requires a client secret, but none is stored").hint(newSecret)
    case .clientCertificateMissing:
      .usage("\(name) requires a client certificate and its private key").hint(newCertificate)
    case .clientSecretBesideCertificateMissing:
      .usage("\(name) requires both a client secret and a client certificate with its private key")
        .hint(newCertificate)
    case .clientCertificate(let fault):
      .usage("cannot use the client certificate of \(name): \(fault.sentence)").hint(newCertificate)
    case .clientKeyEncrypted:
      .usage("cannot use the private key of \(name): it has a passphrase").hint(.removingPassphrase)
    case .clientKeyOpenSSH:
      .usage("cannot use the private key of \(name): it has the form of OpenSSH").hint(.changingForm)
    case .privateKeyIsNotSent:
      .usage("cannot authenticate to \(name): the client secret is a private key, which credmgr never sends")
        .hint("check \"authentication\" in the descriptor; \(file)")
    case .clientKeyMalformed:
      .usage("the private key of \(name) is not one for the signature method of its descriptor")
        .hint(newSecret)
    case .clientKeyTooShort:
      .usage("the RSA key of \(name) has fewer than 2048 bits").hint(newSecret)
    case .noSignatures: .unexpected("cannot sign with a private key: this program is statically linked")
    case .libraryMissing(let library):
      .unexpected("cannot read the answers of \(name): the library \(library) is not installed")
        .hint("install it: \(run: "apt-get", "install", "libxml2")")
    case .unknownSignature(let text):
      .usage("\(quoted(text)) is not a signature method or transport of OAuth 1.0a")
    case .notRefreshable:
      .loginNeeded("cannot refresh the token of \(name): the provider issued no refresh token").hint(login)
    case .foreignHost(let host):
      .usage("the descriptor of \(name) does not name the host \(quoted(host)), so the credential is not sent there")
        .hint("\(credmgr: "providers", provider) to see its hosts and its file")
    case .presentedInQuery:
      .usage("cannot print a header: \(name) expects the credential in the URL or the body of a request")
        .hint("\(credmgr: "request", provider, "URL")")
    case .ambiguousQuery:
      .usage("cannot print a header: the signature covers the query, in which servers decode \"+\" in different ways")
        .hint("write %20 for a space and %2B for a plus in the URL")
    case .challengeNeeded:
      .usage("cannot print a header: \(name) sends a challenge first, and the header answers it")
        .hint("\(credmgr: "request", provider, "URL")")
    case .bodyNeeded:
      .usage("\(name) expects its key in the body, so the request needs a method with a body, and JSON or a form")
        .hint("\(add: "--data", "{}", "--header", "Content-Type: application/json")")
    case .malformedPath:
      .usage("the token of \(name) cannot be part of a path").hint("check \"header_style\" in the descriptor; \(file)")
    case .credentialHeader(let header):
      .usage("cannot set the header \(quoted(header)): it carries the credential of \(name)")
        .hint("omit \"--header\" for this header")
    case .signatureNeedsURL:
      .usage("\(name) requires signed requests, so the header depends on the URL").hint("\(add: "--url", "URL")")
    case .malformedHeader(let header):
      .refused("the value of the header \(quoted(header)) contains characters that a header cannot have")
    case .malformedCredential: .vault("cannot read a credential of \(name) in the vault").hint(login)
    }
  }

  private func hint(_ code: String, _ provider: String) -> Remedy {
    switch code {
    case "invalid_client", "incorrect_client_credentials", "signature_invalid": replacingClient(provider)
    case "access_denied", "invalid_grant": "\(credmgr: "login", provider) again"
    case "invalid_scope": "\(credmgr: "login", provider, "--scope", "SCOPE") with a scope that the provider offers"
    case "timestamp_refused": .checkingClock
    case "invalid_dpop_proof":
      "\(credmgr: "doctor") to check the clock of this machine, and see \"token_binding\" in the descriptor"
    case "http_404", "http_405": comparing(provider)
    case "redirect_uri_mismatch": "register the redirect URI that \(command: "credmgr", "providers", provider) shows"
    default: "\(add: "--trace") to see the requests and answers"
    }
  }
}

/// Returns the command that replaces a refused client.
package func replacingClient(_ provider: String, hasSecret: Bool = true) -> Remedy {
  let secret = hasSecret ? ["--client-secret-file", "FILE"] : []
  return "\(credmgr: ["add-provider", provider, "--replace", "--client-id", "ID"] + secret)"
}

extension OAuthError {
  /// Whether the provider refused the client, as far as its answer says, and not only because of a clock.
  package var refusesClient: Bool {
    guard case .refused(_, let response) = self, response.clockDifference == nil else { return false }
    return ["invalid_client", "incorrect_client_credentials", "signature_invalid"].contains(response.code)
  }
}

extension OAuthError {
  /// Whether the cause may be a client that the provider does not know. GitHub answers the request for a device code
  /// with 404 then.
  package var mayRefuseClient: Bool {
    guard case .refused(let kind, let response) = self else { return false }
    return switch kind {
    case .deviceAuthorization: refusesClient || ["http_401", "http_403", "http_404"].contains(response.code)
    case .temporaryCredentials: refusesClient || response.code == "http_401"
    default: refusesClient
    }
  }
}

extension OAuthError {
  /// Whether the answer says that an endpoint is elsewhere.
  package var deniesEndpoint: Bool {
    switch self {
    case .redirected: true
    case .refused(_, let response): ["http_404", "http_405", "http_410"].contains(response.code)
    default: false
    }
  }
}

package func comparing(_ provider: String) -> Remedy {
  "\(credmgr: "providers", provider) and compare its endpoints with the provider's documentation"
}

extension Remedy {
  fileprivate static let checkingClock: Remedy = "\(credmgr: "doctor") to check the clock of this machine"

  /// The usual cause of a name that does not resolve is a machine without a network.
  package static let checkingNetwork: Remedy = "check the network of this machine, and the host name in the message"
}

extension ResponseFormat {
  /// Whether the type of an answer is that of this format, so that its content must be wrong.
  fileprivate func isNamed(by mediaType: String?) -> Bool {
    switch self {
    case .json, .xml: mediaType?.hasSuffix(rawValue) == true
    case .text: mediaType == "text/plain"
    case .form, .fragment, .query: false
    }
  }

  fileprivate var words: String {
    switch self {
    case .json: "JSON"
    case .xml: "XML"
    case .text: "one line of text"
    case .form, .fragment, .query: "a " + rawValue
    }
  }
}

extension ErrorResponse {
  fileprivate var reason: String {
    // Without a code from the provider, the OAuth core makes one from the status. Do not show both.
    let facts = (code.hasPrefix("http_") ? [] : [code]) + (status.map { ["status \($0)"] } ?? [])
    return "(\(facts.joined(separator: ", ")))" + (words.map { ": \($0)" } ?? "")
  }

  /// The words for a wrong clock, which may be this machine's or the provider's.
  fileprivate var clock: String {
    guard let difference = clockDifference else { return "" }
    let size = max(difference, .zero - difference)
    return
      "; the clock of this machine is \(duration(size)) \(difference > .zero ? "behind" : "ahead of") the provider's"
  }
}

extension URLTemplateError {
  package var sentence: String {
    switch self {
    case .template(let error): error.sentence
    case .authority(let value): "\(quoted(value)) is not allowed in a host name"
    case .path(let template): "a value adds \".\" or \"..\" to the path of \(quoted(template))"
    case .base(let template): "the base address in \(quoted(template)) has a query or a fragment"
    case .url(let text): "\(quoted(text)) is not an absolute URL"
    case .insecure(let text): "\(quoted(text)) must use https; http is only for addresses of this machine"
    }
  }
}

extension MetadataError {
  package func message(issuer: String) -> Message {
    let name = quoted(issuer)
    func its(_ member: String, _ text: String) -> String {
      "\(name) has an invalid \(quoted(member)): \(shortened(text)) "
    }
    return switch self {
    case .absent(let attempts):
      .refused(
        "no metadata found for \(name) "
          + (attempts.compactMap(\.location).first.map { "(it redirects to \(clipped($0)))" }
            ?? "(status \(listedPlainly(attempts.map(\.status))))")
      ).hint("\(add: "--trace") to see the requests").hint("check the issuer in the provider's documentation")
    case .open:
      .refused("no metadata found for \(name), which answers requests without a token, so it may need none")
        .hint("check the address in the provider's documentation")
    case .unavailable(let attempt):
      .unreachable("\(attempt.url) is unavailable (status \(attempt.status))").hint("try again later")
    case .notJSON: .refused("the metadata of \(name) is not a JSON object")
    case .otherIssuer(let found):
      Message(
        "the metadata of \(name) is for another issuer: \(shortened(found))",
        // Suggest only the same server: a user who chose one issuer does not want another.
        hint: Self.isAlmost(found, issuer) ? "\(credmgr: "add-provider", found)" : nil, status: .refused)
    case .missing(let member): .refused("the metadata of \(name) lacks \(quoted(member))")
    case .repeated(let member): .refused("the metadata of \(name) contains \(quoted(member)) more than once")
    case .malformed(let member): .refused("invalid \(quoted(member)) in the metadata of \(name)")
    case .invalidURL(let member, let text): .refused(its(member, text) + "is not an endpoint URL")
    case .insecure("issuer", _): .usage("\(name) must use https; http is only for addresses of this machine")
    case .insecure(let member, let text): .refused(its(member, text) + "is not https")
    case .inwardAddress(let member, let text): .refused(its(member, text) + "is not a public address")
    case .noGrant(let offered):
      .refused("\(name) offers no grant that credmgr supports, only \(first(offered))")
    case .noAuthentication(let offered):
      .refused("credmgr supports no client authentication method of \(name): \(first(offered))")
    case .noAlgorithm(let member, let offered):
      .refused("credmgr supports no signature algorithm in \(quoted(member)) of \(name): \(first(offered))")
    case .otherResource(let found):
      .refused("the metadata of \(name) is for another resource: \(shortened(found))")
    case .foreignMetadata(let text):
      .refused("\(name) names metadata on another server, \(shortened(text)); only its own server can speak for it")
    case .noProofKey(let offered):
      .refused(
        "\(name) does not announce PKCE with S256, which protects the login"
          + (offered.map { $0.isEmpty ? "" : ", only \(first($0))" } ?? ""))
    case .lostProofKey(let provider, let offered):
      .refused(
        "\(name) no longer announces PKCE with S256, which protects the login"
          + (offered.map { $0.isEmpty ? "" : ", only \(first($0))" } ?? "")
      )
      .hint("\(credmgr: "add-provider", issuer, "--as", provider, "--replace") if the provider confirms this change")
    case .severalServers(let servers):
      .usage("\(name) has \(servers.count) authorization servers: \(first(servers))").hint(
        "\(add: "--issuer", servers[0]) to use the first one")
    case .unknownServer(let server, let offered):
      .usage("\(quoted(server)) is not an authorization server of \(name), only \(first(offered))").hint(
        "\(add: "--issuer", offered[0])")
    }
  }

  private func listedPlainly(_ statuses: [Int]) -> String {
    var distinct: [Int] = []
    for status in statuses where !distinct.contains(status) { distinct.append(status) }
    return distinct.map(String.init).joined(separator: ", ")
  }

  /// Whether two issuers differ only in a trailing slash or in case.
  private static func isAlmost(_ one: String, _ other: String) -> Bool {
    func plain(_ text: String) -> String { (text.hasSuffix("/") ? String(text.dropLast()) : text).lowercased() }
    return plain(one) == plain(other)
  }
}

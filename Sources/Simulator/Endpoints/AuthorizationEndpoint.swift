import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

extension Simulation {
  private static let codeLifetime = Duration.minutes(1)

  /// Shows the login page (RFC 6749, 4.1.1 and 4.2.1). Errors go to the client by redirect, unless the redirect URI
  /// cannot be trusted (4.1.2.1).
  mutating func authorizationPage(_ parameters: EndpointParameters) throws(Refusal) -> HTTPResponse {
    if descriptor.endpoints[.pushedAuthorizationRequest] != nil { return try pushedPage(parameters) }
    let parameters = try opened(parameters)
    let redirect = try trustedRedirect(parameters)
    do throws(Refusal) {
      let terms = try terms(parameters, redirect)
      return consentPage(.authorization(terms), scope: terms.scope, redirect: redirect ?? registeredRedirect)
    } catch {
      state.log.refused(at: parameters.kind.rawValue, error)
      var answer = AnswerContent(parameters.endpoint.response)
      answer.setError(error)
      let terms = AuthorizationTerms(
        grant: offeredGrants.first ?? .authorizationCode, redirectURI: redirect, scope: [],
        state: parameters.request.uri.queryParameters[first: parameters.wireName("state")])
      return self.redirect(terms, answer)
    }
  }

  // MARK: Pushed requests (RFC 9126)

  private static let pushedLifetime = Duration.minutes(1)

  /// Accepts a request for the page (RFC 9126, 2.1) and returns a reference to it (2.2).
  mutating func pushedRequest(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    try checkClient(parameters)
    guard let endpoint = descriptor.endpoints[.authorization] else { throw .noSuchPath }
    if try parameters.optional("request_uri") != nil { throw .unwanted("request_uri") }
    // The rules of the page apply to the pushed parameters.
    var page = HTTPRequest(method: "GET", uri: parameters.request.uri)
    // The identifier of the authentication has its own name.
    let own = endpoint.rename["client_id"] == nil ? nil : parameters.wireName("client_id")
    let authentication = ["client_secret", "client_assertion", "client_assertion_type"].map(parameters.wireName)
    let sent = EndpointParameters.body(of: parameters.request).pairs.filter {
      $0.name != own && !authentication.contains($0.name)
    }
    page.uri = page.uri.withoutQueryAndFragment.adding(query: FormParameters(sent))
    let pushed = try opened(EndpointParameters(page, .authorization, of: endpoint))
    let redirect = try trustedRedirect(pushed)
    let reference = "urn:ietf:params:oauth:request_uri:" + randomText("")
    state.pushedRequests[reference] = PushedRequest(
      terms: try terms(pushed, redirect), expiresAt: now + Self.pushedLifetime)
    answer.status = 201
    answer.set(.requestURI, .string(reference))
    answer.set(.expiresIn, time: Self.pushedLifetime)
  }

  /// Shows the login page of a pushed request, which works once (RFC 9126, 4 and 7.3).
  private mutating func pushedPage(_ parameters: EndpointParameters) throws(Refusal) -> HTTPResponse {
    guard let reference = try parameters.optional("request_uri") else { throw .notPushed }
    guard isClient(try parameters.needed("client_id")) else { throw .unknownClient }
    // Everything else was pushed (RFC 9126, 4; RFC 9101, 5).
    if let name = parameters.names.first(where: { ![parameters.wireName("client_id"), "request_uri"].contains($0) }) {
      throw .unwanted(name)
    }
    guard let pushed = state.pushedRequests.removeValue(forKey: reference) else { throw .pushedRequestUnknown }
    guard now <= pushed.expiresAt else { throw .pushedRequestExpired }
    let terms = pushed.terms
    return consentPage(.authorization(terms), scope: terms.scope, redirect: terms.redirectURI ?? registeredRedirect)
  }

  /// Returns the redirect URI of our client's request; `nil` if it names none.
  private mutating func trustedRedirect(_ parameters: EndpointParameters) throws(Refusal) -> String? {
    var redirects: [String]?
    if !parameters.isDropped("client_id") {
      let client = try parameters.needed("client_id")
      try readDocument(of: client)
      guard isClient(client) else { throw .unknownClient }
      redirects = state.documents[client]
    }
    guard let given = try parameters.required("redirect_uri") else { return nil }
    let isListed = redirects.map { Self.isListed(redirect: given, in: $0) }
    guard isListed ?? isRegistered(redirect: given) else { throw .redirectMismatch }
    return given
  }

  private var registeredRedirect: String { (try? descriptor.redirect.template.filled(value)) ?? "" }

  /// Whether a redirect is the registered one. A loopback one without a port allows any (RFC 8252, 7.3).
  func isRegistered(redirect given: String) -> Bool {
    guard let registered = try? URI(parsing: registeredRedirect), registered.scheme == "http",
      registered.isLoopback, registered.port == nil, let uri = try? URI(parsing: given)
    else { return given == registeredRedirect }
    let bare = uri.replacing(port: nil)
    let name = bare.path.split(separator: "/").last.map(String.init) ?? ""
    // The provider may have another name, or come from an earlier version.
    let isStandard =
      descriptor.ownRedirect == nil
      && [Descriptor.sharedRedirect, Descriptor.standardRedirect(of: name)].contains(bare.text)
    return bare == registered || isStandard
  }

  private func terms(_ parameters: EndpointParameters, _ redirect: String?) throws(Refusal) -> AuthorizationTerms {
    try parameters.checkRules(knowledge())
    let grant = try grant(parameters)
    // `optional` means that answers without a state are accepted. Such a provider receives the state but loses it.
    let state = try parameters.needed("state")
    return AuthorizationTerms(
      grant: grant, redirectURI: redirect, scope: try scope(parameters), state: state,
      challenge: try challenge(parameters, grant), key: try parameters.optional("dpop_jkt"),
      nonce: descriptor.nonce == true ? try parameters.needed("nonce") : try parameters.optional("nonce"),
      context: try context(parameters), details: try details(parameters),
      client: isStandard ? try parameters.needed("client_id") : nil)
  }

  /// Returns the way of authentication that the client prefers (OpenID Connect Core 1.0, 3.1.2.1).
  func context(_ parameters: EndpointParameters) throws(Refusal) -> String? {
    try parameters.optional("acr_values")?.split(separator: " ").first.map(String.init)
  }

  private var offeredGrants: [Grant] { descriptor.grants.filter { $0 == .authorizationCode || $0 == .implicit } }

  private func grant(_ parameters: EndpointParameters) throws(Refusal) -> Grant {
    let isOurs = parameters.isDropped("response_type") || parameters.isSet("response_type")
    let type = isOurs ? nil : try parameters.needed("response_type")
    let grant = offeredGrants.first { isOurs || ($0 == .implicit ? "token" : "code") == type }
    guard let grant else { throw .unsupportedResponseType }
    return grant
  }

  /// Returns the challenge; `nil` if the request has none (RFC 7636, 4.3).
  private func challenge(_ parameters: EndpointParameters, _ grant: Grant) throws(Refusal) -> String? {
    let challenge = try parameters.optional("code_challenge")
    let method = try parameters.optional("code_challenge_method")
    guard grant == .authorizationCode, let expected = descriptor.pkce.wireName else {
      if challenge != nil { throw .unwantedChallenge(parameters.wireName("code_challenge")) }
      return nil
    }
    guard let challenge else { throw .missing(parameters.wireName("code_challenge")) }
    guard method == expected || parameters.isDropped("code_challenge_method") else {
      throw .wrongValue(parameters.wireName("code_challenge_method"))
    }
    let count = decoded(challenge: challenge)?.count ?? 0
    guard descriptor.pkce == .plain ? (43...128).contains(count) : count == 32 else { throw .malformedChallenge }
    return challenge
  }

  /// Decodes a challenge (RFC 7636, 4.2), which TikTok writes in hexadecimal.
  private func decoded(challenge: String) -> [UInt8]? {
    switch descriptor.pkce {
    case .s256: Base64.decodeURL(challenge)
    case .s256Hexadecimal: Hexadecimal.decode(challenge)
    case .plain: Array(challenge.utf8)
    case .none: nil
    }
  }

  /// Checks a verifier (RFC 7636, 4.6) with its own code, so that it does not share a fault with the client.
  func isChallenge(_ challenge: String, of verifier: String) -> Bool {
    let verifier = Array(verifier.utf8)
    return decoded(challenge: challenge)
      == (descriptor.pkce == .plain ? verifier : HashAlgorithm.sha256.digest(verifier))
  }

  // MARK: After the decision

  mutating func decide(_ terms: AuthorizationTerms, account: String?) throws(Refusal) -> HTTPResponse {
    guard let rules = descriptor.endpoints[.authorization]?.response else { throw .noSuchPath }
    var answer = AnswerContent(rules)
    let isOutOfBand = Descriptor.isOutOfBand(terms.redirectURI ?? registeredRedirect)
    if let account {
      let consent = addConsent(
        account: account, scope: terms.scope, details: terms.details, context: terms.context, client: terms.client)
      if terms.grant == .implicit {
        let isLasting = terms.scope.contains("refresh_token") || terms.scope.contains("offline_access")
        issue(consent, withRefreshToken: isLasting, into: &answer)
      } else {
        let code = randomText("code-")
        state.codes[code] = IssuedCode(terms: terms, consent: consent, expiresAt: now + Self.codeLifetime)
        answer.set(.code, .string(code))
        // Fields that the token answer contains come with the token.
        let later = descriptor.endpoints[.token]?.response.keep.map(\.name) ?? []
        answer.set(kept: state.consents[consent].kept, rules.keep.filter { !later.contains($0.name) })
        if isOutOfBand { return Self.codePage(code) }
      }
    } else {
      state.log.count(.denials)
      if isOutOfBand { return .page(.denied) }
      answer.setError(.denied)
    }
    return redirect(terms, answer)
  }

  /// Redirects to the client, with `state` and `iss` (RFC 9207).
  private func redirect(_ terms: AuthorizationTerms, _ answer: AnswerContent) -> HTTPResponse {
    var answer = answer
    if let given = terms.state, descriptor.state == .required {
      answer.set(.state, .string(hasFault(.wrongState) ? "not-" + given : given))
    }
    let issuer = hasFault(.wrongIssuer) ? "https://wrong-issuer.example" : issuer
    if let issuer { answer.set(.issuer, .string(issuer)) }
    let inFragment = terms.grant == .implicit && answer.rules.format != .query
    let parameters = descriptor.getsSignedAnswers ? signedAnswer(answer.parameters) : answer.parameters
    return Self.redirect(to: terms.redirectURI ?? registeredRedirect, parameters, inFragment: inFragment)
  }
}

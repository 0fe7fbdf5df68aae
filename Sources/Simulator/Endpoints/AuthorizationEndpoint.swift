import Cryptography
import HTTP
import Descriptors

extension Simulation {
  private static let codeLifetime: Milliseconds = 60_000

  /// The page of RFC 6749, 4.1.1 and 4.2.1. What is wrong is told to the client by a redirect, unless it is not certain
  /// where that would go (4.1.2.1).
  mutating func authorizationPage(_ request: HTTPRequest, _ endpoint: Endpoint) -> HTTPResponse {
    let place = EndpointKind.authorization.rawValue
    let redirect: (uri: String, isExplicit: Bool)
    let parameters: EndpointParameters
    do throws(Refusal) {
      parameters = try EndpointParameters(request, endpoint)
      redirect = try trustedRedirect(parameters)
    } catch {
      state.log.refused(at: place, error)
      return .page(error)
    }
    do throws(Refusal) {
      let terms = try terms(parameters, redirect.uri, isExplicit: redirect.isExplicit)
      let identifier = randomText("consent-")
      state.pages[identifier] = .authorization(terms)
      return consentPage(identifier, scope: terms.scope, redirect: redirect.uri)
    } catch {
      state.log.refused(at: place, error)
      let wire = endpoint.rename["state"] ?? "state"
      let given = request.uri.queryParameters[first: wire]
      var content = AnswerContent(endpoint.response)
      content.setError(error)
      addState(given, to: &content)
      addIssuer(to: &content)
      return Self.redirect(to: redirect.uri, content.parameters, inFragment: answersInFragment(nil, endpoint))
    }
  }

  /// The redirect URI of a request of our client.
  private func trustedRedirect(_ parameters: EndpointParameters) throws(Refusal) -> (uri: String, isExplicit: Bool) {
    if !parameters.isDropped("client_id") {
      guard isClient(try parameters.needed("client_id")) else { throw .client(.unknownClient) }
    }
    guard let given = try parameters.required("redirect_uri") else { return (registeredRedirect, false) }
    guard isRegistered(redirect: given) else { throw .request(.redirectMismatch) }
    return (given, true)
  }

  /// The redirect that the client is registered with.
  private var registeredRedirect: String { (try? descriptor.redirect.template.filled(value)) ?? "" }

  /// Whether a redirect is the registered one. One on loopback without a port may have any (RFC 8252, 7.3).
  func isRegistered(redirect given: String) -> Bool {
    guard let registered = try? URI(parsing: registeredRedirect), registered.scheme == "http",
      registered.isLoopback, registered.port == nil, let uri = try? URI(parsing: given)
    else { return given == registeredRedirect }
    return uri.replacing(port: nil) == registered
  }

  private func terms(
    _ parameters: EndpointParameters, _ redirectURI: String, isExplicit: Bool
  ) throws(Refusal) -> AuthorizationTerms {
    try parameters.checkRules(knowledge())
    let grant = try grant(parameters)
    // `optional` says that an answer without it is taken: such a provider loses it, but is still sent it.
    let givenState = try parameters.needed("state")
    var scope = try scopes(try parameters.optional("scope"))
    if scope.isEmpty { scope = descriptor.scope.requested }
    return AuthorizationTerms(
      grant: grant, redirectURI: redirectURI, isRedirectExplicit: isExplicit, scope: scope, state: givenState,
      challenge: try challenge(parameters, grant), nonce: try nonce(parameters))
  }

  private func grant(_ parameters: EndpointParameters) throws(Refusal) -> Grant {
    let offered = descriptor.grants.filter { $0 == .authorizationCode || $0 == .implicit }
    guard let first = offered.first else { throw Refusal("unauthorized_client", .unsupportedResponseType) }
    if parameters.isDropped("response_type") || parameters.isSet("response_type") { return first }
    let type = try parameters.needed("response_type")
    let grant: Grant? = type == "code" ? .authorizationCode : type == "token" ? .implicit : nil
    guard let grant, offered.contains(grant) else {
      throw Refusal("unsupported_response_type", .unsupportedResponseType)
    }
    return grant
  }

  private func nonce(_ parameters: EndpointParameters) throws(Refusal) -> String? {
    descriptor.sendsNonce ? try parameters.needed("nonce") : try parameters.optional("nonce")
  }

  /// RFC 7636, 4.3.
  private func challenge(_ parameters: EndpointParameters, _ grant: Grant) throws(Refusal) -> String? {
    let challenge = try parameters.optional("code_challenge")
    let method = try parameters.optional("code_challenge_method")
    guard grant == .authorizationCode, let expected = descriptor.pkce.wireName else {
      if challenge != nil { throw .request(.unwantedChallenge(parameters.wireName("code_challenge"))) }
      return nil
    }
    guard let challenge else { throw .request(.missing(parameters.wireName("code_challenge"))) }
    guard method == expected || parameters.isDropped("code_challenge_method") else {
      throw .request(.wrongValue(parameters.wireName("code_challenge_method")))
    }
    let length = challenge.utf8.count
    let isWellFormed =
      switch descriptor.pkce {
      case .s256: length == 43 && Base64.decodeURL(challenge) != nil
      case .s256Hexadecimal: length == 64 && Hexadecimal.decode(challenge) != nil
      case .plain: (43...128).contains(length)
      case .none: false
      }
    guard isWellFormed else { throw .request(.malformedChallenge) }
    return challenge
  }

  // MARK: After the decision

  /// The answer to a decision on the page.
  mutating func decide(_ terms: AuthorizationTerms, account: String?) -> HTTPResponse {
    guard let endpoint = descriptor.endpoints[.authorization] else { return .page(.request(.noSuchPath)) }
    let rules = endpoint.response
    var content = AnswerContent(rules)
    if let account {
      let consent = addConsent(account: account, scope: terms.scope)
      switch terms.grant {
      case .implicit:
        let switches: Set = ["refresh_token", "offline_access"]
        issue(consent, withRefreshToken: !switches.isDisjoint(with: terms.scope), into: &content, rules)
      default:
        let code = randomText("code-")
        state.codes[code] = IssuedCode(terms: terms, consent: consent, expiresAt: now + Self.codeLifetime)
        content.set(.code, .string(code))
        // What the token answer brings as well comes with the token.
        let later = Set(descriptor.endpoints[.token]?.response.keep.map(\.name) ?? [])
        content.set(kept: state.consents[consent].kept, rules.keep.filter { !later.contains($0.name) })
        if Descriptor.isOutOfBand(terms.redirectURI) { return Self.codePage(code) }
      }
    } else {
      state.log.count(.denials)
      content.setError(Refusal("access_denied", .denied))
      if Descriptor.isOutOfBand(terms.redirectURI) { return .page(Refusal("access_denied", .denied)) }
    }
    addState(terms.state, to: &content)
    addIssuer(to: &content)
    return Self.redirect(
      to: terms.redirectURI, content.parameters, inFragment: answersInFragment(terms.grant, endpoint))
  }

  static func codePage(_ code: String) -> HTTPResponse {
    .page(
      200, title: "Your code",
      body: "<p>Copy this code into the program that asked for it:</p><p><code>\(HTTPResponse.escaped(code))</code></p>"
    )
  }

  private func addState(_ given: String?, to content: inout AnswerContent) {
    guard let given, descriptor.state == .required else { return }
    content.set(.state, .string(hasFault(.wrongState) ? "not-" + given : given))
  }

  /// RFC 9207.
  private func addIssuer(to content: inout AnswerContent) {
    if hasFault(.wrongIssuer) {
      content.set(.issuer, .string("https://wrong-issuer.example"))
    } else if let issuer {
      content.set(.issuer, .string(issuer))
    }
  }

  private func answersInFragment(_ grant: Grant?, _ endpoint: Endpoint) -> Bool {
    let grant = grant ?? descriptor.grants.first { $0 == .authorizationCode || $0 == .implicit }
    return grant == .implicit && endpoint.response.format != .query
  }

  static func redirect(to uri: String, _ parameters: FormParameters, inFragment: Bool) -> HTTPResponse {
    guard let target = try? URI(parsing: uri) else { return .page(.request(.redirectMismatch)) }
    let whole = inFragment ? target.with(fragment: parameters.encoded) : target.adding(query: parameters)
    return .redirect(to: whole.text)
  }
}

import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import CredmgrText

/// The page request for the user's browser (RFC 6749, 4.1.1 and 4.2.1), with the values that its answer must match.
package struct AuthorizationRequest: Sendable, Redacted {
  package fileprivate(set) var uri: URI
  package let page: URI  // Without the parameters of this request.
  package let grant: Grant
  package let state: String
  package let codeVerifier: CodeVerifier?
  package let nonce: String?
  package let redirectURI: String
  package let scope: [String]
  package var keys: KeySet?  // The provider's keys, if its answer is signed.

  /// The parameters of the page request, which a pushed request sends in its body instead (RFC 9126, 2.1).
  var parameters: FormParameters {
    let inFragment = FormParameters(decoding: String((uri.fragment ?? "").drop { $0 != "?" }.dropFirst()))
    var all = uri.queryParameters.removing(page.queryParameters) ?? uri.queryParameters
    all.append(contentsOf: inFragment)
    return all
  }

  /// Whether the token answer or the redirect should carry an ID token (OpenID Connect Core 1.0, 3).
  var asksIDToken: Bool {
    guard scope.contains("openid") else { return false }
    return grant == .authorizationCode
      || uri.queryParameters.pairs.contains { $0.value.split(separator: " ").contains("id_token") }
  }
}

/// Makes the provider ask which user logs in, because the browser may have another account's session.
package struct PersonChoice: Sendable {
  package let identity: String?  // The provider's name for the expected user; `nil` for a new account.

  package init(identity: String?) { self.identity = identity }
}

/// An answer to an authorization request. Only `authorizationResponse` creates one, after it compares the `state`.
package struct AuthorizationResponse: Sendable, Redacted {
  package let request: AuthorizationRequest
  let answer: Answer
}

/// A proof key for code exchange (RFC 7636).
package struct CodeVerifier: Sendable, Equatable, Redacted {
  package let text: String  // 43 characters (RFC 7636, 4.1).

  package init(random: some RandomSource) { text = Base64.encodeURL(random.bytes(32)) }

  package init(_ text: String) { self.text = text }

  /// Returns the challenge (RFC 7636, 4.2); `nil` for `.none`.
  package func challenge(_ method: PKCEMethod) -> String? {
    switch method {
    case .s256: Base64.encodeURL(HashAlgorithm.sha256.digest(Array(text.utf8)))
    case .s256Hexadecimal: Hexadecimal.encode(HashAlgorithm.sha256.digest(Array(text.utf8)))
    case .plain: text
    case .none: nil
    }
  }
}

extension PKCEMethod {
  package var wireName: String? {
    switch self {
    case .s256, .s256Hexadecimal: "S256"
    case .plain: "plain"
    case .none: nil
    }
  }
}

extension Client {
  /// Builds the page request. The redirect URI includes the listening port. An empty scope is omitted.
  package func authorizationRequest(
    _ grant: Grant, redirectURI: String, scope: [String], demanding demands: ConsentDemands = ConsentDemands(),
    choosing person: PersonChoice? = nil, random: some RandomSource, nonce requestNonce: RequestNonce
  ) throws(OAuthError) -> AuthorizationRequest {
    let state = Base64.encodeURL(random.bytes(32))
    let method = proofKeyMethod
    let verifier = grant == .authorizationCode && method != .none ? CodeVerifier(random: random) : nil
    var parameters: FormParameters = [
      ("response_type", grant == .implicit ? "token" : "code"), ("client_id", identifier),
      ("redirect_uri", redirectURI),
    ]
    if !scope.isEmpty { parameters.append("scope", joined(scope)) }
    parameters.append(contentsOf: details(descriptor.authorizationDetails.requested))
    parameters.append("state", state)
    if let verifier, let challenge = verifier.challenge(method), let name = method.wireName {
      parameters.append("code_challenge", challenge)
      parameters.append("code_challenge_method", name)
    }
    if grant == .authorizationCode { parameters.append(contentsOf: try bindingParameters()) }
    let nonce = descriptor.sendsNonce(with: scope) ? Base64.encodeURL(random.bytes(32)) : nil
    if let nonce { parameters.append("nonce", nonce) }
    add(demands, to: &parameters)
    let exchange = ["redirect_uri": redirectURI, "scope": joined(scope)]
    let request = try request(
      .authorization, parameters, exchange: exchange, choosing: person, nonce: requestNonce)
    let page = try uri(.authorization, values: values(for: nil, exchange), calculator(requestNonce))
    var plain = AuthorizationRequest(
      uri: request.uri, page: page, grant: grant, state: state, codeVerifier: verifier, nonce: nonce,
      redirectURI: redirectURI, scope: scope)
    if descriptor.signsRequests {
      let name = try endpoint(.authorization).rename["client_id"] ?? "client_id"
      let object = try requestObject(plain.parameters, for: page, nonce: requestNonce)
      // RFC 9101, 5: the identifier stays outside as well.
      plain.uri = page.adding(
        query: FormParameters([.init(name: name, value: identifier), .init(name: "request", value: object)]))
    }
    return plain
  }

  /// A public client always sends a challenge (RFC 9700, 2.1.1), because a server that does not know the parameter
  /// ignores it (RFC 6749, 3.1) and S256 does not reveal the verifier (RFC 7636, 4.2).
  var proofKeyMethod: PKCEMethod {
    isPublic && [.none, .plain].contains(descriptor.pkce) ? .s256 : descriptor.pkce
  }

  /// Whether the client never proves a secret to the token endpoint, in any form.
  private var isPublic: Bool {
    guard let secret, !secret.isEmpty else { return true }
    guard let token = descriptor.endpoints[.token], authentication(for: token) == .none else { return false }
    let templates = token.parameters.compactMap(\.value) + token.headers.map(\.value)
    return !templates.contains { $0.names.contains { $0 == "client_secret" || $0 == "assertion" } }
  }

  /// Returns the page step, whose answer carries a code or a token.
  func page(
    _ request: AuthorizationRequest, at uri: URI, _ login: LoginContext,
    read: @escaping (_ parameters: FormParameters, _ now: Moment) throws(OAuthError) -> Step
  ) -> Step.Page {
    var expected: [(field: ResponseField, value: String)] = [(.state, request.state)]
    if descriptor.issuerResponse == .required, let issuer { expected.append((.issuer, issuer)) }
    return Step.Page(
      uri: uri, expected: expected, brings: request.grant == .implicit ? .accessToken : .code, login: login,
      read: read)
  }

  private static let issuerPaths = [FieldPath("iss")]  // RFC 9207, 2; a descriptor cannot rename it.

  /// Reads the callback. Checks the `state` first, in constant time.
  package func authorizationResponse(
    _ parameters: FormParameters, to request: AuthorizationRequest, now: Moment = 0
  ) throws(OAuthError) -> AuthorizationResponse {
    let rules = try endpoint(.authorization).response
    let parameters =
      descriptor.getsSignedAnswers && !computing.isOnlyShown
      ? try signedAnswer(parameters, to: request, now: now) : parameters
    let answer = Answer(redirect: parameters, rules)
    if let name = answer.repeatedName(Self.issuerPaths) {
      // Only a caller that knows the state may end the login with an error.
      let states = rules.source(of: .state).paths.flatMap { parameters.values(of: $0.text) }
      if states.contains(where: { constantTimeEqual($0, request.state) }) {
        throw .repeated(.authorization, name: name)
      }
      throw states.isEmpty ? .stateMissing : .stateMismatch
    }
    let needed: ResponseField = request.grant == .implicit ? .accessToken : .code
    let expected = issuer
    let otherIssuer = parameters.values(of: ResponseField.issuer.rawValue).first { found in
      expected.map { $0 != found } ?? !mayBeIssuer(found)
    }
    if let state = state(in: answer, parameters) {
      guard constantTimeEqual(state, request.state) else { throw .stateMismatch }
    } else {
      // If the provider does not return the state, accept only an answer that has the shape this request expects.
      let isAnswer = (answer.error != nil || answer.text(needed) != nil) && otherIssuer == nil
      if descriptor.state == .required || !isAnswer { throw .stateMissing }
    }
    if let otherIssuer {
      if let expected { throw .issuerMismatch(expected: expected, found: otherIssuer) }
      throw .foreignIssuer(found: otherIssuer, host: issuerOrigins.first?.host ?? descriptor.identifier)
    }
    if let expected, answer.text(.issuer) == nil, descriptor.issuerResponse == .required {
      throw .issuerMissing(expected: expected)
    }
    if let error = answer.error { throw answer.failure(error) }
    guard answer.text(needed) != nil else { throw .missingField(.authorization, needed) }
    _ = try kept(answer)
    return AuthorizationResponse(request: request, answer: answer)
  }

  /// Returns the `state`, even if the descriptor does not read it; `nil` if the request sent it under another name.
  private func state(in answer: Answer, _ parameters: FormParameters) -> String? {
    if let state = answer.text(.state) { return state }
    guard descriptor.endpoints[.authorization]?.rename["state"] == nil else { return nil }
    return parameters[first: "state"].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The endpoints for consent and code. Endpoints that receive neither say nothing about the issuer.
  private var issuerOrigins: [URI] {
    let values = values()
    return [EndpointKind.authorization, .token].compactMap { try? descriptor.endpoints[$0]?.url.filled(values) }
  }

  /// Whether an issuer plausibly belongs to this provider when the descriptor names none (RFC 9207, 2.4).
  func mayBeIssuer(_ text: String) -> Bool {
    guard let issuer = try? URI(parsing: text) else { return false }
    return issuerOrigins.contains { $0.isRelated(to: issuer) }
  }

  /// Reads a pasted redirect: the redirect URI plus only query or fragment parameters (RFC 6749, 3.1.2.3). Parameters
  /// without the address are refused because they do not show where the provider redirected to.
  package func redirectParameters(
    pasted text: String, redirectURI: String, inFragment: Bool
  ) throws(OAuthError) -> FormParameters {
    guard let uri = try? URI(parsing: text.unwrapped) else { throw .notARedirect }
    guard let expected = try? URI(parsing: redirectURI), uri.hasSamePlace(as: expected),
      let query = uri.queryParameters.removing(expected.queryParameters)
    else { throw .foreignRedirect(expected: redirectURI) }
    let fragment = FormParameters(decoding: uri.fragment ?? "")
    let answers = inFragment ? [fragment, query] : [query, fragment]
    guard let parameters = answers.first(where: { !$0.isEmpty }) else { throw .notARedirect }
    return parameters
  }

  /// Reads a pasted address of a page that shows a code, or only its query or fragment; `nil` for a plain code.
  package func outOfBandParameters(pasted text: String) -> FormParameters? {
    let text = text.unwrapped
    var parameters = FormParameters(decoding: String(text.drop { $0 == "?" || $0 == "#" }))
    if let uri = try? URI(parsing: text) {
      parameters = uri.queryParameters
      parameters.append(contentsOf: FormParameters(decoding: uri.fragment ?? ""))
    }
    let answer = Answer(redirect: parameters, descriptor.endpoints[.authorization]?.response ?? ResponseRules())
    let fields: [ResponseField] = [.code, .accessToken, .oauthVerifier, .oauthToken, .state]
    return answer.error != nil || fields.contains { answer.text($0) != nil } ? parameters : nil
  }
}

extension URI {
  /// Whether two servers have the same scheme and port, and one host equals the other or is its subdomain.
  package func isRelated(to other: URI) -> Bool {
    guard scheme == other.scheme, effectivePort == other.effectivePort else { return false }
    let (one, two) = (serverName, other.serverName)
    func isAbove(_ upper: String, _ lower: String) -> Bool {
      upper.contains(".") && lower.hasSuffix("." + upper) && upper.last?.isNumber == false
    }
    return !one.isEmpty && (one == two || isAbove(one, two) || isAbove(two, one))
  }

  /// The host; `localhost` for every loopback address.
  package var serverName: String {
    guard let host, !isLoopback else { return isLoopback ? "localhost" : "" }
    return host.hasSuffix(".") ? String(host.dropLast()) : host
  }

  /// Compares schemes and hosts as they are, because `URI` stores both in lowercase.
  fileprivate func hasSamePlace(as other: URI) -> Bool {
    // RFC 3986, 6.2.3: with an authority, an empty path is the path "/".
    let isWeb = scheme == "http" || scheme == "https"
    let paths = [path, other.path].map { isWeb && $0.isEmpty ? "/" : $0 }
    return scheme == other.scheme && host == other.host && effectivePort == other.effectivePort && paths[0] == paths[1]
  }
}

extension String {
  /// The text without spaces and without the marks that mail and chat programs put around an address.
  var unwrapped: String {
    let isMark = { (character: Character) in character.isWhitespace || "<>\"'`“”‘’«»".contains(character) }
    return String(drop(while: isMark).reversed().drop(while: isMark).reversed())
  }
}

/// The target to which the provider redirects the browser after the consent (RFC 6749, 3.1.2).
package enum Redirect: Sendable, Equatable {
  case loopback(URI)  // A port of this machine (RFC 8252, 7.3); any free one if the URI has no port.
  /// The user pastes the address. It stays unnormalized, because providers compare it as text (RFC 6749, 3.1.2.3).
  case elsewhere(String)
  case outOfBand(String)
}

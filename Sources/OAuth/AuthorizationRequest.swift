import Cryptography
import HTTP
import Providers

/// What takes the person's browser to the provider (RFC 6749, 4.1.1 and 4.2.1), and what its answer is compared with.
public struct AuthorizationRequest: Sendable {
  /// The URL to open.
  public let uri: URI
  /// The grant: `authorizationCode` or `implicit`.
  public let grant: Grant
  /// 256 random bits (RFC 6749, 10.12).
  public let state: String
  /// The proof key (RFC 7636, 4.1); `nil` where the provider cannot do it.
  public let codeVerifier: CodeVerifier?
  /// What the ID token has to have in it (OpenID Connect Core 1.0, 3.1.2.1); `nil` where none is sent.
  public let nonce: String?
  /// The redirect URI, which is sent again with the code (RFC 6749, 4.1.3).
  public let redirectURI: String
  /// The scopes that are asked for.
  public let scope: [String]
}

/// The answer to an authorization request: it can only be made from the request whose `state` it has.
public struct AuthorizationResponse: Sendable {
  /// The request.
  public let request: AuthorizationRequest
  let answer: Answer
}

/// A proof key for code exchange (RFC 7636).
public struct CodeVerifier: Sendable, Equatable {
  /// 43 characters (RFC 7636, 4.1).
  public let text: String

  /// A verifier of 256 random bits.
  public init(random: some RandomSource) { text = Base64.encodeURL(random.bytes(32)) }

  /// A verifier with this text, for who checks one.
  public init(_ text: String) { self.text = text }

  /// The challenge (RFC 7636, 4.2); `nil` for no method.
  public func challenge(_ method: PKCEMethod) -> String? {
    switch method {
    case .s256: Base64.encodeURL(HashAlgorithm.sha256.digest(Array(text.utf8)))
    case .s256Hexadecimal: Hexadecimal.encode(HashAlgorithm.sha256.digest(Array(text.utf8)))
    case .plain: text
    case .none: nil
    }
  }
}

// A verifier, a state and a code are secrets for as long as the login lasts; none of them is shown.

extension CodeVerifier: CustomStringConvertible, CustomReflectable {
  /// Always the same.
  public var description: String { "CodeVerifier" }
  /// Empty, so that no dump shows the text.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension AuthorizationRequest: CustomStringConvertible, CustomReflectable {
  /// The page without its query.
  public var description: String { "AuthorizationRequest(\(uri))" }
  /// Empty, so that no dump shows the state.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension AuthorizationResponse: CustomStringConvertible, CustomReflectable {
  /// Always the same.
  public var description: String { "AuthorizationResponse" }
  /// Empty, so that no dump shows the code.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension PKCEMethod {
  /// The value of `code_challenge_method` (RFC 7636, 4.3).
  public var wireName: String? {
    switch self {
    case .s256, .s256Hexadecimal: "S256"
    case .plain: "plain"
    case .none: nil
    }
  }
}

extension Client {
  /// The request that begins a login in the browser.
  ///
  /// - Parameters:
  ///   - grant: `authorizationCode` or `implicit`.
  ///   - redirectURI: the redirect with the port that is listened on.
  ///   - scope: what is asked for; nothing is sent when it is empty.
  /// - Throws: `OAuthError.noEndpoint`, `.url`, `.missingValue`.
  public func authorizationRequest(
    _ grant: Grant, redirectURI: String, scope: [String], random: some RandomSource
  ) throws(OAuthError) -> AuthorizationRequest {
    let state = Base64.encodeURL(random.bytes(32))
    let verifier = grant == .authorizationCode && descriptor.pkce != .none ? CodeVerifier(random: random) : nil
    let joinedScope = scope.joined(separator: descriptor.scope.separator)
    var parameters = FormParameters()
    parameters.append("response_type", grant == .implicit ? "token" : "code")
    parameters.append("client_id", identifier)
    parameters.append("redirect_uri", redirectURI)
    if !scope.isEmpty { parameters.append("scope", joinedScope) }
    parameters.append("state", state)
    if let verifier, let challenge = verifier.challenge(descriptor.pkce), let method = descriptor.pkce.wireName {
      parameters.append("code_challenge", challenge)
      parameters.append("code_challenge_method", method)
    }
    let nonce = descriptor.sendsNonce ? Base64.encodeURL(random.bytes(32)) : nil
    if let nonce { parameters.append("nonce", nonce) }
    let exchange = ["redirect_uri": redirectURI, "scope": joinedScope]
    let request = try request(.authorization, parameters, exchange: exchange)
    return AuthorizationRequest(
      uri: request.uri, grant: grant, state: state, codeVerifier: verifier, nonce: nonce,
      redirectURI: redirectURI, scope: scope)
  }

  /// The answer in a redirect's parameters. The `state` is looked at before anything else, in constant time.
  ///
  /// - Throws: `OAuthError.stateMissing`, `.stateMismatch`, `.issuerMismatch`, `.issuerMissing`, `.refused`, or `.missingField`
  ///   without a code or token.
  public func authorizationResponse(
    _ parameters: FormParameters, to request: AuthorizationRequest
  ) throws(OAuthError) -> AuthorizationResponse {
    let rules = try endpoint(.authorization).response
    let answer = Answer(redirect: parameters, rules)
    if let state = answer.text(.state) {
      guard constantTimeEqual(state, request.state) else { throw .stateMismatch }
    } else if descriptor.state == .required {
      throw .stateMissing
    }
    if let expected = descriptor.issuer.flatMap({ try? $0.filled(values()) }) {
      if let found = answer.text(.issuer) {
        guard found == expected else { throw .issuerMismatch(expected: expected, found: found) }
      } else if descriptor.issuerResponse == .required {
        throw .issuerMissing(expected: expected)
      }
    }
    if let error = answer.error { throw .refused(.authorization, error) }
    let needed: ResponseField = request.grant == .implicit ? .accessToken : .code
    guard answer.text(needed) != nil else { throw .missingField(.authorization, needed) }
    return AuthorizationResponse(request: request, answer: answer)
  }

  /// The parameters of a redirect that a person pasted: the whole address, or what stands behind its `?` or `#`.
  ///
  /// - Throws: `OAuthError.notARedirect` when there are none.
  public func redirectParameters(pasted text: String) throws(OAuthError) -> FormParameters {
    let text = text.trimmed
    let parameters: FormParameters
    if let uri = try? URI(parsing: text) {
      // An answer may stand in both; a fragment that is an answer goes before a query that is the redirect's own.
      var found = FormParameters(decoding: uri.query ?? "")
      found.append(contentsOf: FormParameters(decoding: uri.fragment ?? ""))
      parameters = found
    } else {
      guard text.contains("="), !text.contains(" ") else { throw .notARedirect }
      parameters = FormParameters(decoding: String(text.drop { $0 == "?" || $0 == "#" }))
    }
    guard !parameters.isEmpty else { throw .notARedirect }
    return parameters
  }
}

extension String {
  var trimmed: String {
    String(drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
  }
}

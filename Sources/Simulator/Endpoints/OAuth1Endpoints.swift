import Cryptography
import HTTP
import JSON
import Descriptors

extension Simulation {
  private static let clockTolerance: Int64 = 600

  /// The answer to a signed request of RFC 5849, 2.1 and 2.3, or of OAuth Session 1.0, 5.
  mutating func oauth1Answer(_ request: HTTPRequest, _ kind: EndpointKind, _ endpoint: Endpoint) -> HTTPResponse {
    var rules = endpoint.response
    // RFC 5849, 2.3: a form, unless the descriptor says otherwise for the temporary credentials, too.
    if rules.format == .json, descriptor.endpoints[.temporaryCredentials]?.response.format == .form {
      rules.format = .form
    }
    do throws(Refusal) {
      let protocolParameters = try OAuth1Parameters(request, signature.transport)
      let parameters = try EndpointParameters(protocolParameters.request, endpoint)
      try parameters.checkRules(knowledge())
      try checkHeaders(request, endpoint.headers, knowledge())
      var content = AnswerContent(rules)
      content.setSuccess()
      switch kind {
      case .temporaryCredentials: try temporary(protocolParameters, parameters, &content)
      case .refresh: try refreshSession(protocolParameters, &content, rules)
      default: try exchange(protocolParameters, &content, rules)
      }
      return content.response(200)
    } catch {
      state.log.refused(at: kind.rawValue, error)
      return oauth1Response(error, rules)
    }
  }

  private func oauth1Response(_ refusal: Refusal, _ rules: ResponseRules) -> HTTPResponse {
    var content = AnswerContent(rules)
    content.setError(refusal)
    content.set(FieldPath("oauth_problem"), .string(refusal.reason.problem))
    var response = content.response(401)
    response.fields.set("WWW-Authenticate", "OAuth realm=\"simulator\"")
    return response
  }

  // MARK: The signature

  /// Checks who signed and how (RFC 5849, 3.2).
  ///
  /// - Parameter token: the token that the request is made with, and its secret; `nil` before there is one.
  /// - Throws: `Refusal`.
  mutating func checkSignature(
    _ parameters: OAuth1Parameters, token: (name: String, secret: String)?
  ) throws(Refusal) {
    let signed = parameters.signed
    func value(_ name: String) throws(Refusal) -> String {
      guard let value = signed[first: name], !value.isEmpty else { throw .request(.missing(name)) }
      return value
    }
    guard isClient(try value("oauth_consumer_key")) else { throw .client(.unknownClient) }
    guard try value("oauth_signature_method") == signature.method.rawValue else {
      throw .request(.wrongSignatureMethod(expected: signature.method))
    }
    switch (descriptor.oauth1.sendsVersion, signed[first: "oauth_version"]) {
    case (true, "1.0"), (false, nil): break
    case (true, nil): throw .request(.missing("oauth_version"))
    case (false, _?): throw .request(.unwanted("oauth_version"))
    case (true, _?): throw .request(.wrongValue("oauth_version"))
    }
    if let realm = descriptor.oauth1.realm, signature.transport == .header {
      let pattern = TemplatePattern(realm, knowledge())
      guard let given = parameters.realm else {
        if pattern.isOptional { return try checkText(parameters, token) }
        throw .request(.missing("realm"))
      }
      guard pattern.matches(given) else { throw .request(.wrongValue("realm")) }
    }
    try checkText(parameters, token)
  }

  private mutating func checkText(
    _ parameters: OAuth1Parameters, _ token: (name: String, secret: String)?
  ) throws(Refusal) {
    let signed = parameters.signed
    let text = baseString(parameters.request, signed)
    guard isSignature(parameters.signature, of: text, tokenSecret: token?.secret ?? "") else {
      throw .request(.wrongSignature)
    }
    // 3.1: PLAINTEXT may leave both out.
    let timestamp = signed[first: "oauth_timestamp"]
    let nonce = signed[first: "oauth_nonce"]
    if signature.method == .plaintext, timestamp == nil, nonce == nil { return }
    guard let timestamp, let seconds = Int64(timestamp), seconds > 0,
      (seconds - now / 1000).magnitude <= Self.clockTolerance
    else { throw .request(.timestampOutOfRange) }
    guard let nonce, !nonce.isEmpty else { throw .request(.missing("oauth_nonce")) }
    let inserted = state.nonces.insert([timestamp, nonce, token?.name ?? ""].joined(separator: " ")).inserted
    guard inserted else { throw .request(.nonceUsed) }
  }

  /// RFC 5849, 3.4.1. The engine's own functions are not asked: they are what is played against.
  private func baseString(_ request: HTTPRequest, _ signed: FormParameters) -> String {
    var pairs = signed.pairs + request.uri.queryParameters.pairs
    if HTTPResponse(status: 0, fields: request.fields).mediaType == MediaTypes.form {
      pairs += FormParameters(decoding: String(decoding: request.body, as: UTF8.self)).pairs
    }
    let encode = { PercentEncoding.encode($0) }
    // 3.4.1.3.2: by name, then by value.
    let normalized = pairs.map { [encode($0.name), encode($0.value)] }
      .sorted { $0.lexicographicallyPrecedes($1) }.map { $0.joined(separator: "=") }.joined(separator: "&")
    return [request.method, origin + request.uri.path, normalized].map(encode).joined(separator: "&")
  }

  /// RFC 5849, 3.4.2 to 3.4.4.
  private func isSignature(_ given: String, of text: String, tokenSecret: String) -> Bool {
    let key = [clientSecret.reveal(), tokenSecret].map { PercentEncoding.encode($0) }.joined(separator: "&")
    func isCode(_ hash: HashAlgorithm) -> Bool {
      let code = hash.authenticationCode(for: Array(text.utf8), key: Array(key.utf8))
      return Base64.decode(given) == code
    }
    func isRSA(_ hash: HashAlgorithm) -> Bool {
      guard let key = try? RSAPrivateKey(pem: clientSecret), let bytes = Base64.decode(given) else { return false }
      return key.isValid(signature: bytes, for: Array(text.utf8), hash)
    }
    return switch signature.method {
    case .hmacSHA1: isCode(.sha1)
    case .hmacSHA256: isCode(.sha256)
    case .hmacSHA512: isCode(.sha512)
    case .rsaSHA1: isRSA(.sha1)
    case .rsaSHA256: isRSA(.sha256)
    case .plaintext: given == key
    }
  }

  // MARK: The endpoints

  /// RFC 5849, 2.1.
  private mutating func temporary(
    _ protocolParameters: OAuth1Parameters, _ parameters: EndpointParameters, _ content: inout AnswerContent
  ) throws(Refusal) {
    try checkSignature(protocolParameters, token: nil)
    var callback = protocolParameters.signed[first: "oauth_callback"]
    switch (descriptor.oauth1.callback, callback) {
    case (.authorization, _?): throw .request(.unwanted("oauth_callback"))
    // 1.0 without "a" names it on the page.
    case (.authorization, nil): callback = ""
    case (_, nil): throw .request(.missing("oauth_callback"))
    case (_, let given?):
      guard isRegistered(redirect: given) else { throw .request(.redirectMismatch) }
    }
    var scope = try scopes(try parameters.optional("scope"))
    if scope.isEmpty { scope = descriptor.scope.requested }
    let token = randomText("temporary-")
    let secret = randomText("")
    state.temporaryCredentials[token] = IssuedTemporaryCredentials(
      secret: secret, callback: callback ?? "", scope: scope)
    content.set(.oauthToken, .string(token))
    content.set(.oauthTokenSecret, .string(secret))
    if descriptor.oauth1.requiresCallbackConfirmed { content.set(.oauthCallbackConfirmed, .string("true")) }
  }

  /// The page of RFC 5849, 2.2.
  mutating func resourceOwnerPage(_ request: HTTPRequest, _ endpoint: Endpoint) -> HTTPResponse {
    do throws(Refusal) {
      let parameters = try EndpointParameters(request, endpoint)
      try parameters.checkRules(knowledge())
      let token = try parameters.needed("oauth_token")
      guard var issued = state.temporaryCredentials[token], issued.authorization == nil else {
        throw .grant(.temporaryCredentialsUnknown)
      }
      if descriptor.oauth1.callback == .authorization {
        let callback = try parameters.needed("oauth_callback")
        guard isRegistered(redirect: callback) else { throw .request(.redirectMismatch) }
        issued.callback = callback
        state.temporaryCredentials[token] = issued
      }
      let identifier = randomText("consent-")
      state.pages[identifier] = .temporaryCredentials(token)
      return consentPage(identifier, scope: issued.scope, redirect: issued.callback)
    } catch {
      state.log.refused(at: EndpointKind.authorization.rawValue, error)
      return .page(error)
    }
  }

  /// The answer to a decision on that page.
  mutating func decide(temporaryToken token: String, account: String?) -> HTTPResponse {
    guard var issued = state.temporaryCredentials[token], issued.authorization == nil,
      let rules = descriptor.endpoints[.authorization]?.response
    else { return .page(.grant(.temporaryCredentialsUnknown)) }
    var content = AnswerContent(rules)
    content.set(.oauthToken, .string(hasFault(.wrongState) ? "not-" + token : token))
    if let account {
      let consent = addConsent(account: account, scope: issued.scope)
      let verifier = randomText("", bytes: 12)
      issued.authorization = (verifier, consent)
      state.temporaryCredentials[token] = issued
      if descriptor.oauth1.requiresVerifier { content.set(.oauthVerifier, .string(verifier)) }
      if Descriptor.isOutOfBand(issued.callback) { return Self.codePage(verifier) }
    } else {
      state.log.count(.denials)
      state.temporaryCredentials[token] = nil
      content.set(FieldPath("oauth_problem"), .string(Reason.denied.problem))
      if Descriptor.isOutOfBand(issued.callback) { return .page(Refusal("access_denied", .denied)) }
    }
    return Self.redirect(to: issued.callback, content.parameters, inFragment: false)
  }

  /// RFC 5849, 2.3.
  private mutating func exchange(
    _ parameters: OAuth1Parameters, _ content: inout AnswerContent, _ rules: ResponseRules
  ) throws(Refusal) {
    guard let token = parameters.signed[first: "oauth_token"] else { throw .request(.missing("oauth_token")) }
    guard let issued = state.temporaryCredentials[token] else { throw .grant(.temporaryCredentialsUnknown) }
    try checkSignature(parameters, token: (token, issued.secret))
    guard let authorization = issued.authorization else { throw .grant(.notAuthorized) }
    if descriptor.oauth1.requiresVerifier {
      guard let verifier = parameters.signed[first: "oauth_verifier"] else {
        throw .request(.missing("oauth_verifier"))
      }
      guard constantTimeEqual(verifier, authorization.verifier) else { throw .grant(.wrongVerifier) }
    }
    // 2.3: the temporary credentials work once.
    state.temporaryCredentials[token] = nil
    try checkRevoked(authorization.consent)
    issueOAuth1(authorization.consent, sessionHandle: nil, into: &content, rules)
  }

  /// OAuth Session 1.0 draft 1, 5.
  private mutating func refreshSession(
    _ parameters: OAuth1Parameters, _ content: inout AnswerContent, _ rules: ResponseRules
  ) throws(Refusal) {
    guard let token = parameters.signed[first: "oauth_token"] else { throw .request(.missing("oauth_token")) }
    guard let handle = parameters.signed[first: "oauth_session_handle"] else {
      throw .request(.missing("oauth_session_handle"))
    }
    guard let issued = state.tokens[token] else { throw .grant(.tokenUnknown) }
    try checkSignature(parameters, token: (token, issued.secret ?? ""))
    guard state.sessionHandles[handle] == issued.consent else { throw .grant(.sessionHandleUnknown) }
    try checkRevoked(issued.consent)
    state.log.count(.refreshes)
    state.tokens[token] = nil
    issueOAuth1(issued.consent, sessionHandle: handle, into: &content, rules)
  }

  private mutating func issueOAuth1(
    _ consent: ConsentID, sessionHandle: String?, into content: inout AnswerContent, _ rules: ResponseRules
  ) {
    state.log.count(.tokens)
    let token = randomText("token-")
    let secret = randomText("")
    let fields = rules.fields
    let expires = settings.lifetime != nil || fields[.expiresIn] != nil || fields[.oauthSessionHandle] != nil
    state.tokens[token] = IssuedToken(
      consent: consent, expiresAt: expires ? now + lifetime * 1000 : nil, secret: secret)
    content.set(.oauthToken, .string(token))
    content.set(.oauthTokenSecret, .string(secret))
    if expires {
      let handle = sessionHandle ?? randomText("session-")
      state.sessionHandles[handle] = consent
      content.set(.oauthSessionHandle, .string(handle))
      if !hasFault(.noExpiry) {
        content.set(.expiresIn, seconds: lifetime)
        content.set(.refreshTokenExpiresIn, seconds: Self.refreshTokenLifetime)
      }
    }
    content.set(kept: state.consents[consent].kept, rules.keep)
  }
}

extension SignatureMethod {
  /// Whether the client signs with a key pair.
  var isRSA: Bool { self == .rsaSHA1 || self == .rsaSHA256 }
}

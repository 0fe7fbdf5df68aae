import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

extension Simulation {
  private static let clockTolerance = Duration.minutes(10)

  /// Answers a signed request (RFC 5849, 2.1 and 2.3; OAuth Session 1.0, 5).
  mutating func oauth1Token(
    _ signed: OAuth1Parameters, _ parameters: EndpointParameters, into answer: inout AnswerContent
  ) throws(Refusal) {
    try parameters.checkRulesAndHeaders(knowledge())
    switch parameters.kind {
    case .temporaryCredentials: try temporaryCredentials(signed, parameters, into: &answer)
    case .refresh: try refreshSession(signed, &answer)
    default: try exchange(signed, &answer)
    }
  }

  // MARK: The signature

  /// Checks the client and its signature (RFC 5849, 3.2). `token` is the request's token with its secret.
  mutating func checkSignature(
    _ parameters: OAuth1Parameters, token: (name: String, secret: String) = ("", "")
  ) throws(Refusal) {
    guard isClient(try parameters.needed("oauth_consumer_key")) else { throw .unknownClient }
    guard try parameters.needed("oauth_signature_method") == signature.method.rawValue else {
      throw .wrongSignatureMethod(expected: signature.method)
    }
    let version = descriptor.oauth1.sendsVersion ? "1.0" : nil
    guard parameters.signed[first: "oauth_version"] == version else { throw .wrongValue("oauth_version") }
    if let realm = descriptor.oauth1.realm, signature.transport == .header {
      try TemplatePattern(realm, knowledge()).check(parameters.realm, "realm")
    }
    guard isSignature(parameters, tokenSecret: token.secret) else { throw .wrongSignature }
    // 3.1: PLAINTEXT may omit both.
    let timestamp = parameters.signed[first: "oauth_timestamp"]
    if signature.method == .plaintext, timestamp == nil, parameters.signed[first: "oauth_nonce"] == nil { return }
    guard let timestamp, let seconds = Int64(timestamp), seconds > 0,
      (now - Self.clockTolerance...now + Self.clockTolerance).contains(.seconds(seconds))
    else { throw .timestampOutOfRange }
    let nonce = try parameters.needed("oauth_nonce")
    guard state.nonces.insert([timestamp, nonce, token.name].joined(separator: " ")).inserted else { throw .nonceUsed }
  }

  /// Checks the signature (RFC 5849, 3.4.2 to 3.4.4).
  private func isSignature(_ parameters: OAuth1Parameters, tokenSecret: String) -> Bool {
    let key = [clientSecret.reveal(), tokenSecret].map { PercentEncoding.encode($0) }.joined(separator: "&")
    let scheme: SignatureScheme
    switch signature.method {
    case .plaintext: return parameters.signature == key
    case .hmacSHA1: scheme = .hmac(.sha1)
    case .hmacSHA256: scheme = .hmac(.sha256)
    case .hmacSHA512: scheme = .hmac(.sha512)
    case .rsaSHA1: scheme = .rsa(.sha1)
    case .rsaSHA256: scheme = .rsa(.sha256)
    case .rsaSHA512: scheme = .rsa(.sha512)
    }
    let isHMAC = if case .hmac = scheme { true } else { false }
    return Base64.decode(parameters.signature).map {
      isSignature($0, of: baseString(parameters), scheme, key: isHMAC ? Secret(key) : clientSecret)
    } ?? false
  }

  /// Returns the base string (RFC 5849, 3.4.1), with its own code so that it does not share a fault with the client.
  private func baseString(_ parameters: OAuth1Parameters) -> String {
    let request = parameters.request
    var pairs = parameters.signed.pairs + request.uri.queryParameters.pairs
    if request.fields.mediaType == MediaType.form {
      pairs += FormParameters(decoding: String(decoding: request.body, as: UTF8.self)).pairs
    }
    let encode = { PercentEncoding.encode($0) }
    // 3.4.1.3.2: sort by name, then by value.
    let normalized = pairs.map { [encode($0.name), encode($0.value)] }
      .sorted { $0.lexicographicallyPrecedes($1) }.map { $0.joined(separator: "=") }.joined(separator: "&")
    return [request.method, origin + request.uri.path, normalized].map(encode).joined(separator: "&")
  }

  // MARK: The endpoints

  /// Issues temporary credentials (RFC 5849, 2.1).
  private mutating func temporaryCredentials(
    _ signed: OAuth1Parameters, _ parameters: EndpointParameters, into answer: inout AnswerContent
  ) throws(Refusal) {
    try checkSignature(signed)
    var callback = ""
    if descriptor.oauth1.callback == .authorization {
      // In OAuth 1.0 without "a", the login page receives the callback.
      if signed.signed.contains("oauth_callback") { throw .unwanted("oauth_callback") }
    } else {
      callback = try signed.needed("oauth_callback")
      guard isRegistered(redirect: callback) else { throw .redirectMismatch }
    }
    let scope = try scope(parameters)
    let token = randomText("temporary-")
    let secret = randomText("")
    state.temporaryCredentials[token] = IssuedTemporaryCredentials(secret: secret, callback: callback, scope: scope)
    answer.set(.oauthToken, .string(token))
    answer.set(.oauthTokenSecret, .string(secret))
    if descriptor.oauth1.requiresCallbackConfirmed { answer.set(.oauthCallbackConfirmed, .string("true")) }
  }

  /// Shows the page (RFC 5849, 2.2).
  mutating func resourceOwnerPage(_ parameters: EndpointParameters) throws(Refusal) -> HTTPResponse {
    try parameters.checkRules(knowledge())
    let token = try parameters.needed("oauth_token")
    guard var issued = state.temporaryCredentials[token], issued.authorization == nil else {
      throw .temporaryCredentialsUnknown
    }
    if descriptor.oauth1.callback == .authorization {
      issued.callback = try parameters.needed("oauth_callback")
      guard isRegistered(redirect: issued.callback) else { throw .redirectMismatch }
      state.temporaryCredentials[token] = issued
    }
    return consentPage(.temporaryCredentials(token), scope: issued.scope, redirect: issued.callback)
  }

  mutating func decide(temporaryToken token: String, account: String?) throws(Refusal) -> HTTPResponse {
    guard let issued = state.temporaryCredentials[token], issued.authorization == nil,
      let rules = descriptor.endpoints[.authorization]?.response
    else { throw .temporaryCredentialsUnknown }
    let isOutOfBand = Descriptor.isOutOfBand(issued.callback)
    var answer = AnswerContent(rules)
    answer.set(.oauthToken, .string(hasFault(.wrongState) ? "not-" + token : token))
    if let account {
      let consent = addConsent(account: account, scope: issued.scope)
      let verifier = randomText("", bytes: 12)
      state.temporaryCredentials[token]?.authorization = (verifier, consent)
      if descriptor.oauth1.requiresVerifier { answer.set(.oauthVerifier, .string(verifier)) }
      if isOutOfBand { return Self.codePage(verifier) }
    } else {
      state.log.count(.denials)
      state.temporaryCredentials[token] = nil
      answer.set(FieldPath("oauth_problem"), .string(Refusal.denied.problem))
      if isOutOfBand { return .page(.denied) }
    }
    return Self.redirect(to: issued.callback, answer.parameters, inFragment: false)
  }

  /// Exchanges temporary credentials for a token (RFC 5849, 2.3).
  private mutating func exchange(_ signed: OAuth1Parameters, _ answer: inout AnswerContent) throws(Refusal) {
    let token = try signed.needed("oauth_token")
    guard let issued = state.temporaryCredentials[token] else { throw .temporaryCredentialsUnknown }
    try checkSignature(signed, token: (token, issued.secret))
    guard let authorization = issued.authorization else { throw .notAuthorized }
    if descriptor.oauth1.requiresVerifier {
      let verifier = try signed.needed("oauth_verifier")
      guard constantTimeEqual(verifier, authorization.verifier) else { throw .wrongVerifier }
    }
    // 2.3: temporary credentials work once.
    state.temporaryCredentials[token] = nil
    try checkRevoked(authorization.consent)
    issueOAuth1(authorization.consent, sessionHandle: nil, into: &answer)
  }

  /// Renews a token (OAuth Session 1.0 draft 1, 5).
  private mutating func refreshSession(_ signed: OAuth1Parameters, _ answer: inout AnswerContent) throws(Refusal) {
    let token = try signed.needed("oauth_token")
    let handle = try signed.needed("oauth_session_handle")
    guard let issued = state.tokens[token] else { throw .tokenUnknown.with(code: "invalid_grant") }
    try checkSignature(signed, token: (token, issued.secret))
    guard state.sessionHandles[handle] == issued.consent else { throw .sessionHandleUnknown }
    try checkRevoked(issued.consent)
    state.log.count(.refreshes)
    state.tokens[token] = nil
    issueOAuth1(issued.consent, sessionHandle: handle, into: &answer)
  }

  private mutating func issueOAuth1(_ consent: ConsentID, sessionHandle: String?, into answer: inout AnswerContent) {
    state.log.count(.tokens)
    let token = randomText("token-")
    let secret = randomText("")
    let fields = answer.rules.fields
    let expires = settings.lifetime != nil || fields[.expiresIn] != nil || fields[.oauthSessionHandle] != nil
    state.tokens[token] = IssuedToken(
      consent: consent, expiresAt: expires ? now + lifetime : nil, secret: secret)
    answer.set(.oauthToken, .string(token))
    answer.set(.oauthTokenSecret, .string(secret))
    if expires {
      let handle = sessionHandle ?? randomText("session-")
      state.sessionHandles[handle] = consent
      answer.set(.oauthSessionHandle, .string(handle))
      if !hasFault(.noExpiry) {
        answer.set(.expiresIn, time: lifetime)
        answer.set(.refreshTokenExpiresIn, time: Self.refreshTokenLifetime)
      }
    }
    answer.set(kept: state.consents[consent].kept, answer.rules.keep)
  }
}

import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

extension Simulation {
  /// Replaces the provider's API: accepts any path and method with a valid, correctly presented token.
  mutating func resource(_ request: HTTPRequest) throws(Refusal) -> HTTPResponse {
    let query = request.uri.queryParameters
    if let refusal = Self.unusableDemand(query) {
      state.log.refused(at: "resource", refusal)
      return .json(400, refusal.json)
    }
    let consent = consent(of: try presentedToken(request, headers: descriptor.extraHeaders))
    let knowledge = knowledge(consent.kept)
    if let scope = query[first: "needs"], !consent.scope.contains(scope) { throw .insufficientScope(scope) }
    let (contexts, age) = (query[first: "needs_acr"], query[first: "needs_max_age"])
    let isRight = contexts.map { $0.split(separator: " ").contains { String($0) == consent.context } } ?? true
    let isRecent = age.flatMap { Int64($0) }.map { now - consent.authenticatedAt <= .seconds($0) } ?? true
    if !isRight || !isRecent { throw .insufficientAuthentication(contexts, maxAge: age) }
    for rule in descriptor.extraQuery {
      guard let template = rule.value else { continue }
      try TemplatePattern(template, knowledge).check(request.uri.queryParameters[first: rule.name], rule.name)
    }
    state.log.count(.resourceOK)
    let answer: JSONValue = [
      "account": .string(consent.account), "method": .string(request.method), "path": .string(request.uri.path),
      "scopes": .array(consent.scope.map(JSONValue.string)), "length": .integer(request.body.count),
    ]
    var response = HTTPResponse.json(200, answer)
    addServerNonce(to: &response)
    return response
  }

  /// Returns why no token can meet what the address demands; `nil` if one can.
  private static func unusableDemand(_ query: FormParameters) -> Refusal? {
    for name in ["needs", "needs_acr"] where query[first: name].map({ $0.allSatisfy { $0 == " " } }) == true {
      return .emptyDemand(name)
    }
    let age = query[first: "needs_max_age"]
    return age.map { (Int64($0) ?? 0) > 0 } ?? true ? nil : .wrongAge
  }

  /// Returns the logged-in user (OpenID Connect Core 1.0, 5.3, or the provider's own way).
  mutating func identity(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    let endpoint = parameters.endpoint
    // The endpoint's own header overrides one for all requests.
    let own = endpoint.headers.map { $0.name.lowercased() }
    let headers = endpoint.headers + descriptor.extraHeaders.filter { !own.contains($0.name.lowercased()) }
    let consent = consent(of: try presentedToken(parameters.request, headers: headers))
    try parameters.checkRules(knowledge(consent.kept))
    state.log.count(.identities)
    if answer.rules.element?.isAnswer != true { answer.set(FieldPath("sub"), .string(consent.account)) }
    if let path = descriptor.account.first { answer.set(path, .string(consent.account)) }
    answer.set(kept: consent.kept, endpoint.response.keep)
    if let other = descriptor.endpoints[.introspection], other.method == endpoint.method,
      captures(other, parameters.request) != nil, case .field(let path, let values) = other.response.active
    {
      answer.set(path, JSONValue(scalar: values.first ?? "true"))
    }
  }

  /// Returns the refusal of a request to the API, or of one that needs another token (RFC 6750, 3.1; RFC 9470, 3).
  /// `metadata` is where a client without a token learns how to get one (RFC 9728, 5.1).
  mutating func unauthorized(_ refusal: Refusal, at metadata: String? = nil) -> HTTPResponse {
    var response = HTTPResponse.json(refusal.code == "insufficient_scope" ? 403 : 401, refusal.json)
    if isDigest {
      for challenge in digestChallenges() { response.fields.append("WWW-Authenticate", challenge) }
      return response
    }
    let scheme: String
    switch descriptor.headerStyle.location {
    case .header(_, let declared) where HTTPFields.isValid(name: declared): scheme = declared
    case .none where isOAuth1: scheme = "OAuth"
    default: scheme = "Bearer"
    }
    var challenge = "\(proofScheme ?? scheme) realm=\"simulator\", error=\"\(refusal.code)\""
    for (name, value) in refusal.demands.sorted(by: { $0.key < $1.key }) { challenge += ", \(name)=\"\(value)\"" }
    if let metadata { challenge += ", resource_metadata=\"\(metadata)\"" }
    response.fields.set("WWW-Authenticate", challenge)
    addServerNonce(to: &response)
    return response
  }

  // MARK: Presentation

  func consent(of token: String) -> Consent {
    state.tokens[token].map { state.consents[$0.consent] } ?? Consent(account: "", scope: [], kept: [:])
  }

  /// Returns the request's token if it is valid and presented exactly as declared; throws otherwise.
  mutating func presentedToken(_ request: HTTPRequest, headers: [HeaderTemplate]) throws(Refusal) -> String {
    let isSigned = isOAuth1 && descriptor.headerStyle.location == .none
    let isSignedByKey = descriptor.aws4 != nil
    let token: String
    if descriptor.tokenBinding.needsKey {
      token = try boundToken(request)
    } else if isDigest {
      token = try digestToken(request)
    } else if isSignedByKey {
      token = try signingKey(request)
    } else {
      token = isSigned ? try signedToken(request) : try bareToken(request, headers)
    }
    guard let issued = state.tokens[token] else { throw .tokenUnknown }
    try checkCertificate(of: issued)
    let consent = state.consents[issued.consent]
    if consent.isRevoked { throw .revoked.with(code: "invalid_token") }
    if let expiresAt = issued.expiresAt, now >= expiresAt { throw .tokenExpired }
    let knowledge = knowledge(consent.kept.merging(["access_token": token]) { _, new in new })
    if !isSignedByKey, !descriptor.tokenBinding.needsKey, !isDigest { try checkTokenParameters(request, knowledge) }
    try request.check(headers, knowledge)
    return token
  }

  private mutating func signedToken(_ request: HTTPRequest) throws(Refusal) -> String {
    let parameters = try OAuth1Parameters(request, signature.transport)
    let token = try parameters.needed("oauth_token")
    guard let issued = state.tokens[token] else { throw .tokenUnknown }
    try checkSignature(parameters, token: (token, issued.secret))
    return token
  }

  /// Returns the key that signed a request (AWS Signature Version 4).
  private func signingKey(_ request: HTTPRequest) throws(Refusal) -> String {
    guard let signature = AWS4Verification(request.fields["Authorization"] ?? ""), let key = state.key else {
      throw .notPresented(expected: "AWS4-HMAC-SHA256 …")
    }
    guard signature.isMade(by: key.token, for: request), key.variables.values.contains(signature.identifier) else {
      throw .wrongValue("Authorization", kind: Refusal.header)
    }
    return key.token
  }

  /// How requests present the token, which depends on the grant if the descriptor does not say.
  var style: HeaderStyle { descriptor.headerStyle(of: descriptor.grants.first ?? .authorizationCode) }

  private func bareToken(_ request: HTTPRequest, _ headers: [HeaderTemplate]) throws(Refusal) -> String {
    let query = request.uri.queryParameters
    let token: String?
    let expected: String
    // RFC 6750, 2: a request may present the token only once.
    var isTwice = false
    switch style.location {
    case .header(let name, let scheme):
      expected = scheme.isEmpty ? "\(name): TOKEN" : "\(name): \(scheme) TOKEN"
      let values = request.fields.values(name)
      let bare = values.first.flatMap { Self.token(in: $0, scheme: scheme) }
      token = style.isPair ? bare.flatMap { self.token(inPair: $0, style) } : bare
      isTwice = values.count > 1 || token.map { token in query.pairs.contains { $0.value == token } } ?? false
    case .query(let name):
      expected = "?\(name)=TOKEN"
      token = query[first: name]
      isTwice =
        query.values(of: name).count > 1
        || token.map { token in request.fields.contains { $0.value.firstPlace(of: token) != nil } } ?? false
    case .path(let template):
      expected = template.text + " before the path"
      token = state.tokenOfPath
      isTwice = token.map { token in query.pairs.contains { $0.value == token } } ?? false
    case .body(let name):
      expected = name + " in the body"
      let values = EndpointParameters.body(of: request).values(of: name)
      token = values.first
      isTwice = values.count > 1
    case .none:
      let header = headers.first { $0.value.names.contains("access_token") }
      expected = header.map { "\($0.name): \($0.value.text)" } ?? "a header (the descriptor defines none)"
      token = tokenInHeader(request, headers)
    }
    if isTwice { throw .presentedTwice }
    guard let token, !token.isEmpty else { throw .notPresented(expected: expected) }
    return token
  }

  /// Returns the token from the first header whose template contains it; `nil` if no header does.
  func tokenInHeader(_ request: HTTPRequest, _ headers: [HeaderTemplate]) -> String? {
    guard let header = headers.first(where: { $0.value.names.contains("access_token") }) else { return nil }
    let pattern = TemplatePattern(header.value, knowledge())
    let found = request.fields[header.name].flatMap { pattern.captures(in: $0) }
    // A hash of the token shows only that the header has the right form.
    return found.flatMap { $0["access_token"] ?? state.key?.token }
  }

  /// Returns the token after a header's scheme; `nil` if the scheme differs. Compares case as well, because some
  /// servers want `token` and refuse `Token`.
  private static func token(in value: String, scheme: String) -> String? {
    let start = scheme.isEmpty ? "" : scheme + " "
    guard value.hasPrefix(start) else { return nil }
    let token = value.dropFirst(start.count).prefix { $0 != "," }.trimmingBlanks
    return token.contains(" ") ? nil : String(token)
  }

  /// Checks the parameters after the token: in a query, or in a header as `, name="value"`, in the declared order.
  private func checkTokenParameters(_ request: HTTPRequest, _ knowledge: (String) -> Knowledge) throws(Refusal) {
    let declared = style.parameters
    switch style.location {
    case .query:
      for parameter in declared {
        let value = request.uri.queryParameters[first: parameter.name]
        try TemplatePattern(parameter.value, knowledge).check(value, parameter.name)
      }
    case .header(let name, _):
      var given = (request.fields[name] ?? "").split(separator: ",").dropFirst().map { Self.quotedPair($0) }[...]
      for parameter in declared {
        let isNext = given.first?.name == parameter.name
        let value = isNext ? given.removeFirst().value : nil
        try TemplatePattern(parameter.value, knowledge).check(value, parameter.name)
      }
      if let left = given.first { throw .unwanted(String(left.name.prefix(40))) }
    case .path, .body, .none: break
    }
  }

  /// Splits `name="value"` with spaces around it. A text without "=" is a name.
  static func quotedPair(_ text: Substring) -> (name: String, value: String) {
    let pair = text.trimmingBlanks.split(separator: "=", maxSplits: 1)
    guard pair.count == 2, pair[1].count >= 2, pair[1].hasPrefix("\""), pair[1].hasSuffix("\"") else {
      return (String(text.trimmingBlanks), "")
    }
    return (String(pair[0]), String(pair[1].dropFirst().dropLast()))
  }
}

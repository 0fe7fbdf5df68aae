import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON

extension Simulation {
  /// Answers whether a token is valid (RFC 7662, 2).
  mutating func introspection(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    let token = try inspectedToken(parameters)
    state.log.count(.introspections)
    let consent = activeConsent(of: token)
    if case .field(let path, let values) = answer.rules.active {
      let yes = values.first ?? "true"
      let no = yes == "true" ? "false" : "not-" + yes
      answer.set(path, JSONValue(scalar: consent == nil ? no : yes))
    } else if consent == nil {
      answer.status = 404
    }
    guard let consent else { return }
    answer.set(FieldPath("client_id"), .string(Self.clientIdentifier))
    answer.set(FieldPath("username"), .string(consent.account))
    answer.set(.scope, .string(consent.scope.joined(separator: descriptor.scope.grantedSeparator)))
    if let cnf = confirmation(of: (state.tokens[token] ?? state.refreshTokens[token])?.key) {
      answer.set(FieldPath("cnf." + cnf.name), cnf.value)
    }
    if let expiresAt = state.tokens[token]?.expiresAt { answer.set(FieldPath("exp"), .duration(expiresAt)) }
  }

  /// Revokes a token (RFC 7009, 2). An unknown token counts as revoked (2.2).
  mutating func revocation(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    let token = try inspectedToken(parameters)
    state.log.count(.revocations)
    if let issued = state.refreshTokens[token] {
      // 2.1: revoking a refresh token also revokes the access tokens of the same consent.
      state.consents[issued.consent].isRevoked = true
    } else if let issued = state.tokens.removeValue(forKey: token), isOAuth1 || namesUser(parameters) {
      state.consents[issued.consent].isRevoked = true
    }
  }

  /// Returns the token that a request asks about: in a parameter, the URL or a header, or the token that
  /// authenticates the request.
  private mutating func inspectedToken(_ parameters: EndpointParameters) throws(Refusal) -> String {
    let endpoint = parameters.endpoint
    let headers = endpoint.headers + descriptor.extraHeaders
    if isOAuth1 { return try presentedToken(parameters.request, headers: headers) }
    let names = ["access_token", "refresh_token"]
    let inURL = captures(endpoint, parameters.request)
    let namedInURL = names.lazy.compactMap { inURL?[$0] }.first.flatMap {
      PercentEncoding.decode($0, plusAsSpace: false)
    }
    if authentication(endpoint) == .accessToken {
      let presented = try presentedToken(parameters.request, headers: headers)
      try parameters.checkRules(knowledge(consent(of: presented).kept))
      return try parameters.optional("token") ?? namedInURL ?? presented
    }
    try checkClient(parameters)
    if let namedInURL { return namedInURL }
    if let token = try parameters.optional("token", carrying: names, knowledge()) { return token }
    if parameters.isDropped("token"), let token = tokenInHeader(parameters.request, endpoint.headers) { return token }
    if namesUser(parameters), let token = tokenOfKeptValues(parameters) { return token }
    return try parameters.needed("token")
  }

  /// Whether the request names the user by kept values, as Stripe's `stripe_user_id`, instead of a token.
  private func namesUser(_ parameters: EndpointParameters) -> Bool {
    let kept = Set(descriptor.endpoints.values.flatMap(\.response.keep).map(\.name))
    return parameters.isDropped("token")
      && parameters.endpoint.parameters.contains { !kept.isDisjoint(with: $0.value?.names ?? []) }
  }

  /// Returns a token of the consent whose kept values match the request.
  private func tokenOfKeptValues(_ parameters: EndpointParameters) -> String? {
    state.tokens.sorted { $0.key < $1.key }.first { _, issued in
      let consent = state.consents[issued.consent]
      return !consent.isRevoked && !consent.kept.isEmpty
        && (try? parameters.checkRules(knowledge(consent.kept))) != nil
    }?.key
  }

  /// Returns the consent for an access or refresh token; `nil` if the token is not valid.
  private func activeConsent(of token: String) -> Consent? {
    [state.refreshTokens[token], state.tokens[token]].lazy.compactMap { $0 }
      .filter { $0.replacedAt == nil && $0.expiresAt.map { now < $0 } ?? true }
      .map { state.consents[$0.consent] }.first { !$0.isRevoked }
  }
}

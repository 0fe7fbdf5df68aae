import Descriptors
import HTTP
import JSON

extension Simulation {
  /// "Is this token good?" (RFC 7662, 2)
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
    if let expiresAt = state.tokens[token]?.expiresAt { answer.set(FieldPath("exp"), .duration(expiresAt)) }
  }

  /// RFC 7009, 2. A token that is not known is as good as revoked (2.2).
  mutating func revocation(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    let token = try inspectedToken(parameters)
    state.log.count(.revocations)
    if let issued = state.refreshTokens[token] {
      // 2.1: with a refresh token go the access tokens of the same consent.
      state.consents[issued.consent].isRevoked = true
    } else if let issued = state.tokens.removeValue(forKey: token), isOAuth1 {
      state.consents[issued.consent].isRevoked = true
    }
  }

  /// The token that a request is about: a parameter, a part of the URL or of a header, or what the request itself
  /// presents.
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
    return try parameters.needed("token")
  }

  /// The consent that an access or refresh token belongs to, as long as it is good.
  private func activeConsent(of token: String) -> Consent? {
    [state.refreshTokens[token], state.tokens[token]].lazy.compactMap { $0 }
      .filter { $0.replacedAt == nil && $0.expiresAt.map { now < $0 } ?? true }
      .map { state.consents[$0.consent] }.first { !$0.isRevoked }
  }
}

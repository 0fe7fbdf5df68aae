import HTTP
import JSON
import Descriptors

extension Simulation {
  /// "Is this token good?" (RFC 7662, 2)
  mutating func introspection(_ request: HTTPRequest, _ endpoint: Endpoint) -> HTTPResponse {
    do throws(Refusal) {
      let token = try inspectedToken(request, endpoint)
      state.log.count(.introspections)
      return introspectionAnswer(token, endpoint.response)
    } catch {
      state.log.refused(at: EndpointKind.introspection.rawValue, error)
      if expectedAuthentication(endpoint) == .accessToken { return unauthorized(error) }
      return response(error, endpoint.response)
    }
  }

  private func introspectionAnswer(_ token: String, _ rules: ResponseRules) -> HTTPResponse {
    let consent = activeConsent(of: token).map { state.consents[$0] }
    var content = AnswerContent(rules)
    content.setSuccess()
    if case .field(let path, let values) = rules.active {
      let yes = values.first ?? "true"
      let value = consent == nil ? (yes == "true" ? "false" : "not-" + yes) : yes
      content.set(path, JSONValue(scalar: value))
    }
    if let consent {
      content.set(FieldPath("client_id"), .string(SimulatedProvider.clientIdentifier))
      content.set(FieldPath("username"), .string(consent.account))
      content.set(.scope, .string(consent.scope.joined(separator: descriptor.scope.grantedSeparator)))
      if let expiresAt = state.tokens[token]?.expiresAt {
        content.set(FieldPath("exp"), .integer(expiresAt / 1000))
      }
    }
    return content.response(consent == nil && rules.active == .status ? 404 : 200)
  }

  /// RFC 7009, 2. A token that is not known is as good as revoked (2.2).
  mutating func revocation(_ request: HTTPRequest, _ endpoint: Endpoint) -> HTTPResponse {
    do throws(Refusal) {
      let token = try inspectedToken(request, endpoint)
      state.log.count(.revocations)
      if let issued = state.refreshTokens[token] {
        // 2.1: with a refresh token go the access tokens of the same consent.
        state.revoke(issued.consent)
      } else if let issued = state.tokens.removeValue(forKey: token), isOAuth1 {
        state.revoke(issued.consent)
      }
      var content = AnswerContent(endpoint.response)
      content.setSuccess()
      return content.response(200)
    } catch {
      state.log.refused(at: EndpointKind.revocation.rawValue, error)
      if expectedAuthentication(endpoint) == .accessToken { return unauthorized(error) }
      return response(error, endpoint.response)
    }
  }

  /// The token that a request is about: a parameter, a part of the URL or of a header, or what the request itself
  /// presents.
  private mutating func inspectedToken(_ request: HTTPRequest, _ endpoint: Endpoint) throws(Refusal) -> String {
    if isOAuth1 {
      return try presentedToken(request, headers: endpoint.headers + descriptor.extraHeaders).token
    }
    let parameters = try EndpointParameters(request, endpoint)
    let inURL = captures(endpoint, request)
    let names = ["access_token", "refresh_token"]
    let namedInURL = names.lazy.compactMap { inURL?[$0] }.first.flatMap {
      PercentEncoding.decode($0, plusAsSpace: false)
    }
    if expectedAuthentication(endpoint) == .accessToken {
      let presented = try presentedToken(request, headers: endpoint.headers + descriptor.extraHeaders)
      try parameters.checkRules(knowledge(state.consents[presented.issued.consent].kept))
      return try parameters.optional("token") ?? namedInURL ?? presented.token
    }
    try checkClient(request, endpoint, parameters)
    if let namedInURL { return namedInURL }
    // A descriptor may drop the parameter and send the token under a template of its own.
    if parameters.isDropped("token") {
      for rule in endpoint.parameters where rule.value?.names.contains(where: names.contains) == true {
        return try parameters.needed(rule.name)
      }
      for header in endpoint.headers where header.value.names.contains("access_token") {
        let pattern = TemplatePattern(header.value, knowledge())
        let captured = request.fields[header.name].flatMap { pattern.captures(in: $0)?["access_token"] }
        if let captured { return captured }
      }
    }
    return try parameters.needed("token")
  }

  /// The consent that an access or refresh token belongs to, as long as it is good.
  private func activeConsent(of token: String) -> ConsentID? {
    var consent: ConsentID?
    if let issued = state.tokens[token], issued.expiresAt.map({ now < $0 }) ?? true {
      consent = issued.consent
    }
    if let issued = state.refreshTokens[token], issued.replacedAt == nil, now < issued.expiresAt {
      consent = issued.consent
    }
    guard let consent, !state.consents[consent].isRevoked else { return nil }
    return consent
  }
}

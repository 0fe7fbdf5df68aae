import HTTP
import JSON
import Descriptors
import Text

/// A token that was presented as the descriptor says.
struct PresentedToken {
  var token: String
  var issued: IssuedToken
}

extension Simulation {
  /// What stands for the provider's API: any path and method, for the right presentation of a good token.
  mutating func resource(_ request: HTTPRequest) -> HTTPResponse {
    do throws(Refusal) {
      let presented = try presentedToken(request, headers: descriptor.extraHeaders)
      let consent = state.consents[presented.issued.consent]
      state.log.count(.resourceOK)
      return .json(
        200,
        [
          "account": .string(consent.account), "method": .string(request.method),
          "path": .string(request.uri.path), "scopes": .array(consent.scope.map(JSONValue.string)),
          "length": .integer(request.body.count),
        ])
    } catch {
      state.log.count(.resourceRefused)
      state.log.refused(at: "resource", error)
      return unauthorized(error)
    }
  }

  /// Who is logged in (OpenID Connect Core 1.0, 5.3, or the provider's own).
  mutating func identity(_ request: HTTPRequest, _ endpoint: Endpoint) -> HTTPResponse {
    do throws(Refusal) {
      let parameters = try EndpointParameters(request, endpoint)
      // A header of the endpoint goes before one of the same name that goes with every request.
      let own = endpoint.headers.map { $0.name.lowercased() }
      let headers = endpoint.headers + descriptor.extraHeaders.filter { !own.contains($0.name.lowercased()) }
      let presented = try presentedToken(request, headers: headers)
      let consent = state.consents[presented.issued.consent]
      try parameters.checkRules(knowledge(consent.kept))
      state.log.count(.identities)
      var content = AnswerContent(endpoint.response)
      content.setSuccess()
      content.set(FieldPath("sub"), .string(consent.account))
      if let path = descriptor.account.first { content.set(path, .string(consent.account)) }
      content.set(kept: consent.kept, endpoint.response.keep)
      if let other = descriptor.endpoints[.introspection], other.method == endpoint.method,
        captures(other, request) != nil, case .field(let path, let values) = other.response.active
      {
        content.set(path, JSONValue(scalar: values.first ?? "true"))
      }
      return content.response(200)
    } catch {
      state.log.refused(at: EndpointKind.identity.rawValue, error)
      return unauthorized(error)
    }
  }

  func unauthorized(_ refusal: Refusal) -> HTTPResponse {
    var response = HTTPResponse.json(
      401,
      [
        "error": .string(refusal.code), "error_description": .string(refusal.reason.sentence),
      ])
    let scheme: String
    switch descriptor.headerStyle.location {
    case .header(_, let declared) where HTTPFields.isValid(name: declared): scheme = declared
    case .none where isOAuth1: scheme = "OAuth"
    default: scheme = "Bearer"
    }
    response.fields.set("WWW-Authenticate", "\(scheme) realm=\"simulator\", error=\"\(refusal.code)\"")
    return response
  }

  // MARK: Presentation

  /// The token of a request that presents it exactly as declared.
  ///
  /// - Throws: `Refusal` when it is not there, is there in another way or twice, is not good, or lacks what goes with
  ///   it.
  mutating func presentedToken(
    _ request: HTTPRequest, headers: [HeaderTemplate]
  ) throws(Refusal) -> PresentedToken {
    let isSigned = isOAuth1 && descriptor.headerStyle.location == .none
    let token = isSigned ? try signedToken(request) : try bareToken(request, headers)
    guard let issued = state.tokens[token] else { throw .token(.tokenUnknown) }
    if state.consents[issued.consent].isRevoked { throw .token(.revoked) }
    if let expiresAt = issued.expiresAt, now >= expiresAt { throw .token(.tokenExpired) }
    var values = state.consents[issued.consent].kept
    values["access_token"] = token
    try checkTokenParameters(request, values)
    try checkHeaders(request, headers, knowledge(values))
    return PresentedToken(token: token, issued: issued)
  }

  private mutating func signedToken(_ request: HTTPRequest) throws(Refusal) -> String {
    let parameters = try OAuth1Parameters(request, signature.transport)
    guard let token = parameters.signed[first: "oauth_token"] else { throw .request(.missing("oauth_token")) }
    guard let issued = state.tokens[token] else { throw .token(.tokenUnknown) }
    try checkSignature(parameters, token: (token, issued.secret ?? ""))
    return token
  }

  private func bareToken(_ request: HTTPRequest, _ headers: [HeaderTemplate]) throws(Refusal) -> String {
    let query = request.uri.queryParameters
    let token: String?
    let expected: String
    switch descriptor.headerStyle.location {
    case .header(let name, let scheme):
      expected = scheme.isEmpty ? "\(name): TOKEN" : "\(name): \(scheme) TOKEN"
      let values = request.fields.values(name)
      if values.count > 1 { throw .request(.presentedTwice) }
      token = values.first.flatMap { Self.token(in: $0, scheme: scheme) }
      // RFC 6750, 2: not in more than one way.
      if let token, query.pairs.contains(where: { $0.value == token }) { throw .request(.presentedTwice) }
    case .query(let name):
      expected = "?\(name)=TOKEN"
      if query.values(of: name).count > 1 { throw .request(.presentedTwice) }
      token = query[first: name]
      if let token, request.fields.contains(where: { $0.value.firstPlace(of: token) != nil }) {
        throw .request(.presentedTwice)
      }
    case .none:
      guard let header = headers.first(where: { $0.value.names.contains("access_token") }) else {
        throw .request(.notPresented(expected: "nothing that this descriptor declares"))
      }
      expected = "\(header.name): \(header.value.text)"
      let pattern = TemplatePattern(header.value, knowledge())
      token = request.fields[header.name].flatMap { pattern.captures(in: $0)?["access_token"] }
    }
    guard let token, !token.isEmpty else { throw .request(.notPresented(expected: expected)) }
    return token
  }

  /// The token of a header's value, behind its scheme, which is compared to the letter: servers that want `token` exist
  /// that do not know `Token`.
  private static func token(in value: String, scheme: String) -> String? {
    let start = scheme.isEmpty ? "" : scheme + " "
    guard value.hasPrefix(start) else { return nil }
    let token = value.dropFirst(start.count).prefix { $0 != "," }.trimmingSpaces
    return token.contains(" ") ? nil : String(token)
  }

  /// Checks the parameters behind the token: in a query, or in a header as `, name="value"`, in the declared order.
  private func checkTokenParameters(_ request: HTTPRequest, _ values: [String: String]) throws(Refusal) {
    if case .query = descriptor.headerStyle.location {
      let given = request.uri.queryParameters
      for parameter in descriptor.headerStyle.parameters {
        let pattern = TemplatePattern(parameter.value, knowledge(values))
        guard let value = given[first: parameter.name] else {
          if pattern.isOptional { continue }
          throw .request(.missing(parameter.name))
        }
        guard pattern.matches(value) else { throw .request(.wrongValue(parameter.name)) }
      }
    }
    guard case .header(let name, _) = descriptor.headerStyle.location else { return }
    let pieces = (request.fields[name] ?? "").split(separator: ",").dropFirst().map(\.trimmingSpaces)
    var given = pieces.map { piece -> (name: Substring, value: Substring) in
      let pair = piece.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, pair[1].count >= 2, pair[1].hasPrefix("\""), pair[1].hasSuffix("\"") else {
        return (piece, "")
      }
      return (pair[0], pair[1].dropFirst().dropLast())
    }[...]
    for parameter in descriptor.headerStyle.parameters {
      let pattern = TemplatePattern(parameter.value, knowledge(values))
      guard let next = given.first, next.name == parameter.name else {
        if pattern.isOptional { continue }
        throw .request(.missing(parameter.name))
      }
      guard pattern.matches(String(next.value)) else { throw .request(.wrongValue(parameter.name)) }
      given = given.dropFirst()
    }
    if let left = given.first { throw .request(.unwanted(String(left.name.prefix(40)))) }
  }
}

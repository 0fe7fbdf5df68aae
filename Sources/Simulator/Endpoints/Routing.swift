import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrTLS

extension Simulation {
  mutating func answer(_ request: HTTPRequest, certificate: Certificate? = nil) -> LoopbackServer.Answer {
    (state.provenKey, state.certificate) = (nil, certificate)
    let request = withoutTokenOfPath(request)
    learnOwnToken(request)
    // Refuse other hosts, because a web page could point its own host name at this server.
    guard [origin, certified?.origin].contains(request.uri.origin) else {
      return refused("simulator", .foreignHost, status: 421)
    }
    if let answer = standardAnswer(request) { return answer }
    if request.uri.path.hasPrefix(Self.controlPrefix) { return LoopbackServer.Answer(control(request)) }
    if let metadata = resourceMetadata(request) ?? metadata(request) { return LoopbackServer.Answer(metadata) }
    let candidates = descriptor.endpoints.filter { isOffered($0.key) && captures($0.value, request) != nil }
    guard !candidates.isEmpty else {
      if ["", "/"].contains(request.uri.path), ["GET", "HEAD"].contains(request.method) {
        return LoopbackServer.Answer(startPage)
      }
      return refused("unknown path", .noSuchPath, status: 404)
    }
    let endpoints = candidates.filter { $0.value.method == request.method }
    guard let first = endpoints.first else {
      let methods = Set(candidates.values.map(\.method)).sorted()
      return refused("method", .wrongMethod(expected: methods), status: 405)
    }
    guard let kind = choose(Array(endpoints.keys), request), let endpoint = endpoints[kind] else {
      state.log.refused(at: EndpointKind.token.rawValue, .unsupportedGrantType)
      return LoopbackServer.Answer(response(.unsupportedGrantType, at: .token, first.value))
    }
    return answer(request, at: kind, endpoint)
  }

  /// Removes and notes the token before the path, if the descriptor puts it there.
  private mutating func withoutTokenOfPath(_ request: HTTPRequest) -> HTTPRequest {
    state.tokenOfPath = nil
    guard case .path(let template) = descriptor.headerStyle.location else { return request }
    let pattern = TemplatePattern(template, encode: PercentEncoding.encode, knowledge())
    let path = request.uri.path
    let isEnd = { (rest: ArraySlice<UInt8>) in rest.isEmpty || rest.first == UInt8(ascii: "/") }
    guard let captured = pattern.captures(in: path, isValue: { $0 != UInt8(ascii: "/") }, isEnd: isEnd),
      let token = captured["access_token"],
      let uri = try? URI(
        parsing: request.uri.origin + path.dropFirst(template.filledLength(with: token))
          + (request.uri.query.map { "?" + $0 } ?? ""))
    else { return request }
    state.tokenOfPath = PercentEncoding.decode(token, plusAsSpace: false)
    var request = request
    request.uri = uri
    return request
  }

  private mutating func refused(_ place: String, _ refusal: Refusal, status: Int) -> LoopbackServer.Answer {
    state.log.refused(at: place, refusal)
    return LoopbackServer.Answer(.json(status, refusal.json))
  }

  /// Whether the offered grants, or later requests with a credential, use an endpoint.
  private func isOffered(_ kind: EndpointKind) -> Bool {
    if kind == .refresh, broughtGrant != nil { return false }
    let users = Grant.allCases.filter { $0.traits.endpoints.contains(kind) }
    return users.isEmpty || descriptor.grants.contains(where: users.contains)
  }

  /// Returns the percent-encoded values of the open places in an endpoint's URL; `nil` if the URL does not match.
  func captures(_ endpoint: Endpoint, _ request: HTTPRequest) -> [String: String]? {
    let template = endpoint.url.template.text.prefix { $0 != "#" }
    guard let parsed = try? Template(parsing: String(template)) else { return nil }
    let pattern = TemplatePattern(parsed, encode: PercentEncoding.encode, knowledge())
    let hasQuery = template.contains("?")
    let target = origin + request.uri.path + (hasQuery ? "?" + (request.uri.query ?? "") : "")
    return pattern.captures(
      in: target, isValue: { !"/?&=".utf8.contains($0) },
      isEnd: { $0.isEmpty || (hasQuery && $0.first == UInt8(ascii: "&")) })
  }

  // MARK: Endpoints that share a URL

  /// Returns the request's endpoint among those with its URL; `nil` if none has its grant type.
  private func choose(_ kinds: [EndpointKind], _ request: HTTPRequest) -> EndpointKind? {
    if kinds.count <= 1 { return kinds.first }
    let parameters = EndpointParameters.everything(in: request)
    let scored = EndpointKind.allCases.filter(kinds.contains).map { (kind: $0, score: score($0, parameters)) }
    guard let best = scored.map(\.score).max(), best >= 0 else { return nil }
    let equal = scored.filter { $0.score == best }.map(\.kind)
    // If one URL serves identity and introspection, the identity answer includes both.
    return equal.contains(.identity) && equal.first == .introspection ? .identity : equal.first
  }

  private func score(_ kind: EndpointKind, _ parameters: FormParameters) -> Int {
    guard let endpoint = descriptor.endpoints[kind] else { return -10 }
    func wire(_ name: String) -> String { endpoint.rename[name] ?? name }
    let mark = isOAuth1 ? kind.leg.signedParameter : kind.leg.parameter
    let score = mark.map { parameters.contains(wire($0)) } == true ? 2 : 0
    let rule = endpoint.parameters.first { $0.name == "grant_type" }
    guard let given = parameters[first: wire("grant_type")], rule == nil || rule?.value != nil else { return score }
    if let template = rule?.value {
      return score + (TemplatePattern(template, knowledge()).captures(in: given) == nil ? -4 : 4)
    }
    return kind.leg.grantType.map { score + ($0 == given ? 4 : -4) } ?? score - 1
  }

  // MARK: One endpoint

  private mutating func answer(
    _ request: HTTPRequest, at kind: EndpointKind, _ endpoint: Endpoint
  ) -> LoopbackServer.Answer {
    let isToken = kind.leg.issuesCredentials
    let broken = isToken ? brokenAnswer(endpoint.response) : nil
    var answer = LoopbackServer.Answer(broken ?? response(to: request, at: kind, endpoint))
    if needsProof(at: kind) { addServerNonce(to: &answer.response) }
    if isToken {
      answer.isDropped = broken == nil && hasFault(.drop)
      answer.delay = settings.delay
    }
    return answer
  }

  private mutating func response(to request: HTTPRequest, at kind: EndpointKind, _ endpoint: Endpoint) -> HTTPResponse {
    do throws(Refusal) {
      let signed = isOAuth1 && kind.leg.issuesCredentials ? try OAuth1Parameters(request, signature.transport) : nil
      let parameters = try EndpointParameters(signed?.request ?? request, kind, of: endpoint)
      if kind == .authorization {
        return isOAuth1 ? try resourceOwnerPage(parameters) : try authorizationPage(parameters)
      }
      if kind == .keySet { return try keySet(parameters) }
      if kind == .endSession { return try endSession(parameters) }
      if needsProof(at: kind) { state.provenKey = try provenKey(request) }
      if bindsToCertificates, kind.leg.issuesToken { state.provenKey = try certificateForTokens() }
      var answer = AnswerContent(rules(kind, endpoint))
      answer.setSuccess()
      switch kind {
      case .identity: try identity(parameters, &answer)
      case .introspection: try introspection(parameters, &answer)
      case .revocation: try revocation(parameters, &answer)
      case .registration: try registration(parameters, &answer)
      case .pushedAuthorizationRequest: try pushedRequest(parameters, &answer)
      case .deviceAuthorization: try deviceAuthorization(parameters, &answer)
      case .backchannelAuthentication: try backchannelAuthentication(parameters, &answer)
      default:
        if let signed { try oauth1Token(signed, parameters, into: &answer) } else { try token(parameters, &answer) }
      }
      return answer.response
    } catch {
      state.log.refused(at: kind.rawValue, error)
      return response(error, at: kind, endpoint)
    }
  }

  private func rules(_ kind: EndpointKind, _ endpoint: Endpoint) -> ResponseRules {
    var rules = endpoint.response
    // RFC 5849, 2.3: a form, unless the descriptor sets another format for temporary credentials as well.
    if isOAuth1, kind.leg.issuesCredentials, rules.format == .json,
      descriptor.endpoints[.temporaryCredentials]?.response.format == .form
    {
      rules.format = .form
    }
    return rules
  }

  private mutating func response(_ refusal: Refusal, at kind: EndpointKind, _ endpoint: Endpoint) -> HTTPResponse {
    if kind == .authorization { return .page(refusal) }
    if kind == .identity || authentication(endpoint) == .accessToken { return unauthorized(refusal) }
    let rules = rules(kind, endpoint)
    let isSigned = isOAuth1 && kind.leg.issuesCredentials
    var answer = AnswerContent(rules)
    answer.setError(refusal)
    if isSigned { answer.set(FieldPath("oauth_problem"), .string(refusal.problem)) }
    // Whether a field tells success from failure.
    let isTold = !rules.errors.success.isEmpty || rules.format == .form
    let isInStatus = answer.status != 200
    answer.status =
      isInStatus ? answer.status : isSigned ? 401 : isTold ? 200 : refusal.code == "invalid_client" ? 401 : 400
    var response = answer.response
    if answer.status == 401 {
      response.fields.set("WWW-Authenticate", (isSigned ? "OAuth" : "Basic") + " realm=\"simulator\"")
    }
    return response
  }

  /// Returns the answer of a token endpoint that breaks before it has done anything; `nil` if it works.
  private func brokenAnswer(_ rules: ResponseRules) -> HTTPResponse? {
    let fields: HTTPFields = ["Content-Type": MediaType.json]
    for fault in settings.faults {
      switch fault {
      case .html: return .page(200, title: "Welcome", body: "<p>This is a web page, not a token.</p>")
      case .notJSON: return HTTPResponse(status: 200, fields: fields, body: Array("{\"access_token\": \"".utf8))
      case .huge:
        return HTTPResponse(status: 200, fields: fields, body: Array(repeating: UInt8(ascii: " "), count: 2 << 20))
      case .redirect:
        return HTTPResponse(status: 307, fields: ["Location": origin + Self.controlPrefix + "elsewhere"])
      case .errorWithSuccess:
        var answer = AnswerContent(rules)
        answer.setError(.codeUnknown)
        return answer.response
      case .serverError: return .json(500, ["error": "server_error"])
      case .drop, .wrongState, .noRotation, .noExpiry, .wrongIssuer, .proofNonce: continue
      }
    }
    return nil
  }
}

extension Template {
  fileprivate func filledLength(with token: String) -> Int { ((try? filled { _ in token }) ?? "").count }
}

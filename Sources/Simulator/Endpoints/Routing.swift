import HTTP
import JSON
import Descriptors

extension Simulation {
  /// Answers a request.
  mutating func answer(_ request: HTTPRequest) -> LoopbackServer.Answer {
    // A page elsewhere that makes its own name point here must not reach anything.
    guard request.uri.origin == origin else {
      return refused("simulator", Refusal.request(.foreignHost), status: 421)
    }
    if request.uri.path.hasPrefix(Self.controlPrefix) { return LoopbackServer.Answer(control(request)) }
    if let metadata = metadata(request) { return LoopbackServer.Answer(metadata) }
    let candidates = descriptor.endpoints.filter { isPath(of: $0.value, request) && isOffered($0.key) }
    guard !candidates.isEmpty else { return refused("unknown path", .request(.noSuchPath), status: 404) }
    let methods = Set(candidates.values.map(\.method)).sorted()
    let right = candidates.filter { $0.value.method == request.method }
    guard let kind = choose(Array(right.keys), request), let endpoint = descriptor.endpoints[kind] else {
      if right.isEmpty {
        return refused("method", .request(.wrongMethod(expected: methods)), status: 405)
      }
      let anyEndpoint = right.keys.first { $0 == .token } ?? .token
      let refusal = Refusal("unsupported_grant_type", .unsupportedGrantType)
      state.log.refused(at: anyEndpoint.rawValue, refusal)
      return LoopbackServer.Answer(response(refusal, right.values.first?.response ?? ResponseRules()))
    }
    return answer(request, kind, endpoint)
  }

  static let controlPrefix = "/simulator/"

  private mutating func refused(_ place: String, _ refusal: Refusal, status: Int) -> LoopbackServer.Answer {
    state.log.refused(at: place, refusal)
    let body: JSONValue = [
      "error": .string(refusal.code), "error_description": .string(refusal.reason.sentence),
    ]
    return LoopbackServer.Answer(.json(status, body))
  }

  /// Whether one of the offered grants, or the life of a credential, uses an endpoint.
  private func isOffered(_ kind: EndpointKind) -> Bool {
    switch kind {
    case .token: descriptor.grants.contains { $0 == .authorizationCode || $0 == .oauth1 }
    case .clientCredentials: descriptor.grants.contains(.clientCredentials)
    case .deviceAuthorization, .deviceToken: descriptor.grants.contains(.deviceCode)
    default: true
    }
  }

  /// Whether a request goes to the URL of an endpoint.
  private func isPath(of endpoint: Endpoint, _ request: HTTPRequest) -> Bool {
    captures(endpoint, request) != nil
  }

  /// What the open places of an endpoint's URL stand for in a request, percent-encoded.
  func captures(_ endpoint: Endpoint, _ request: HTTPRequest) -> [String: String]? {
    var template = endpoint.url.template.text
    if let mark = template.firstIndex(of: "#") { template = String(template[..<mark]) }
    guard let parsed = try? Template(parsing: template) else { return nil }
    let pattern = TemplatePattern(parsed, encode: PercentEncoding.encode, knowledge())
    let hasQuery = template.contains("?")
    let target = origin + request.uri.path + (hasQuery ? "?" + (request.uri.query ?? "") : "")
    return pattern.captures(
      in: target, isValue: { !"/?&=".utf8.contains($0) },
      isEnd: { $0.isEmpty || (hasQuery && $0.first == UInt8(ascii: "&")) })
  }

  // MARK: Endpoints that share a URL

  /// The endpoint that a request is for, among those at its URL; `nil` when its grant type is none of theirs.
  private func choose(_ kinds: [EndpointKind], _ request: HTTPRequest) -> EndpointKind? {
    if kinds.count <= 1 { return kinds.first }
    var parameters = EndpointParameters.everything(in: request)
    parameters.append(contentsOf: OAuth1Parameters.header(of: request) ?? [])
    let scored = EndpointKind.allCases.filter(kinds.contains).map { (kind: $0, score: score($0, parameters)) }
    guard let best = scored.max(by: { $0.score < $1.score }), best.score >= 0 else { return nil }
    let equal = scored.filter { $0.score == best.score }.map(\.kind)
    // What asks for both is answered for both.
    return equal.contains(.identity) && equal.first == .introspection ? .identity : equal.first
  }

  private func score(_ kind: EndpointKind, _ parameters: FormParameters) -> Int {
    guard let endpoint = descriptor.endpoints[kind] else { return -10 }
    func wire(_ name: String) -> String { endpoint.rename[name] ?? name }
    var score = 0
    if let name = characteristicParameter(kind), parameters.contains(wire(name)) { score += 2 }
    let given = parameters[first: wire("grant_type")]
    let rule = endpoint.parameters.first { $0.name == "grant_type" }
    if let rule, rule.value == nil { return score }
    if let template = rule?.value {
      guard let given else { return score }
      return score + (TemplatePattern(template, knowledge()).matches(given) ? 4 : -4)
    }
    switch (Self.grantType(kind), given) {
    case (nil, nil), (_?, nil): return score
    case (nil, _?): return score - 1
    case (let expected?, let given?): return score + (expected == given ? 4 : -4)
    }
  }

  /// The `grant_type` of an endpoint, where it has one.
  static func grantType(_ kind: EndpointKind) -> String? {
    switch kind {
    case .token: "authorization_code"
    case .refresh: "refresh_token"
    case .clientCredentials: "client_credentials"
    case .deviceToken: "urn:ietf:params:oauth:grant-type:device_code"
    case .tokenExchange: "urn:ietf:params:oauth:grant-type:token-exchange"
    default: nil
    }
  }

  /// The parameter that no other endpoint has.
  private func characteristicParameter(_ kind: EndpointKind) -> String? {
    switch kind {
    case .authorization: isOAuth1 ? "oauth_token" : "response_type"
    case .token: isOAuth1 ? "oauth_verifier" : "code"
    case .refresh: isOAuth1 ? "oauth_session_handle" : "refresh_token"
    case .deviceToken: "device_code"
    case .tokenExchange: "subject_token"
    case .introspection, .revocation: "token"
    case .temporaryCredentials: "oauth_callback"
    case .registration: "redirect_uris"
    default: nil
    }
  }

  // MARK: One endpoint

  private mutating func answer(_ request: HTTPRequest, _ kind: EndpointKind, _ endpoint: Endpoint)
    -> LoopbackServer.Answer
  {
    switch kind {
    case .authorization:
      return LoopbackServer.Answer(
        isOAuth1 ? resourceOwnerPage(request, endpoint) : authorizationPage(request, endpoint))
    case .identity: return LoopbackServer.Answer(identity(request, endpoint))
    case .introspection: return LoopbackServer.Answer(introspection(request, endpoint))
    case .revocation: return LoopbackServer.Answer(revocation(request, endpoint))
    case .registration: return LoopbackServer.Answer(registration(request, endpoint))
    case .deviceAuthorization:
      return LoopbackServer.Answer(deviceAuthorization(request, endpoint))
    // What nothing here plays is refused as a token request of an unknown grant.
    default:
      if let broken = brokenAnswer(endpoint.response) { return slowed(broken) }
      var answer = LoopbackServer.Answer(
        isOAuth1 ? oauth1Answer(request, kind, endpoint) : tokenAnswer(request, kind, endpoint))
      answer.isDropped = hasFault(.drop)
      return slowed(answer)
    }
  }

  private func slowed(_ answer: LoopbackServer.Answer) -> LoopbackServer.Answer {
    var answer = answer
    for case .slow(let milliseconds) in settings.faults { answer.delay = Double(milliseconds) / 1000 }
    return answer
  }

  /// The answer of a token endpoint that is broken before it has done anything.
  private func brokenAnswer(_ rules: ResponseRules) -> LoopbackServer.Answer? {
    for fault in settings.faults {
      switch fault {
      case .html:
        return LoopbackServer.Answer(.page(200, title: "Welcome", body: "<p>This is a page and no token.</p>"))
      case .notJSON:
        let fields: HTTPFields = ["Content-Type": MediaTypes.json]
        return LoopbackServer.Answer(
          HTTPResponse(status: 200, fields: fields, body: Array("{\"access_token\": \"".utf8)))
      case .huge:
        let body = [UInt8](repeating: UInt8(ascii: " "), count: 2 << 20)
        return LoopbackServer.Answer(
          HTTPResponse(status: 200, fields: ["Content-Type": MediaTypes.json], body: body))
      case .redirect:
        let fields: HTTPFields = ["Location": origin + Self.controlPrefix + "elsewhere"]
        return LoopbackServer.Answer(HTTPResponse(status: 307, fields: fields))
      case .errorWithSuccess:
        var content = AnswerContent(rules)
        content.setError(.grant(.codeUnknown))
        return LoopbackServer.Answer(content.response(200))
      case .serverError:
        return LoopbackServer.Answer(.json(500, ["error": "server_error"]))
      case .slow, .drop, .wrongState, .noRotation, .noExpiry, .wrongIssuer:
        continue
      }
    }
    return nil
  }
}

extension HTTPResponse {
  /// A JSON answer.
  static func json(_ status: Int, _ value: JSONValue) -> HTTPResponse {
    HTTPResponse(
      status: status, fields: ["Content-Type": MediaTypes.json, "Cache-Control": "no-store"],
      body: Array(value.encoded.utf8))
  }
}

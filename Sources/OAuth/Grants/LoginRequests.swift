import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// The requests that a login would make, in order. Secrets and values not yet known are placeholders (`<code>`). Values
/// computed from them are shown as the computation: `base64(client-1:<client_secret>)`.
package struct LoginRequests: Sendable {
  package struct Request: Sendable {
    package let kind: EndpointKind
    package let isLater: Bool  // After the token has expired, not during the login.
    package let method: String
    package let url: String  // Without query and fragment.
    package let query: [FormParameters.Pair]
    package let fragment: String?
    package let fields: [HTTPField]  // Without connection headers such as `Host`.
    package let body: Body

    package var isInBrowser: Bool { kind == .authorization }
  }

  package enum Body: Sendable, Equatable {
    case none
    case form([FormParameters.Pair])
    case json(JSONValue)
  }

  package let grant: Grant
  package private(set) var requests: [Request] = []
  /// The fields that the user types before the first request, and the page for making the key.
  package private(set) var typed: (fields: [Step.Prompt.Field], page: String?) = ([], nil)
  private let client: Client
  private let scope: [String]
  private let person: PersonChoice?
  private let demands: ConsentDemands
  private let listening: String?
  private let random: Set<String>

  package var redirectURI: String? { listening.map(Placeholder.revealed) }
}

/// Placeholder texts that are valid wherever the real value would be: in a host, a path, a header, or a form.
enum Placeholder {
  private static let mark: (begin: String, end: String) = ("zq", "qz")
  private static let url: (begin: String, end: String) = ("https://", ".invalid")
  static let moment: Moment = 4_999_999_999
  static let port: UInt16 = 49_999

  static func text(_ name: String) -> String { mark.begin + Hexadecimal.encode(Array(name.utf8)) + mark.end }

  /// Returns the placeholder for a name whose value is a whole URL.
  static func url(_ name: String) -> String { url.begin + text(name) + url.end }

  /// Replaces each placeholder in the text with `<name>`.
  static func revealed(_ text: String) -> String {
    var rest = text.exchanging(":\(port)", for: ":<port>").exchanging("%3A\(port)", for: "%3A<port>")
      .exchanging("\(moment.secondsSince1970)", for: "<now>")[...]
    var result = ""
    while let begin = rest.firstPlace(of: mark.begin) {
      result += rest[..<begin.lowerBound]
      rest = rest[begin.lowerBound...]
      let digits = rest.dropFirst(mark.begin.count).prefix { $0.isHexDigit }
      let behind = rest[digits.endIndex...]
      guard behind.hasPrefix(mark.end), let name = Hexadecimal.decode(String(digits)), !name.isEmpty else {
        result += mark.begin
        rest = rest.dropFirst(mark.begin.count)
        continue
      }
      rest = behind.dropFirst(mark.end.count)
      if result.hasSuffix(url.begin), rest.hasPrefix(url.end) {
        result.removeLast(url.begin.count)
        rest = rest.dropFirst(url.end.count)
      }
      result += "<" + String(decoding: name, as: UTF8.self) + ">"
    }
    return result + rest
  }
}

extension Client {
  /// Creates a client whose requests are only shown. Secrets and missing values become placeholders.
  package init(
    showing descriptor: Descriptor, identifier: String?, hasSecret: Bool, variables given: [String: String]
  ) throws(ProviderError) {
    var descriptor = descriptor
    // A placeholder would not match the pattern for the provider's value.
    for (kind, endpoint) in descriptor.endpoints {
      for index in endpoint.response.keep.indices { descriptor.endpoints[kind]?.response.keep[index].pattern = nil }
    }
    let secrets = Set(descriptor.variables.filter(\.isSecret).map(\.name))
    try Self.check(given.filter { !secrets.contains($0.key) }, descriptor)
    var values: [String: String] = [:]
    for variable in descriptor.variables {
      let value = given[variable.name] ?? variable.defaultValue ?? ""
      if value.isEmpty, variable.isAtLogin, !variable.isAtExchange { continue }
      if !value.isEmpty, !variable.isSecret {
        values[variable.name] = value
      } else if !value.isEmpty || !variable.isOptional || Self.isNeeded(variable.name, descriptor) {
        values[variable.name] = Self.placeholder(variable, descriptor)
      }
    }
    descriptor.hosts = []
    self.init(
      descriptor: descriptor, identifier: identifier ?? Placeholder.text("client_id"),
      secret: hasSecret ? Secret(Placeholder.text("client_secret")) : nil, values: values,
      computing: WrittenComputation())
  }

  private static func placeholder(_ variable: Variable, _ descriptor: Descriptor) -> String {
    if let choice = variable.choices.first { return choice }
    switch variable.format {
    case .integer: return String(Placeholder.port)
    case .url, .redirect: return Placeholder.url(variable.name)
    case .text, .hostname:
      return beginsURL(variable.name, descriptor) ? Placeholder.url(variable.name) : Placeholder.text(variable.name)
    }
  }

  /// Whether an endpoint's URL cannot be built without this name.
  private static func isNeeded(_ name: String, _ descriptor: Descriptor) -> Bool {
    descriptor.endpoints.values.contains { $0.url.template.parts.contains(.place([.name(name)])) }
  }

  /// Whether the name provides the whole base URL of an endpoint or of the redirect.
  private static func beginsURL(_ name: String, _ descriptor: Descriptor) -> Bool {
    (descriptor.endpoints.values.map(\.url) + [descriptor.redirect]).contains { url in
      guard case .place(let terms)? = url.template.parts.first else { return false }
      return terms.contains(.name(name))
    }
  }

  fileprivate func placeholder(_ name: String) -> String {
    Self.beginsURL(name, descriptor) ? Placeholder.url(name) : Placeholder.text(name)
  }

  fileprivate static var placeholderNonce: RequestNonce {
    RequestNonce(timestamp: Placeholder.moment, text: Placeholder.text("random"))
  }
}

/// Shows a computation instead of performing it: `hex(sha256(<client_secret>))`, on one line.
private struct WrittenComputation: RequestComputing {
  var isOnlyShown: Bool { true }

  func value(of function: Template.Function, _ arguments: [[UInt8]], _ nonce: RequestNonce) -> [UInt8]? {
    let texts = arguments.map { String(decoding: $0, as: UTF8.self).exchanging("\n", for: "\\n") }
    switch function {
    case .now where texts.isEmpty: return Array("\(Placeholder.moment.secondsSince1970)".utf8)
    case .random: return Array(Placeholder.text("random").utf8)
    // The result of `json` must still be valid JSON.
    case .json: return Array(texts.joined().utf8)
    default: return Array("\(function.rawValue)(\(texts.joined(separator: ", ")))".utf8)
    }
  }

  func signature(_ name: String, _ sign: () throws(OAuthError) -> String) throws(OAuthError) -> String {
    Placeholder.text(name)
  }
}

/// Returns zeros because a dry run shows only where random bytes go.
private struct FixedRandom: RandomSource { func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) } }

// Performs a login as a dry run: it records each request and invents the answer.
extension LoginRequests {
  package init(
    _ grant: Grant, _ client: Client, scope: [String], demanding demands: ConsentDemands = ConsentDemands(),
    choosing person: PersonChoice? = nil, hasToken: Bool
  ) throws(OAuthError) {
    var client = client
    let isBound = !hasToken && client.descriptor.binding(of: grant).rule.needsKey
    client.bindingKey = isBound ? Secret(Placeholder.text("proof_key")) : nil
    (self.client, self.grant, self.scope, self.person) = (client, grant, scope, person)
    self.demands = demands
    let verifier = CodeVerifier(random: FixedRandom())
    random = [
      verifier.text, verifier.challenge(client.descriptor.pkce) ?? verifier.text,
      client.bindingMessage(random: FixedRandom()) ?? verifier.text,
    ]
    listening =
      switch grant.callback(client) == nil ? nil : try client.redirect() {
      case nil: nil
      case .loopback(let uri)?: uri.port == nil ? uri.replacing(port: Placeholder.port).text : uri.text
      case .elsewhere(let text)?, .outOfBand(let text)?: text
      }
    try play(hasToken: hasToken)
  }

  private mutating func play(hasToken: Bool) throws(OAuthError) {
    var credential = Credential(grant: grant, accessToken: Secret(""), obtainedAt: 0)
    for field in keptFields { credential.kept[field.name] = client.placeholder(field.name) }
    if !hasToken || grant.traits.typed != nil {
      credential = try login()
      credential.kept.merge(keptFields.map { ($0.name, client.placeholder($0.name)) }) { $1 }
    }
    credential.accessToken = Secret(Placeholder.text("access_token"))
    credential.refreshToken = Secret(Placeholder.text("refresh_token"))
    if client.asksIdentity(after: grant) {
      add(.identity, try client.identityRequest(credential, nonce: Client.placeholderNonce))
    } else if grant.traits.typed != nil || client.makesTokens(of: grant), client.canValidate {
      let question = try client.validationRequest(credential, nonce: Client.placeholderNonce)
      add(question.kind, question.request)
    }
    // The client credentials grant renews its token with the same request.
    guard !hasToken, client.descriptor.endpoints[.refresh] != nil, grant.traits.needsPerson,
      grant.traits.renewal != .none, grant.traits.renewal != .login
    else { return }
    add(.refresh, try client.refreshRequest(credential, nonce: Client.placeholderNonce), isLater: true)
    if client.exchangesToken(afterRefreshOf: credential) {
      add(.tokenExchange, try client.tokenExchangeRequest(credential, nonce: Client.placeholderNonce), isLater: true)
    }
  }

  private mutating func login() throws(OAuthError) -> Credential {
    let login = LoginContext(
      grant, client, scope: scope, demanding: demands, redirectURI: listening ?? "", choosing: person,
      random: FixedRandom(),
      nonce: Client.placeholderNonce)
    var step = try login.begin()
    while true {
      switch step {
      case .send(let exchange):
        add(exchange.kind, try exchange.request(Client.placeholderNonce))
        step = try exchange.read(answer(exchange.kind), 0)
      case .browse(let page):
        add(.authorization, HTTPRequest(method: "GET", uri: page.uri))
        var parameters = page.parameters(bringing: Placeholder.text(page.brings.rawValue))
        for field in keptFields where !parameters.contains(field.paths[0].text) {
          parameters.append(field.paths[0].text, client.placeholder(field.name))
        }
        step = try page.read(parameters, 0)
      case .showCode(_, let poll), .awaitConsent(_, let poll): step = .send(poll)
      case .prompt(let prompt):
        typed = (prompt.fields, prompt.page)
        step = try prompt.read(placeholders: client.placeholder)
      case .choose(let choice): step = try choice.read(0)
      case .done(let credential, _): return credential
      }
    }
  }

  private var keptFields: [KeptField] {
    client.descriptor.endpoints.values.flatMap(\.response.keep).filter { !$0.paths.isEmpty }
  }

  /// Returns an answer with every field that a grant may need, at the place where the descriptor expects it.
  private func answer(_ kind: EndpointKind) -> HTTPResponse {
    let rules = client.descriptor.endpoints[kind]?.response ?? ResponseRules()
    var response = HTTPResponse(status: 200, fields: ["Content-Type": "application/json"], body: [])
    var members: [JSONValue.Member] = []
    func add(_ path: FieldPath?, _ value: String) {
      guard let path else { return }
      if let header = path.header { response.fields.set(header, value) }
      members.removeAll { $0.name == path.text }
      members.append(.init(path.text, .string(value)))
    }
    for field in ResponseField.passedOn { add(rules.source(of: field).paths.first, Placeholder.text(field.rawValue)) }
    add(rules.source(of: .verificationURI).paths.first, Placeholder.url(ResponseField.verificationURI.rawValue))
    add(rules.source(of: .oauthCallbackConfirmed).paths.first, "true")
    for field in rules.keep { add(field.paths.first, client.placeholder(field.name)) }
    if rules.format == .text {
      response.body = Array((members.first { $0.name == ResponseFormat.text.rawValue }?.value.text ?? "").utf8)
      return response
    }
    // A name that contains dots also works as one member name.
    let object = JSONValue.object(members)
    response.body = Array((rules.within.map { .object([.init($0.text, object)]) } ?? object).encoded.utf8)
    return response
  }

  private mutating func add(_ kind: EndpointKind, _ request: HTTPRequest, isLater: Bool = false) {
    let fragment = request.uri.fragment.map { PercentEncoding.decode($0, plusAsSpace: false) ?? $0 }
    requests.append(
      Request(
        kind: kind, isLater: isLater, method: request.method, url: shown(request.uri.withoutQueryAndFragment.text),
        query: shown(request.uri.queryParameters), fragment: fragment.map(shown),
        fields: request.fields.map { HTTPField(name: $0.name, value: shown(Self.decodingBasic($0.value))) },
        body: body(request)))
  }

  private func body(_ request: HTTPRequest) -> Body {
    guard !request.body.isEmpty else { return .none }
    if let value = try? JSONValue.parse(request.body) { return .json(shown(value)) }
    return .form(shown(FormParameters(decoding: String(decoding: request.body, as: UTF8.self))))
  }

  /// Shows a Basic header as `Basic base64(client-1:<client_secret>)`.
  private static func decodingBasic(_ value: String) -> String {
    guard value.hasPrefix("Basic "), let bytes = Base64.decode(String(value.dropFirst("Basic ".count))) else {
      return value
    }
    return "Basic base64(" + String(decoding: bytes, as: UTF8.self) + ")"
  }

  private func shown(_ text: String) -> String {
    Placeholder.revealed(random.reduce(text) { $0.exchanging($1, for: Placeholder.text("random")) })
  }

  private func shown(_ value: String, as name: String) -> String { random.contains(value) ? "<\(name)>" : shown(value) }

  private func shown(_ parameters: FormParameters) -> [FormParameters.Pair] {
    parameters.pairs.map { .init(name: shown($0.name), value: shown($0.value, as: $0.name)) }
  }

  private func shown(_ value: JSONValue, as name: String = "random") -> JSONValue {
    switch value {
    case .object(let members): .object(members.map { .init($0.name, shown($0.value, as: $0.name)) })
    case .array(let elements): .array(elements.map { shown($0) })
    case .string(let text): .string(shown(text, as: name))
    case .number, .boolean, .null: value
    }
  }
}

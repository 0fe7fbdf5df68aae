import Cryptography
import Descriptors
import HTTP
import JSON
import Text

/// The requests that a login would make, in their order, without anybody being asked anything.
///
/// What nobody knows before, and what is secret, is a placeholder: `<code>`, `<client_secret>`. What is computed of such is
/// written as the computation: `base64(client-1:<client_secret>)`.
public struct Rehearsal: Sendable {
  /// One request.
  public struct Request: Sendable {
    /// The endpoint.
    public let kind: EndpointKind
    /// Whether the person's browser makes it.
    public let isInBrowser: Bool
    /// Whether it is made when the token has expired, and not at the login.
    public let isLater: Bool
    /// The method (RFC 9110, 9).
    public let method: String
    /// The URL without query and fragment.
    public let url: String
    /// The parameters in the query.
    public let query: [FormParameters.Pair]
    /// What stands behind the `#`, where there is something.
    public let fragment: String?
    /// The header fields; those that belong to the connection are not among them.
    public let fields: [HTTPField]
    /// The body.
    public let body: Body
  }

  /// A body by its type.
  public enum Body: Sendable, Equatable {
    /// None.
    case none
    /// `application/x-www-form-urlencoded`
    case form([FormParameters.Pair])
    /// `application/json`
    case json(JSONValue)
  }

  /// The grant.
  public let grant: Grant
  /// The redirect URI; `nil` for a grant without one.
  public let redirectURI: String?
  /// The requests.
  public let requests: [Request]
}

/// Texts that stand for what is not known, and can stand wherever that could: in a host, a path, a header, a form.
enum Placeholder {
  private static let mark: (begin: String, end: String) = ("zq", "qz")
  private static let url: (begin: String, end: String) = ("https://", ".invalid")
  /// Stands for the moment, in seconds since 1970.
  static let moment: Int64 = 4_999_999_999
  /// Stands for a free port.
  static let port: UInt16 = 49_999

  /// The stand-in of a name.
  static func text(_ name: String) -> String { mark.begin + Hexadecimal.encode(Array(name.utf8)) + mark.end }

  /// The stand-in of a name whose value is a whole URL.
  static func url(_ name: String) -> String { url.begin + text(name) + url.end }

  /// The text with `<name>` in the place of each stand-in.
  static func revealed(_ text: String) -> String {
    var rest = text.exchanging(":\(port)", for: ":<port>").exchanging("%3A\(port)", for: "%3A<port>")
      .exchanging("\(moment)", for: "<now>")[...]
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
  /// A client that only rehearses: its secret is a placeholder, as is whatever has no value yet.
  ///
  /// - Parameters:
  ///   - identifier: `nil` before there is a registration.
  ///   - given: values of variables; the others have their default, or a placeholder, as have those that are secrets.
  /// - Throws: `ProviderError.unknownVariable`, `.invalidVariable` for values that are given.
  init(
    rehearsing descriptor: Descriptor, identifier: String?, hasSecret: Bool, variables given: [String: String]
  ) throws(ProviderError) {
    let secrets = Set(descriptor.variables.filter(\.isSecret).map(\.name))
    try Self.check(given.filter { !secrets.contains($0.key) }, descriptor)
    var values: [String: String] = [:]
    for variable in descriptor.variables {
      let value = given[variable.name] ?? variable.defaultValue ?? ""
      if !value.isEmpty, variable.isSecret {
        values[variable.name] = Self.placeholder(variable, descriptor)
      } else if !value.isEmpty {
        values[variable.name] = value
      } else if !variable.isOptional || Self.isNeeded(variable.name, descriptor) {
        values[variable.name] = Self.placeholder(variable, descriptor)
      }
    }
    self.init(
      descriptor: descriptor, identifier: identifier ?? Placeholder.text("client_id"),
      secret: hasSecret ? Secret(Placeholder.text("client_secret")) : nil, values: values,
      nonce: { RequestNonce(timestamp: Placeholder.moment, text: Placeholder.text("random")) }, rehearses: true)
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

  /// Whether a URL does not come about without a value for this name.
  private static func isNeeded(_ name: String, _ descriptor: Descriptor) -> Bool {
    descriptor.endpoints.values.contains { $0.url.template.parts.contains(.place([.name(name)])) }
  }

  /// Whether a name stands for a whole base URL somewhere.
  private static func beginsURL(_ name: String, _ descriptor: Descriptor) -> Bool {
    (descriptor.endpoints.values.map(\.url) + [descriptor.redirect]).contains { url in
      guard case .place(let terms)? = url.template.parts.first else { return false }
      return terms.contains(.name(name))
    }
  }

  /// What the provider would have sent by then.
  fileprivate func rehearsedCredential(_ grant: Grant, redirectURI: String?, scope: [String]) -> Credential {
    var credential = Credential(
      grant: grant, accessToken: Secret(Placeholder.text("access_token")), obtainedAt: 0,
      margin: descriptor.expiry.margin)
    credential.refreshToken = Secret(Placeholder.text("refresh_token"))
    credential.tokenSecret = Secret(Placeholder.text("token_secret"))
    credential.sessionHandle = Secret(Placeholder.text("oauth_session_handle"))
    credential.requestedScope = scope
    credential.redirectURI = redirectURI
    credential.kept = rehearsedKept
    return credential
  }

  fileprivate var rehearsedKept: [String: String] {
    var kept: [String: String] = [:]
    for field in descriptor.endpoints.values.flatMap(\.response.keep) {
      kept[field.name] =
        Self.beginsURL(field.name, descriptor) ? Placeholder.url(field.name) : Placeholder.text(field.name)
    }
    return kept
  }
}

extension Rehearsal {
  /// Goes through a login.
  ///
  /// - Parameters:
  ///   - identifier: the client identifier; `nil` before there is one.
  ///   - hasSecret: whether the client has a secret.
  ///   - variables: values of the descriptor's variables.
  ///   - hasToken: whether the person has a token already, so that the provider is only asked whose it is.
  /// - Throws: `ProviderError` for variables, `OAuthError` where a request would not come about.
  public init(
    _ descriptor: Descriptor, _ grant: Grant, identifier: String?, hasSecret: Bool, variables: [String: String],
    scope: [String], hasToken: Bool
  ) throws {
    let client = try Client(
      rehearsing: descriptor, identifier: identifier, hasSecret: hasSecret, variables: variables)
    var stage = Stage(client: client, grant: grant, scope: scope)
    try stage.play(hasToken: hasToken)
    self.grant = grant
    redirectURI = stage.redirectURI.map(Placeholder.revealed)
    requests = stage.requests
  }
}

/// Collects the requests of one login.
private struct Stage {
  let client: Client
  let grant: Grant
  let scope: [String]
  var redirectURI: String?
  var requests: [Rehearsal.Request] = []

  private var nonce: RequestNonce {
    RequestNonce(timestamp: Placeholder.moment, text: Placeholder.text("random"))
  }

  init(client: Client, grant: Grant, scope: [String]) {
    self.client = client
    self.grant = grant
    self.scope = scope
  }

  /// Never asked: what would be random is a placeholder.
  private struct NoRandomness: RandomSource {
    func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
  }

  mutating func play(hasToken: Bool) throws(OAuthError) {
    if !hasToken {
      switch grant {
      case .authorizationCode, .implicit: try playBrowser()
      case .oauth1: try playOAuth1()
      case .deviceCode: try playDevice()
      case .clientCredentials: add(.clientCredentials, try client.clientCredentialsRequest(scope: scope))
      }
    }
    let credential = client.rehearsedCredential(grant, redirectURI: redirectURI, scope: scope)
    if !hasToken, let exchange = try client.tokenExchangeRequest(credential) { add(.tokenExchange, exchange) }
    let endpoints = client.descriptor.endpoints
    if client.asksIdentity, grant != .clientCredentials {
      add(.identity, try client.identityRequest(credential, nonce: nonce))
    }
    // A token of the client credentials grant is obtained anew, by the same request.
    if !hasToken, endpoints[.refresh] != nil, grant != .clientCredentials {
      let refresh =
        grant == .oauth1
        ? try client.sessionRefreshRequest(credential, nonce: nonce) : try client.refreshRequest(credential)
      add(.refresh, refresh, isLater: true)
      if let exchange = try client.tokenExchangeRequest(afterRefresh: credential) {
        add(.tokenExchange, exchange, isLater: true)
      }
    }
  }

  private mutating func setRedirect() throws(OAuthError) -> String {
    let text =
      switch try client.redirect() {
      case .loopback(let uri): uri.port == nil ? uri.replacing(port: Placeholder.port).text : uri.text
      case .elsewhere(let text), .outOfBand(let text): text
      }
    redirectURI = text
    return text
  }

  private mutating func playBrowser() throws(OAuthError) {
    let request = try client.authorizationRequest(
      grant, redirectURI: setRedirect(), scope: scope, random: NoRandomness())
    add(.authorization, HTTPRequest(method: "GET", uri: request.uri), isInBrowser: true)
    guard grant == .authorizationCode else { return }
    let answer = Answer(
      rehearsing: .authorization, try client.endpoint(.authorization).response,
      [.code: Placeholder.text("code")], kept: client.rehearsedKept)
    add(.token, try client.tokenRequest(AuthorizationResponse(request: request, answer: answer)))
  }

  private mutating func playOAuth1() throws(OAuthError) {
    let callback = try setRedirect()
    add(
      .temporaryCredentials,
      try client.temporaryCredentialsRequest(callback: callback, scope: scope, nonce: nonce))
    let temporary = TemporaryCredentials(
      token: Secret(Placeholder.text("oauth_token")), secret: Secret(Placeholder.text("oauth_token_secret")),
      callback: callback)
    let page = try client.authorizationPage(temporary, scope: scope)
    add(.authorization, HTTPRequest(method: "GET", uri: page), isInBrowser: true)
    let verifier = client.descriptor.oauth1.requiresVerifier ? Placeholder.text("oauth_verifier") : nil
    let consent = ResourceOwnerAuthorization(verifier: verifier, kept: client.rehearsedKept)
    add(.token, try client.tokenRequest(temporary, consent, nonce: nonce))
  }

  private mutating func playDevice() throws(OAuthError) {
    add(.deviceAuthorization, try client.deviceAuthorizationRequest(scope: scope))
    let device = DeviceAuthorization(
      deviceCode: Placeholder.text("device_code"), userCode: Placeholder.text("user_code"),
      verificationURI: Placeholder.url("verification_uri"), verificationURIComplete: nil, scope: scope,
      polling: DevicePolling(interval: 5, slowDown: .add(5), deadline: 0))
    add(.deviceToken, try client.deviceTokenRequest(device))
  }

  private mutating func add(
    _ kind: EndpointKind, _ request: HTTPRequest, isInBrowser: Bool = false, isLater: Bool = false
  ) {
    let fragment = request.uri.fragment.map { PercentEncoding.decode($0, plusAsSpace: false) ?? $0 }
    requests.append(
      Rehearsal.Request(
        kind: kind, isInBrowser: isInBrowser, isLater: isLater, method: request.method,
        url: Placeholder.revealed(request.uri.withoutQueryAndFragment.text),
        query: Self.revealed(request.uri.queryParameters), fragment: fragment.map(Placeholder.revealed),
        fields: request.fields.map { HTTPField(name: $0.name, value: Placeholder.revealed($0.value)) },
        body: Self.body(request)))
  }

  private static func body(_ request: HTTPRequest) -> Rehearsal.Body {
    guard !request.body.isEmpty else { return .none }
    if let value = try? JSONValue.parse(request.body) { return .json(revealed(value)) }
    return .form(revealed(FormParameters(decoding: String(decoding: request.body, as: UTF8.self))))
  }

  private static func revealed(_ parameters: FormParameters) -> [FormParameters.Pair] {
    parameters.pairs.map { .init(name: Placeholder.revealed($0.name), value: Placeholder.revealed($0.value)) }
  }

  private static func revealed(_ value: JSONValue) -> JSONValue {
    switch value {
    case .object(let members): .object(members.map { .init($0.name, revealed($0.value)) })
    case .array(let elements): .array(elements.map(revealed))
    case .string(let text): .string(Placeholder.revealed(text))
    case .number, .boolean, .null: value
    }
  }
}

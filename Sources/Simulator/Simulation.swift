import Cryptography
import Descriptors
import HTTP
import JSON
import Text

/// The simulated provider: what it is, and what it remembers. Its endpoints are extensions, one file each.
struct Simulation: Sendable {
  let descriptor: Descriptor
  let origin: String
  let settings: SimulationSettings
  let clientSecret: Secret
  let signature: (method: SignatureMethod, transport: SignatureTransport)
  private let clock: @Sendable () -> Int64
  private let random: any RandomSource
  var state = SimulationState()

  init(
    descriptor: Descriptor, origin: String, settings: SimulationSettings, clientSecret: Secret,
    clock: @escaping @Sendable () -> Int64, random: any RandomSource
  ) throws(SimulatorError) {
    self.descriptor = descriptor
    self.origin = origin
    self.settings = settings
    self.clientSecret = clientSecret
    self.clock = clock
    self.random = random
    signature = (
      try Self.named(descriptor.oauth1.signatureMethod, descriptor),
      try Self.named(descriptor.oauth1.transport, descriptor)
    )
    if isOAuth1, signature.method.isRSA, (try? RSAPrivateKey(pem: clientSecret)) == nil {
      throw .keyNeeded(signature.method)
    }
  }

  private static func named<Choice: RawRepresentable>(
    _ template: Template, _ descriptor: Descriptor
  ) throws(SimulatorError) -> Choice where Choice.RawValue == String {
    let text = (try? template.filled { descriptor.variable($0)?.defaultValue }) ?? ""
    guard let choice = Choice(rawValue: text) else { throw .unknownSignature(text) }
    return choice
  }

  // MARK: What is known

  /// Whether logins are those of RFC 5849.
  var isOAuth1: Bool { descriptor.grants.first == .oauth1 }

  var now: Milliseconds { clock() }

  func randomText(_ prefix: String, bytes: Int = 24) -> String {
    prefix + Base64.encodeURL(random.bytes(bytes))
  }

  func randomBytes(_ count: Int) -> [UInt8] { random.bytes(count) }

  func hasFault(_ fault: Fault) -> Bool { settings.faults.contains(fault) }

  /// The value of a variable, as it stands in the descriptor that was written.
  func value(_ name: String) -> String? { descriptor.variable(name)?.defaultValue }

  /// What is known of a name in the descriptor's templates.
  ///
  /// - Parameter kept: what is kept for the account that the request is about, where that is known.
  func knowledge(_ kept: [String: String] = [:]) -> (String) -> Knowledge {
    { name in
      if let value = kept[name] { return .known(value) }
      if let value = settings.variables[name] { return .known(value) }
      if let variable = descriptor.variable(name) { return .open(isOptional: variable.isOptional) }
      switch name {
      case "client_id": return .known(SimulatedProvider.clientIdentifier)
      case "client_secret": return .known(clientSecret.reveal())
      case "access_token", "code": return .open(isOptional: false)
      default: return .open(isOptional: true)
      }
    }
  }

  /// Everything that the descriptor keeps of any answer, with a value that can be told from others.
  func keptValues(account: String) -> [String: String] {
    var kept: [String: String] = [:]
    for endpoint in descriptor.endpoints.values {
      for field in endpoint.response.keep { kept[field.name] = "sample-" + field.name }
    }
    // Without an identity endpoint, one of them is the account's name.
    if descriptor.endpoints[.identity] == nil, let name = descriptor.account.first?.text, kept[name] != nil {
      kept[name] = account
    }
    return kept
  }

  /// The issuer of RFC 9207, with its variables filled.
  var issuer: String? { descriptor.issuer.flatMap { try? $0.filled(value) } }

  // MARK: Issuing

  mutating func addConsent(account: String, scope: [String]) -> ConsentID {
    state.log.count(.logins)
    state.consents.append(Consent(account: account, scope: scope, kept: keptValues(account: account)))
    return state.consents.count - 1
  }

  /// Seconds that an access token lives.
  var lifetime: Int64 { settings.lifetime ?? descriptor.expiry.lifetime ?? 3600 }

  static let refreshTokenLifetime: Int64 = 30 * 86_400

  /// Puts a new access token into an answer, and a refresh token beside it.
  mutating func issue(
    _ consent: ConsentID, withRefreshToken: Bool, into content: inout AnswerContent, _ rules: ResponseRules
  ) {
    state.log.count(.tokens)
    let granted = state.consents[consent]
    let token = rules.source(of: .expiresAt).time == .jwt ? jwt() : randomText("access-")
    state.tokens[token] = IssuedToken(consent: consent, expiresAt: now + lifetime * 1000)
    content.set(.accessToken, .string(token))
    content.set(.tokenType, .string(tokenType))
    setExpiry(&content, rules, .expiresIn, .expiresAt, seconds: lifetime)
    // Where the access token itself is what is refreshed with, there is no other.
    let isAccessToken = rules.source(of: .refreshToken).paths.first == rules.source(of: .accessToken).paths.first
    if withRefreshToken || isAccessToken {
      let refreshToken = isAccessToken ? token : randomText("refresh-")
      let seconds = Self.refreshTokenLifetime
      state.refreshTokens[refreshToken] = IssuedRefreshToken(
        consent: consent, expiresAt: now + seconds * 1000)
      content.set(.refreshToken, .string(refreshToken))
      setExpiry(&content, rules, .refreshTokenExpiresIn, .refreshTokenExpiresAt, seconds: seconds)
    }
    if !granted.scope.isEmpty {
      content.set(.scope, .string(granted.scope.joined(separator: descriptor.scope.grantedSeparator)))
    }
    content.set(kept: granted.kept, rules.keep)
  }

  /// A token that says itself when it expires (RFC 7519, 4.1.4).
  private func jwt() -> String {
    let header: JSONValue = ["alg": "none"]
    let claims: JSONValue = ["exp": .integer(now / 1000 + lifetime), "jti": .string(randomText(""))]
    return [header, claims].map { Base64.encodeURL(Array($0.encoded.utf8)) }.joined(separator: ".") + ".x"
  }

  /// A duration always, and a moment where the descriptor knows where it stands.
  private func setExpiry(
    _ content: inout AnswerContent, _ rules: ResponseRules, _ duration: ResponseField,
    _ moment: ResponseField,
    seconds: Int64
  ) {
    if hasFault(.noExpiry) || rules.source(of: moment).time == .jwt { return }
    content.set(duration, seconds: seconds)
    guard rules.fields[moment] != nil else { return }
    let time = now / 1000 + seconds
    switch rules.source(of: moment).time {
    case .date:
      // With the space that OCLC writes, which is the harder of the two forms.
      content.set(moment, .string(Moment.format(time).exchanging("T", for: " ")))
    case .milliseconds: content.set(moment, .integer(time * 1000))
    case .seconds, .jwt, nil: content.set(moment, .integer(time))
    }
  }

  /// The type that goes with the scheme in the header; GitHub's `token` is a `bearer`, too.
  private var tokenType: String {
    guard case .header(_, let scheme) = descriptor.headerStyle.location, scheme.lowercased() == "bearer"
    else {
      return "bearer"
    }
    return scheme
  }

  // MARK: Refusing

  /// The answer of an endpoint that is not for browsers.
  func response(_ refusal: Refusal, _ rules: ResponseRules) -> HTTPResponse {
    var content = AnswerContent(rules)
    content.setError(refusal)
    let status =
      if rules.errors.comeWithSuccess || rules.format == .form {
        200
      } else {
        refusal.code == "invalid_client" ? 401 : 400
      }
    var response = content.response(status)
    if status == 401 { response.fields.set("WWW-Authenticate", "Basic realm=\"simulator\"") }
    return response
  }
}

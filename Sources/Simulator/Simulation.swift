import CredmgrCommands
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrTLS
import CredmgrText

/// A provider that strictly follows its descriptor. It turns requests into answers and uses no socket. Its endpoints
/// are extensions, one file each.
struct Simulation {
  static let clientIdentifier = "simulator-client"

  let descriptor: Descriptor  // With endpoints on this machine.
  let origin: String
  let certified: CertifiedServer?  // `nil` unless the client needs a certificate.
  var settings: SimulationSettings
  let clientSecret: Secret  // With the private key as PEM, if the client needs one.
  let signature: (method: SignatureMethod, transport: SignatureTransport)
  private let clock: () -> Duration
  let random: any RandomSource
  let isStandard: Bool  // Whether this is the standard authorization server beside the provider.
  /// Fetches the document of a client; `nil` without an answer.
  let fetch: (URI) -> HTTPResponse?
  /// The standard authorization server beside the provider, in a list of at most one.
  private(set) var standard: [Simulation] = []
  var state = SimulationState()

  init(
    _ descriptor: Descriptor, at origin: URI, settings: SimulationSettings, clientSecret: Secret,
    clock: @escaping () -> Duration, random: any RandomSource, isStandard: Bool = false,
    certified: (origin: URI, authority: Certificate)? = nil, fetch: @escaping (URI) -> HTTPResponse? = { _ in nil }
  ) throws(CommandError) {
    let simulated = try descriptor.simulated(at: origin, tokensTo: certified?.origin ?? origin, settings)
    self.descriptor = simulated
    self.origin = origin.origin
    self.settings = settings
    self.clientSecret = clientSecret
    self.clock = clock
    self.random = random
    self.isStandard = isStandard
    self.fetch = fetch
    let certificates = certified == nil ? [] : Certificate.all(inPEM: clientSecret.reveal())
    self.certified =
      try certified.map { server throws(CommandError) in
        guard let first = certificates.first else {
          throw .usage("the file of \"--client-secret-file\" contains no certificate")
        }
        if let fault = Self.fault(of: clientSecret, for: descriptor, at: clock()) {
          throw .usage("cannot use the file of \"--client-secret-file\": \(fault)")
        }
        return CertifiedServer(
          origin: server.origin.origin, registered: first, authorities: certificates.dropFirst() + [server.authority])
      }
    func choice<Choice: RawRepresentable<String>>(_ template: Template) throws(CommandError) -> Choice {
      let text = (try? template.filled { simulated.variable($0)?.defaultValue }) ?? ""
      if let choice = Choice(rawValue: text) { return choice }
      throw .usage("\(quoted(text)) is not a signature method or transport of OAuth 1.0a")
    }
    signature = (try choice(simulated.oauth1.signatureMethod), try choice(simulated.oauth1.transport))
    if isOAuth1, signature.method.isRSA, (try? RSAPrivateKey(pem: clientSecret)) == nil {
      throw .usage(
        "\(signature.method.rawValue) requires an RSA key for the client",
        hint: "\(run: "openssl", "genrsa", "-out", "key.pem", "2048"), then \(add: "--client-secret-file", "key.pem")")
    }
    makeKey()
    guard !isStandard, let server = standardServer else { return }
    var plain = SimulationSettings()
    (plain.lifetime, plain.grace) = (settings.lifetime, settings.grace)
    (plain.faults, plain.delay) = (settings.faults, settings.delay)
    standard = [
      try Simulation(
        server, at: origin, settings: plain, clientSecret: clientSecret, clock: clock, random: random,
        isStandard: true, certified: certified, fetch: fetch)
    ]
  }

  var descriptorText: String {
    var written = aliasedDescriptor
    if written.git == nil, !settings.gitHosts.isEmpty {
      written.git = GitRules(hosts: settings.gitHosts.map { Template(literal: $0) })
    }
    return Self.mark + "\n" + written.yaml
  }

  private static let mark = "# Written by credmgr simulate; works only while the simulator runs."

  static func isOurs(_ bytes: [UInt8]) -> Bool { bytes.starts(with: mark.utf8) }

  // MARK: Lookup

  var isOAuth1: Bool { descriptor.grants.first == .oauth1 }

  var now: Duration { clock() }

  func randomText(_ prefix: String, bytes: Int = 24) -> String {
    (isStandard ? Self.standardMark : "") + prefix + Base64.encodeURL(random.bytes(bytes))
  }

  func hasFault(_ fault: Fault) -> Bool { settings.faults.contains(fault) }

  func value(_ name: String) -> String? { descriptor.variable(name)?.defaultValue }

  /// Returns a lookup for the names in templates. `kept` are the kept fields of the request's account, if known.
  func knowledge(_ kept: [String: String] = [:]) -> (String) -> Knowledge {
    // The client learns some fields only by a later question, which it need not ask.
    let others = descriptor.endpoints.filter { $0.key != .identity }.values.flatMap(\.response.keep).map(\.name)
    let later = Set(descriptor.endpoints[.identity]?.response.keep.map(\.name) ?? []).subtracting(others)
    return { name in
      if !later.contains(name), let value = kept[name] { return .known(value) }
      if isFree(name) { return .open(isOptional: false) }
      if let value = state.key?.variables[name] ?? settings.variables[name] { return .known(value) }
      if let variable = descriptor.variable(name) { return .open(isOptional: variable.isOptional) }
      switch name {
      case "client_id": return .known(Self.clientIdentifier)
      case "client_secret": return .known(clientSecret.shared.reveal())
      case "access_token", "code": return .open(isOptional: false)
      default: return .open(isOptional: true)
      }
    }
  }

  /// Whether a login may set a variable to anything, such as the identifier of a cloud project: only the token of the
  /// machine is a proof. `--set` requires a value.
  private func isFree(_ name: String) -> Bool {
    guard descriptor.grants.first == .tokenExchange, settings.variables[name] == nil else { return false }
    return descriptor.variable(name).map { $0.isAtLogin && !$0.isSecret && !$0.isAtExchange } ?? false
  }

  var issuer: String? { descriptor.issuer.flatMap { try? $0.filled(value) } }

  var clientAuthentication: ClientAuthentication {
    descriptor.client.authentication ?? (hasClient ? .clientSecretBasic : .none)
  }

  // MARK: Issuing

  mutating func addConsent(
    account: String, scope: [String], details: JSONValue? = nil, context: String? = nil, client: String? = nil
  ) -> ConsentID {
    state.log.count(.logins)
    // Returns every field that the descriptor keeps, with recognizable values.
    let names = descriptor.endpoints.values.flatMap(\.response.keep).map(\.name)
    var kept = Dictionary(names.map { ($0, "sample-" + $0) }, uniquingKeysWith: { first, _ in first })
    // Without an identity endpoint, one field is the account's name.
    if descriptor.endpoints[.identity] == nil, let name = descriptor.account.first?.text, kept[name] != nil {
      kept[name] = account
    }
    state.consents.append(
      Consent(
        account: account, scope: scope, kept: kept, details: details, context: context, authenticatedAt: now,
        client: client))
    return state.consents.count - 1
  }

  func checkRevoked(_ consent: ConsentID) throws(Refusal) {
    if state.consents[consent].isRevoked { throw .revoked }
  }

  /// The lifetime of access tokens.
  var lifetime: Duration { settings.lifetime ?? descriptor.expiry.lifetime ?? .hours(1) }

  static let refreshTokenLifetime = Duration.days(30)

  /// Returns the new access token.
  @discardableResult mutating func issue(
    _ consent: ConsentID, withRefreshToken: Bool, into answer: inout AnswerContent
  ) -> String {
    state.log.count(.tokens)
    let granted = state.consents[consent]
    let rules = answer.rules
    let token = rules.source(of: .expiresAt).time == .jwt ? jwt() : randomText("access-")
    state.tokens[token] = IssuedToken(consent: consent, expiresAt: now + lifetime, key: state.provenKey)
    answer.set(.accessToken, .string(token))
    answer.set(.tokenType, .string(tokenType))
    setExpiry(.expiresIn, .expiresAt, to: lifetime, in: &answer)
    // If the access token also refreshes, the answer has no other refresh token.
    if withRefreshToken || rules.refreshesWithAccessToken {
      let refreshToken = rules.refreshesWithAccessToken ? token : randomText("refresh-")
      let lifetime = Self.refreshTokenLifetime
      state.refreshTokens[refreshToken] = IssuedToken(
        consent: consent, expiresAt: now + lifetime, key: state.provenKey)
      answer.set(.refreshToken, .string(refreshToken))
      setExpiry(.refreshTokenExpiresIn, .refreshTokenExpiresAt, to: lifetime, in: &answer)
    }
    if !granted.scope.isEmpty {
      answer.set(.scope, .string(granted.scope.joined(separator: descriptor.scope.grantedSeparator)))
    }
    if let details = granted.details { answer.set(.authorizationDetails, details) }
    answer.set(kept: granted.kept, rules.keep)
    return token
  }

  /// Returns a token that contains its expiry (RFC 7519, 4.1.4).
  private func jwt() -> String {
    let confirmation = confirmation(of: state.provenKey).map { [JSONValue.Member("cnf", .object([$0]))] } ?? []
    let claims = [.init("exp", .duration(now + lifetime)), .init("jti", .string(randomText("")))] + confirmation
    return Self.jwt(["alg": "none"], .object(claims)) + ".x"
  }

  /// Returns the signed part of a JWT (RFC 7515, 3.1).
  static func jwt(_ header: JSONValue, _ claims: JSONValue) -> String {
    [header, claims].map { Base64.encodeURL(Array($0.encoded.utf8)) }.joined(separator: ".")
  }

  /// Sets the duration, and also the moment if the descriptor has a path for it.
  private func setExpiry(
    _ duration: ResponseField, _ moment: ResponseField, to lifetime: Duration, in answer: inout AnswerContent
  ) {
    let form = answer.rules.source(of: moment).time
    if hasFault(.noExpiry) || form == .jwt { return }
    answer.set(duration, time: lifetime)
    guard answer.rules.fields[moment] != nil else { return }
    if form == .date {
      // Use a space as OCLC does, because it is the harder form to parse.
      answer.set(moment, .string((0 + (now + lifetime) as Moment).text.exchanging("T", for: " ")))
    } else {
      answer.set(moment, time: now + lifetime)
    }
  }

  /// The token type for the header's scheme. GitHub's scheme `token` also has the type `bearer`.
  private var tokenType: String {
    if state.provenKey != nil, let proofScheme { return proofScheme }
    guard case .header(_, let scheme) = descriptor.headerStyle.location, scheme.lowercased() == "bearer" else {
      return "bearer"
    }
    return scheme
  }
}

extension ResponseRules {
  /// Whether the access token is its own refresh token (Instagram).
  var refreshesWithAccessToken: Bool { source(of: .refreshToken).paths.first == source(of: .accessToken).paths.first }
}

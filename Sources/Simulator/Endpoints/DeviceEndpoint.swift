import HTTP
import Descriptors

extension Simulation {
  private static let deviceCodeLifetime: Int64 = 900
  /// Two clocks and a network do not count to the millisecond.
  private static let pollTolerance: Milliseconds = 100
  /// Letters that nobody takes for another, without vowels, so that no words come of them (RFC 8628, 6.1).
  private static let userCodeLetters = Array("BCDFGHJKLMNPQRSTVWXZ")

  /// RFC 8628, 3.1 and 3.2.
  mutating func deviceAuthorization(_ request: HTTPRequest, _ endpoint: Endpoint) -> HTTPResponse {
    do throws(Refusal) {
      let parameters = try EndpointParameters(request, endpoint)
      try checkClient(request, endpoint, parameters)
      var scope = try scopes(try parameters.optional("scope"))
      if scope.isEmpty { scope = descriptor.scope.requested }
      let letters = randomBytes(8).map { Self.userCodeLetters[Int($0) % Self.userCodeLetters.count] }
      let userCode = String(letters.prefix(4)) + "-" + String(letters.suffix(4))
      let deviceCode = randomText("device-")
      let page = origin + Self.controlPrefix + "device"
      state.log.count(.deviceCodes)
      state.deviceCodes[deviceCode] = IssuedDeviceCode(
        userCode: userCode, scope: scope, expiresAt: now + Self.deviceCodeLifetime * 1000,
        interval: descriptor.device.interval * 1000)
      state.newestDeviceCode = deviceCode
      var content = AnswerContent(endpoint.response)
      content.setSuccess()
      content.set(.deviceCode, .string(deviceCode))
      content.set(.userCode, .string(userCode))
      content.set(.verificationURI, .string(page))
      // A descriptor that puts it together itself has a provider that does not send it.
      if descriptor.device.verificationURIComplete == nil {
        content.set(.verificationURIComplete, .string(page + "?user_code=" + userCode))
      }
      content.set(.expiresIn, seconds: Self.deviceCodeLifetime)
      content.set(.interval, .integer(descriptor.device.interval))
      return content.response(200)
    } catch {
      state.log.refused(at: EndpointKind.deviceAuthorization.rawValue, error)
      return response(error, endpoint.response)
    }
  }

  /// RFC 8628, 3.4 and 3.5.
  mutating func poll(
    _ parameters: EndpointParameters, _ content: inout AnswerContent, _ rules: ResponseRules
  ) throws(Refusal) {
    state.log.count(.polls)
    let code = try parameters.needed("device_code")
    guard var issued = state.deviceCodes[code] else { throw .grant(.deviceCodeUnknown) }
    guard now <= issued.expiresAt else { throw Refusal("expired_token", .deviceCodeExpired) }
    let askedBefore = issued.askedAt
    issued.askedAt = now
    if let askedBefore, now - askedBefore + Self.pollTolerance < issued.interval {
      switch descriptor.device.slowDown {
      case .add(let seconds): issued.interval += seconds * 1000
      case .multiply(let hundredths): issued.interval = issued.interval * hundredths / 100
      }
      state.log.count(.slowDowns)
      state.deviceCodes[code] = issued
      throw Refusal("slow_down", .pollTooSoon)
    }
    state.deviceCodes[code] = issued
    switch issued.decision {
    case .pending: throw Refusal("authorization_pending", .devicePending)
    case .denied: throw Refusal("access_denied", .denied)
    case .approved(let consent):
      // Once: the code is not a token of its own.
      state.deviceCodes[code] = nil
      try checkRevoked(consent)
      issue(consent, withRefreshToken: true, into: &content, rules)
    }
  }

  // MARK: The person

  /// The page, wherever in its address the code stands: a descriptor may put it together in its own way.
  func devicePage(_ request: HTTPRequest) -> HTTPResponse {
    let pieces =
      request.uri.queryParameters.pairs.map(\.value) + request.uri.path.split(separator: "/").map(String.init)
    let codes = Set(state.deviceCodes.values.map(\.userCode))
    return devicePage(userCode: pieces.first(where: codes.contains))
  }

  /// What a person has decided about a device; `nil` for the newest one.
  ///
  /// - Parameter account: `nil` when the person said no.
  /// - Throws: `Refusal` when there is no such code, or somebody has decided already.
  mutating func decideDevice(userCode: String?, account: String?) throws(Refusal) {
    let typed = userCode.map(Self.normalized)
    let code =
      typed == nil
      ? state.newestDeviceCode
      : state.deviceCodes.first { Self.normalized($0.value.userCode) == typed }?.key
    guard let code, var issued = state.deviceCodes[code], case .pending = issued.decision else {
      throw .request(.userCodeUnknown)
    }
    guard now <= issued.expiresAt else { throw Refusal("expired_token", .deviceCodeExpired) }
    if let account {
      issued.decision = .approved(addConsent(account: account, scope: issued.scope))
    } else {
      state.log.count(.denials)
      issued.decision = .denied
    }
    state.deviceCodes[code] = issued
  }

  /// People leave the hyphen out and type in lower case.
  private static func normalized(_ userCode: String) -> String {
    userCode.uppercased().filter { $0.isLetter }
  }
}

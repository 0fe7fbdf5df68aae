import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

extension Simulation {
  private static let deviceCodeLifetime = Duration.minutes(15)
  /// Two clocks and a network are not exact to the millisecond.
  private static let pollTolerance = Duration.milliseconds(100)
  /// Consonants that cannot be confused. Without vowels, they form no words (RFC 8628, 6.1).
  private static let userCodeLetters = Array("BCDFGHJKLMNPQRSTVWXZ")

  /// Starts a device login (RFC 8628, 3.1 and 3.2).
  mutating func deviceAuthorization(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    try checkClient(parameters)
    let scope = try scope(parameters)
    let letters = random.bytes(8).map { Self.userCodeLetters[Int($0) % Self.userCodeLetters.count] }
    let userCode = String(letters.prefix(4)) + "-" + String(letters.suffix(4))
    let deviceCode = randomText("device-")
    let page = origin + Self.controlPrefix + "device"
    state.log.count(.deviceCodes)
    state.deviceCodes[deviceCode] = IssuedDeviceCode(
      userCode: userCode, scope: scope, details: try details(parameters), expiresAt: now + Self.deviceCodeLifetime,
      interval: descriptor.device.interval)
    state.newestDeviceCode = deviceCode
    answer.set(.deviceCode, .string(deviceCode))
    answer.set(.userCode, .string(userCode))
    answer.set(.verificationURI, .string(page))
    // If the descriptor builds this address, the real provider does not send it.
    if descriptor.device.verificationURIComplete == nil {
      answer.set(.verificationURIComplete, .string(page + "?user_code=" + userCode))
    }
    answer.set(.expiresIn, time: Self.deviceCodeLifetime)
    answer.set(.interval, .duration(descriptor.device.interval))
  }

  /// Asks the user on another device (CIBA Core 1.0, 7.1 to 7.3): the page for device codes, where the binding message
  /// is the code.
  mutating func backchannelAuthentication(
    _ parameters: EndpointParameters, _ answer: inout AnswerContent
  ) throws(Refusal) {
    try checkClient(parameters)
    let scope = try scope(parameters)
    guard scope.contains("openid") else { throw .missing("openid").with(code: "invalid_scope") }
    var hints = 0
    for name in ["login_hint", "login_hint_token", "id_token_hint"] where try parameters.optional(name) != nil {
      hints += 1
    }
    guard hints == 1 else { throw .hints }
    let message = try parameters.required("binding_message") ?? ""
    guard message.unicodeScalars.count <= 64, !message.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
      throw .wrongBindingMessage
    }
    let requestID = randomText("request-")
    state.log.count(.deviceCodes)
    state.deviceCodes[requestID] = IssuedDeviceCode(
      userCode: message, scope: scope, details: try details(parameters), context: try context(parameters),
      expiresAt: now + Self.deviceCodeLifetime, interval: descriptor.device.interval)
    state.newestDeviceCode = requestID
    answer.set(.authReqID, .string(requestID))
    answer.set(.expiresIn, time: Self.deviceCodeLifetime)
    answer.set(.interval, .duration(descriptor.device.interval))
  }

  /// Answers a poll (RFC 8628, 3.4 and 3.5; CIBA Core 1.0, 10.1 and 11).
  mutating func poll(
    _ code: String, _ answer: inout AnswerContent
  ) throws(Refusal) -> (consent: ConsentID, accessToken: String) {
    state.log.count(.polls)
    guard var issued = state.deviceCodes[code] else { throw .deviceCodeUnknown }
    guard now <= issued.expiresAt else { throw .deviceCodeExpired }
    let askedBefore = issued.askedAt
    issued.askedAt = now
    let isTooSoon = askedBefore.map { now - $0 + Self.pollTolerance < issued.interval } ?? false
    if isTooSoon {
      switch descriptor.device.slowDown {
      case .add(let pause): issued.interval += pause
      case .multiply(let hundredths): issued.interval = issued.interval * hundredths / 100
      }
      state.log.count(.slowDowns)
    }
    state.deviceCodes[code] = issued
    if isTooSoon { throw .pollTooSoon }
    switch issued.decision {
    case .pending: throw .devicePending
    case .denied: throw .denied
    case .approved(let consent):
      // A code works once.
      state.deviceCodes[code] = nil
      try checkRevoked(consent)
      return (consent, issue(consent, withRefreshToken: true, into: &answer))
    }
  }

  /// Records the user's decision about a device, by default the newest. Without an account, the user declined.
  mutating func decideDevice(userCode: String?, account: String?) throws(Refusal) {
    let typed = userCode.map(Self.normalized)
    let code =
      typed == nil
      ? state.newestDeviceCode : state.deviceCodes.first { Self.normalized($0.value.userCode) == typed }?.key
    guard let code, let issued = state.deviceCodes[code], case .pending = issued.decision else {
      throw .userCodeUnknown
    }
    guard now <= issued.expiresAt else { throw .deviceCodeExpired }
    if account == nil { state.log.count(.denials) }
    let consent = account.map {
      addConsent(account: $0, scope: issued.scope, details: issued.details, context: issued.context)
    }
    state.deviceCodes[code]?.decision = consent.map { .approved($0) } ?? .denied
  }

  /// Users may omit the hyphen and type lowercase letters.
  private static func normalized(_ userCode: String) -> String { userCode.uppercased().filter { $0.isLetter } }
}

import Descriptors
import HTTP
import Text

extension Simulation {
  private static let deviceCodeLifetime = Duration.minutes(15)
  /// Two clocks and a network do not count to the millisecond.
  private static let pollTolerance = Duration.milliseconds(100)
  /// Letters that nobody takes for another, without vowels, so that no words come of them (RFC 8628, 6.1).
  private static let userCodeLetters = Array("BCDFGHJKLMNPQRSTVWXZ")

  /// RFC 8628, 3.1 and 3.2.
  mutating func deviceAuthorization(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    try checkClient(parameters)
    let scope = try scope(parameters)
    let letters = random.bytes(8).map { Self.userCodeLetters[Int($0) % Self.userCodeLetters.count] }
    let userCode = String(letters.prefix(4)) + "-" + String(letters.suffix(4))
    let deviceCode = randomText("device-")
    let page = origin + Self.controlPrefix + "device"
    state.log.count(.deviceCodes)
    state.deviceCodes[deviceCode] = IssuedDeviceCode(
      userCode: userCode, scope: scope, expiresAt: now + Self.deviceCodeLifetime,
      interval: descriptor.device.interval)
    state.newestDeviceCode = deviceCode
    answer.set(.deviceCode, .string(deviceCode))
    answer.set(.userCode, .string(userCode))
    answer.set(.verificationURI, .string(page))
    // A descriptor that puts it together itself has a provider that does not send it.
    if descriptor.device.verificationURIComplete == nil {
      answer.set(.verificationURIComplete, .string(page + "?user_code=" + userCode))
    }
    answer.set(.expiresIn, time: Self.deviceCodeLifetime)
    answer.set(.interval, .duration(descriptor.device.interval))
  }

  /// RFC 8628, 3.4 and 3.5.
  mutating func poll(_ parameters: EndpointParameters, _ answer: inout AnswerContent) throws(Refusal) {
    state.log.count(.polls)
    let code = try parameters.needed("device_code")
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
      // Once: the code is not a token of its own.
      state.deviceCodes[code] = nil
      try checkRevoked(consent)
      issue(consent, withRefreshToken: true, into: &answer)
    }
  }

  /// What a person has decided about a device, the newest one where none is named; without an account they said no.
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
    let consent = account.map { addConsent(account: $0, scope: issued.scope) }
    state.deviceCodes[code]?.decision = consent.map { .approved($0) } ?? .denied
  }

  /// People leave the hyphen out and type in lower case.
  private static func normalized(_ userCode: String) -> String { userCode.uppercased().filter { $0.isLetter } }
}

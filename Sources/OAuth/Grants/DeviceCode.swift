import Descriptors
import HTTP
import Text

/// The device authorization grant (RFC 8628): the person consents on another device.
enum DeviceCodeGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let (client, scope) = (login.client, login.scope)
    return .send(
      Step.Exchange(kind: .deviceAuthorization) { nonce throws(OAuthError) in
        try client.deviceAuthorizationRequest(scope: scope, nonce: nonce)
      } read: { answer, now throws(OAuthError) in
        let device = try client.deviceAuthorization(answer, scope: scope, now: now)
        return .showCode(device, poll: poll(device, client))
      })
  }

  private static func poll(_ device: DeviceAuthorization, _ client: Client) -> Step.Exchange {
    func slower(_ interval: Int64?) -> Step {
      var device = device
      device.polling.slowDown(to: interval)
      return .send(poll(device, client))
    }
    return Step.Exchange(kind: .deviceToken, pause: device.polling) { nonce throws(OAuthError) in
      try client.deviceTokenRequest(device, nonce: nonce)
    } read: { answer, now throws(OAuthError) in
      do throws(OAuthError) {
        switch try client.deviceAnswer(answer, to: device, now: now) {
        case .credential(let credential): return try client.end(credential, answer, .deviceToken)
        case .pending: return .send(poll(device, client))
        case .slowDown(let interval): return slower(interval)
        }
      } catch .unavailable(_, _, _, let retryAfter) {
        // A provider that cannot answer now is one to ask less often, too.
        return slower(retryAfter)
      }
    } onTimeout: {
      // RFC 8628, 3.5: after a time-out, ask less often.
      slower(nil)
    }
  }
}

/// What a device shows to the person, and polls with (RFC 8628, 3.2).
package struct DeviceAuthorization: Sendable {
  let deviceCode: String
  package let userCode: String
  package let verificationURI: String
  package let verificationURIComplete: String?
  package let scope: [String]
  package var polling: DevicePolling
}

/// When to ask again, and when to stop (RFC 8628, 3.5).
package struct DevicePolling: Sendable, Equatable {
  package enum Step: Sendable, Equatable {
    case wait(seconds: Int64)
    case expired
  }

  private let slowDown: DeviceRules.SlowDown
  private let deadline: Int64
  private var hundredths: Int64
  private static let longest: Int64 = 86_400

  /// The deadline is in seconds since 1970.
  package init(interval: Int64, slowDown: DeviceRules.SlowDown, deadline: Int64) {
    self.slowDown = slowDown
    self.deadline = deadline
    hundredths = min(max(interval, 1), 300) * 100
  }

  package func next(now: Int64) -> Step {
    let seconds = (hundredths + 99) / 100
    return now + seconds >= deadline ? .expired : .wait(seconds: seconds)
  }

  package func secondsLeft(now: Int64) -> Int64 { max(deadline - now, 0) }

  package mutating func slowDown(to interval: Int64? = nil) {
    switch slowDown {
    case .add(let seconds): hundredths += min(seconds, Self.longest) * 100
    case .multiply(let factor): hundredths = hundredths * factor / 100
    }
    hundredths = min(hundredths, Self.longest * 100)
    if let interval, (0...300).contains(interval) { hundredths = max(hundredths, interval * 100) }
  }
}

/// RFC 8628, 3.5
package enum DeviceAnswer: Sendable {
  case credential(Credential)
  case pending
  case slowDown(interval: Int64?)  // Seconds, where the provider names them.
}

extension Client {
  /// RFC 8628, 3.1
  package func deviceAuthorizationRequest(scope: [String], nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    let joined = scope.joined(separator: descriptor.scope.separator)
    var parameters = FormParameters()
    if !scope.isEmpty { parameters.append("scope", joined) }
    return try request(.deviceAuthorization, parameters, exchange: ["scope": joined], nonce: nonce)
  }

  /// RFC 8628, 3.2
  package func deviceAuthorization(
    _ response: HTTPResponse, scope: [String], now: Int64
  ) throws(OAuthError) -> DeviceAuthorization {
    let kind = EndpointKind.deviceAuthorization
    let answer = try Answer(response, kind, endpoint(kind).response)
    func text(_ field: ResponseField) throws(OAuthError) -> String {
      guard let text = answer.text(field) else { throw .missingField(kind, field) }
      return text
    }
    func seconds(_ field: ResponseField, else standard: Int64) throws(OAuthError) -> Int64 {
      guard let text = answer.text(field) else { return standard }
      guard let seconds = Moment.duration(text, answer.rules.source(of: field).time), seconds >= 0 else {
        throw .malformedField(kind, field)
      }
      return seconds
    }
    /// A person opens it, and enters a code there that is worth a token.
    func page(_ field: ResponseField) throws(OAuthError) -> URI? {
      guard let text = answer.text(field) else { return nil }
      guard let uri = try? URI(parsing: text), uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else {
        throw .insecurePage(field)
      }
      return uri
    }
    let userCode = try text(.userCode)
    let deviceCode = try text(.deviceCode)
    _ = try text(.verificationURI)
    let stated = try page(.verificationURIComplete)
    guard let verificationURI = try page(.verificationURI) else { throw .missingField(kind, .verificationURI) }
    let composed = try composedPage(userCode, verificationURI)
    // The expiry is required by the RFC; who leaves it out gets the half hour that most providers give.
    let lifetime = try seconds(.expiresIn, else: 1800)
    return DeviceAuthorization(
      deviceCode: deviceCode, userCode: userCode, verificationURI: verificationURI.text,
      verificationURIComplete: (composed ?? stated)?.text, scope: scope,
      polling: DevicePolling(
        interval: try seconds(.interval, else: descriptor.device.interval), slowDown: descriptor.device.slowDown,
        deadline: now + lifetime))
  }

  /// The page with the code in it, where the descriptor says it: at one of the provider's own origins.
  private func composedPage(_ userCode: String, _ verificationURI: URI) throws(OAuthError) -> URI? {
    guard let template = descriptor.device.verificationURIComplete else { return nil }
    let page: URI
    do {
      page = try template.filled(
        values(for: nil, ["user_code": userCode, "verification_uri": verificationURI.text]))
    } catch .template(.missing) {
      return nil
    } catch {
      throw .url(.deviceAuthorization, error)
    }
    let own = descriptor.endpoints.values.compactMap { try? $0.url.filled(values()) } + [verificationURI]
    guard own.contains(where: { $0.origin == page.origin }) else { throw .foreignPage(origin: page.origin) }
    return page
  }

  /// RFC 8628, 3.4
  package func deviceTokenRequest(
    _ authorization: DeviceAuthorization, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let parameters: FormParameters = [
      ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", authorization.deviceCode),
    ]
    let scope = authorization.scope.joined(separator: descriptor.scope.separator)
    return try request(.deviceToken, parameters, exchange: ["scope": scope], nonce: nonce)
  }

  /// RFC 8628, 3.5
  package func deviceAnswer(
    _ response: HTTPResponse, to authorization: DeviceAuthorization, now: Int64
  ) throws(OAuthError) -> DeviceAnswer {
    do {
      return .credential(
        try credential(response, .deviceToken, grant: .deviceCode, scope: authorization.scope, now: now))
    } catch .refused(let kind, let error) {
      switch error.code {
      case "authorization_pending": return .pending
      case "slow_down":
        return .slowDown(interval: try? Answer.interval(response, endpoint(.deviceToken).response))
      case "expired_token": throw .deviceCodeExpired
      default: throw .refused(kind, error)
      }
    }
  }
}

extension Answer {
  /// The `interval` that some providers put beside `slow_down` (GitHub).
  fileprivate static func interval(_ response: HTTPResponse, _ rules: ResponseRules) throws(OAuthError) -> Int64? {
    var withoutErrors = rules
    withoutErrors.errors.code = []
    var success = response
    success.status = 200
    return try Answer(success, .deviceToken, withoutErrors).text(.interval).flatMap { Int64($0) }
  }
}

import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

/// The device authorization grant (RFC 8628), in which the user consents on another device.
enum DeviceCodeGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let (client, scope) = (login.client, login.scope)
    return .send(
      Step.Exchange(kind: .deviceAuthorization) { nonce throws(OAuthError) in
        try client.deviceAuthorizationRequest(scope: scope, demanding: login.demands, nonce: nonce)
      } read: { answer, now throws(OAuthError) in
        let device = try client.deviceAuthorization(answer, scope: scope, now: now)
        return .showCode(
          device,
          poll: client.poll(
            .deviceToken, device.polling,
            request: { nonce throws(OAuthError) in try client.deviceTokenRequest(device, nonce: nonce) },
            read: { answer, now throws(OAuthError) in try client.deviceAnswer(answer, to: device, now: now) }))
      })
  }
}

extension Client {
  /// Returns a request that is repeated until the user has decided (RFC 8628, 3.5; CIBA Core 1.0, 10.1.1 and 11).
  func poll(
    _ kind: EndpointKind, _ polling: DevicePolling,
    request: @escaping (RequestNonce) throws(OAuthError) -> HTTPRequest,
    read: @escaping (_ answer: HTTPResponse, _ now: Moment) throws(OAuthError) -> DeviceAnswer
  ) -> Step.Exchange {
    func again(_ polling: DevicePolling) -> Step { .send(poll(kind, polling, request: request, read: read)) }
    func slower(_ interval: Duration?) -> Step {
      var polling = polling
      polling.slowDown(to: interval)
      return again(polling)
    }
    return Step.Exchange(kind: kind, pause: polling, request: request) { answer, now throws(OAuthError) in
      do throws(OAuthError) {
        switch try read(answer, now) {
        case .issued(let credential, let unreadable): return try end(.issued(credential, unreadable: unreadable))
        case .pending: return again(polling)
        case .slowDown(let interval): return slower(interval)
        }
      } catch .unavailable(_, _, _, let retryAfter) {
        // A provider that is temporarily unavailable should also be polled less often.
        return slower(retryAfter)
      }
    } onTimeout: {
      // RFC 8628, 3.5: poll less often after a timeout.
      slower(nil)
    }
  }
}

/// The codes and the page that the user needs, and the polling schedule (RFC 8628, 3.2).
package struct DeviceAuthorization: Sendable, Redacted {
  let deviceCode: String
  package let userCode: String
  package let verificationURI: String
  package let verificationURIComplete: String?
  package let scope: [String]
  package var polling: DevicePolling
}

/// When to poll again, and when to stop (RFC 8628, 3.5).
package struct DevicePolling: Sendable, Equatable {
  package enum Step: Sendable, Equatable {
    case wait(Duration)
    case expired
  }

  private let slowDown: DeviceRules.SlowDown
  private let deadline: Moment
  private var interval: Duration

  package init(interval: Duration, slowDown: DeviceRules.SlowDown, deadline: Moment) {
    self.slowDown = slowDown
    self.deadline = deadline
    self.interval = min(max(interval, .seconds(1)), .seconds(300))
  }

  package func next(now: Moment) -> Step {
    let pause = Duration.seconds(interval.secondsRoundedUp)
    return now + pause >= deadline ? .expired : .wait(pause)
  }

  package func timeLeft(now: Moment) -> Duration { max(deadline - now, .zero) }

  package mutating func slowDown(to stated: Duration? = nil) {
    switch slowDown {
    case .add(let pause): interval += pause
    case .multiply(let hundredths): interval = interval * hundredths / 100
    }
    interval = min(interval, .days(1))
    if let stated, (.zero ... .seconds(300)).contains(stated) { interval = max(interval, stated) }
  }
}

/// The answer to one poll (RFC 8628, 3.5).
package enum DeviceAnswer: Sendable, Equatable {
  case issued(Credential, unreadable: [ResponseField])
  case pending
  case slowDown(interval: Duration?)  // `nil` if the provider names none.
}

extension Client {
  /// Builds the device authorization request (RFC 8628, 3.1).
  package func deviceAuthorizationRequest(
    scope: [String], demanding demands: ConsentDemands = ConsentDemands(), nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var parameters: FormParameters = scope.isEmpty ? [] : [("scope", joined(scope))]
    add(demands, to: &parameters)
    parameters.append(contentsOf: details(descriptor.authorizationDetails.requested))
    return try request(.deviceAuthorization, parameters, exchange: ["scope": joined(scope)], nonce: nonce)
  }

  /// Reads the device authorization response (RFC 8628, 3.2).
  package func deviceAuthorization(
    _ response: HTTPResponse, scope: [String], now: Moment
  ) throws(OAuthError) -> DeviceAuthorization {
    let kind = EndpointKind.deviceAuthorization
    let answer = try Answer(response, of: kind, by: endpoint(kind).response)
    func text(_ field: ResponseField) throws(OAuthError) -> String {
      guard let text = answer.text(field) else { throw .missingField(kind, field) }
      return text
    }
    /// The page must be secure because the user enters a code there that grants a token.
    func page(_ field: ResponseField) throws(OAuthError) -> URI? {
      guard let text = answer.text(field) else { return nil }
      guard let uri = try? URI(parsing: text), uri.isSecure || (uri.scheme == "http" && uri.isLoopback) else {
        throw .insecurePage(field)
      }
      return uri
    }
    let userCode = try text(.userCode)
    let deviceCode = try text(.deviceCode)
    // A wrong descriptor could swap the two codes, and the device code must not be shown (RFC 8628, 5.2).
    if userCode == deviceCode { throw .malformedField(kind, .userCode) }
    guard let verificationURI = try page(.verificationURI) else { throw .missingField(kind, .verificationURI) }
    let stated = try page(.verificationURIComplete)
    let composed = try composedPage(userCode, verificationURI)
    return DeviceAuthorization(
      deviceCode: deviceCode, userCode: userCode, verificationURI: verificationURI.text,
      verificationURIComplete: (composed ?? stated)?.text, scope: scope,
      polling: try polling(answer, now: now))
  }

  /// Reads when to poll (RFC 8628, 3.2; CIBA Core 1.0, 7.3). Both require the expiry; without one, assume the half hour
  /// that most providers give.
  func polling(_ answer: Answer, now: Moment) throws(OAuthError) -> DevicePolling {
    func duration(_ field: ResponseField, else standard: Duration) throws(OAuthError) -> Duration {
      guard let text = answer.text(field) else { return standard }
      guard let duration = Duration(text, answer.rules.source(of: field).time), duration >= .zero else {
        throw .malformedField(answer.kind, field)
      }
      return duration
    }
    return DevicePolling(
      interval: try duration(.interval, else: descriptor.device.interval), slowDown: descriptor.device.slowDown,
      deadline: now + (try duration(.expiresIn, else: .minutes(30))))
  }

  /// Builds the page with the code from the descriptor's template; throws if its origin is not the provider's.
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
    let own =
      descriptor.endpoints.filter { !$0.key.leg.isPublic }.values.compactMap { try? $0.url.filled(values()) } + [
        verificationURI
      ]
    guard own.contains(where: { $0.origin == page.origin }) else { throw .foreignPage(origin: page.origin) }
    return page
  }

  /// Builds the polling request (RFC 8628, 3.4).
  package func deviceTokenRequest(
    _ authorization: DeviceAuthorization, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let parameters: FormParameters = [
      ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", authorization.deviceCode),
    ]
    return try request(.deviceToken, parameters, exchange: ["scope": joined(authorization.scope)], nonce: nonce)
  }

  /// Reads the answer to a poll (RFC 8628, 3.5).
  package func deviceAnswer(
    _ response: HTTPResponse, to authorization: DeviceAuthorization, now: Moment
  ) throws(OAuthError) -> DeviceAnswer {
    try polled(outcome(response, .deviceToken, grant: .deviceCode, scope: authorization.scope, now: now), response)
  }

  /// Returns what the answer to a poll means (RFC 8628, 3.5; CIBA Core 1.0, 11).
  func polled(_ outcome: TokenOutcome, _ response: HTTPResponse) throws(OAuthError) -> DeviceAnswer {
    do {
      let (credential, unreadable) = try outcome.issued()
      return .issued(credential, unreadable: unreadable)
    } catch .refused(let kind, let error) {
      switch error.code {
      case "authorization_pending": return .pending
      case "slow_down": return .slowDown(interval: try? Answer.interval(response, endpoint(kind).response))
      case "expired_token": throw .deviceCodeExpired
      default: throw .refused(kind, error)
      }
    }
  }
}

extension Answer {
  /// Reads the `interval` that some providers, such as GitHub, send with `slow_down`.
  fileprivate static func interval(_ response: HTTPResponse, _ rules: ResponseRules) throws(OAuthError) -> Duration? {
    var withoutErrors = rules
    withoutErrors.errors.code = []
    var success = response
    success.status = 200
    return try Answer(success, of: .deviceToken, by: withoutErrors).text(.interval).flatMap { Int64($0) }.map {
      .seconds($0)
    }
  }
}

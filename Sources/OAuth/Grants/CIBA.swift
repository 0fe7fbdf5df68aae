import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

/// Client-initiated backchannel authentication in poll mode (OpenID Connect CIBA Core 1.0): the provider asks the user
/// on a device that it knows, such as a phone.
enum CIBAGrant: GrantFlow {
  static func begin(_ login: LoginContext) throws(OAuthError) -> Step {
    let client = login.client
    let message = client.bindingMessage(random: login.random)
    return login.promptToGetToken { typed in
      .send(
        Step.Exchange(kind: .backchannelAuthentication) { nonce throws(OAuthError) in
          try client.backchannelRequest(typed, demanding: login.demands, bindingMessage: message, nonce: nonce)
        } read: { answer, now throws(OAuthError) in
          let pending = try client.backchannelAuthentication(answer, typed, bindingMessage: message, now: now)
          return .awaitConsent(
            pending,
            poll: client.poll(
              .backchannelToken, pending.polling,
              request: { nonce throws(OAuthError) in try client.backchannelTokenRequest(pending, nonce: nonce) },
              read: { answer, now throws(OAuthError) in try client.backchannelAnswer(answer, to: pending, now: now) }))
        })
    }
  }
}

/// A question that the provider sent to the user's device (CIBA Core 1.0, 7.3).
package struct BackchannelAuthentication: Sendable, Redacted {
  let requestID: String
  let typed: Credential
  package let bindingMessage: String?  // `nil` if the device shows none.
  package let polling: DevicePolling
}

extension Client {
  private static let letters = Array("BCDFGHJKLMNPQRSTVWXZ")  // No vowels, so no words (RFC 8628, 6.1).

  /// Returns a new message that both devices show, so that the user confirms only this login (CIBA Core 1.0, 7.1);
  /// `nil` if the descriptor drops it or has its own.
  func bindingMessage(random: some RandomSource) -> String? {
    let rules = descriptor.endpoints[.backchannelAuthentication]?.parameters ?? []
    if let rule = rules.last(where: { $0.name == "binding_message" }) { return rule.value?.literal }
    let letters = random.bytes(8).map { Self.letters[Int($0) % Self.letters.count] }
    return String(letters.prefix(4)) + "-" + String(letters.suffix(4))
  }

  /// Builds the authentication request (CIBA Core 1.0, 7.1).
  package func backchannelRequest(
    _ typed: Credential, demanding demands: ConsentDemands = ConsentDemands(), bindingMessage: String?,
    nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var parameters: FormParameters = []
    if !typed.requestedScope.isEmpty { parameters.append("scope", joined(typed.requestedScope)) }
    if let hint = values(for: typed)("login_hint") { parameters.append("login_hint", hint) }
    if let bindingMessage { parameters.append("binding_message", bindingMessage) }
    parameters.append(contentsOf: details(typed.requestedDetails))
    add(demands, to: &parameters)
    return try request(.backchannelAuthentication, parameters, credential: typed, nonce: nonce)
  }

  /// Reads the acknowledgement (CIBA Core 1.0, 7.3).
  package func backchannelAuthentication(
    _ response: HTTPResponse, _ typed: Credential, bindingMessage: String?, now: Moment
  ) throws(OAuthError) -> BackchannelAuthentication {
    let kind = EndpointKind.backchannelAuthentication
    let answer = try Answer(response, of: kind, by: endpoint(kind).response)
    guard let requestID = answer.text(.authReqID) else { throw .missingField(kind, .authReqID) }
    return BackchannelAuthentication(
      requestID: requestID, typed: typed, bindingMessage: bindingMessage, polling: try polling(answer, now: now))
  }

  /// Builds the polling request (CIBA Core 1.0, 10.1).
  package func backchannelTokenRequest(
    _ pending: BackchannelAuthentication, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let parameters: FormParameters = [
      ("grant_type", "urn:openid:params:grant-type:ciba"), ("auth_req_id", pending.requestID),
    ]
    return try request(.backchannelToken, parameters, credential: pending.typed, nonce: nonce)
  }

  /// Reads the answer to a poll (CIBA Core 1.0, 10.1.1 and 11).
  package func backchannelAnswer(
    _ response: HTTPResponse, to pending: BackchannelAuthentication, now: Moment
  ) throws(OAuthError) -> DeviceAnswer {
    let scope = pending.typed.requestedScope
    let outcome = outcome(response, .backchannelToken, grant: .ciba, scope: scope, now: now) { credential, _ in
      credential.variables = pending.typed.variables
    }
    return try polled(outcome, response)
  }
}

import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

package enum TokenOutcome: Sendable, Equatable {
  /// `unreadable` lists optional fields that could not be read.
  case issued(Credential, unreadable: [ResponseField])
  case rotated(Credential, OAuthError)  // Only a new refresh token: the old one may be used up.
  /// Final only if the provider says so explicitly (RFC 6749, 5.2; RFC 6750, 3.1; the "problem reporting" extension of
  /// OAuth 1.0a). A status alone may come from a proxy.
  case refused(EndpointKind, ErrorResponse, isFinal: Bool)
  case failed(OAuthError)  // The answer says nothing about the grant.
}

extension TokenOutcome {
  /// Returns the issued credential; throws for every other outcome.
  package func issued() throws(OAuthError) -> (credential: Credential, unreadable: [ResponseField]) {
    switch self {
    case .issued(let credential, let unreadable): return (credential, unreadable)
    case .refused(let kind, let response, _): throw .refused(kind, response)
    case .rotated(_, let error), .failed(let error): throw error
    }
  }

  /// `reads` means that the next exchange reads the token of another issuer again.
  init(_ error: OAuthError, _ grant: Grant, isRefresh: Bool, reads: Bool) {
    // The client credentials stay as they are; what the user brought may have changed.
    let isOfClient = grant.traits.renewal == .login && (grant.traits.brought == nil || reads)
    guard case .refused(let kind, let refusal) = error, !isOfClient,
      Self.overCodes.contains(refusal.code) || (grant.traits.renewal == .sessionHandle && refusal.status == 401)
        || (isRefresh && refusal.isOfUnknownKind)
    else {
      self = .failed(error)
      return
    }
    self = .refused(kind, refusal, isFinal: Self.finalCodes.contains(refusal.code))
  }

  private static let overCodes: Set = ["invalid_grant", "invalid_token", "http_400", "http_401", "http_403"]
  private static let finalCodes: Set = [
    "invalid_grant", "invalid_token", "token_used", "token_expired", "token_revoked", "token_rejected",
    "permission_denied",
  ]
}

extension ErrorResponse {
  /// Whether the answer may be about the refresh token: a client error whose code is not about the client, its proof or
  /// the time.
  fileprivate var isOfUnknownKind: Bool {
    let others = [
      "invalid_client", "unauthorized_client", "incorrect_client_credentials", "slow_down", "timestamp_refused",
      "nonce_used", "signature_invalid", "consumer_key_unknown",
    ]
    return [400, 401, 403, 422].contains(status) && !others.contains(code) && !concernsProof
  }
}

extension Client {
  /// Reads a refresh answer. Values that it omits stay unchanged, above all the refresh token (RFC 6749, 6).
  package func outcome(
    _ response: HTTPResponse, _ kind: EndpointKind, refreshing previous: Credential, element: Int? = nil, now: Moment
  ) -> TokenOutcome {
    outcome(
      response, kind, grant: previous.grant, scope: previous.requestedScope, previous: previous, element: element,
      now: now)
  }

  package func outcome(
    _ response: HTTPResponse, after authorization: AuthorizationResponse, now: Moment
  ) -> TokenOutcome {
    let request = authorization.request
    return outcome(
      response, .token, grant: .authorizationCode, scope: request.scope, kept: authorization.answer.kept, now: now
    ) { credential, answer throws(OAuthError) in
      try checkNonce(of: request, in: credential, from: answer)
      credential.redirectURI = request.redirectURI
      // Strava's redirect tells which scopes the user granted.
      if credential.grantedScope == nil { credential.grantedScope = grantedScope(authorization.answer) }
    }
  }

  /// Reads any token answer. `kept` holds fields of the redirect other than the code (QuickBooks' `realmId`).
  /// `complete` adds what the grant knows, or throws.
  func outcome(
    _ response: HTTPResponse, _ kind: EndpointKind, grant: Grant, scope: [String], previous: Credential? = nil,
    kept: [String: String] = [:], element: Int? = nil, now: Moment,
    complete: (inout Credential, Answer) throws(OAuthError) -> Void = { _, _ in }
  ) -> TokenOutcome {
    var answer: Answer
    do { answer = try Answer(response, of: kind, by: rules(kind, grant), allowsRepeated: previous != nil) } catch {
      return TokenOutcome(error, grant, isRefresh: previous != nil, reads: descriptor.readsAtExchange)
    }
    do {
      try choose(previous == nil ? 0 : element, in: &answer, for: previous)
      var credential = try credential(
        answer, grant: grant, scope: scope, previous: previous, kept: kept, now: now)
      try complete(&credential, answer)
      return .issued(credential, unreadable: answer.unreadable)
    } catch {
      // A session handle is bound to the token that came with it (OAuth Session 1.0 draft 1, 5).
      guard var credential = previous, grant.traits.renewal != .sessionHandle,
        let refreshToken = answer.secretIfReadable(.refreshToken), refreshToken != credential.refreshToken,
        !answer.repeats(.refreshToken)
      else { return .failed(error) }
      credential.refreshToken = refreshToken
      credential.refreshTokenExpiresAt = nil
      return .rotated(credential, error)
    }
  }
}

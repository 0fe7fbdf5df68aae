import Descriptors
import HTTP
import Text

package enum TokenOutcome: Sendable, Equatable {
  /// The fields are those that cannot be read, and that the token is good without.
  case issued(Credential, unreadable: [ResponseField])
  /// No access token, but a new refresh token: the one before may be used up.
  case rotated(Credential, OAuthError)
  /// Final where the provider says so in so many words (RFC 6749, 5.2; RFC 6750, 3.1; the extension "problem reporting"
  /// of OAuth 1.0a): a status alone may come from whoever stands between.
  case refused(EndpointKind, ErrorResponse, isFinal: Bool)
  /// An answer that says nothing about the grant.
  case failed(OAuthError)
  case noAnswer(HTTPError, mayHaveArrived: Bool)
}

extension TokenOutcome {
  package init(_ error: HTTPError) { self = .noAnswer(error, mayHaveArrived: error.mayHaveArrived) }

  init(_ error: OAuthError, _ grant: Grant) {
    guard case .refused(let kind, let refusal) = error, grant.traits.renewal != .login,
      Self.overCodes.contains(refusal.code) || (grant.traits.renewal == .sessionHandle && refusal.status == 401)
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

extension HTTPError {
  package var mayHaveArrived: Bool {
    guard case .unreachable(_, let reason) = self else { return false }
    return switch reason {
    case .timedOut, .broken, .other: true
    case .nameNotResolved, .connectionRefused, .tls, .proxy: false
    }
  }
}

extension Client {
  /// What the answer leaves out stays as it was, the refresh token above all (RFC 6749, 6).
  package func outcome(
    _ response: HTTPResponse, _ kind: EndpointKind, refreshing previous: Credential, now: Moment
  ) -> TokenOutcome {
    let answer: Answer
    do { answer = try Answer(response, kind, rules(kind, previous.grant), allowsRepeated: true) } catch {
      return TokenOutcome(error, previous.grant)
    }
    do {
      let credential = try credential(
        answer, grant: previous.grant, scope: previous.requestedScope, previous: previous, now: now)
      return .issued(credential, unreadable: answer.unreadable)
    } catch {
      // A session handle goes with the token that it was given with (OAuth Session 1.0 draft 1, 5).
      guard previous.grant.traits.renewal != .sessionHandle, let refreshToken = answer.secretIfReadable(.refreshToken),
        refreshToken != previous.refreshToken, !answer.repeats(.refreshToken)
      else { return .failed(error) }
      var credential = previous
      credential.refreshToken = refreshToken
      credential.refreshTokenExpiresAt = nil
      return .rotated(credential, error)
    }
  }
}

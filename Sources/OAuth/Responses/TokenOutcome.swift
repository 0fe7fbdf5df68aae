import Descriptors
import HTTP

/// The result of asking a token endpoint for a token, from one reading of its answer.
package enum TokenOutcome: Sendable, Equatable {
  /// A token. The fields are those of the answer that cannot be read, and that the token is good without.
  case issued(Credential, unreadable: [ResponseField])
  /// No access token that can be read, but a new refresh token, which is kept because the one before may be used up;
  /// and what is wrong with the answer.
  case rotated(Credential, OAuthError)
  /// The provider does not take the grant any more. It is final where the provider says so in so many words (RFC
  /// 6749, 5.2; RFC 6750, 3.1; the extension "problem reporting" of OAuth 1.0a): a status alone may come from whoever
  /// stands between.
  case refused(EndpointKind, ErrorResponse, isFinal: Bool)
  /// An answer that says nothing about the grant: the provider cannot answer now, refuses for another reason, or
  /// cannot be understood.
  case failed(OAuthError)
  /// No answer. Where the request may have arrived, an answer with a token may be lost.
  case noAnswer(HTTPError, mayHaveArrived: Bool)
}

extension TokenOutcome {
  /// The outcome of a request to which no answer came.
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
  /// Whether the request may have reached the server, so that an answer may be lost.
  package var mayHaveArrived: Bool {
    guard case .unreachable(_, let reason) = self else { return false }
    return switch reason {
    case .timedOut, .broken, .other: true
    case .nameNotResolved, .connectionRefused, .tls, .proxy: false
    }
  }
}

extension Client {
  /// Reads the answer to a token request, with which a token is refreshed or exchanged.
  ///
  /// - Parameters:
  ///   - previous: the credential that the request was made from: what the answer leaves out stays as it was, the
  ///     refresh token above all (RFC 6749, 6).
  ///   - now: seconds since 1970, from which a lifetime counts.
  package func outcome(
    _ response: HTTPResponse, _ kind: EndpointKind, refreshing previous: Credential, now: Int64
  ) -> TokenOutcome {
    let answer: Answer
    do { answer = try Answer(response, kind, rules(kind, previous.grant)) } catch {
      return TokenOutcome(error, previous.grant)
    }
    do {
      let credential = try credential(
        answer, grant: previous.grant, scope: previous.requestedScope, previous: previous, now: now)
      return .issued(credential, unreadable: answer.unreadable)
    } catch {
      // A session handle goes with the token that it was given with (OAuth Session 1.0 draft 1, 5).
      guard previous.grant.traits.renewal != .sessionHandle, let refreshToken = answer.secretIfReadable(.refreshToken),
        refreshToken != previous.refreshToken
      else { return .failed(error) }
      var credential = previous
      credential.refreshToken = refreshToken
      credential.refreshTokenExpiresAt = nil
      return .rotated(credential, error)
    }
  }
}

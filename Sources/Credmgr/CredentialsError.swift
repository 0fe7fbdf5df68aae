import CredentialManager

/// Why a program gets no credential.
public enum CredentialsError: Error, Sendable, Equatable {
  /// A user has to log in: `credmgr login PROVIDER`.
  case loginRequired(provider: String, account: String?)
  /// The provider or another process did not answer in time; a later call may succeed.
  case unavailable(String)
  /// Another error; its description is for a log and shows no secret.
  case failed(String)

  init(_ error: CredentialError) {
    self =
      switch error {
      case .loginNeeded(let provider, let account, _): .loginRequired(provider: provider, account: account)
      case .http, .lockTimedOut, .timedOut: .unavailable("\(error)")
      default: .failed("\(error)")
      }
  }
}

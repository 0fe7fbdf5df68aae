import HTTP
import Text

extension CredentialSource {
  /// A container registry that a provider claims.
  public struct DockerHost: Sendable, Equatable {
    /// The host, in lower case, with a port where it is not the ordinary one.
    public let host: String
    /// The provider whose token it takes.
    public let provider: String
    /// The user name that goes with the token; `{account}` in it is the account's name.
    public let username: String

    /// The user name for an account.
    public func username(for account: String) -> String { username.exchanging("{account}", for: account) }
  }
}

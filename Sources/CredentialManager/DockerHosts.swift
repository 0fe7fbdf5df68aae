import POSIX
import Vault

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
    public func username(for account: String) -> String { username.replacing("{account}", with: account) }
  }

  /// All container registries that providers claim, in the order of the providers.
  ///
  /// The index is one small file, so that this does not grow with the number of descriptors.
  public func dockerHosts() -> [DockerHost] {
    guard let bytes = try? File.read(home.dockerHosts, limit: 1 << 20) else { return [] }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
      let fields = line.split(separator: "\t").map(String.init)
      return fields.count == 3 ? DockerHost(host: fields[0], provider: fields[1], username: fields[2]) : nil
    }
  }

  func writeDockerHosts(_ accounts: Accounts) throws(CredentialError) {
    var lines: [String] = []
    for provider in try accounts.addedProviders() {
      guard let client = try? client(provider), let docker = client.dockerHosts else { continue }
      lines += docker.hosts.map { $0.lowercased() + "\t" + provider + "\t" + docker.username + "\n" }
    }
    do {
      try File.createDirectory(home.configuration)
      try File.replace(home.dockerHosts, Array(lines.joined().utf8))
    } catch {
      throw .system(error)
    }
  }
}

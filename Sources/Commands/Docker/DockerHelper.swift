import CredentialManager
import Cryptography
import JSON
import OAuth

/// A question of docker about a registry (docker/docker-credential-helpers).
struct DockerHelper: HelperProtocol {
  let address: RegistryAddress
  let claim: HostClaim?

  /// - Throws: `CommandError` where the vault does not open.
  init(_ address: RegistryAddress, _ context: Context) throws(CommandError) {
    self.address = address
    claim = address.isSafe ? try context.claim(of: address.host, for: .docker) : nil
  }

  var provider: String? { claim?.provider }

  var logins: HostLoginPattern? { HostLoginPattern(origin: address.origin) }

  /// What a person stored for a registry goes before what its provider would give.
  var prefersLogins: Bool { true }

  var recipient: String { "docker " + address.host }

  /// What `store` gets.
  static func login(_ input: [UInt8]) throws(CommandError) -> (RegistryAddress, HostLogin) {
    guard let value = try? JSONValue.parse(input), let members = value.members else {
      throw .usage("what docker wrote is no JSON object")
    }
    // Docker's own helpers read the names without regard to case.
    func text(_ name: String) -> String { members.last { $0.name.lowercased() == name }?.value.text ?? "" }
    let (server, username) = (text("serverurl"), text("username"))
    if server.isEmpty { throw .usage(DockerError.noServer) }
    if username.isEmpty { throw .usage(DockerError.noUsername) }
    return (try RegistryAddress(server), HostLogin(username: username, password: Secret(text("secret"))))
  }

  func answer(_ account: Account, _ context: Context) -> String {
    answer(HostLogin(username: claim?.username(for: account.name), password: account.credential.accessToken))
  }

  func answer(_ login: HostLogin) -> String {
    let answer: JSONValue = [
      "ServerURL": .string(address.text), "Username": .string(login.username ?? ""),
      "Secret": .string(login.password.reveal()),
    ]
    return answer.encoded + "\n"
  }

  func refuse(_ error: CredentialError?, _ session: HelperSession<Self>) throws(CommandError) {
    throw error.map { CommandError($0) } ?? .usage(DockerError.notFound)
  }
}

/// The sentences that docker knows (docker/docker-credential-helpers, credentials/error.go), as they are there.
enum DockerError {
  static let notFound = "credentials not found in native keychain"
  static let noServer = "no credentials server URL"
  static let noUsername = "no credentials username"
  static let all = [notFound, noServer, noUsername]
}

import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth

/// A request from docker for a registry's credentials (docker/docker-credential-helpers).
struct DockerHelper: HelperProtocol {
  let address: RegistryAddress
  let claims: [HostClaim]
  let claim: HostClaim?

  init(_ address: RegistryAddress, _ context: Context) throws(CommandError) {
    self.address = address
    claims = address.isSafe ? try manager(context.source.claims(of: address.host, for: .docker)) : []
    claim = try context.claim(among: claims)
  }

  var provider: String? { claim?.provider }

  var providers: [String] { claims.map(\.provider) }

  var logins: HostLoginPattern? { HostLoginPattern(origin: address.origin) }

  /// A login that the user stored takes precedence over a provider's token.
  var prefersLogins: Bool { true }

  var recipient: String { "docker " + address.host }

  static func login(_ input: [UInt8]) throws(CommandError) -> (RegistryAddress, HostLogin) {
    guard let value = try? JSONValue.parse(input), let members = value.members else {
      throw .usage("invalid input from docker: it is not a JSON object")
    }
    // docker's own helpers ignore the case of names.
    func text(_ name: String) -> String { members.last { $0.name.lowercased() == name }?.value.text ?? "" }
    let (server, username) = (text("serverurl"), text("username"))
    if server.isEmpty { throw .docker(.noServer) }
    if username.isEmpty { throw .docker(.noUsername) }
    let address = try RegistryAddress(server)
    var login = HostLogin(username: username, password: Secret(text("secret")))
    // `list` prints the address as docker wrote it.
    login.path = address.written == address.text ? nil : address.written
    return (address, login)
  }

  func freshAccount(_ name: String?, of provider: String, _ context: Context) throws(CredentialError) -> Account {
    guard let claim else { throw .loginNeeded(provider: provider, account: name, .noCredential) }
    return try context.source.handOut(name, of: provider, by: .helper, to: .claimed(claim))
  }

  func answer(_ account: Account, _ context: Context) -> String {
    answer(HostLogin(username: claim?.username(of: account), password: account.credential.accessToken))
  }

  func answer(_ login: HostLogin) -> String {
    let answer: JSONValue = [
      "ServerURL": .string(address.written), "Username": .string(login.username ?? ""),
      "Secret": .string(login.password.reveal()),
    ]
    return answer.encoded + "\n"
  }
}

/// Error messages that docker recognizes, word for word (docker/docker-credential-helpers, credentials/error.go).
package enum DockerError: String, Sendable {
  case notFound = "credentials not found in native keychain"
  case noServer = "no credentials server URL"
  case noUsername = "no credentials username"
}

/// A registry's address as docker writes it: `ghcr.io`, `registry.example:5000`, `https://index.docker.io/v1/`.
struct RegistryAddress: Equatable {
  /// The name for storing logins and for `list`: only the host if nothing else matters.
  let text: String
  let written: String  // As docker wrote it.
  let configured: String  // The registry's name in docker's configuration.
  /// In lowercase, with its port unless that is the default.
  let host: String
  /// Whether the connection uses TLS or stays on this machine.
  let isSafe: Bool
  let isSecure: Bool  // Whether the connection uses TLS.

  init(_ text: String) throws(CommandError) {
    let hasScheme = text.firstPlace(of: "://") != nil
    // This error's message omits a password in the address.
    let uri = try http(URI(parsing: hasScheme ? text : "https://" + text))
    // A registry's address has none of these parts, and each could be secret.
    guard !text.contains(where: { "@?#".contains($0) }) else {
      throw .usage("invalid registry address: it contains a user name, query or fragment")
    }
    guard let host = HostPattern.authority(uri), ["http", "https"].contains(uri.scheme) else {
      throw .usage("invalid registry address: unsupported scheme \"\(uri.scheme)\"")
    }
    self.host = host
    written = text
    isSecure = uri.isSecure
    isSafe = uri.isSecure || uri.isLoopback
    let isHost = uri.isSecure && ["", "/"].contains(uri.path)
    let isHub = uri.isSecure && HostClaim.names(of: host, for: .docker).count > 1
    if isHub, ["", "/", "/v1", "/v1/"].contains(uri.path) {
      (self.text, configured) = (Self.dockerHub, Self.dockerHub)
    } else {
      self.text = isHost ? host : hasScheme ? uri.text : String(uri.text.dropFirst("https://".count))
      configured = hasScheme ? text : host
    }
  }

  /// docker's own name for Docker Hub.
  private static let dockerHub = "https://index.docker.io/v1/"

  /// The origin for logins in the vault. git's origins are URLs, so the two never collide.
  var origin: String { Self.prefix + text }

  static let prefix = "docker:"

  init(_ input: [UInt8]) throws(CommandError) {
    guard let text = String(validating: input, as: UTF8.self) else {
      throw .usage("invalid input from docker: it is not UTF-8")
    }
    let blank: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0.isNewline }
    let trimmed = String(text.drop(while: blank).reversed().drop(while: blank).reversed())
    if trimmed.isEmpty { throw .docker(.noServer) }
    try self.init(trimmed)
  }
}

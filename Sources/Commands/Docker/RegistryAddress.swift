import HTTP
import OAuth
import Text

/// The address of a registry as docker writes it: `ghcr.io`, `registry.example:5000`, `https://index.docker.io/v1/`.
struct RegistryAddress: Equatable {
  /// What a login is stored under, and `list` shows: the host alone where nothing else is said.
  let text: String
  /// The host, in lower case, with a port where it is not the ordinary one.
  let host: String
  /// Whether what is sent there is sent over TLS, or stays on this machine.
  let isSafe: Bool

  /// - Throws: `CommandError.failed` when it is no address.
  init(_ text: String) throws(CommandError) {
    let hasScheme = text.firstPlace(of: "://") != nil
    let uri: URI
    do throws(HTTPError) {
      uri = try URI(parsing: hasScheme ? text : "https://" + text)
    } catch {
      // Its sentence leaves a password in the address out.
      throw .failed(error.message())
    }
    guard let host = HostPattern.authority(uri), ["http", "https"].contains(uri.scheme) else {
      throw .usage("a registry is not reached by \"\(uri.scheme)\"")
    }
    self.host = host
    isSafe = uri.isSecure || uri.isLoopback
    let isHost = uri.isSecure && ["", "/"].contains(uri.path) && uri.query == nil && uri.fragment == nil
    self.text = isHost ? host : hasScheme ? uri.text : String(uri.text.dropFirst("https://".count))
  }

  /// The origin of logins in the vault. git's are URLs, so that the two never meet.
  var origin: String { Self.prefix + text }

  static let prefix = "docker:"

  /// Reads what `get` and `erase` get: one address.
  init(_ input: [UInt8]) throws(CommandError) {
    guard let text = String(validating: input, as: UTF8.self) else { throw .usage("what docker wrote is not UTF-8") }
    let blank: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0.isNewline }
    let trimmed = String(text.drop(while: blank).reversed().drop(while: blank).reversed())
    if trimmed.isEmpty { throw .usage(DockerError.noServer) }
    try self.init(trimmed)
  }
}

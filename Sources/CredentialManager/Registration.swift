import Cryptography
import JSON

/// What the person registered at a provider, as the vault keeps it: the client (RFC 6749, 2) and the variables' values.
public struct Registration: Sendable, Equatable {
  /// The client identifier, or consumer key.
  public var clientIdentifier: String
  /// The client secret, consumer secret, or private key as PEM.
  public var clientSecret: Secret?
  /// Values for the descriptor's variables.
  public var variables: [String: String]

  /// A registration.
  public init(clientIdentifier: String, clientSecret: Secret?, variables: [String: String]) {
    self.clientIdentifier = clientIdentifier
    self.clientSecret = clientSecret
    self.variables = variables
  }

  var encoded: Secret {
    var members: [JSONValue.Member] = [.init("client_id", .string(clientIdentifier))]
    if let clientSecret { members.append(.init("client_secret", .string(clientSecret.reveal()))) }
    let values = variables.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }
    members.append(.init("variables", .object(values)))
    return Secret(JSONValue.object(members).encoded)
  }

  init?(decoding secret: Secret) {
    guard let value = try? JSONValue.parse(secret.revealBytes()), let identifier = value["client_id"]?.text else {
      return nil
    }
    clientIdentifier = identifier
    clientSecret = value["client_secret"]?.text.map { Secret($0) }
    variables = [:]
    for member in value["variables"]?.members ?? [] { variables[member.name] = member.value.text }
  }
}

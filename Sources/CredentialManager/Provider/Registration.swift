import Cryptography
import JSON
import Descriptors
import OAuth
import Text

/// What the person registered at a provider, as the vault keeps it: the client (RFC 6749, 2) and the variables' values.
package struct Registration: Sendable, Equatable {
  package var clientIdentifier: String  // The client identifier, or consumer key.
  package var clientSecret: Secret?  // The client secret, consumer secret, or private key as PEM.
  package var variables: [String: String] = [:]
  /// Sent where the descriptor has none of its own; `nil`: the one of earlier versions, which all providers shared.
  package var redirect: String?
  package var registered: Registered?  // How the client came about, where the provider registered it at our request.
  /// Where tokens and the secret may go, as the person agreed to it. `nil` where nobody noted it.
  package var agreement: Agreement?

  /// What a provider answered that registered a client (RFC 7591, 3.2.1), beside identifier and secret.
  package struct Registered: Sendable, Equatable {
    package var place: String
    package var redirectURI: String?
    package var authentication: ClientAuthentication?  // `nil` where the provider did not say.
    package var secretExpiresAt: Moment?  // `nil` for never.
    package var accessToken: Secret?  // What the registration is read, changed and deleted with (RFC 7592, 3).
    package var uri: String?  // Where that is done (RFC 7592, 3).
  }
}

extension Registration {
  /// The descriptor as it is for this client: what the provider says of it goes before what the descriptor says of all,
  /// and a variable that was secret stays secret.
  package func applied(to descriptor: Descriptor) -> Descriptor {
    var descriptor = descriptor
    if let method = registered?.authentication { descriptor.client.authentication = method }
    descriptor.standardRedirect = redirect ?? Descriptor.sharedRedirect
    for index in descriptor.variables.indices
    where agreement?.secrets.contains(descriptor.variables[index].name) == true {
      descriptor.variables[index].isSecret = true
    }
    return descriptor
  }

  /// Whether it comes back to credmgr, as each one does that was not written by somebody else.
  var hasOwnRedirect: Bool {
    redirect.map { $0 == Descriptor.sharedRedirect || $0.hasPrefix(Descriptor.sharedRedirect + "/") } ?? true
  }

  /// Notes what is agreed to. A value that was secret stays so, although the descriptor does not call it that any more.
  mutating func seal(_ descriptor: Descriptor, _ client: Client, ownFiles: String) {
    var agreement = Agreement(client, ownFiles: ownFiles)
    agreement.shownSecrets = agreement.secrets.subtracting(descriptor.variables.filter(\.isSecret).map(\.name))
    self.agreement = agreement
  }

  var encoded: Secret {
    var members: [JSONValue.Member] = [.init("client_id", .string(clientIdentifier))]
    if let clientSecret { members.append(.init("client_secret", .string(clientSecret.reveal()))) }
    let values = variables.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }
    members.append(.init("variables", .object(values)))
    if let redirect { members.append(.init("redirect", .string(redirect))) }
    if let registered { members.append(.init("registered", registered.value)) }
    if let agreement { members.append(.init("agreement", agreement.value)) }
    return Secret(JSONValue.object(members).encoded)
  }

  init?(decoding secret: Secret) {
    guard let value = try? JSONValue.parse(secret.revealBytes()), let identifier = value["client_id"]?.text else {
      return nil
    }
    clientIdentifier = identifier
    clientSecret = value["client_secret"]?.text.map { Secret($0) }
    agreement =
      value["agreement"].flatMap { Agreement($0) }
      ?? value["destinations"]?.elements.map { Agreement(destinations: $0.compactMap(\.text)) }
    redirect = value["redirect"]?.text
    variables = [:]
    for member in value["variables"]?.members ?? [] { variables[member.name] = member.value.text }
    registered = value["registered"].flatMap { Registered($0) }
  }
}

extension Registration.Registered {
  fileprivate var value: JSONValue {
    [
      "place": .string(place), "redirect_uri": .optional(redirectURI),
      "token_endpoint_auth_method": .optional(authentication?.rawValue),
      "client_secret_expires_at": secretExpiresAt.map(JSONValue.moment) ?? .null,
      "registration_access_token": .optional(accessToken?.reveal()), "registration_client_uri": .optional(uri),
    ]
  }

  fileprivate init?(_ value: JSONValue) {
    guard let place = value["place"]?.text else { return nil }
    self.place = place
    redirectURI = value["redirect_uri"]?.text
    authentication = value["token_endpoint_auth_method"]?.text.flatMap { ClientAuthentication(rawValue: $0) }
    secretExpiresAt = value["client_secret_expires_at"]?.moment
    accessToken = value["registration_access_token"]?.text.map { Secret($0) }
    uri = value["registration_client_uri"]?.text
  }
}

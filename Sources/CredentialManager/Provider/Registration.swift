import CredmgrCryptography
import CredmgrJSON
import CredmgrDescriptors
import CredmgrOAuth
import CredmgrText

/// The user's registration at a provider in the vault: the client (RFC 6749, 2) and the variables' values.
package struct Registration: Sendable, Equatable {
  package var clientIdentifier: String  // For OAuth 1.0a, the consumer key.
  package var clientSecret: Secret?  // Also a consumer secret, or a private key as PEM.
  package var variables: [String: String] = [:]
  /// Used if the descriptor has none; `nil` for the shared redirect of earlier versions.
  package var redirect: String?
  package var registered: Registered?  // The provider's answer, if credmgr registered the client.
  /// The destinations for tokens and secrets that the user agreed to; `nil` if not recorded.
  package var agreement: Agreement?
  /// The shared vault whose registration this one follows.
  package var vault: String?

  /// A provider's answer to a client registration (RFC 7591, 3.2.1), without identifier and secret.
  package struct Registered: Sendable, Equatable {
    package var place: String
    package var redirectURI: String?
    package var authentication: ClientAuthentication?  // `nil` if the provider did not say.
    package var secretExpiresAt: Moment?  // `nil` if it never expires.
    package var accessToken: Secret?  // Reads, changes and deletes the registration (RFC 7592, 3).
    package var uri: String?  // The address for these requests (RFC 7592, 3).
  }
}

extension CredentialSource {
  /// Returns a digest of what decides where the tokens of a login would go now, for the time until the user has
  /// answered a question or a prompt; `nil` if the login would fail.
  package func destinationsDigest(ofLogin options: LoginOptions, to provider: String) -> String? {
    guard let loaded = try? descriptor(provider) else { return nil }
    let began = try? permitToLogIn(loaded, needsClient: false, variables: options.variables)
    let known = try? accountsIfAny()?.registration(of: provider)
    return (began?.registration ?? known)?.digest(withClient: false)
  }
}

extension Registration {
  /// Returns the descriptor for this client. The provider's answer overrides the descriptor, and a secret variable
  /// stays secret.
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

  /// A digest of what decides where the tokens of a login may go and, `withClient`, of the client that gets them.
  func digest(withClient: Bool = true) -> String {
    func list(_ texts: [String: [String]]) -> JSONValue {
      .array(texts.sorted { $0.key < $1.key }.map { .array(([$0.key] + $0.value).map(JSONValue.string)) })
    }
    let kinds: [Agreement.Kind] = [.endpoints, .presented, .helpers]
    let places = kinds.map { list(agreement?.places[$0] ?? [:]) }
    let value: JSONValue = [
      "client": .string(withClient ? clientIdentifier : ""), "variables": list(variables.mapValues { [$0] }),
      "places": .array(places),
    ]
    return Base64.encodeURL(HashAlgorithm.sha256.digest(Array(value.encoded.utf8)))
  }

  /// Whether another issuer registered the client. Identifiers of clients are unique only at their own authorization
  /// server (RFC 6749, 2.2), except the address of a client's own document.
  func isOfOtherIssuer(than descriptor: Descriptor) -> Bool {
    guard let issuer = descriptor.issuer?.literal, let agreed = agreement?.issuer else { return false }
    return issuer != agreed && !(descriptor.client.takesDocument && clientIdentifier.hasPrefix("https://"))
  }

  /// Whether the redirect returns to credmgr. Only a hand-written one might not.
  var hasOwnRedirect: Bool {
    redirect.map { $0 == Descriptor.sharedRedirect || $0.hasPrefix(Descriptor.sharedRedirect + "/") } ?? true
  }

  /// Records the agreement. A secret variable stays secret, even if the descriptor no longer says so.
  mutating func seal(_ loaded: DescriptorLibrary.Loaded, _ client: Client, ownFiles: String) {
    var agreement = Agreement(client, ownFiles: ownFiles, files: loaded.digest)
    let secrets = loaded.descriptor.variables.filter(\.isSecret).map(\.name)
    agreement.shownSecrets = agreement.secrets.subtracting(secrets)
    self.agreement = agreement.keepingClusters(of: self.agreement)
  }

  var encoded: Secret {
    var members: [JSONValue.Member] = [.init("client_id", .string(clientIdentifier))]
    if let clientSecret { members.append(.init("client_secret", .string(clientSecret.reveal()))) }
    let values = variables.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }
    members.append(.init("variables", .object(values)))
    if let redirect { members.append(.init("redirect", .string(redirect))) }
    if let registered { members.append(.init("registered", registered.value)) }
    if let agreement { members.append(.init("agreement", agreement.value)) }
    if let vault { members.append(.init("vault", .string(vault))) }
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
    vault = value["vault"]?.text
  }

  /// Returns what all members of a shared vault use. Only the machine that registered the client changes or deletes it.
  var shareable: Registration {
    var shared = self
    shared.registered?.accessToken = nil
    shared.registered?.uri = nil
    shared.vault = nil
    return shared
  }

  /// Whether both say the same about the client, whatever was agreed to.
  func isSameClient(as other: Registration) -> Bool {
    var (one, two) = (shareable, other.shareable)
    (one.agreement, two.agreement) = (nil, nil)
    return one == two
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

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrPlatform
import CredmgrText

/// A tool's client with a refresh token, which only this client can use.
package struct ImportedClient: Sendable {
  package let issuer: String?
  package let identifier: String
  package let secret: Secret?
  package let refreshToken: Secret
  package let scope: [String]
  package let quotaProject: String?  // gcloud: the project whose quota requests use.

  /// Reads the JSON of gcloud and of oidc-agent; `nil` without a client or a refresh token.
  package init?(_ text: Secret) {
    guard let value = try? JSONValue.parse(text.revealBytes()),
      let identifier = value["client_id"]?.text, !identifier.isEmpty,
      let refreshToken = value["refresh_token"]?.text, !refreshToken.isEmpty
    else { return nil }
    self.identifier = identifier
    self.refreshToken = Secret(refreshToken)
    secret = value["client_secret"]?.text.flatMap { $0.isEmpty ? nil : Secret($0) }
    issuer = value["issuer_url"]?.text
    quotaProject = value["quota_project_id"]?.text
    scope = value["scope"]?.text?.split(separator: " ").map(String.init) ?? []
  }
}

extension CredentialSource {
  /// The provider for a tool's client.
  package enum ClientPlace: Sendable {
    case added(String)  // The provider has this client.
    case otherSecret(String, Secret?)  // The provider has this client with another secret.
    case addition(ProviderAddition)
  }

  /// Returns the provider that has a client, or one to which credmgr can add it: with a name of its own if the provider
  /// has another client, and with a number if any provider has that name. `candidates` are the providers of the
  /// client's issuer. Returns `nil` without candidates.
  package func place(
    of client: ImportedClient, among candidates: [String], suffix: String
  ) throws(CredentialError) -> ClientPlace? {
    let accounts = try accountsIfAny()
    var free: ProviderAddition?
    var other: ClientPlace?
    for base in candidates {
      let own = base + "-" + suffix
      for name in [base, own] + (2..<100).map({ "\(own)-\($0)" }) {
        let addition = try addition(shipped: base, as: name)
        let isOther = hasOtherDescriptor(than: addition)
        let registration = try accounts?.registration(of: name)
        let known = registration?.clientIdentifier
        // The user may have edited the file since.
        let isOwn = File.exists(home.userProviders + "/" + name + ".yaml")
        if known == client.identifier, isOwn || !isOther {
          guard let secret = client.secret, secret != registration?.clientSecret else { return .added(name) }
          other = other ?? .otherSecret(name, registration?.clientSecret)
        }
        guard known?.isEmpty != false, !isOther else { continue }
        free = free ?? addition
        break
      }
    }
    return other ?? free.map { .addition($0) }
  }

  /// Replaces the secret of a client, for example by a further one that the provider issued. Throws if the provider has
  /// another client or secret than before.
  package func replaceSecret(
    _ before: Secret?, by secret: Secret?, ofClient client: String, at provider: String
  ) throws(CredentialError) {
    let record = try accounts(.readWrite).record(Accounts.registration(provider))
    guard let record, var registration = Registration(decoding: record.payload),
      registration.clientIdentifier == client, registration.clientSecret == before
    else { throw .providerChanged(provider) }
    registration.clientSecret = secret
    // Like a client that the user changes on this machine.
    registration.vault = nil
    try store(
      [provider: registration], with: [noting(.addProvider, of: provider)], after: [provider: record.revision])
  }

  /// Whether an interrupted import waits, whose answer only the provider's client can use.
  package func hasUnfinishedLogin(at provider: String) throws(CredentialError) -> Bool {
    try accountsIfAny()?.hasUnfinishedLogin(at: provider) ?? false
  }
}

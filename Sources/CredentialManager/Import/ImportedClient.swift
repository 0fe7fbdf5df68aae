import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrText

/// A tool's client with a refresh token, which only this client can use.
package struct ImportedClient: Sendable {
  package let issuer: String?
  package let identifier: String
  package let secret: Secret?
  package let refreshToken: Secret
  package let scope: [String]

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
    scope = value["scope"]?.text?.split(separator: " ").map(String.init) ?? []
  }
}

extension CredentialSource {
  /// The provider for a tool's client.
  package enum ClientPlace: Sendable {
    case added(String)  // The provider has this client.
    case addition(ProviderAddition)
  }

  /// Returns the provider that has a client, or one to which credmgr can add it: with a name of its own if the provider
  /// has another client, and with a number if that name is taken as well. `candidates` are the providers of the
  /// client's issuer. Returns `nil` without candidates.
  package func place(
    of client: ImportedClient, among candidates: [String], suffix: String
  ) throws(CredentialError) -> ClientPlace? {
    let accounts = try accountsIfAny()
    func clientIdentifier(of provider: String) throws(CredentialError) -> String? {
      try accounts?.registration(of: provider)?.clientIdentifier
    }
    guard let first = candidates.first else { return nil }
    for provider in candidates + candidates.map({ $0 + "-" + suffix })
    where try clientIdentifier(of: provider) == client.identifier { return .added(provider) }
    var (name, number) = (first, 1)
    while let known = try clientIdentifier(of: name), !known.isEmpty {
      if known == client.identifier { return .added(name) }
      name = first + "-" + suffix + (number == 1 ? "" : "-\(number)")
      number += 1
    }
    return .addition(try addition(shipped: first, as: name))
  }
}

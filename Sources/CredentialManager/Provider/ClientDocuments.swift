import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrPlatform

extension CredentialSource {
  /// Returns the document to publish at `location` for a provider to be added, and for those that were added with this
  /// identifier.
  package func clientDocument(
    at location: String, for addition: ProviderAddition, _ variables: [String: String]
  ) throws(CredentialError) -> JSONValue {
    let client = try documented(addition, variables, at: location)
    var redirects = try redirectURI(client).map { [$0] } ?? []
    let existing = try accountsIfAny()
    for provider in try existing?.addedProviders() ?? [] where provider != addition.identifier {
      guard let registration = try existing?.registration(of: provider), registration.clientIdentifier == location,
        let loaded = try? home.library.load(provider), let other = try? self.client(loaded.descriptor, registration),
        let redirect = try? redirectURI(other), !redirects.contains(redirect)
      else { continue }
      redirects.append(redirect)
    }
    return client.document(at: location, redirectURIs: redirects)
  }

  /// Fetches the document, as the provider does, and returns what is wrong with it.
  package func faultOfDocument(
    at location: String, for addition: ProviderAddition, _ variables: [String: String]
  ) throws(CredentialError) -> ClientDocument.Fault? {
    let uri = try wrapping({ CredentialError.http($0, provider: location) }, URI(parsing: location))
    let redirect = try redirectURI(documented(addition, variables, at: location))
    return ClientDocument.fault(of: try document(at: uri), at: location, redirectURI: redirect)
  }

  /// Fetches a document. Does not follow redirects.
  package func document(at uri: URI) throws(CredentialError) -> HTTPResponse {
    let request = HTTPRequest(method: "GET", uri: uri, fields: ["Accept": "application/json"])
    return try sendWithoutCredential(to: uri.text, request)
  }

  private func documented(
    _ addition: ProviderAddition, _ variables: [String: String], at location: String
  ) throws(CredentialError) -> Client {
    let previous = try accountsIfAny()?.registration(of: addition.identifier)
    var values = previous?.variables.filter { addition.descriptor.variable($0.key) != nil } ?? [:]
    values.merge(variables) { _, new in new }
    return try client(
      addition.descriptor,
      Registration(
        clientIdentifier: location, clientSecret: nil, variables: values,
        redirect: previous == nil ? Descriptor.standardRedirect(of: addition.identifier) : previous?.redirect))
  }
}

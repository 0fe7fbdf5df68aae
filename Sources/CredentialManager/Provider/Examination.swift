import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText
import CredmgrStore

extension CredentialSource {
  /// Gets the vault's key from the Secret Service, as opening the vault does.
  package func checkSecretService() throws(CredentialError) {
    let vault = try vault()
    if let item = try inStore(vault.secretServiceItem) { _ = try inStore(keys.secretService.lookup(item)) }
  }

  package struct Reachability: Sendable {
    package let host: String
    /// The server's clock if it sends its date, or the reason for a missing answer.
    package let date: Result<Moment?, HTTPError>
  }

  /// Checks that each server of a provider's endpoints answers anything at all. Sends no secret.
  package func reach(_ provider: String) throws(CredentialError) -> [Reachability] {
    var results: [Reachability] = []
    for uri in try clientIfPossible(provider).origins {
      let date: Result<Moment?, HTTPError>
      do {
        let response = try sendWithoutCredential(
          to: provider, limits: HTTPLimits(time: .seconds(10)), HTTPRequest(method: "HEAD", uri: uri))
        date = .success(response.fields["Date"].flatMap(Moment.init(httpDate:)))
      } catch .http(let error, _) {
        date = .failure(error)
      }
      results.append(Reachability(host: HostPattern.authority(uri) ?? "", date: date))
    }
    return results
  }

  private func clientIfPossible(_ provider: String) throws(CredentialError) -> Client {
    do { return try permit(.validate, provider).client } catch .notAdded {
      let descriptor = try descriptor(provider).descriptor
      return try wrapping(
        CredentialError.provider, Client(descriptor: descriptor, identifier: "", secret: nil, variables: [:]))
    }
  }
}

import Descriptors
import HTTP
import OAuth
import Platform
import Text
import Store

extension CredentialSource {
  /// Asks the Secret Service for the vault's key, as opening the vault does.
  package func checkSecretService() throws(CredentialError) {
    let vault = try vault()
    if let item = try inStore(vault.secretServiceItem) { _ = try inStore(keys.secretService.lookup(item)) }
  }

  package struct Reachability: Sendable {
    package let host: String
    /// Its clock, where it says what it is; or why there was no answer.
    package let date: Result<Moment?, HTTPError>
  }

  /// Asks each server of a provider's endpoints for an answer, whatever it is; no secret is sent.
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

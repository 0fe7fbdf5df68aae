import CredmgrDescriptors
import CredmgrOAuth

extension CredentialSource {
  /// The facts that a refresh needs before it takes the lock.
  final class RefreshPlan {
    let loaded: DescriptorLibrary.Loaded
    let known: ExchangeNote?
    let permit: Permit
    /// Throws unless this machine may use the tokens of a shared vault's registration.
    var accepts: Accepts = { _ throws(CredentialError) in }

    init(loaded: DescriptorLibrary.Loaded, known: ExchangeNote?, permit: Permit) {
      (self.loaded, self.known, self.permit) = (loaded, known, permit)
    }
  }

  typealias Accepts = (Registration?) throws(CredentialError) -> Void
}

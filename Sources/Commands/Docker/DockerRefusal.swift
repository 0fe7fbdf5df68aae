import CredmgrCredentialManager

extension DockerHelper: RefusingHelper {
  func refuse(
    _ error: CredentialError?, _ choice: AccountChoice?, in session: HelperSession
  ) throws(CommandError) {
    throw error.map { CommandError($0) } ?? .docker(.notFound)
  }
}

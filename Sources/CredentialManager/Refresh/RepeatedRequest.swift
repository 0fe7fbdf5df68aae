import CredmgrCryptography
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

extension CredentialSource {
  /// Rejects the account's token if the process already got it for the same server, because the server must have
  /// refused it. client-go reruns an exec credential plugin after a 401 without saying so
  /// (`plugin/pkg/client/auth/exec`). After the first
  /// token of a process, only tokens that are at least a minute old count. Otherwise a server that refuses every
  /// token would cause endless refreshes.
  package func rejectIfRepeated(
    _ account: Account, process: ProcessIdentity?, server: String
  ) throws(CredentialError) -> Bool {
    let now = clock.now()
    guard let process, account.isRefreshable(at: now) else { return false }
    let path = home.repeatedRequest(process.number)
    // A keyed hash hides the server and the account.
    let question = [account.provider, server, process.program].joined(separator: " ")
    let key = try accounts().store.hiddenName(of: AccountID(question, account.name))
    let request = "\(process.number) \(process.start) \(key) "
    let handedOut = request + String(account.revision)
    let last = (try? PrivateFile.read(path, limit: 1024)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    if last == handedOut {
      try reject(account.credential.accessToken, account: account.name, of: account.provider)
      return true
    }
    if last.hasPrefix(request), now - account.credential.obtainedAt <= .seconds(60) { return false }
    // If this fails, a refused token only costs one more command.
    try? PrivateFile.createDirectory(home.runtime)
    try? PrivateFile.replace(path, Array(handedOut.utf8))
    return false
  }

  /// Marks a rejected token for a refresh before its next use, unless a newer token has replaced it.
  package func reject(_ token: Secret, account name: String?, of provider: String) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    for var account in try accounts.accounts(of: provider)
    where (name == nil || name == account.name) && account.credential.accessToken == token {
      account.credential.isRejected = true
      do throws(StoreError) {
        try accounts.store.apply([
          .store(
            account.credential.encoded, as: RecordIdentifier(.credential, of: account.id),
            if: .revision(account.revision)), noting(.refused, of: provider, account: account.name),
        ])
      } catch .conflict {
        continue
      } catch {
        throw .vault(error)
      }
    }
  }
}

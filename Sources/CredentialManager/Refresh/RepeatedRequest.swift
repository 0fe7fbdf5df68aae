import OAuth
import Platform
import Store
import Text

extension CredentialSource {
  /// Rejects the account's token if the process was given it before, for the same server: it was refused there.
  /// client-go runs an exec credential plugin anew after a 401 and tells it nothing (`plugin/pkg/client/auth/exec`). A
  /// server that refuses everything must not make us refresh for ever: of the tokens of a process, the first counts,
  /// and a later one only when it is a minute old.
  package func rejectIfRepeated(
    _ account: Account, process: ProcessIdentity?, server: String
  ) throws(CredentialError) -> Bool {
    let now = clock.now()
    guard let process, account.isRefreshable(at: now) else { return false }
    let path = home.repeatedRequest(process.number)
    // A keyed hash, so that neither the server nor the account can be read.
    let question = [account.provider, server, process.program].joined(separator: " ")
    let key = try vault().lockName(provider: question, account: account.name)
    let request = "\(process.number) \(process.start) \(key) "
    let handedOut = request + String(account.revision)
    let last = (try? PrivateFile.read(path, limit: 1024)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    if last == handedOut {
      try reject(account.credential.accessToken, account: account.name, of: account.provider)
      return true
    }
    if last.hasPrefix(request), now - account.credential.obtainedAt <= .seconds(60) { return false }
    // Where this fails, a refused token costs one command more.
    try? PrivateFile.createDirectory(home.runtime)
    try? PrivateFile.replace(path, Array(handedOut.utf8))
    return false
  }
}

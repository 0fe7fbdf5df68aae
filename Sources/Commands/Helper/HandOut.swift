import CredmgrCredentialManager
import CredmgrPlatform

extension Context {
  func noteHandOut(_ account: Account, by command: String) throws(CommandError) {
    try noteHandOut(account, to: command + (ParentProcess.name.map { " for " + $0 } ?? ""))
  }

  func noteHandOut(_ account: Account, to receiver: String) throws(CommandError) {
    try leaveNotices()
    source.noteHandOut(account, to: receiver)
  }

  /// Leaves the question to `credmgr-online` if there is something to tell, which only that program can.
  func leaveNotices() throws(CommandError) {
    if online == nil, hasNotice() { throw .handOver(input: nil) }
  }
}

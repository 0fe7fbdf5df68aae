import OAuth
import Platform

/// A process that is given tokens and asks again when one is refused, without saying so: an exec credential plugin is run
/// anew after a 401, and told nothing of it (client-go, `plugin/pkg/client/auth/exec`).
public struct Asker: Sendable {
  /// The run of a program in a process.
  let process: String
  /// The process's number.
  let number: Int32
  /// What it asks for: the server, and whatever else tells its questions apart.
  let question: String

  /// The process that started this one.
  ///
  /// - Parameter question: what it asks for. Who asks for another thing was not refused.
  /// - Returns: `nil` where the system does not tell.
  public init?(question: String) {
    guard let parent = ParentProcess.run else { return nil }
    self.init(process: parent.run, number: parent.number, question: question)
  }

  init(process: String, number: Int32, question: String) {
    self.process = process
    self.number = number
    self.question = question
  }
}

/// What an asker was given last.
private struct Handed {
  var process: String
  var question: String
  /// The revision of the account's record; -1 where nothing was given since a token was rejected.
  var revision: Int64
  /// When the asker was told to ask anew, in seconds; -1 for never.
  var until: Int64
  /// Whether it has made us reject a token already.
  var hasRejected: Bool

  init(process: String, question: String) {
    self.process = process
    self.question = question
    revision = -1
    until = -1
    hasRejected = false
  }

  init?(_ bytes: [UInt8]) {
    let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
    guard fields.count == 5, let revision = Int64(fields[2]), let until = Int64(fields[3]) else { return nil }
    process = String(fields[0])
    question = String(fields[1])
    self.revision = revision
    self.until = until
    hasRejected = fields[4] == "1"
  }

  var text: String { "\(process) \(question) \(revision) \(until) \(hasRejected ? 1 : 0)" }
}

extension CredentialSource {
  /// Rejects the token that there is if the asker was given it and asks again before it was told to: then somebody refused
  /// it. Once for each run of a program, and after that only what is older than a minute, so that a server that refuses
  /// whatever it gets does not make us refresh for ever. What cannot be refreshed is not rejected.
  ///
  /// - Throws: `CredentialError.vault`.
  public func rejectIfAskedAgain(_ asker: Asker, _ name: String?, of provider: String) throws(CredentialError) {
    guard let accounts = try accountsIfAny(), let account = try? accounts.resolve(name, provider: provider),
      var handed = handed(asker, account), handed.revision == account.revision, !account.credential.isRejected
    else { return }
    let now = clock.now()
    guard handed.until < 0 || now < handed.until, account.credential.isRefreshable(at: now),
      !handed.hasRejected || now - account.credential.obtainedAt > 60
    else { return }
    try reject(account.credential.accessToken, account: account.name, of: provider)
    handed.revision = -1
    handed.hasRejected = true
    keep(handed, asker)
  }

  /// Remembers what the asker is given.
  ///
  /// - Parameter until: when it is to ask anew; `nil` for never.
  public func remember(_ asker: Asker, _ account: Account, until: Int64?) {
    guard
      var handed = handed(asker, account)
        ?? question(asker, account).map({ Handed(process: asker.process, question: $0) })
    else { return }
    handed.revision = account.revision
    handed.until = until ?? -1
    keep(handed, asker)
  }

  private func question(_ asker: Asker, _ account: Account) -> String? {
    // A keyed hash, so that neither the server nor the account can be read.
    try? accounts().vault.lockName(provider: account.provider + " " + asker.question, account: account.name)
  }

  private func handed(_ asker: Asker, _ account: Account) -> Handed? {
    guard let bytes = try? PrivateFile.read(home.asker(asker.number), limit: 1024), let handed = Handed(bytes),
      handed.process == asker.process, handed.question == question(asker, account)
    else { return nil }
    return handed
  }

  /// What cannot be remembered costs a command after a refusal.
  private func keep(_ handed: Handed, _ asker: Asker) {
    try? PrivateFile.createDirectory(home.runtime)
    try? PrivateFile.replace(home.asker(asker.number), Array(handed.text.utf8))
  }
}

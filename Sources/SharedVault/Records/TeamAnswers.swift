import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore

/// A file on this machine for a provider's expected response, like that of the embedded vault. Its key is this
/// machine's own, so it also opens after a change of the vault's key.
private final class TeamAnswer: AnswerRoom {
  private let file: PreparedFile
  private let vault: TeamVault
  private let name: String

  private static let byteCount = 16_384

  init(_ vault: TeamVault, name: String) throws(StoreError) {
    do throws(POSIXError) {
      file = try PreparedFile.make(vault.answerFile(name), size: Self.byteCount)
    } catch {
      throw error.isDiskFull ? .full(path: vault.folder) : .file(error)
    }
    self.vault = vault
    self.name = name
  }

  func fill(_ answer: Secret, isForced: Bool) throws(StoreError) {
    let sealed = try cryptography(
      vault.answerKey().sealed(answer, Self.context(name), random: vault.place.random))
    do throws(POSIXError) { try file.fill(sealed, isForced: isForced) } catch {
      throw error.isDiskFull ? .full(path: vault.folder) : .file(error)
    }
  }

  static func context(_ name: String) -> FieldWriter {
    var fields = FieldWriter()
    fields.append("credmgr shared answer")
    fields.append(name)
    return fields
  }
}

extension TeamVault {
  package func makeRoom(for account: AccountID) throws(StoreError) -> any AnswerRoom {
    let room = try TeamAnswer(self, name: hiddenName(of: account))
    lease(of: RecordIdentifier(.credential, of: account))?.isBeginning = true
    return room
  }

  package func answer(for account: AccountID) -> Secret? {
    answer(named: hiddenName(of: account))
  }

  private func answer(named name: String) -> Secret? {
    guard let bytes = try? PreparedFile.read(answerFile(name), limit: 16 << 20) else { return nil }
    return try? answerKey().opened(bytes, TeamAnswer.context(name))
  }

  package func removeAnswer(for account: AccountID) { _ = try? File.remove(answerFile(hiddenName(of: account))) }

  package func hasAnswers(besides accounts: [AccountID]) -> Bool {
    let known = Set(accounts.map(hiddenName))
    return ((try? File.names(in: folder)) ?? []).contains { file in
      let name = String(file.dropLast(Self.ending.count))
      return file.hasSuffix(Self.ending) && !known.contains(name) && answer(named: name) != nil
    }
  }

  private static let ending = ".answer"

  fileprivate func answerFile(_ name: String) -> String { folder + "/" + name + Self.ending }

  fileprivate func answerKey() throws(CryptographyError) -> SealingKey {
    try SealingKey(membership.boxSecret).subkey(context: "crmgrsv1", id: 7)
  }
}

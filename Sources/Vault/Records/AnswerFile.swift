import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore

/// A file next to the vault for a provider's expected response.
///
/// Between a response and the end of a change, there are some thirty system calls. A process that dies there would lose
/// a refresh token that the provider has already replaced. So the file and its disk space exist before the request, and
/// filling it is one call.
private final class AnswerFile: AnswerRoom {
  private let file: PreparedFile
  private let vault: Vault
  private let keys: VaultKeys
  private let name: String

  /// Most responses need less than a quarter of this.
  private static let byteCount = 16_384

  init(_ vault: Vault, name: String) throws(VaultError) {
    file = try wrapping(
      { VaultError($0, at: vault.location) },
      PreparedFile.make(vault.location.answerFile(name), size: Self.byteCount))
    self.vault = vault
    keys = vault.opening.keys
    self.name = name
  }

  func fill(_ payload: Secret, isForced: Bool) throws(VaultError) {
    let sealed = try keys.records.sealed(payload, Self.associatedData(name), random: vault.random)
    try wrapping({ VaultError($0, at: vault.location) }, file.fill(sealed, isForced: isForced))
  }

  static func associatedData(_ name: String) -> BinaryWriter {
    var fields = Format.associatedData(.answer)
    fields.append(name: name)
    return fields
  }
}

extension Vault {
  package func makeRoom(for account: AccountID) throws(VaultError) -> any AnswerRoom {
    try requireWritable()
    return try AnswerFile(self, name: hiddenName(of: account))
  }

  package func answer(for account: AccountID) -> Secret? {
    let name = hiddenName(of: account)
    guard let bytes = try? PreparedFile.read(location.answerFile(name), limit: Format.payloadLimit) else { return nil }
    return opening.keys.records.opened(bytes, AnswerFile.associatedData(name))
  }

  package func removeAnswer(for account: AccountID) {
    _ = try? File.remove(location.answerFile(hiddenName(of: account)))
  }
}

extension VaultLocation { fileprivate func answerFile(_ name: String) -> String { directory + "/" + name + ".answer" } }

import Cryptography
import Platform
import Store

/// A place beside the vault for what a provider is about to answer.
///
/// Between an answer and the end of a change of the vault lie some thirty calls of the system, half a dozen of them
/// waits for the disk. Who dies there would lose the answer, and with it a refresh token that the provider has
/// replaced. The place is made before the provider is asked, room on the disk and all; filling it is one call.
final class AnswerFile: AnswerRoom {
  private let file: PreparedFile
  private let keys: VaultKeys
  private let random: any RandomSource
  private let name: String
  private let vaultFile: String

  /// Most answers have less than a fourth of it.
  private static let byteCount = 16_384

  init(_ vault: Vault, _ keys: VaultKeys, name: String) throws(VaultError) {
    vaultFile = vault.location.file
    do throws(POSIXError) {
      file = try PreparedFile.make(vault.location.answerFile(name), size: Self.byteCount)
    } catch {
      throw error.isDiskFull ? .full(path: vaultFile) : .file(error)
    }
    self.keys = keys
    random = vault.random
    self.name = name
  }

  /// Keeps the answer.
  ///
  /// - Parameter isForced: whether a power cut must not take it, either: where no change of the vault follows at once.
  /// - Throws: `.full`, `.file`.
  func fill(_ payload: Secret, isForced: Bool) throws(VaultError) {
    let (keys, random, name) = (keys, random, name)
    let sealed = try converting { () throws(CryptographyError) in
      try keys.records.sealed(payload, Self.associatedData(name), random: random)
    }
    do throws(POSIXError) {
      try file.fill(sealed, isForced: isForced)
    } catch {
      throw error.isDiskFull ? .full(path: vaultFile) : .file(error)
    }
  }

  fileprivate static func associatedData(_ name: String) -> BinaryWriter {
    var fields = Format.associatedData(.answer)
    fields.append(name: name)
    return fields
  }
}

extension Vault {
  /// See ``AccountStore``.
  ///
  /// - Throws: `.full`, `.file`, `.readOnly`.
  package func makeRoom(for account: AccountID) throws(VaultError) -> any AnswerRoom {
    try requireWritable()
    return try AnswerFile(self, openingKeys, name: lockName(of: account))
  }

  /// See ``AccountStore``.
  package func answer(for account: AccountID) -> Secret? {
    let name = lockName(of: account)
    guard let bytes = try? PreparedFile.read(location.answerFile(name), limit: Format.payloadLimit) else { return nil }
    return openingKeys.records.opened(bytes, AnswerFile.associatedData(name))
  }

  /// See ``AccountStore``.
  package func removeAnswer(for account: AccountID) {
    _ = try? File.remove(location.answerFile(lockName(of: account)))
  }
}

extension VaultLocation {
  fileprivate func answerFile(_ name: String) -> String { directory + "/" + name + ".answer" }
}

import Platform

/// What can go wrong with a store. No case holds a payload or a key.
package enum StoreError: Error, Equatable, Sendable {
  case absent(path: String)
  /// The vault is there, and its key file is not. No new key is made: it could open nothing.
  case keyFileMissing(path: String)
  case keyFileInvalid(path: String)
  case keyFileOfAnotherVault(path: String)
  /// Nobody was asked who has a key to the vault; what the slots are.
  case locked([SlotKind])
  case wrongPassphrase
  case passphraseUnavailable(POSIXError)
  case passphraseCommandFailed(status: Int32)
  case kernelKeyring(POSIXError)
  case secretService(SecretServiceFault)
  case noSlot(SlotKind)
  /// The slot is the only one: without it nobody could open the vault.
  case lastSlot(SlotKind)
  /// Another process changed the slots meanwhile, or there is one of a kind that a newer credmgr knows.
  case otherSlots
  case notAVault(path: String)
  case truncated(path: String)
  case newerFormat(path: String, found: Int64, supported: Int64)
  case damaged(path: String, VaultPart)
  /// A record is not what was written; the others are not touched by that.
  case damagedRecord(RecordIdentifier)
  /// The record was changed by somebody else; its revision now, `nil` if there is none.
  case conflict(RecordIdentifier, actual: Int64?)
  /// A name of more than 65535 bytes or a payload of more than 16 MiB.
  case tooLarge(RecordIdentifier)
  /// The vault, its key file or its directory is not private to the user, or cannot be used.
  case file(POSIXError)
  case busy(path: String)
  /// The disk or the quota is full. Nothing was changed.
  case full(path: String)
  /// The file or its directory cannot be written. Nothing was changed.
  case readOnly(path: String)
  /// The system cannot read or write the file: its number for the failure, from SQLite.
  case inputOutput(path: String, code: Int32)
  /// The change is made, and the system cannot say whether it will be there after a power cut.
  case unconfirmed(path: String)
  case outOfMemory
}

package enum SecretServiceFault: Sendable, Equatable {
  case noBus
  case noService
  case locked
  case noKey
  case timedOut
  /// The program that speaks to it, `secret-tool`, is not installed.
  case notInstalled
  case failed
}

package enum VaultPart: Sendable, Equatable {
  case structure, schema, slots, header
  case index(UInt8)
}

/// How a slot is opened. The number is part of the file format.
package enum SlotKind: Int64, Sendable, Hashable, CaseIterable {
  /// A key file beside the vault: works without a person, protects a copied vault and nothing more.
  case keyFile = 1
  case passphrase = 2
  case secretService = 3
}

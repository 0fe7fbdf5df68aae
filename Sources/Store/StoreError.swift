import Platform

/// What can go wrong with a store. No case holds a payload or a key.
package enum StoreError: Error, Equatable, Sendable {
  /// There is no vault yet.
  case absent(path: String)
  /// The vault is there, and its key file is not. No new key is made: it could open nothing.
  case keyFileMissing(path: String)
  /// The key file does not hold a key, or was altered.
  case keyFileInvalid(path: String)
  /// The key file holds a key, but not the one of this vault.
  case keyFileOfAnotherVault(path: String)
  /// Nobody was asked who has a key to the vault; what the slots are.
  case locked([SlotKind])
  /// The passphrase is not the one of the vault.
  case wrongPassphrase
  /// The passphrase could not be asked for.
  case passphraseUnavailable(POSIXError)
  /// The command that is to print the passphrase ended with another status than 0.
  case passphraseCommandFailed(status: Int32)
  /// The kernel does not keep keys.
  case kernelKeyring(POSIXError)
  /// The Secret Service did not give or keep the key.
  case secretService(SecretServiceFault)
  /// There is no slot of this kind.
  case noSlot(SlotKind)
  /// The slot is the only one: without it nobody could open the vault.
  case lastSlot(SlotKind)
  /// Another process changed the slots meanwhile, or there is one of a kind that a newer credmgr knows.
  case otherSlots
  /// The file is something else.
  case notAVault(path: String)
  /// The end of the file is missing.
  case truncated(path: String)
  /// A newer credmgr wrote the file.
  case newerFormat(path: String, found: Int64, supported: Int64)
  /// A part of the file is not what was written.
  case damaged(path: String, VaultPart)
  /// A record is not what was written; the others are not touched by that.
  case damagedRecord(RecordIdentifier)
  /// The record was changed by somebody else; its revision now, `nil` if there is none.
  case conflict(RecordIdentifier, actual: Int64?)
  /// A name of more than 65535 bytes or a payload of more than 16 MiB.
  case tooLarge(RecordIdentifier)
  /// The vault, its key file or its directory is not private to the user, or cannot be used.
  case file(POSIXError)
  /// Other processes hold the vault for longer than the time limit.
  case busy(path: String)
  /// The disk or the quota is full. Nothing was changed.
  case full(path: String)
  /// The file or its directory cannot be written. Nothing was changed.
  case readOnly(path: String)
  /// The system cannot read or write the file: its number for the failure, from SQLite.
  case inputOutput(path: String, code: Int32)
  /// The change is made, and the system cannot say whether it will be there after a power cut.
  case unconfirmed(path: String)
  /// There is no memory for the keys.
  case outOfMemory
}

/// Why the Secret Service did not do what it was asked for.
package enum SecretServiceFault: Sendable, Equatable {
  /// There is no session bus, and none is started.
  case noBus
  /// Nobody on the bus offers the service.
  case noService
  /// The collection is locked, and nobody unlocks it here.
  case locked
  /// It has no such key.
  case noKey
  /// It did not answer in time.
  case timedOut
  /// The program that speaks to it, `secret-tool`, is not installed.
  case notInstalled
  /// Another failure.
  case failed
}

/// A part of the vault's file.
package enum VaultPart: Sendable, Equatable {
  /// The structure of the database.
  case structure
  /// The names and types of tables.
  case schema
  /// The table of key slots.
  case slots
  /// The sealed header.
  case header
  /// One part of the sealed index of records.
  case index(UInt8)
}

/// How a slot is opened. The number is part of the file format.
package enum SlotKind: Int64, Sendable, Hashable, CaseIterable {
  /// A key file beside the vault: works without a person, protects a copied vault and nothing more.
  case keyFile = 1
  /// A passphrase.
  case passphrase = 2
  /// The Secret Service of the desktop.
  case secretService = 3
}

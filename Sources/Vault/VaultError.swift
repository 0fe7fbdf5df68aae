import POSIX

/// What can go wrong with a vault. No case holds a payload or a key.
public enum VaultError: Error, Equatable, Sendable {
  /// There is no vault yet.
  case absent(path: String)
  /// The vault is there, and its key file is not. No new key is made: it could open nothing.
  case keyFileMissing(path: String)
  /// The key file does not hold a key, or was altered.
  case keyFileInvalid(path: String)
  /// The key file holds a key, but not the one of this vault.
  case keyFileOfAnotherVault(path: String)
  /// No slot can be opened without a person; what the slots are.
  case locked([SlotKind])
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
  /// There is no memory for the keys.
  case outOfMemory
}

/// A part of the vault's file.
public enum VaultPart: Sendable, Equatable {
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

import CredmgrPlatform

/// An error of a store. No case holds a payload or a key.
package enum StoreError: Error, Equatable, Sendable {
  case absent(path: String)
  /// The vault exists, but its key file does not. A new key could not open it, so none is created.
  case keyFileMissing(path: String)
  case keyFileInvalid(path: String)
  case keyFileOfAnotherVault(path: String)
  /// No available key opens the vault, whose slots have these kinds.
  case locked([SlotKind])
  case wrongPassphrase
  case passphraseUnavailable(POSIXError)
  case passphraseCommandFailed(status: Int32)
  case kernelKeyring(POSIXError)
  case secretService(SecretServiceFault)
  case noSlot(SlotKind)
  /// The slot is the only one, and without it the vault could not be opened.
  case lastSlot(SlotKind)
  /// Another process has changed the slots, or a newer credmgr has added a kind unknown to this one.
  case otherSlots
  case notAVault(path: String)
  case truncated(path: String)
  case newerFormat(path: String, found: Int64, supported: Int64)
  case damaged(path: String, VaultPart)
  /// A record was altered; the others are not affected.
  case damagedRecord(RecordIdentifier)
  /// Another process has changed the record; `actual` is its revision, or `nil` if it does not exist.
  case conflict(RecordIdentifier, actual: Int64?)
  /// A name exceeds 65535 bytes, or a payload exceeds 16 MiB.
  case tooLarge(RecordIdentifier)
  /// The vault, its key file or its directory is not private to the user or cannot be used.
  case file(POSIXError)
  case busy(path: String)
  /// The disk or the quota is full. Nothing was changed.
  case full(path: String)
  /// The file or its directory is not writable. Nothing was changed.
  case readOnly(path: String)
  /// The system cannot read or write the file; `code` is SQLite's number of the failure.
  case inputOutput(path: String, code: Int32)
  /// The change was made, but may not survive a power cut.
  case unconfirmed(path: String)
  case outOfMemory
  /// A failure of the shared vault with this name, or with this address before it has a name.
  case server(ServerFault, vault: String)
}

package enum SecretServiceFault: Sendable, Equatable {
  case noBus
  case noService
  case locked
  case noKey
  case timedOut
  /// `secret-tool`, the program for the Secret Service, is not installed.
  case notInstalled
  case failed
}

package enum VaultPart: Sendable, Equatable {
  case structure, schema, slots, header
  case index(UInt8)
}

/// The kind of a slot's key. The number is part of the file format.
package enum SlotKind: Int64, Sendable, Hashable, CaseIterable {
  /// A key file next to the vault: opens it without a prompt and protects only a copy of the vault.
  case keyFile = 1
  case passphrase = 2
  case secretService = 3
}

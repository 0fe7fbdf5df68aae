/// What is known of a vault without opening a record.
package struct VaultStatus: Sendable, Equatable {
  /// A way to the vault key.
  package struct Slot: Sendable, Equatable {
    /// How it is opened; `nil` for a kind that this program does not know.
    package let kind: SlotKind?
    /// Seconds since 1970; 0 if nobody said.
    package let created: Int64

    /// A way to the vault key.
    package init(kind: SlotKind?, created: Int64) {
      self.kind = kind
      self.created = created
    }
  }

  /// The vault's file.
  package let path: String
  /// The version of the file's format.
  package let formatVersion: Int64
  /// The ways to the vault key.
  package let slots: [Slot]
  /// The number of records of all kinds but the log's and the claims of hosts, which follow from the registrations.
  package let recordCount: Int

  /// What is known of a vault.
  package init(path: String, formatVersion: Int64, slots: [Slot], recordCount: Int) {
    self.path = path
    self.formatVersion = formatVersion
    self.slots = slots
    self.recordCount = recordCount
  }
}

/// Something in a vault that is not what was written.
package enum VaultFinding: Sendable, Hashable {
  /// A record, and what happened to it.
  case record(RecordIdentifier, RecordFault)
  /// A row that no record of the index fits and that cannot be opened: its look-up hash in hexadecimal.
  case unknownRecord(lookup: String)
  /// One part of the index of records.
  case index(UInt8, IndexFault)
  /// The sealed header cannot be opened: records that were brought back are not found out while this is so.
  case header
  /// A key slot was altered, added, removed or brought back.
  case slots
  /// The tables are not those of a vault.
  case schema
  /// SQLite cannot read all of the file, or finds that its parts do not fit together.
  case structure

  /// What happened to a record.
  package enum RecordFault: Sendable, Hashable {
    /// It cannot be opened.
    case altered
    /// The index has it, and it is not there.
    case dropped
    /// It is an older sealing of the same record, or one that was removed.
    case replayed
    /// In its place is the sealing of another record.
    case swapped(with: RecordIdentifier)
  }

  /// What happened to a part of the index.
  package enum IndexFault: Sendable, Hashable {
    /// It cannot be opened.
    case altered
    /// It is not there.
    case dropped
    /// It is not the one that was written last.
    case replayed
  }
}

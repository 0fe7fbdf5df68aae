import CredmgrText

package struct VaultStatus: Sendable, Equatable {
  package struct Slot: Sendable, Equatable {
    /// The kind of the slot, or `nil` for a kind unknown to this version.
    package let kind: SlotKind?
    package let created: Moment  // 1970 if unknown.

    package init(kind: SlotKind?, created: Moment) {
      self.kind = kind
      self.created = created
    }
  }

  package let path: String
  package let formatVersion: Int64
  /// The ways to open the vault; empty for a store that opens without a key.
  package let slots: [Slot]
  /// The number of records, excluding log entries and claims of hosts, which follow from the registrations.
  package let recordCount: Int

  package init(path: String, formatVersion: Int64, slots: [Slot], recordCount: Int) {
    self.path = path
    self.formatVersion = formatVersion
    self.slots = slots
    self.recordCount = recordCount
  }
}

package enum VaultFinding: Sendable, Hashable {
  case record(RecordIdentifier, RecordFault)
  /// A row that is in no index and cannot be opened: its lookup hash in hexadecimal.
  case unknownRecord(lookup: String)
  case index(UInt8, IndexFault)
  /// The sealed header cannot be opened, which also hides replayed records.
  case header
  case slots
  case schema
  /// Events of the log of a record, or of a shared vault itself.
  case log(RecordIdentifier?)
  /// The list of members of a shared vault.
  case members
  /// The members' copies of a shared vault's key.
  case keyCopies
  /// The open invitation of this member to a shared vault.
  case invitation(String)
  /// A shared vault's tables.
  case tables
  /// SQLite cannot read the whole file or finds inconsistent parts.
  case structure

  package enum RecordFault: Sendable, Hashable {
    case altered
    case dropped
    /// The record is an older sealing or was removed.
    case replayed
    case swapped(with: RecordIdentifier)
  }

  package enum IndexFault: Sendable, Hashable {
    case altered
    case dropped
    case replayed
  }
}

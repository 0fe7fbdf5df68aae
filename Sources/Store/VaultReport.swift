import Text

package struct VaultStatus: Sendable, Equatable {
  package struct Slot: Sendable, Equatable {
    /// How it is opened; `nil` for a kind that this program does not know.
    package let kind: SlotKind?
    package let created: Moment  // 1970 if nobody said.

    package init(kind: SlotKind?, created: Moment) {
      self.kind = kind
      self.created = created
    }
  }

  package let path: String
  package let formatVersion: Int64
  package let slots: [Slot]
  /// The number of records of all kinds but the log's and the claims of hosts, which follow from the registrations.
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
  /// A row that no record of the index fits and that cannot be opened: its look-up hash in hexadecimal.
  case unknownRecord(lookup: String)
  case index(UInt8, IndexFault)
  /// The sealed header cannot be opened: records that were brought back are not found out while this is so.
  case header
  case slots
  case schema
  /// SQLite cannot read all of the file, or finds that its parts do not fit together.
  case structure

  package enum RecordFault: Sendable, Hashable {
    case altered
    case dropped
    /// It is an older sealing of the same record, or one that was removed.
    case replayed
    case swapped(with: RecordIdentifier)
  }

  package enum IndexFault: Sendable, Hashable {
    case altered
    case dropped
    case replayed
  }
}

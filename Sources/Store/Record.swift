import Cryptography

/// What a record is about. The number is part of the file format.
package enum RecordKind: UInt8, Sendable, CaseIterable {
  case credential = 1
  /// How this program is known to a provider: the client's name and secret, the values of variables.
  case registration = 2
  case selection = 3
  case login = 4
  /// Events, as earlier programs kept them.
  case event = 5
  /// What was in flight.
  case pending = 6
  case host = 7
}

package struct RecordIdentifier: Hashable, Sendable {
  package var kind: RecordKind
  /// The provider's identifier, or the host for a login.
  package var provider: String
  /// The account's name; empty for what belongs to the provider as a whole.
  package var account: String

  package init(_ kind: RecordKind, of account: AccountID) {
    self.init(kind: kind, provider: account.provider, account: account.name ?? "")
  }

  /// The account that it is about, or whose login it is that does not know yet whose it is.
  package var accountID: AccountID { AccountID(provider, account.isEmpty ? nil : account) }

  /// Each name can have up to 65535 bytes.
  package init(kind: RecordKind, provider: String, account: String) {
    self.kind = kind
    self.provider = provider
    self.account = account
  }

  /// Byte by byte, as names are looked up. Texts are equal by more than that: an "é" of one code point is one of two.
  package static func == (one: Self, other: Self) -> Bool {
    one.kind == other.kind && one.provider.utf8.elementsEqual(other.provider.utf8)
      && one.account.utf8.elementsEqual(other.account.utf8)
  }

  /// Names that are equal byte by byte are equal texts, which are hashed in larger pieces.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(provider)
    hasher.combine(account)
  }
}

package struct Record: Sendable {
  package let identifier: RecordIdentifier
  /// What was stored; the store does not look into it.
  package let payload: Secret
  /// Greater with each change, and never used again for the same name, also not after a removal.
  package let revision: Int64

  package init(identifier: RecordIdentifier, payload: Secret, revision: Int64) {
    self.identifier = identifier
    self.payload = payload
    self.revision = revision
  }
}

package enum Precondition: Sendable, Equatable {
  case any
  case absent
  case revision(Int64)
}

package enum Change: Sendable {
  case store(Secret, as: RecordIdentifier, if: Precondition = .any)
  /// Removes a record; does nothing if there is none and none is demanded.
  case remove(RecordIdentifier, if: Precondition = .any)
  /// Changes nothing, and is a conflict where there is no such record.
  case require(RecordIdentifier)
  /// Appends an event of at most 2048 bytes to the log, after the commit.
  case note(Secret)
}

package struct AccountID: Sendable, Equatable {
  package let provider: String
  /// The account's name; `nil` for a login that does not know yet whose it is.
  package let name: String?

  package init(_ provider: String, _ name: String? = nil) {
    self.provider = provider
    self.name = name
  }
}

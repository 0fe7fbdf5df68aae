import CredmgrCryptography

/// The kind of a record. The number is part of the file format.
package enum RecordKind: UInt8, Sendable, CaseIterable {
  case credential = 1
  /// The client at a provider: its name and secret and the values of variables.
  case registration = 2
  case selection = 3
  case login = 4
  /// Events as earlier versions stored them.
  case event = 5
  /// A note of an unfinished exchange.
  case pending = 6
  case host = 7
  /// How a login failed, for the processes that waited for it.
  case failure = 8
  /// The keys with which a provider signs.
  case keySet = 9
  /// The text of a descriptor that is not shipped.
  case descriptor = 10
  /// A shared vault that this machine joined: its server and this machine's keys.
  case membership = 11
  /// The state of a record of a shared vault that this machine saw last.
  case seen = 12
}

package struct RecordIdentifier: Hashable, Sendable {
  package var kind: RecordKind
  /// The provider's identifier, or the host of a login.
  package var provider: String
  /// The account's name; empty for records of the whole provider.
  package var account: String

  package init(_ kind: RecordKind, of account: AccountID) {
    self.init(kind: kind, provider: account.provider, account: account.name ?? "")
  }

  /// The account of the record, or the login whose account is still unknown.
  package var accountID: AccountID { AccountID(provider, account.isEmpty ? nil : account) }

  /// Each name has at most 65535 bytes.
  package init(kind: RecordKind, provider: String, account: String) {
    self.kind = kind
    self.provider = provider
    self.account = account
  }

  /// Compares the bytes, as looking up a name does: Swift's `==` also equates different encodings of "é".
  package static func == (one: Self, other: Self) -> Bool {
    one.kind == other.kind && one.provider.utf8.elementsEqual(other.provider.utf8)
      && one.account.utf8.elementsEqual(other.account.utf8)
  }

  /// Hashes the texts, which is faster; names with equal bytes are equal texts.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(provider)
    hasher.combine(account)
  }
}

package struct Record: Sendable {
  package let identifier: RecordIdentifier
  /// The content, which the store does not interpret.
  package let payload: Secret
  /// A number that grows with each change of the store, so the later of two records has the greater one. It is never
  /// used again, even after a removal.
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
  /// Removes a record; a missing one is fine unless the precondition requires it.
  case remove(RecordIdentifier, if: Precondition = .any)
  /// Changes nothing, but conflicts if the record does not exist.
  case require(RecordIdentifier)
  /// Appends an event of at most 2048 bytes to the log after the commit.
  case note(Secret)
}

package struct AccountID: Sendable, Equatable {
  package let provider: String
  /// The account's name, or `nil` for a login whose account is still unknown.
  package let name: String?

  package init(_ provider: String, _ name: String? = nil) {
    self.provider = provider
    self.name = name
  }
}

import CSodium

/// What a guess at a passphrase costs: the parameters of Argon2id (RFC 9106, section 3.1).
package struct PassphraseCosts: Sendable, Equatable {
  package static let saltByteCount = 16

  /// Passes over the memory.
  package let operations: UInt64
  /// In bytes.
  package let memory: UInt64

  package init(operations: UInt64, memory: UInt64) {
    self.operations = operations
    self.memory = memory
  }

  /// About a second on a slow machine.
  package static let moderate = PassphraseCosts(
    operations: UInt64(crypto_pwhash_OPSLIMIT_MODERATE), memory: UInt64(crypto_pwhash_MEMLIMIT_MODERATE))

  /// Costs come from a file that somebody may have altered: neither may they ask for the whole machine, nor
  /// for so little that a test value passes for a real one.
  var isAcceptable: Bool { (1...64).contains(operations) && (8192...(4 << 30)).contains(memory) }
}

import CredmgrCSodium
import Synchronization

/// A key in locked memory that core dumps exclude, on guarded pages that hold nothing but keys. libsodium erases it
/// with the last copy of the value ("Securing memory allocations").
package struct SealingKey: Sendable {
  package static let byteCount = 32
  package static let nonceByteCount = 24
  package static let tagByteCount = 16

  private let memory: KeyMemory

  package init(_ bytes: Secret) throws(CryptographyError) {
    guard bytes.count == Self.byteCount else { throw .wrongLength(expected: Self.byteCount, actual: bytes.count) }
    memory = try KeyMemory()
    unsafe memory.write { key in
      bytes.withBytes { bytes in for index in bytes.indices { unsafe key[index] = bytes[index] } }
    }
  }

  package init(random: some RandomSource) throws(CryptographyError) {
    try self.init(Secret(bytes: random.bytes(Self.byteCount)))
  }

  /// Derives the key from a passphrase with Argon2id (RFC 9106).
  package init(passphrase: Secret, costs: PassphraseCosts, salt: [UInt8]) throws(CryptographyError) {
    guard salt.count == PassphraseCosts.saltByteCount
    else { throw .wrongLength(expected: PassphraseCosts.saltByteCount, actual: salt.count) }
    guard !passphrase.isEmpty else { throw .wrongLength(expected: 1, actual: 0) }
    guard costs.isAcceptable else { throw .costsOutOfRange }
    memory = try KeyMemory()
    let status = unsafe memory.write { key in
      passphrase.withBytes { passphrase in
        unsafe passphrase.withUnsafeBytes { passphrase in
          guard let text = unsafe passphrase.assumingMemoryBound(to: CChar.self).baseAddress else { return Int32(-1) }
          return unsafe crypto_pwhash(
            key, UInt64(Self.byteCount), text, UInt64(passphrase.count), salt, costs.operations,
            Int(costs.memory), crypto_pwhash_ALG_ARGON2ID13)
        }
      }
    }
    guard status == 0 else { throw .outOfMemory }
  }

  private init(_ memory: KeyMemory) { self.memory = memory }

  /// The bytes of the key, for a slot or a keyring.
  package func reveal() -> Secret {
    unsafe memory.read { key in
      Secret(capacity: Self.byteCount) { output in for index in 0..<Self.byteCount { unsafe output.append(key[index]) }
      }
    }
  }

  /// Derives a key for one purpose (libsodium's `crypto_kdf`). The context has at most 8 bytes.
  package func subkey(context: String, id: UInt64) throws(CryptographyError) -> SealingKey {
    let length = Int(crypto_kdf_CONTEXTBYTES)
    var name = context.utf8.map { CChar(bitPattern: $0) }
    guard name.count <= length else { throw .wrongLength(expected: length, actual: name.count) }
    name += Array(repeating: 0, count: length - name.count)
    let derived = try KeyMemory()
    unsafe derived.write { derived in
      unsafe memory.read { key in _ = unsafe crypto_kdf_derive_from_key(derived, Self.byteCount, id, name, key) }
    }
    return SealingKey(derived)
  }

  /// Seals with XChaCha20-Poly1305-IETF. A key must never see a nonce twice; random nonces do not repeat.
  package func seal(_ plaintext: Secret, associatedData: [UInt8], nonce: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try Self.check(nonce)
    return unsafe memory.read { key in
      plaintext.withBytes { plaintext in
        unsafe plaintext.withUnsafeBufferPointer { plaintext in
          var sealed = [UInt8](repeating: 0, count: plaintext.count + Self.tagByteCount)
          unsafe crypto_aead_xchacha20poly1305_ietf_encrypt(
            &sealed, nil, plaintext.baseAddress, UInt64(plaintext.count),
            associatedData, UInt64(associatedData.count), nil, nonce, key)
          return sealed
        }
      }
    }
  }

  package func open(_ sealed: [UInt8], associatedData: [UInt8], nonce: [UInt8]) throws(CryptographyError) -> Secret {
    try Self.check(nonce)
    guard sealed.count >= Self.tagByteCount else { throw .notAuthentic }
    var status: Int32 = -1
    let capacity = sealed.count - Self.tagByteCount
    let plaintext = unsafe Secret(unsafeCapacity: capacity) { plaintext in
      status = unsafe memory.read { key in
        unsafe crypto_aead_xchacha20poly1305_ietf_decrypt(
          plaintext.baseAddress, nil, nil, sealed, UInt64(sealed.count),
          associatedData, UInt64(associatedData.count), nonce, key)
      }
      return status == 0 ? capacity : 0
    }
    guard status == 0 else { throw .notAuthentic }
    return plaintext
  }

  /// The keyed BLAKE2b hash of the message (RFC 7693), 32 bytes.
  package func keyedHash(_ message: [UInt8]) -> [UInt8] {
    unsafe memory.read { key in
      var hash = [UInt8](repeating: 0, count: Self.byteCount)
      unsafe crypto_generichash(&hash, Self.byteCount, message, UInt64(message.count), key, Self.byteCount)
      return hash
    }
  }

  private static func check(_ nonce: [UInt8]) throws(CryptographyError) {
    guard nonce.count == nonceByteCount else { throw .wrongLength(expected: nonceByteCount, actual: nonce.count) }
  }
}

@safe private final class KeyMemory: Sendable {
  private let key: Mutex<UnsafeMutablePointer<UInt8>>

  init() throws(CryptographyError) {
    let address = try KeyPages.shared.withLock { pages throws(CryptographyError) in try pages.take() }
    guard let memory = unsafe UnsafeMutablePointer<UInt8>(bitPattern: address) else { throw .outOfMemory }
    unsafe key = unsafe Mutex(memory)
  }

  deinit {
    let address = unsafe key.withLock { UInt(bitPattern: $0) }
    KeyPages.shared.withLock { pages in pages.giveBack(address) }
  }

  @discardableResult func write<Result: Sendable>(_ body: (UnsafeMutablePointer<UInt8>) -> Result) -> Result {
    unsafe key.withLock { unsafe body($0) }
  }

  func read<Result: Sendable>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    unsafe key.withLock { unsafe body(UnsafePointer($0)) }
  }
}

/// Pages of locked memory that several keys share. A page for each key would cost thirteen system calls per key; a
/// `token` call needs five keys, which took a tenth of its time.
@safe private struct KeyPages {
  static let shared = Mutex(KeyPages())
  /// sodium_malloc(3) uses the first sixteen bytes of the page itself.
  private static let keysPerPage = (4096 - 16) / SealingKey.byteCount

  private var fresh: UnsafeMutableRawPointer?  // The unused rest of the newest page.
  private var freshCount = 0
  /// The freed places as a list: each one contains the address of the next.
  private var returned: UnsafeMutableRawPointer?

  mutating func take() throws(CryptographyError) -> UInt {
    if let place = unsafe returned {
      unsafe returned = place.load(as: UnsafeMutableRawPointer?.self)
      return UInt(bitPattern: place)
    }
    if freshCount == 0 {
      // sodium_malloc(3) requires sodium_init(3), which is idempotent and safe from several threads.
      guard sodium_init() >= 0, let page = unsafe sodium_malloc(Self.keysPerPage * SealingKey.byteCount)
      else { throw .outOfMemory }
      unsafe fresh = page
      freshCount = Self.keysPerPage
    }
    guard let place = unsafe fresh else { throw .outOfMemory }
    unsafe fresh = place + SealingKey.byteCount
    freshCount -= 1
    return UInt(bitPattern: place)
  }

  mutating func giveBack(_ address: UInt) {
    guard let place = unsafe UnsafeMutableRawPointer(bitPattern: address) else { return }
    unsafe sodium_memzero(place, SealingKey.byteCount)
    unsafe place.storeBytes(of: returned, as: UnsafeMutableRawPointer?.self)
    unsafe returned = place
  }
}

/// The costs of one guess at a passphrase: the parameters of Argon2id (RFC 9106, section 3.1).
package struct PassphraseCosts: Sendable, Equatable {
  package static let saltByteCount = 16

  package let operations: UInt64  // Passes over the memory.
  package let memory: UInt64  // Bytes.

  package init(operations: UInt64, memory: UInt64) {
    self.operations = operations
    self.memory = memory
  }

  /// Costs of about one second on a slow machine.
  package static let moderate = PassphraseCosts(
    operations: UInt64(crypto_pwhash_OPSLIMIT_MODERATE), memory: UInt64(crypto_pwhash_MEMLIMIT_MODERATE))

  /// Whether the costs are neither too high for the machine nor as low as those of a test. They come from a file that
  /// an attacker may have changed.
  var isAcceptable: Bool { (1...64).contains(operations) && (8192...(4 << 30)).contains(memory) }
}

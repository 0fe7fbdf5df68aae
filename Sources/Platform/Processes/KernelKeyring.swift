import CredmgrCPOSIX
import Glibc
import CredmgrText

/// Keys in the kernel's memory, in the keyring of the user (keyrings(7)). They outlive the process and the session,
/// never reach the disk, and disappear after their time or at shutdown.
///
/// In containers that forbid it every call throws `system` with EPERM or ENOSYS.
package enum KernelKeyring {
  /// Stores bytes until `time` (at least a second) has passed.
  ///
  /// The key gets its time and its rights in the keyring of this process, and only then a place in the user's keyring.
  /// So no key without a time can remain there, whatever fails and wherever the process dies.
  package static func store(_ name: String, _ bytes: [UInt8], for time: Duration) throws(POSIXError) {
    let key = unsafe bytes.withUnsafeBytes { unsafe credmgr_key_add(name, $0.baseAddress, $0.count) }
    if key < 0 { throw failure("add_key") }
    defer { _ = credmgr_key_unlink(key, 0) }
    guard credmgr_key_set_timeout(key, UInt32(clamping: max(time.wholeSeconds, 1))) == 0,
      credmgr_key_set_permissions(key) == 0, credmgr_key_publish(key) == 0
    else { throw failure("keyctl") }
  }

  package static func read(_ name: String) throws(POSIXError) -> [UInt8]? {
    guard let key = try find(name) else { return nil }
    var count = 0
    // A payload of type "user" has at most 32767 bytes.
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 32767) { buffer, initialized in
      count = unsafe credmgr_key_read(key, buffer.baseAddress, buffer.count)
      initialized = max(0, min(count, buffer.count))
    }
    return try found(count) == nil ? nil : bytes
  }

  /// Removes a key; returns `false` if it does not exist.
  @discardableResult package static func remove(_ name: String) throws(POSIXError) -> Bool {
    let key: Int32?
    do throws(POSIXError) { key = try find(name) } catch .system(_, _, EPERM), .system(_, _, ENOSYS) {
      return false  // The kernel stores no keys here.
    }
    guard let key else { return false }
    // A key may lack the right for this, and is then only unlinked.
    if credmgr_key_invalidate(key) == 0 { return true }
    return try found(credmgr_key_unlink(key, 1)) != nil
  }

  /// Stores a key, reads it and removes it; throws what the kernel refuses.
  package static func check() throws(POSIXError) {
    let name = "credmgr:check"
    try store(name, [0], for: .seconds(1))
    _ = try read(name)
    try remove(name)
  }

  private static func find(_ name: String) throws(POSIXError) -> Int32? { try found(unsafe credmgr_key_find(name)) }

  /// The answer of a call, or `nil` if the key no longer exists.
  private static func found<Answer: SignedInteger>(_ answer: Answer) throws(POSIXError) -> Answer? {
    if answer >= 0 { return answer }
    if [ENOKEY, EKEYEXPIRED, EKEYREVOKED].contains(errno) { return nil }
    throw failure("keyctl")
  }

  private static func failure(_ call: String) -> POSIXError { .system(call: call, path: nil, code: errno) }
}

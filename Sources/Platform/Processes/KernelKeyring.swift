import CredmgrCPOSIX
import Glibc
import CredmgrText

/// Keys in the kernel's memory, in the keyring of the user (keyrings(7)). They outlive the process and the session,
/// never reach the disk, and disappear after their time or at shutdown.
///
/// In containers that forbid it every call throws `system` with EPERM or ENOSYS.
package enum KernelKeyring {
  /// Stores bytes until `time` (at least a second) has passed.
  package static func store(_ name: String, _ bytes: [UInt8], for time: Duration) throws(POSIXError) {
    let key = unsafe bytes.withUnsafeBytes { unsafe credmgr_key_add(name, $0.baseAddress, $0.count) }
    if key < 0 { throw failure("add_key") }
    if credmgr_key_set_timeout(key, UInt32(clamping: max(time.wholeSeconds, 1))) != 0
      || credmgr_key_set_permissions(key) != 0
    {
      let error = failure("keyctl")
      _ = credmgr_key_invalidate(key)
      throw error
    }
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
    guard let key = try find(name) else { return false }
    if credmgr_key_invalidate(key) != 0 { throw failure("keyctl") }
    return true
  }

  /// Whether the kernel allows us to search for keys.
  package static var isThere: Bool {
    do throws(POSIXError) { _ = try find("credmgr:none") } catch { return false }
    return true
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

import Cryptography
import Platform
import Store

/// The keys of a vault as `vault unlock` leaves them in the memory of the kernel, until their time has come.
///
/// They are under the name of the vault key, which everybody can read in the vault's file: after a rotation nobody
/// finds the old ones.
struct KeptKeys {
  /// Seconds since 1970.
  let deadline: Int64
  let keys: Secret

  private static func name(_ vault: String) -> String { "credmgr:" + vault }

  private static let deadlineCount = 8

  init?(_ vault: String) {
    guard let bytes = try? KernelKeyring.read(Self.name(vault)), bytes.count > Self.deadlineCount else { return nil }
    deadline = bytes.prefix(Self.deadlineCount).reduce(0) { $0 << 8 | Int64($1) }
    keys = Secret(bytes: Array(bytes.dropFirst(Self.deadlineCount)))
  }

  static func keep(_ keys: Secret, of vault: String, seconds: Int64, now: Int64) throws(StoreError) {
    let deadline = now + seconds
    let bytes = (0..<deadlineCount).map { UInt8(truncatingIfNeeded: deadline >> (56 - 8 * $0)) }
    do throws(POSIXError) {
      try KernelKeyring.store(name(vault), bytes + keys.revealBytes(), seconds: UInt32(clamping: seconds))
    } catch {
      throw .kernelKeyring(error)
    }
  }

  /// Whether there was anything.
  static func forget(_ vault: String) throws(StoreError) -> Bool {
    do throws(POSIXError) {
      return try KernelKeyring.remove(name(vault))
    } catch {
      throw .kernelKeyring(error)
    }
  }
}

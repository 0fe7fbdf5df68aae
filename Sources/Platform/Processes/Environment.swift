import CredmgrCPOSIX
import Glibc
import Synchronization

package enum Environment {
  /// The value of a variable, or `nil` if it is unset or empty.
  package static func text(_ name: String, _ environment: (String) -> String? = value) -> String? {
    guard let text = environment(name), !text.isEmpty else { return nil }
    return text
  }

  package static func value(_ name: String) -> String? {
    guard let text = unsafe getenv(name) else { return nil }
    return unsafe String(cString: text)
  }

  /// Sets a variable for this process and its children. No other thread may run.
  package static func set(_ name: String, _ value: String) { _ = unsafe setenv(name, value, 1) }

  /// Removes a variable. No other thread may run.
  package static func remove(_ name: String) { _ = unsafe unsetenv(name) }

  private static let withheld = Mutex<[[UInt8]]>([])

  /// Hides a variable from this process, whose libraries would act on it, but passes it to child processes. No other
  /// thread may run.
  package static func withhold(_ name: String) {
    guard let value = value(name) else { return }
    remove(name)
    withheld.withLock { $0.append(Array("\(name)=\(value)".utf8)) }
  }

  /// All variables as bytes in the form `NAME=value`, in their order.
  package static func entries() -> [[UInt8]] {
    (unsafe credmgr_environment().map { unsafe texts($0) } ?? []) + withheld.withLock { $0 }
  }

  /// The texts of a null-terminated list.
  @unsafe private static func texts(_ list: UnsafePointer<UnsafeMutablePointer<CChar>?>) -> [[UInt8]] {
    var (texts, next) = unsafe ([[UInt8]](), list)
    while let text = unsafe next.pointee {
      unsafe texts.append(Array(UnsafeRawBufferPointer(start: text, count: strlen(text))))
      unsafe next += 1
    }
    return texts
  }

  private static let kept = Mutex<[[UInt8]]>([])

  @unsafe package static func keep(_ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) {
    let texts = unsafe texts(UnsafePointer(arguments))
    kept.withLock { $0 = texts }
  }

  /// The arguments of the process as bytes, beginning with its name. Without ``keep(_:)``, they come from the kernel,
  /// because Swift expects them just before the environment, which a library may have moved.
  package static func arguments() throws(POSIXError) -> [[UInt8]] {
    let kept = kept.withLock { $0 }
    if !kept.isEmpty { return kept }
    let bytes = try File.read("/proc/self/cmdline", limit: 8 << 20)
    return bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast().map(Array.init)
  }

  package static func all() -> [String: String] {
    var result: [String: String] = [:]
    for entry in entries() {
      guard let sign = entry.firstIndex(of: UInt8(ascii: "=")) else { continue }
      result[String(decoding: entry[..<sign], as: UTF8.self)] = String(decoding: entry[(sign + 1)...], as: UTF8.self)
    }
    return result
  }
}

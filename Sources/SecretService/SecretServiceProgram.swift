import CPOSIX
import CSecret

/// The program that speaks to the Secret Service for `credmgr`, which is static and loads nothing.
///
///     credmgr-secret-service lookup|store|remove NAME
///
/// The key goes in and out as a line of hexadecimal digits on the standard streams.
///
/// It is Embedded Swift, which has no library of its own: the program has 60 kB instead of 5.8 MB. So texts are bytes here, and
/// what other programs take from `POSIX` is done with the C library.
public enum SecretServiceProgram {
  /// Runs one of the three.
  ///
  /// - Returns: 0, or the number of a `SecretStoreError`.
  public static func run() -> Int32 {
    // No core dumps, and nobody attaches.
    _ = credmgr_set_undumpable()
    _ = credmgr_set_core_limit(0)
    do throws(SecretStoreError) {
      let arguments = try arguments()
      guard arguments.count == 3 else { throw .usage }
      try run(arguments[1], arguments[2])
      return 0
    } catch {
      return error.rawValue
    }
  }

  private static func run(_ operation: [UInt8], _ name: [UInt8]) throws(SecretStoreError) {
    guard let bus = sessionBus() else { throw .noBus }
    _ = unsafe setenv(busVariable, text(bus), 1)
    if operation.elementsEqual("lookup".utf8) {
      guard write(try SecretStore().secret(name) + [lineFeed]) else { throw .failed }
    } else if operation.elementsEqual("store".utf8) {
      let line = try readLine()
      guard line.count % 2 == 0, line.allSatisfy(isHexadecimal) else { throw .usage }
      try SecretStore().store(line, as: name, label: "credmgr vault")
    } else if operation.elementsEqual("remove".utf8) {
      try SecretStore().remove(name)
    } else {
      throw .usage
    }
  }

  private static let busVariable = "DBUS_SESSION_BUS_ADDRESS"
  private static let lineFeed = UInt8(ascii: "\n")
  /// The longest line, and the longest arguments.
  private static let limit = 64 * 1024

  /// Where the D-Bus of the session listens (as `SessionBus` in `POSIX`): without an address libsecret would start a bus.
  private static func sessionBus() -> [UInt8]? {
    if let address = variable(busVariable), !address.isEmpty {
      return address.starts(with: "autolaunch:".utf8) ? nil : address
    }
    guard let folder = variable("XDG_RUNTIME_DIR"), folder.first == UInt8(ascii: "/") else { return nil }
    let path = folder + Array("/bus".utf8)
    return unsafe access(text(path), F_OK) == 0 ? Array("unix:path=".utf8) + path : nil
  }

  private static func variable(_ name: String) -> [UInt8]? {
    guard let value = unsafe getenv(name) else { return nil }
    return unsafe UnsafeBufferPointer(start: value, count: strlen(value)).map { UInt8(bitPattern: $0) }
  }

  /// proc(5): each with a zero behind it. Embedded Swift has no `CommandLine`.
  private static func arguments() throws(SecretStoreError) -> [[UInt8]] {
    let file = unsafe credmgr_open("/proc/self/cmdline", O_RDONLY, 0)
    guard file >= 0 else { throw .failed }
    defer { _ = close(file) }
    var arguments: [[UInt8]] = []
    var argument: [UInt8] = []
    var count = 0
    while let byte = try readByte(file) {
      count += 1
      guard count <= limit else { throw .usage }
      if byte == 0 {
        arguments.append(argument)
        argument = []
      } else {
        argument.append(byte)
      }
    }
    return arguments
  }

  /// A line of standard input, without its end.
  private static func readLine() throws(SecretStoreError) -> [UInt8] {
    var line: [UInt8] = []
    while let byte = try readByte(STDIN_FILENO), byte != lineFeed {
      guard line.count < limit else { throw .usage }
      line.append(byte)
    }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    guard !line.isEmpty else { throw .usage }
    return line
  }

  /// - Returns: `nil` at the end.
  private static func readByte(_ descriptor: Int32) throws(SecretStoreError) -> UInt8? {
    var byte: UInt8 = 0
    while true {
      switch unsafe read(descriptor, &byte, 1) {
      case 1: return byte
      case 0: return nil
      default: guard credmgr_is_interrupted_call() != 0 else { throw .usage }
      }
    }
  }

  /// Writes all bytes to standard output; `false` if nobody reads them.
  private static func write(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe CPOSIX.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else if credmgr_is_interrupted_call() == 0 { return false }
    }
    return true
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
    case UInt8(ascii: "A")...UInt8(ascii: "F"): true
    default: false
    }
  }

  /// As C has it, with a zero at the end.
  static func text(_ bytes: [UInt8]) -> [CChar] { bytes.map { CChar(bitPattern: $0) } + [0] }
}

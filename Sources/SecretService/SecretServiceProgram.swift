import Cryptography
import POSIX

/// The program that speaks to the Secret Service for `credmgr`, which is static and loads nothing.
///
///     credmgr-secret-service lookup|store|remove NAME
///
/// The key goes in and out as a line of hexadecimal digits on the standard streams.
public enum SecretServiceProgram {
  /// Runs one of the three.
  ///
  /// - Parameter arguments: with the program's name first.
  /// - Returns: 0, or the number of a `SecretStoreError`.
  public static func run(_ arguments: [String]) -> Int32 {
    ProcessProtection.apply()
    guard arguments.count == 3 else { return SecretStoreError.usage.rawValue }
    do throws(SecretStoreError) {
      try run(arguments[1], arguments[2])
      return 0
    } catch {
      return error.rawValue
    }
  }

  private static func run(_ operation: String, _ name: String) throws(SecretStoreError) {
    guard let bus = SessionBus.address(environment: Environment.value) else { throw .noBus }
    Environment.set("DBUS_SESSION_BUS_ADDRESS", bus)
    switch operation {
    case "lookup":
      let secret = try SecretStore().secret(name)
      do { try Terminal.writeAll(1, secret + [UInt8(ascii: "\n")]) } catch { throw .failed }
    case "store":
      let line: String?
      do { line = try Terminal.readLine(0) } catch { throw .usage }
      guard let line, Hexadecimal.decode(line) != nil else { throw .usage }
      try SecretStore().store(Array(line.utf8), as: name, label: "credmgr vault")
    case "remove":
      try SecretStore().remove(name)
    default:
      throw .usage
    }
  }
}

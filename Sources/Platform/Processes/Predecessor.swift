import CredmgrCPOSIX
import Glibc
import CredmgrText

extension Launcher {
  private static let variable = "CREDMGR_PREDECESSOR"

  /// Passes bytes to the program that replaces this one, in an inherited file in memory. Only the number of the
  /// descriptor is in the environment.
  package static func leave(_ bytes: [UInt8]) throws(POSIXError) {
    let memory = try Descriptor.inMemory(bytes)
    // execve(2) does not close the copy.
    let copy = dup(memory.number)
    if copy < 0 { throw Descriptor.failure("dup", nil) }
    Environment.set(variable, String(copy))
  }

  /// Makes standard input begin with these bytes again, for a program that replaces this one after it has read them.
  package static func replaceStandardInput(with bytes: [UInt8]) throws(POSIXError) {
    let memory = try Descriptor.inMemory(bytes)
    if dup2(memory.number, 0) < 0 { throw Descriptor.failure("dup2", nil) }
  }

  /// Takes the bytes from the previous program, so that child processes do not find them.
  package static func receiveFromPredecessor() -> [UInt8]? {
    guard let text = Environment.value(variable) else { return nil }
    Environment.remove(variable)
    guard let number = Int32(text), number > STDERR_FILENO, fcntl(number, F_GETFD) >= 0 else { return nil }
    let memory = Descriptor(owning: number)
    lseek(number, 0, SEEK_SET)
    return try? memory.readAll("", limit: 4096)
  }
}

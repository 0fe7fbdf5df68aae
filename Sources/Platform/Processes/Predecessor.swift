import CPOSIX
import Glibc
import Text

extension Launcher {
  private static let variable = "CREDMGR_PREDECESSOR"

  /// Leaves bytes to the program that is about to take this one's place: in a file in memory that it inherits. Of the
  /// environment only the number of the descriptor is in it.
  package static func leave(_ bytes: [UInt8]) throws(POSIXError) {
    let memory = try Descriptor.inMemory(bytes)
    // The copy is not closed on execve(2).
    let copy = dup(memory.number)
    if copy < 0 { throw Descriptor.failure("dup", nil) }
    Environment.set(variable, String(copy))
  }

  /// Makes standard input begin anew with these bytes, for a program that takes this one's place after it read them.
  package static func replaceStandardInput(with bytes: [UInt8]) throws(POSIXError) {
    let memory = try Descriptor.inMemory(bytes)
    if dup2(memory.number, 0) < 0 { throw Descriptor.failure("dup2", nil) }
  }

  /// Takes the bytes that were left, so that programs which are started from now on do not find them.
  package static func receiveFromPredecessor() -> [UInt8]? {
    guard let text = Environment.value(variable) else { return nil }
    Environment.remove(variable)
    guard let number = Int32(text), number > STDERR_FILENO, fcntl(number, F_GETFD) >= 0 else { return nil }
    let memory = Descriptor(owning: number)
    lseek(number, 0, SEEK_SET)
    return try? memory.readAll("", limit: 4096)
  }
}

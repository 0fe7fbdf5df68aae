import CPOSIX
import Glibc

extension Launcher {
  /// Makes standard input begin anew with these bytes, for a program that takes this one's place after it read them.
  package static func replaceStandardInput(with bytes: [UInt8]) throws(POSIXError) {
    let memory = try Descriptor.inMemory(bytes)
    if dup2(memory.number, 0) < 0 { throw Descriptor.failure("dup2", nil) }
  }
}

import Glibc
import Testing

@testable import CredmgrPlatform

@Suite("Parent process") struct ParentProcessTests {
  private static func hasLost(_ read: @escaping (String) throws(POSIXError) -> [UInt8]) -> Bool {
    ParentProcess.hasLost(4711, parent: 42, read: read)
  }

  @Test("a process has its parent until the system says otherwise") func parents() {
    #expect(!Self.hasLost { _ in Array("4711 (git (x)) S 42 1 1".utf8) })
    #expect(Self.hasLost { _ in Array("4711 (git (x)) S 1 1 1".utf8) })
    #expect(Self.hasLost { path throws(POSIXError) in throw .notFound(path: path) })
    #expect(Self.hasLost { path throws(POSIXError) in throw .system(call: "read", path: path, code: ESRCH) })
    // A busy system is not the end of the process.
    #expect(!Self.hasLost { path throws(POSIXError) in throw .system(call: "open", path: path, code: ENFILE) })
    #expect(!Self.hasLost { path throws(POSIXError) in throw .permissionDenied(path: path) })
    #expect(!Self.hasLost { _ in [] })
    #expect(!ParentProcess.hasLost(getpid(), parent: getppid()))
  }
}

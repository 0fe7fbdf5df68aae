import Glibc
import Testing

@testable import CredmgrPlatform

struct PreparedFileTests {
  @Test func reservesSpaceBeforeTheContent() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/answer"
    let file = try PreparedFile.make(path, size: 10_000)
    #expect(try PreparedFile.read(path, limit: 20_000) == nil)
    var status = stat()
    #expect(unsafe stat(path, &status) == 0)
    #expect(status.st_size == 10_000)
    #expect(status.st_blocks * 512 >= 10_000)
    #expect(status.st_mode & 0o7777 == 0o600)
    try file.fill(Array("content".utf8), isForced: true)
    #expect(try PreparedFile.read(path, limit: 20_000) == Array("content".utf8))
    try file.fill(Array("other".utf8), isForced: false)
    #expect(try PreparedFile.read(path, limit: 20_000) == Array("other".utf8))
    // A new file does not contain the old content.
    _ = try PreparedFile.make(path, size: 100)
    #expect(try PreparedFile.read(path, limit: 20_000) == nil)
  }

  @Test func contentBeyondTheReservedSpace() throws {
    let folder = try TemporaryFolder()
    let file = try PreparedFile.make(folder.path + "/answer", size: 10)
    let content = [UInt8](repeating: 7, count: 5000)
    try file.fill(content, isForced: false)
    #expect(try PreparedFile.read(folder.path + "/answer", limit: 20_000) == content)
  }

  @Test func missingOrOtherFiles() throws {
    let folder = try TemporaryFolder()
    #expect(try PreparedFile.read(folder.path + "/none", limit: 100) == nil)
    for bytes in [[], [0, 0, 0, 0, 0, 0, 0], [255, 0, 0, 0, 0, 0, 0, 1, 9], [0, 0, 0, 0, 255, 255, 255, 255, 9]]
      as [[UInt8]]
    {
      try PrivateFile.replace(folder.path + "/other", bytes)
      #expect(try PreparedFile.read(folder.path + "/other", limit: 100) == nil)
    }
  }

  @Test func fullDisk() throws {
    #expect(POSIXError.system(call: "posix_fallocate", path: nil, code: ENOSPC).isDiskFull)
    #expect(POSIXError.system(call: "posix_fallocate", path: nil, code: EFBIG).isDiskFull)
    #expect(!POSIXError.system(call: "posix_fallocate", path: nil, code: EIO).isDiskFull)
    #expect(!POSIXError.notFound(path: "").isDiskFull)
    let folder = try TemporaryFolder()
    do {
      _ = try PreparedFile.make(folder.path + "/answer", size: Int.max)
      Issue.record("the disk does not exist")
    } catch {
      #expect(error.isDiskFull)
      #expect(!File.exists(folder.path + "/answer"))
    }
  }
}

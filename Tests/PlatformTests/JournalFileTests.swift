import Glibc
import Testing

@testable import Platform

struct JournalFileTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder("journal")
  }

  private func append(_ text: String) throws { try JournalFile.append(path, Array(text.utf8), limit: 1000) }

  @Test func takesWhatWasAppended() throws {
    #expect(try JournalFile.take(path)?.bytes == nil)
    try append("a")
    try append("b")
    #expect(try JournalFile.take(path)?.bytes == Array("ab".utf8))
    try append("c")
    #expect(try JournalFile.read(path) == Array("abc".utf8))
    // What nobody has removed is there again.
    let taken = try #require(try JournalFile.take(path))
    #expect(taken.bytes == Array("ab".utf8))
    taken.remove()
    #expect(try JournalFile.take(path)?.bytes == Array("c".utf8))
  }

  /// What is not written is not said to be: each look finds the file full, as if others had filled it meanwhile.
  @Test func failsRatherThanForgets() throws {
    #expect(throws: POSIXError.timedOut) { try JournalFile.append(path, [1], limit: 0) }
  }

  /// How often the file is open in this process.
  private func openCount(_ name: String) throws -> Int {
    try File.names(in: "/proc/self/fd").count { number in
      var bytes = [CChar](repeating: 0, count: 4096)
      guard unsafe readlink("/proc/self/fd/" + number, &bytes, bytes.count - 1) > 0 else { return false }
      return bytes.prefix { $0 != 0 }.elementsEqual(name.utf8CString.dropLast())
    }
  }

  /// Who waits for one that is about to remove what it took gets what was appended meanwhile, and not the same once more.
  @Test func takesNothingTwice() async throws {
    try append("first")
    var first = try JournalFile.take(path)
    try append("second")
    let path = path
    async let second = JournalFile.take(path)?.bytes
    while try openCount(path + ".taken") < 2 { await Task.yield() }
    first?.remove()
    first = nil
    #expect(try await second == Array("second".utf8))
  }

  /// The name may stand for what the next one has taken.
  @Test func removesOnlyItsOwn() throws {
    try append("first")
    let first = try #require(try JournalFile.take(path))
    try #require(unsafe unlink(path + ".taken") == 0)
    try append("second")
    try #require(unsafe rename(path, path + ".taken") == 0)
    first.remove()
    #expect(try JournalFile.read(path) == Array("second".utf8))
  }
}

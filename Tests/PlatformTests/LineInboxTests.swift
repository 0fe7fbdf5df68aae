import Testing

@testable import Platform

@Suite struct LineInboxTests {
  @Test func linesAreHandedOverInTheirOrder() throws {
    let folder = try TemporaryFolder()
    let path = folder("inbox")
    do {
      var inbox = try LineInbox(path)
      #expect(LineInbox.isAwaited(path))
      #expect(LineInbox.hand("one", to: path))
      #expect(LineInbox.hand("two", to: path))
      #expect(try inbox.line(seconds: 5, alsoReading: nil) { false } == .handed("one"))
      #expect(try inbox.line(seconds: 5, alsoReading: nil) { false } == .handed("two"))
      #expect(throws: POSIXError.timedOut) { try inbox.line(seconds: 0, alsoReading: nil) { false } }
      #expect(throws: POSIXError.interrupted) { try inbox.line(seconds: 5, alsoReading: nil) { true } }
      #expect(throws: POSIXError.exists(path: path)) { _ = try LineInbox(path) }
    }
    #expect(!File.exists(path))
    #expect(!LineInbox.hand("late", to: path))
    _ = folder
  }

  @Test func nothingIsWrittenIntoAFile() throws {
    let folder = try TemporaryFolder()
    let path = folder("inbox")
    try File.replace(path, [])
    #expect(!LineInbox.hand("one", to: path))
    #expect(try File.read(path, limit: 10) == [])
  }

  @Test func whatIsTooLongIsNotHandedOver() throws {
    let folder = try TemporaryFolder()
    let path = folder("inbox")
    let inbox = try LineInbox(path)
    #expect(!LineInbox.hand(String(repeating: "x", count: LineInbox.limit), to: path))
    #expect(LineInbox.isAwaited(inbox.path))
  }
}

import Platform
import Testing

struct ByteSearchTests {
  @Test func position() {
    let bytes = Array("abcabc".utf8)
    #expect(bytes.position(of: Array("bc".utf8)) == 1)
    #expect(bytes.position(of: Array("bc".utf8), from: 1) == 1)
    #expect(bytes.position(of: Array("bc".utf8), from: 2) == 4)
    #expect(bytes.position(of: Array("bc".utf8), from: 5) == nil)
    #expect(bytes.position(of: Array("bc".utf8), from: 6) == nil)
    #expect(bytes.position(of: Array("bc".utf8), from: 7) == nil)
    #expect(bytes.position(of: Array("bd".utf8)) == nil)
    #expect([UInt8]().position(of: [1]) == nil)
  }
}

struct FileStampTests {
  @Test func itIsAnotherOneForAnotherFile() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/file"
    let nothing = FileStamp(path)
    #expect(nothing.text == "-")
    try File.replace(path, [1])
    let first = FileStamp(path)
    #expect(first == FileStamp(path: Array(path.utf8)[...]))
    #expect(first != nothing)
    try File.replace(path, [1])
    #expect(FileStamp(path) != first)
    for stamp in [nothing, first] { #expect(FileStamp(parsing: Array(stamp.text.utf8)[...]) == stamp) }
  }

  @Test(arguments: ["", "1", "--", "1:2:3:4:5:6", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:X", "-1:2:3:4:5:6:7"])
  func whatIsNone(_ text: String) {
    #expect(FileStamp(parsing: Array(text.utf8)[...]) == nil)
  }
}

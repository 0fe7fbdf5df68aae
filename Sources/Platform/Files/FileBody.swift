import Glibc

/// A file or standard input that is read in pieces, and more than once.
package final class FileBody {
  private let file: Descriptor
  private let path: String
  private let start: Int64
  private var offset: Int64
  package let length: Int64

  /// Opens a file, or copies an input that can be read only once, such as a pipe, to an unnamed temporary file.
  package convenience init(_ path: String) throws(POSIXError) {
    try self.init(Descriptor(opening: path, O_RDONLY), path)
  }

  /// Uses standard input from its current position.
  package convenience init(standardInput _: Void) throws(POSIXError) { try self.init(Descriptor.standardInput(), "-") }

  private init(_ file: consuming Descriptor, _ path: String) throws(POSIXError) {
    self.path = path
    let status = try file.status(path)
    if status.isDirectory { throw .notRegularFile(path: path) }
    if status.isRegularFile {
      // Another program may already have read a part of standard input.
      start = Int64(max(lseek(file.number, 0, SEEK_CUR), 0))
      length = max(Int64(status.size) - start, 0)
      offset = start
      self.file = file
    } else {
      let copy = try Self.unnamedFile()
      var count: Int64 = 0
      while true {
        if Signals.isInterrupted { throw .interrupted }
        let piece = try file.readSome(path, atMost: 1 << 16)
        if piece.isEmpty { break }
        try copy.writeAll(piece, nil)
        count += Int64(piece.count)
      }
      start = 0
      offset = 0
      length = count
      self.file = copy
    }
  }

  /// Creates a file that no other process can open, in `TMPDIR` or in `/var/tmp`, because `/tmp` may be memory.
  private static func unnamedFile() throws(POSIXError) -> Descriptor {
    let folder = Environment.text("TMPDIR") ?? "/var/tmp"
    // Linux's O_TMPFILE (__O_TMPFILE | O_DIRECTORY), which the C library's headers hide from Swift.
    return try Descriptor(opening: folder, 0o20000000 | O_DIRECTORY | O_RDWR, mode: 0o600)
  }

  package func read(atMost count: Int) throws(POSIXError) -> [UInt8] {
    let piece = try file.readSome(path, atMost: count, at: Int(offset))
    offset += Int64(piece.count)
    return piece
  }

  package func rewind() { offset = start }
}

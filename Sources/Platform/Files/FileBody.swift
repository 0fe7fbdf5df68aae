import Glibc

/// A file, or standard input, that is read in pieces, and more than once.
package final class FileBody {
  private let file: Descriptor
  private let path: String
  private let start: Int64
  private var offset: Int64
  package let length: Int64

  /// Something that cannot be read twice, such as a pipe, is copied to a file without a name first.
  package convenience init(_ path: String) throws(POSIXError) {
    try self.init(Descriptor(opening: path, O_RDONLY), path)
  }

  /// Standard input, from its present position.
  package convenience init(standardInput _: Void) throws(POSIXError) { try self.init(Descriptor.standardInput(), "-") }

  private init(_ file: consuming Descriptor, _ path: String) throws(POSIXError) {
    self.path = path
    let status = try file.status(path)
    if status.isDirectory { throw .notRegularFile(path: path) }
    if status.isRegularFile {
      // Standard input may have been read in part by whoever had it before.
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

  /// In `TMPDIR`, else below `/var/tmp`, which is on a disk where `/tmp` is memory. Nobody else can open it.
  private static func unnamedFile() throws(POSIXError) -> Descriptor {
    let folder = Environment.text("TMPDIR") ?? "/var/tmp"
    // O_TMPFILE of Linux, which the C library's headers hide from Swift: __O_TMPFILE | O_DIRECTORY.
    return try Descriptor(opening: folder, 0o20000000 | O_DIRECTORY | O_RDWR, mode: 0o600)
  }

  package func read(atMost count: Int) throws(POSIXError) -> [UInt8] {
    let piece = try file.readSome(path, atMost: count, at: Int(offset))
    offset += Int64(piece.count)
    return piece
  }

  package func rewind() { offset = start }
}

import Glibc

/// A private file that reserves disk space before its content is known, so that one call, which hardly ever fails, can
/// write the content.
package struct PreparedFile: ~Copyable {
  private let file: Descriptor
  private let path: String

  /// Creates the file, replacing an existing one. It can hold more than `size` bytes if the disk then has space.
  package static func make(_ path: String, size: Int) throws(POSIXError) -> PreparedFile {
    let folder = Path.directory(of: path) ?? "."
    let file: Descriptor
    do throws(POSIXError) {
      try File.remove(path)
      file = try Descriptor(opening: path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    } catch {
      throw error.making(in: folder)
    }
    // posix_fallocate(3) returns the error number and does not set errno.
    let code = posix_fallocate(file.number, 0, size)
    if code != 0 {
      unsafe unlink(path)
      throw .system(call: "posix_fallocate", path: folder, code: code)
    }
    return PreparedFile(file: file, path: path)
  }

  /// Replaces the content; `isForced` waits until it would survive a power cut.
  package func fill(_ bytes: [UInt8], isForced: Bool) throws(POSIXError) {
    let length = (0..<8).map { UInt8(truncatingIfNeeded: bytes.count >> (56 - 8 * $0)) }
    lseek(file.number, 0, SEEK_SET)
    try file.writeAll(length + bytes, path)
    if isForced { try file.synchronize(path) }
  }

  /// The content, or `nil` if the file does not exist or was not filled.
  package static func read(_ path: String, limit: Int) throws(POSIXError) -> [UInt8]? {
    let bytes: [UInt8]
    do throws(POSIXError) {
      bytes = try PrivateFile.read(path, limit: limit)
    } catch .notFound {
      return nil
    }
    guard bytes.count > 8, bytes[0..<4].allSatisfy({ $0 == 0 }) else { return nil }
    let count = bytes[4..<8].reduce(0) { $0 << 8 | Int($1) }
    guard count > 0, count <= bytes.count - 8 else { return nil }
    return Array(bytes[8..<8 + count])
  }
}

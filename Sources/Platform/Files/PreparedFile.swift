import Glibc

/// A private file whose room on the disk is taken before its content is known, so that writing the content is one call
/// that hardly anything can hinder.
package struct PreparedFile: ~Copyable {
  private let file: Descriptor
  private let path: String

  /// In the place of an existing file. More than `size` bytes can be written, if there is room then.
  package static func make(_ path: String, size: Int) throws(POSIXError) -> PreparedFile {
    let folder = Path.directory(of: path) ?? "."
    let file: Descriptor
    do throws(POSIXError) {
      try File.remove(path)
      file = try Descriptor(opening: path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    } catch {
      throw error.making(in: folder)
    }
    // posix_fallocate(3): the answer is the error number, and errno is left alone.
    let code = posix_fallocate(file.number, 0, size)
    if code != 0 {
      unsafe unlink(path)
      throw .system(call: "posix_fallocate", path: folder, code: code)
    }
    return PreparedFile(file: file, path: path)
  }

  /// Writes the content, in the place of the earlier one. `isForced`: a power cut must not take it, either.
  package func fill(_ bytes: [UInt8], isForced: Bool) throws(POSIXError) {
    let length = (0..<8).map { UInt8(truncatingIfNeeded: bytes.count >> (56 - 8 * $0)) }
    lseek(file.number, 0, SEEK_SET)
    try file.writeAll(length + bytes, path)
    if isForced { try file.synchronize(path) }
  }

  /// The content; `nil` if there is no file, or it was not filled.
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

import Glibc

/// A private file to which many processes append without waiting for each other, and from which one takes all that is
/// there.
///
/// What is appended is not forced to the disk: a power cut can take the last of it.
public enum JournalFile {
  /// Appends bytes in one piece.
  ///
  /// When the file has `limit` bytes it becomes the older one, whose name ends in `.1`, and what the older one held is
  /// gone: there are never more than about two times `limit` bytes.
  ///
  /// - Throws: `otherOwner`, `symbolicLink`, `notRegularFile`, `readableByOthers`, `timedOut` where others take the file away
  ///   again and again, or why the file cannot be written.
  public static func append(_ path: String, _ bytes: [UInt8], limit: Int) throws(POSIXError) {
    // Once for each process that takes the file away or moves it meanwhile: that is rare.
    for _ in 0..<16 {
      let file = try Descriptor(
        opening: path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
      try lock(file, LOCK_SH, path)
      let status = try file.status(path)
      try PrivateFile.check(status, path)
      // Who took it away while we waited has read it already.
      if status.links == 0 { continue }
      if status.size >= limit, flock(file.number, LOCK_EX | LOCK_NB) == 0 {
        // Another one may have been as quick between the two locks.
        if try FileStatus(path: path, following: false)?.identity == status.identity {
          unsafe rename(path, path + ".1")
        }
        continue
      }
      return try file.writeAll(bytes, path)
    }
    throw .timedOut
  }

  /// What was appended so far, the older file first.
  public static func read(_ path: String) throws(POSIXError) -> [UInt8] {
    var bytes: [UInt8] = []
    for name in [taken(path), path + ".1", path] {
      do throws(POSIXError) {
        bytes += try PrivateFile.read(name, limit: 64 << 20)
      } catch .notFound {
        continue
      }
    }
    return bytes
  }

  /// Takes a file's content away; what is appended from now on goes to a new one.
  ///
  /// The content is there again for the next one to take until `Taken.remove` is called. One process at a time may do
  /// this.
  ///
  /// - Returns: nil if there is nothing.
  public static func take(_ path: String) throws(POSIXError) -> Taken? {
    let name = taken(path)
    // Once for each process that is done meanwhile with what it took.
    for _ in 0..<16 {
      if !File.exists(name), unsafe rename(path + ".1", name) != 0, unsafe rename(path, name) != 0 { return nil }
      let file: Descriptor
      do throws(POSIXError) {
        file = try Descriptor(opening: name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      } catch .notFound {
        continue
      }
      // Those who opened it before it was renamed write to it still.
      try lock(file, LOCK_EX, name)
      let status = try file.status(name)
      try PrivateFile.check(status, name)
      if status.links == 0 { continue }
      let bytes = try file.readAll(name, limit: 64 << 20)
      return Taken(path: name, identity: status.identity, bytes: bytes, file: file)
    }
    return nil
  }

  private static func taken(_ path: String) -> String { path + ".taken" }

  /// What was taken, until it is removed.
  public final class Taken {
    private let path: String
    private let identity: [UInt64]
    /// The content.
    public let bytes: [UInt8]
    private let file: Descriptor

    init(path: String, identity: [UInt64], bytes: [UInt8], file: consuming Descriptor) {
      self.path = path
      self.identity = identity
      self.bytes = bytes
      self.file = file
    }

    /// Forgets the content for good.
    public func remove() {
      // The next one may have taken something else under the same name.
      guard (try? FileStatus(path: path, following: false))?.identity == identity else { return }
      unsafe unlink(path)
    }
  }

  private static func lock(_ file: borrowing Descriptor, _ operation: Int32, _ path: String) throws(POSIXError) {
    while flock(file.number, operation) != 0 {
      if errno != EINTR { throw Descriptor.failure("flock", path) }
    }
  }
}

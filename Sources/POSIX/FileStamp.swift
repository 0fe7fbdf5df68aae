import Glibc

/// What is another one when a file was changed, exchanged or, of a folder, when a name came, went or was exchanged: the
/// file's identity, size, and the times of its last changes. Where nothing is, that is a stamp as well.
public struct FileStamp: Equatable, Sendable {
  /// None for what is not there.
  private let numbers: [UInt64]

  /// The stamp of what is at a path now; links are followed.
  public init(_ path: String) { self.init(path: Array(path.utf8)[...]) }

  /// The same for the bytes of a path.
  public init(path: ArraySlice<UInt8>) {
    var status = stat()
    let terminated = path.map { CChar(bitPattern: $0) } + [0]
    guard unsafe stat(terminated, &status) == 0 else {
      numbers = []
      return
    }
    numbers = [
      UInt64(status.st_dev), UInt64(status.st_ino), UInt64(truncatingIfNeeded: status.st_size),
      UInt64(truncatingIfNeeded: status.st_mtim.tv_sec), UInt64(truncatingIfNeeded: status.st_mtim.tv_nsec),
      UInt64(truncatingIfNeeded: status.st_ctim.tv_sec), UInt64(truncatingIfNeeded: status.st_ctim.tv_nsec),
    ]
  }

  /// Reads what `text` says; `nil` for anything else.
  public init?(parsing text: ArraySlice<UInt8>) {
    if text.elementsEqual("-".utf8) {
      numbers = []
      return
    }
    var numbers: [UInt64] = [0]
    for byte in text {
      if byte == UInt8(ascii: ":") {
        numbers.append(0)
      } else if byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") {
        numbers[numbers.count - 1] = numbers[numbers.count - 1] &* 10 &+ UInt64(byte - UInt8(ascii: "0"))
      } else {
        return nil
      }
    }
    guard numbers.count == 7 else { return nil }
    self.numbers = numbers
  }

  /// Numbers with colons between them, or `-` for nothing.
  public var text: String { numbers.isEmpty ? "-" : numbers.map { String($0) }.joined(separator: ":") }
}

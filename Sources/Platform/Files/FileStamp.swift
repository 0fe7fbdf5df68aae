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
      let digit: UInt8
      switch byte {
      case UInt8(ascii: ":"):
        numbers.append(0)
        continue
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = byte - UInt8(ascii: "a") + 10
      default: return nil
      }
      numbers[numbers.count - 1] = numbers[numbers.count - 1] &* UInt64(Self.radix) &+ UInt64(digit)
    }
    guard numbers.count == 7 else { return nil }
    self.numbers = numbers
  }

  /// The most that a digit can say: an index of a thousand files is read at each git command.
  private static let radix = 36

  /// Numbers of the base 36 with colons between them, or `-` for nothing.
  public var text: String {
    numbers.isEmpty ? "-" : numbers.map { String($0, radix: Self.radix) }.joined(separator: ":")
  }
}

import CSodium
import Synchronization

/// A token, a password or the text of a key.
///
/// The bytes are erased when the last copy of the value goes away. A secret prints as nothing: its
/// description, its debug description and its mirror are empty, so that neither string interpolation nor
/// `dump` shows it.
package struct Secret: Sendable, Equatable {
  private let storage: Storage

  /// A secret from its text. The given string is the caller's and is not erased.
  package init(_ text: String) {
    self.init(bytes: Array(text.utf8))
  }

  /// A secret from its bytes. The given array is the caller's and is not erased.
  package init(bytes: [UInt8]) {
    self.init(copying: bytes.span)
  }

  /// A secret that is a copy of the bytes.
  package init(copying bytes: Span<UInt8>) {
    self.init(capacity: bytes.count) { output in
      for index in bytes.indices { output.append(bytes[index]) }
    }
  }

  /// A secret whose bytes are written in place: no other copy of them comes into being.
  ///
  /// - Parameter capacity: the most bytes that `fill` appends.
  package init(capacity: Int, _ fill: (inout OutputSpan<UInt8>) -> Void) {
    unsafe self.init(unsafeCapacity: capacity) { buffer in
      var output = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
      fill(&output)
      return unsafe output.finalize(for: buffer)
    }
  }

  /// A secret whose bytes a C function writes in place.
  ///
  /// - Parameter fill: answers how many bytes it wrote.
  @unsafe init(unsafeCapacity: Int, _ fill: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
    storage = unsafe Storage(
      [UInt8](unsafeUninitializedCapacity: unsafeCapacity) { buffer, count in
        count = unsafe fill(buffer)
      })
  }

  /// A secret that begins with bytes that need no erasing, and goes on with those of another secret.
  package init(_ prefix: [UInt8], _ rest: Secret) {
    unsafe self.init(unsafeCapacity: prefix.count + rest.count) { buffer in
      for (index, byte) in prefix.enumerated() {
        unsafe buffer.initializeElement(at: index, to: byte)
      }
      rest.withBytes { rest in
        for index in rest.indices {
          unsafe buffer.initializeElement(at: prefix.count + index, to: rest[index])
        }
      }
      return prefix.count + rest.count
    }
  }

  /// The bytes of a range. Bytes that are not there are left out.
  package subscript(range: Range<Int>) -> Secret {
    withBytes { bytes in Secret(copying: bytes.extracting(range.clamped(to: 0..<bytes.count))) }
  }

  /// The number of bytes.
  package var count: Int { storage.bytes.withLock { $0.count } }

  /// Whether there is no byte.
  package var isEmpty: Bool { count == 0 }

  /// The secret as text; invalid UTF-8 is repaired. The string is the caller's and is not erased.
  package func reveal() -> String {
    storage.bytes.withLock { String(decoding: $0, as: UTF8.self) }
  }

  /// The secret as bytes. The array is a copy, is the caller's and is not erased.
  package func revealBytes() -> [UInt8] {
    withBytes { bytes in
      unsafe [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
        for index in bytes.indices { unsafe buffer.initializeElement(at: index, to: bytes[index]) }
        count = bytes.count
      }
    }
  }

  /// Lends the bytes without a copy, for the time of the call.
  package func withBytes<Result: Sendable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try storage.bytes.withLock { bytes throws(Failure) in try body(bytes.span) }
  }

  /// Compares in a time that depends on the lengths only.
  package static func == (left: Secret, right: Secret) -> Bool {
    if left.storage === right.storage { return true }
    return left.withBytes { left in right.withBytes { right in constantTimeEqual(left, right) } }
  }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Always empty.
  package var description: String { "" }
  /// Always empty.
  package var debugDescription: String { "" }
  /// Without children.
  package var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// The one owner of the bytes of a secret. The array is never copied on write and never grows, so that there
/// is one place to erase.
private final class Storage: Sendable {
  let bytes: Mutex<[UInt8]>

  init(_ bytes: sending [UInt8]) { self.bytes = Mutex(bytes) }

  deinit {
    bytes.withLock { bytes in
      unsafe bytes.withUnsafeMutableBytes { unsafe sodium_memzero($0.baseAddress, $0.count) }
    }
  }
}

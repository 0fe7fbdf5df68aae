import CSodium
import Synchronization

/// A token, a password or the text of a key. The bytes are erased when the last copy of the value goes away; strings
/// and arrays that are put in or taken out are the caller's, and are not. A secret prints as nothing.
package struct Secret: Sendable, Equatable {
  private let storage: Storage

  package init(_ text: String) { self.init(bytes: Array(text.utf8)) }

  package init(bytes: [UInt8]) { self.init(copying: bytes.span) }

  package init(copying bytes: Span<UInt8>) {
    self.init(capacity: bytes.count) { output in for index in bytes.indices { output.append(bytes[index]) } }
  }

  /// The bytes are written in place: no other copy of them comes into being.
  package init(capacity: Int, _ fill: (inout OutputSpan<UInt8>) -> Void) {
    unsafe self.init(unsafeCapacity: capacity) { buffer in
      var output = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
      fill(&output)
      return unsafe output.finalize(for: buffer)
    }
  }

  /// For a C function that writes in place; `fill` answers how many bytes it wrote.
  @unsafe init(unsafeCapacity: Int, _ fill: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
    storage = unsafe Storage(
      [UInt8](unsafeUninitializedCapacity: unsafeCapacity) { buffer, count in count = unsafe fill(buffer) })
  }

  /// The prefix needs no erasing.
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

  /// Bytes that are not there are left out.
  package subscript(range: Range<Int>) -> Secret {
    withBytes { bytes in Secret(copying: bytes.extracting(range.clamped(to: 0..<bytes.count))) }
  }

  package var count: Int { storage.bytes.withLock { $0.count } }

  package var isEmpty: Bool { count == 0 }

  /// Invalid UTF-8 is repaired.
  package func reveal() -> String { storage.bytes.withLock { String(decoding: $0, as: UTF8.self) } }

  package func revealBytes() -> [UInt8] {
    withBytes { bytes in
      unsafe [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
        for index in bytes.indices { unsafe buffer.initializeElement(at: index, to: bytes[index]) }
        count = bytes.count
      }
    }
  }

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
  package var description: String { "" }
  package var debugDescription: String { "" }
  package var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// The one owner of the bytes of a secret. The array is never copied on write and never grows, so that there
/// is one place to erase.
private final class Storage: Sendable {
  let bytes: Mutex<[UInt8]>

  init(_ bytes: sending [UInt8]) { self.bytes = Mutex(bytes) }

  deinit {
    bytes.withLock { bytes in unsafe bytes.withUnsafeMutableBytes { unsafe sodium_memzero($0.baseAddress, $0.count) } }
  }
}

/// Found in a time that depends on the lengths only.
package func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool { constantTimeEqual(left.span, right.span) }

/// Two texts that Unicode takes for the same but that have other bytes are different here.
package func constantTimeEqual(_ left: String, _ right: String) -> Bool {
  constantTimeEqual(Array(left.utf8), Array(right.utf8))
}

func constantTimeEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  guard left.count == right.count else { return false }
  return unsafe left.withUnsafeBufferPointer { left in
    unsafe right.withUnsafeBufferPointer { right in
      unsafe sodium_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
    }
  }
}

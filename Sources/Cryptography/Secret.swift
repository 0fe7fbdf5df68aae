import CredmgrCSodium
import Synchronization

/// A token, a password or the text of a key, which prints as nothing. The bytes are erased with the last copy of the
/// value, but not the strings and arrays that callers put in or take out.
package struct Secret: Sendable, Equatable {
  private let storage: Storage

  package init(_ text: String) { self.init(bytes: Array(text.utf8)) }

  package init(bytes: [UInt8]) { self.init(copying: bytes.span) }

  package init(copying bytes: Span<UInt8>) {
    self.init(capacity: bytes.count) { output in for index in bytes.indices { output.append(bytes[index]) } }
  }

  /// Writes the bytes in place, without another copy of them.
  package init(capacity: Int, _ fill: (inout OutputSpan<UInt8>) -> Void) {
    unsafe self.init(unsafeCapacity: capacity) { buffer in
      var output = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
      fill(&output)
      return unsafe output.finalize(for: buffer)
    }
  }

  /// Lets a C function write the bytes in place; `fill` returns their number.
  @unsafe init(unsafeCapacity: Int, _ fill: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
    storage = unsafe Storage(
      [UInt8](unsafeUninitializedCapacity: unsafeCapacity) { buffer, count in count = unsafe fill(buffer) })
  }

  /// Joins a prefix, which needs no erasing, and a secret.
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

  /// The bytes in this range; positions past the end are left out.
  package subscript(range: Range<Int>) -> Secret {
    withBytes { bytes in Secret(copying: bytes.extracting(range.clamped(to: 0..<bytes.count))) }
  }

  package var count: Int { storage.bytes.withLock { $0.count } }

  package var isEmpty: Bool { count == 0 }

  /// The secret as text; invalid UTF-8 becomes U+FFFD.
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

/// The only owner of a secret's bytes. The array is never copied on write and never grows, so only one place has to be
/// erased.
private final class Storage: Sendable {
  let bytes: Mutex<[UInt8]>

  init(_ bytes: sending [UInt8]) { self.bytes = Mutex(bytes) }

  deinit {
    bytes.withLock { bytes in unsafe bytes.withUnsafeMutableBytes { unsafe sodium_memzero($0.baseAddress, $0.count) } }
  }
}

/// Compares in a time that depends on the lengths only.
package func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool { constantTimeEqual(left.span, right.span) }

/// Compares the bytes: texts that Unicode considers equal differ here if their bytes differ.
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

import CSodium

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

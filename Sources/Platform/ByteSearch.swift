import CPOSIX

extension [UInt8] {
  /// Where the bytes of a pattern first begin, at `start` or behind it; `nil` if nowhere. The C library looks for them, which
  /// takes a small part of an instruction for each byte.
  public func position(of pattern: [UInt8], from start: Int = 0) -> Int? {
    guard start >= 0, start <= count else { return nil }
    return unsafe withUnsafeBytes { all in
      guard let base = all.baseAddress,
        let found = unsafe credmgr_find(base + start, all.count - start, pattern, pattern.count)
      else { return nil }
      return unsafe found - base
    }
  }
}

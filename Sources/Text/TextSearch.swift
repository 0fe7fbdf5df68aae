/// Searches for bytes in bytes, and for a text in a text.
///
/// The standard library's own functions are in the module of its regular expressions, which adds 1.3 MB to every
/// program that uses one of them (docs/performance.md).
extension Collection where Element == UInt8 {
  /// The first place of the other bytes, or `nil` if they do not occur or are empty.
  package func firstPlace(of bytes: some Collection<UInt8>) -> Range<Index>? {
    guard let first = bytes.first else { return nil }
    var rest = self[...]
    while let index = rest.firstIndex(of: first) {
      rest = rest[index...]
      if rest.starts(with: bytes) { return index..<self.index(index, offsetBy: bytes.count) }
      rest = rest.dropFirst()
    }
    return nil
  }

  /// The places of the pieces between the occurrences of the separator, including empty pieces.
  package func ranges(between separator: some Collection<UInt8>) -> [Range<Index>] {
    var ranges: [Range<Index>] = []
    var start = startIndex
    while let place = self[start...].firstPlace(of: separator) {
      ranges.append(start..<place.lowerBound)
      start = place.upperBound
    }
    return ranges + [start..<endIndex]
  }
}

extension StringProtocol {
  /// The first place of the other text, byte for byte, or `nil` if it does not occur or is empty.
  package func firstPlace(of text: some StringProtocol) -> Range<Index>? { utf8.firstPlace(of: text.utf8) }

  package func pieces(separatedBy separator: some StringProtocol) -> [SubSequence] {
    // Usually both texts are stored in one piece, whose bytes are searched ten times faster than by their indices.
    let found = utf8.withContiguousStorageIfAvailable { whole in
      separator.utf8.withContiguousStorageIfAvailable { unsafe whole.ranges(between: $0) }
    }
    guard let places = found ?? nil else { return utf8.ranges(between: separator.utf8).map { self[$0] } }
    return places.map { place in
      self[utf8.index(startIndex, offsetBy: place.lowerBound)..<utf8.index(startIndex, offsetBy: place.upperBound)]
    }
  }

  /// The text with each occurrence of `old` replaced.
  package func exchanging(_ old: some StringProtocol, for new: some StringProtocol) -> String {
    // Usually nothing has to be replaced; this avoids creating the types for it at run time.
    guard firstPlace(of: old) != nil else { return String(self) }
    return pieces(separatedBy: old).joined(separator: String(new))
  }
}

extension BidirectionalCollection where Element == UInt8 {
  /// The text without leading and trailing spaces and tabs (RFC 9110, section 5.6.3).
  package var trimmingBlanks: SubSequence {
    let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    let rest = drop(while: isBlank)
    return rest.lastIndex { !isBlank($0) }.map { rest[...$0] } ?? rest[rest.endIndex...]
  }
}

extension Substring { package var trimmingBlanks: Substring { Substring(utf8.trimmingBlanks) } }

// ASCII only.
extension UInt8 {
  package var isDigit: Bool { (0x30...0x39).contains(self) }

  package var isLetterOrDigit: Bool { isDigit || (0x61...0x7A).contains(self | 0x20) }
}

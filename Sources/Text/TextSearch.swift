/// Searching for bytes in bytes, and for a text in a text.
///
/// The standard library has the same for all collections, in the module of its regular expressions, which is
/// 1.3 MB in every program that uses one of its functions (docs/performance.md).
extension Collection where Element == UInt8 {
  /// Where the other bytes stand first; nil if they do not, or are none.
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
}

extension StringProtocol {
  /// Where the other text stands first, byte for byte; nil if it does not, or is empty.
  package func firstPlace(of text: some StringProtocol) -> Range<Index>? { utf8.firstPlace(of: text.utf8) }

  /// The pieces between the occurrences of the other text, also those that are empty.
  package func pieces(separatedBy separator: some StringProtocol) -> [SubSequence] {
    var pieces: [SubSequence] = []
    var rest = self[...]
    while let place = rest.firstPlace(of: separator) {
      pieces.append(rest[..<place.lowerBound])
      rest = rest[place.upperBound...]
    }
    pieces.append(rest)
    return pieces
  }

  /// The text with another one in the place of each occurrence.
  package func exchanging(_ old: some StringProtocol, for new: some StringProtocol) -> String {
    // Mostly there is nothing to do, and the types for it would be made at run time.
    guard firstPlace(of: old) != nil else { return String(self) }
    return pieces(separatedBy: old).joined(separator: String(new))
  }
}

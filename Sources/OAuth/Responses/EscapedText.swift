/// A text without its JSON escapes (RFC 8259, 7), which servers write in many ways: Python escapes each letter beyond
/// ASCII, and PHP each slash.
struct EscapedText {
  private(set) var plain: [UInt8]
  private var places: [Int]  // Where each byte begins in the escaped text, and where the text ends.

  /// Returns the text without one level of escapes, and without a second one, as a quoted JSON text has it.
  static func levels(of bytes: [UInt8]) -> [EscapedText] {
    guard bytes.contains(UInt8(ascii: "\\")) else { return [] }
    let first = EscapedText(plain: bytes, places: Array(0...bytes.count)).unescaped
    return first.plain.contains(UInt8(ascii: "\\")) ? [first, first.unescaped] : [first]
  }

  /// Returns the ranges of the escaped text that stand for `form`.
  func ranges(of form: [UInt8]) -> [Range<Int>] {
    guard let first = form.first, form.count <= plain.count else { return [] }
    var ranges: [Range<Int>] = []
    for start in 0...(plain.count - form.count) where plain[start] == first && plain[start...].starts(with: form) {
      ranges.append(places[start]..<places[start + form.count])
    }
    return ranges
  }

  private var unescaped: EscapedText {
    var (bytes, starts): ([UInt8], [Int]) = ([], [])
    var index = 0
    while index < plain.count {
      let (text, length) = escape(at: index) ?? ([plain[index]], 1)
      bytes += text
      starts += text.map { _ in places[index] }
      index += length
    }
    return EscapedText(plain: bytes, places: starts + [places[plain.count]])
  }

  /// Returns the bytes for which an escape stands, and its length; `nil` if none begins here.
  private func escape(at index: Int) -> (bytes: [UInt8], length: Int)? {
    guard plain[index] == UInt8(ascii: "\\"), index + 1 < plain.count else { return nil }
    switch plain[index + 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return ([plain[index + 1]], 2)
    case UInt8(ascii: "b"): return ([0x08], 2)
    case UInt8(ascii: "t"): return ([0x09], 2)
    case UInt8(ascii: "n"): return ([0x0A], 2)
    case UInt8(ascii: "f"): return ([0x0C], 2)
    case UInt8(ascii: "r"): return ([0x0D], 2)
    default: break
    }
    guard let unit = codeUnit(at: index) else { return nil }
    if let scalar = Unicode.Scalar(UInt32(unit)) { return (Array(String(scalar).utf8), 6) }
    // A letter beyond 16 bits is two units.
    guard let second = codeUnit(at: index + 6), UTF16.isLeadSurrogate(unit), UTF16.isTrailSurrogate(second) else {
      return nil
    }
    return (Array(String(decoding: [unit, second], as: UTF16.self).utf8), 12)
  }

  private func codeUnit(at index: Int) -> UInt16? {
    guard index + 6 <= plain.count, plain[index] == UInt8(ascii: "\\"), plain[index + 1] == UInt8(ascii: "u") else {
      return nil
    }
    let digits = String(decoding: plain[(index + 2)..<(index + 6)], as: UTF8.self)
    return digits.first == "+" || digits.first == "-" ? nil : UInt16(digits, radix: 16)
  }
}

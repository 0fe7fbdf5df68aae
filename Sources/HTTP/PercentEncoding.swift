import CredmgrText

/// Percent-encoding (RFC 3986, section 2.1) in the form that RFC 5849, section 3.6, requires for signatures.
package enum PercentEncoding {
  /// Encodes all bytes of the UTF-8 text except letters, digits, `-`, `.`, `_` and `~`, with upper-case digits.
  package static func encode(_ text: String) -> String {
    var result: [UInt8] = []
    result.reserveCapacity(text.utf8.count + 16)
    for byte in text.utf8 {
      if Octet.isUnreserved(byte) { result.append(byte) } else { appendEscape(byte, to: &result) }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Returns the decoded text; `nil` if two hexadecimal digits do not follow a `%`, or the result is not UTF-8.
  package static func decode(_ text: some StringProtocol, plusAsSpace: Bool) -> String? {
    guard let bytes = bytes(decoding: Array(text.utf8), plusAsSpace: plusAsSpace, strict: true) else {
      return nil
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Returns the decoded bytes. A `%` without two digits stands for itself (URL Standard, 1.3); with `strict`, the
  /// result is then `nil`.
  static func bytes(decoding text: [UInt8], plusAsSpace: Bool, strict: Bool) -> [UInt8]? {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var index = 0
    while index < text.count {
      let byte = text[index]
      if byte == UInt8(ascii: "%") {
        if index + 2 < text.count, let high = Octet.hexadecimal(text[index + 1]),
          let low = Octet.hexadecimal(text[index + 2])
        {
          result.append(high << 4 | low)
          index += 3
          continue
        }
        if strict { return nil }
      }
      result.append(byte == UInt8(ascii: "+") && plusAsSpace ? UInt8(ascii: " ") : byte)
      index += 1
    }
    return result
  }

  static func appendEscape(_ byte: UInt8, to result: inout [UInt8]) {
    result.append(UInt8(ascii: "%"))
    result.append(Octet.upperCaseDigit(byte >> 4))
    result.append(Octet.upperCaseDigit(byte & 15))
  }
}

/// The classes of bytes that RFC 3986 and RFC 9110 distinguish.
enum Octet {
  /// Whether the byte is unreserved (RFC 3986, section 2.3).
  static func isUnreserved(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || isOne(of: "-._~", byte) }

  /// Whether the byte may be in a token (RFC 9110, section 5.6.2).
  static func isTokenCharacter(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || isOne(of: "!#$%&'*+-.^_`|~", byte) }

  static func isOne(of characters: StaticString, _ byte: UInt8) -> Bool { characters.description.utf8.contains(byte) }

  static func hexadecimal(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  static func upperCaseDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }

  /// Returns the text with ASCII letters in lower case. Full Unicode mapping would turn a Kelvin sign into `k`.
  static func lowerCase(_ text: some StringProtocol) -> String {
    String(
      decoding: text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}

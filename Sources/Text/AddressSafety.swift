extension String {
  /// The address, with percent-encoding for every byte that a shell between credmgr and the browser could interpret.
  /// For example, `wslview` puts the address into a PowerShell command, which evaluates `$(…)` in quotes. Browsers
  /// accept the result.
  package var harmlessAddress: String {
    let bytes = Array(utf8)
    let brackets = Self.authority(of: bytes)
    var result = ""
    for (index, byte) in bytes.enumerated() {
      let isHarmless =
        switch byte {
        case UInt8(ascii: "["), UInt8(ascii: "]"): brackets.contains(index)  // Only around an IPv6 address.
        case UInt8(ascii: "%"): bytes[(index + 1)...].prefix(2).count { Self.isHexadecimal($0) } == 2
        default: byte.isLetterOrDigit || "-._~/?:@&=+,#!*".utf8.contains(byte)
        }
      if isHarmless {
        result.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return result
  }

  /// The range of the authority in `scheme://authority/path`.
  private static func authority(of bytes: [UInt8]) -> Range<Int> {
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[(colon + 1)...].starts(with: "//".utf8),
      bytes[..<colon].allSatisfy({ $0.isLetterOrDigit || "+-.".utf8.contains($0) })
    else { return 0..<0 }
    let start = colon + 3
    return start..<(bytes[start...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.count)
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool { byte.isDigit || (0x61...0x66).contains(byte | 0x20) }
}

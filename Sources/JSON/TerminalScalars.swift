extension Unicode.Scalar {
  /// Whether the text contains control characters, marks that reorder text, line ends or invisible characters, which
  /// could make it look like another text.
  package var actsOnTerminals: Bool {
    switch value {
    case 0..<0x20, 0x7F...0x9F, 0xAD, 0x61C, 0x115F, 0x1160, 0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F,
      0x2800, 0x3164, 0xFEFF, 0xFFA0, 0xFFF9...0xFFFB, 0xE0000...0xE007F:
      true
    default: false
    }
  }
}

import CQREncode

/// A QR code (ISO/IEC 18004) of a text: a square of dark and light modules, without the quiet zone around it.
package struct QRCode: Sendable, Equatable {
  /// The modules, row by row from the top; true is dark. As many in a row as there are rows.
  package let modules: [[Bool]]

  /// Encodes a text as UTF-8 bytes, in the smallest version that it fits in.
  ///
  /// The error correction is the lowest (L, 7 %): a screen has no scratches, and fewer modules are larger ones.
  ///
  /// - Returns: nil for an empty text, one with a NUL, or one of more than 2,953 bytes, which no version holds.
  package init?(_ text: String) {
    guard !text.isEmpty, !text.utf8.contains(0),
      let code = unsafe QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L)
    else { return nil }
    defer { unsafe QRcode_free(code) }
    let width = unsafe Int(code.pointee.width)
    let data = unsafe UnsafeBufferPointer(start: code.pointee.data, count: width * width)
    // qrencode.h: the lowest bit of each byte is the colour.
    modules = (0..<width).map { row in (0..<width).map { column in unsafe data[row * width + column] & 1 == 1 } }
  }
}

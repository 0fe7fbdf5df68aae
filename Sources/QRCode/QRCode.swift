import CredmgrCQREncode

/// A QR code (ISO/IEC 18004) of a text: a square of dark and light modules, without the quiet zone around it.
package struct QRCode: Sendable, Equatable {
  package let modules: [[Bool]]  // Row by row from the top; true is dark.

  /// Creates the smallest version with the lowest error correction (L, 7 %), which has the largest modules. `nil` if
  /// the text is empty, contains NUL, or exceeds 2,953 bytes, the capacity of the largest version, or if the library is
  /// missing.
  package init?(_ text: String) {
    var library = credmgr_qr()
    guard !text.isEmpty, !text.utf8.contains(0), unsafe credmgr_qr_load(&library) != 0,
      let code = unsafe library.encode(text, 0, QR_ECLEVEL_L)
    else { return nil }
    defer { unsafe library.free(code) }
    let width = unsafe Int(code.pointee.width)
    let data = unsafe UnsafeBufferPointer(start: code.pointee.data, count: width * width)
    // The lowest bit of each byte is the colour (qrencode.h).
    modules = (0..<width).map { row in (0..<width).map { column in unsafe data[row * width + column] & 1 == 1 } }
  }
}

/// Draws a QR code with half blocks: each terminal cell holds two modules, one above the other.
struct QRCodeDrawing {
  /// True for dark modules.
  let modules: [[Bool]]

  /// The width of the light frame in modules (ISO/IEC 18004 requires 4; all readers accept 2).
  static let quietZone = 2

  var width: Int { modules.count + 2 * Self.quietZone }

  /// Black on white, whatever the theme and `NO_COLOR`, because many readers do not recognize a reversed code.
  var lines: [String] {
    let range = -Self.quietZone..<modules.count + Self.quietZone
    return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { row in
      let cells = range.map { column in cell(isDark(row, column), isDark(row + 1, column)) }
      // Colors 16 and 231 are black and white in every theme; 0 and 15 depend on the theme.
      return "\u{1B}[38;5;16;48;5;231m" + cells.joined() + "\u{1B}[0m"
    }
  }

  private func isDark(_ row: Int, _ column: Int) -> Bool {
    modules.indices.contains(row) && modules.indices.contains(column) && modules[row][column]
  }

  private func cell(_ above: Bool, _ below: Bool) -> String {
    switch (above, below) {
    case (true, true): "█"
    case (true, false): "▀"
    case (false, true): "▄"
    case (false, false): " "
    }
  }
}

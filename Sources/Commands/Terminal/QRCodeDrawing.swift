/// A QR code as lines of half blocks: two modules, one above the other, in a cell of the terminal.
struct QRCodeDrawing {
  /// True is dark.
  let modules: [[Bool]]

  /// The modules of the light frame that readers need (ISO/IEC 18004 asks for 4; they all read 2).
  static let quietZone = 2

  var width: Int { modules.count + 2 * Self.quietZone }

  /// Black on white, whatever the terminal's colours and `NO_COLOR` are: many readers do not see a reversed code.
  var lines: [String] {
    let range = -Self.quietZone..<modules.count + Self.quietZone
    return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { row in
      let cells = range.map { column in cell(isDark(row, column), isDark(row + 1, column)) }
      // Colours 16 and 231 are black and white in every theme; 0 and 15 are what the theme says.
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

import CredmgrPlatform

/// Lays out text for a terminal with 80 columns.
package enum Layout {
  package static let width = 80

  /// The width of the help, which is not wider on a wide terminal.
  static var helpWidth: Int { min(max(Terminal.outputColumns ?? width, narrowest), width) }

  private static let narrowest = 24

  static let longestQuotation = 48

  /// Wraps a text between words and keeps quoted text together.
  ///
  /// - Parameters:
  ///   - first: columns already used on the first line.
  ///   - longestQuotation: the longest quotation to keep together. Text to copy is never wrapped here, because the
  ///     terminal wraps it and still copies it as one line.
  package static func wrapped(
    _ text: String, width: Int = Layout.width, first: Int = 0, indent: String = "",
    longestQuotation: Int = Self.longestQuotation
  ) -> String {
    var result = ""
    var column = first
    for word in words(text, longestQuotation) {
      let count = word.count
      if !result.isEmpty {
        if column + 1 + count > width {
          result += "\n" + indent
          column = indent.count
        } else {
          result += " "
          column += 1
        }
      }
      result += word
      column += count
    }
    return result
  }

  /// Wraps a shell command: each line but the last ends in a backslash, and quoted text stays together.
  package static func shell(_ line: String, width: Int) -> [String] {
    wrapped(line, width: width - 2, indent: "    ", longestQuotation: .max).exchanging("\n", for: " \\\n")
      .split(separator: "\n").map(String.init)
  }

  private static func words(_ text: String, _ longestQuotation: Int) -> [String] {
    var words: [String] = []
    var quotation: String?
    for piece in text.split(separator: " ").map(String.init) {
      let marks = piece.count { $0 == "\"" }
      if let open = quotation {
        let longer = open + " " + piece
        if marks % 2 == 1 {
          words.append(longer)
          quotation = nil
        } else if longer.count > longestQuotation {
          words += longer.split(separator: " ").map(String.init)
          quotation = nil
        } else {
          quotation = longer
        }
      } else if marks % 2 == 1 {
        quotation = piece
      } else {
        words.append(piece)
      }
    }
    return words + (quotation?.split(separator: " ").map(String.init) ?? [])
  }

  /// Formats a table. Wraps the right column at `width`; `nil` keeps each row on one line for other programs.
  package static func table(_ rows: [(left: String, right: String)], width: Int? = Terminal.outputColumns) -> String {
    let counts = rows.map { columns($0.left) }
    let left = min(counts.max() ?? 0, width.map { min(26, $0 / 3) } ?? 36)
    let indent = blanks(left + 4)
    // Uses bytes, because there may be ten thousand tables, and joining strings takes ten times as long.
    var table: [UInt8] = []
    for (row, count) in zip(rows, counts) {
      table += "  ".utf8
      table += row.left.utf8
      table += (count > left ? "\n" + indent : blanks(left - count + 2)).utf8
      let right = width.map {
        wrapped(
          row.right, width: $0, first: left + 4, indent: indent, longestQuotation: min(longestQuotation, $0 - left - 4))
      }
      table += (right ?? row.right).utf8
      table += "\n".utf8
    }
    return String(decoding: table, as: UTF8.self)
  }

  /// A column keeps enough for its heading.
  private static let shortestCell = 8

  /// Aligns the cells of each column. Within a width, it shortens the cells of these columns, the first one first. A
  /// shortened cell keeps its `ending`.
  static func grid(
    _ rows: [[String]], width: Int? = nil, shortening columns: [Int] = [], keeping ending: String = ""
  ) -> [String] {
    guard let count = rows.first?.count else { return [] }
    var widths = (0..<count).map { column in rows.map { $0[column].count }.max() ?? 0 }
    for column in columns {
      guard let width, case let excess = widths.reduce(0, +) + 2 * (count - 1) - width, excess > 0 else { break }
      widths[column] = max(widths[column] - excess, min(widths[column], shortestCell))
    }
    return rows.map { row in
      var line = ""
      var isFirst = true
      for (cell, width) in zip(row, widths) {
        let kept = cell.hasSuffix(ending) && ending.count < width - 2 ? ending : ""
        let text = cell.count > width ? cell.prefix(width - 1 - kept.count) + "…" + kept : Substring(cell)
        line += (isFirst ? "" : "  ") + text + String(repeating: " ", count: width - text.count)
        isFirst = false
      }
      while line.hasSuffix(" ") { line.removeLast() }
      return line
    }
  }

  /// Counts visible characters. ASCII is the fast path.
  private static func columns(_ text: String) -> Int {
    text.utf8.allSatisfy { (0x20..<0x7F).contains($0) } ? text.utf8.count : text.count
  }

  /// Faster than `String(repeating:count:)`, which appends one at a time.
  private static func blanks(_ count: Int) -> String {
    String(decoding: repeatElement(UInt8(ascii: " "), count: count), as: UTF8.self)
  }
}

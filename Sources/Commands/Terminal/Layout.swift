import Platform

/// Text in lines that a terminal of 80 columns shows whole.
package enum Layout {
  package static let width = 80

  /// A text broken between words; what stands in quotes stays together.
  ///
  /// - Parameters:
  ///   - first: columns that are taken on the first line already.
  ///   - longestQuotation: characters in quotes of which more are broken like other words. What is there to be copied
  ///     is not broken at all: the terminal does that, and knows that it is one line.
  package static func wrapped(
    _ text: String, width: Int = Layout.width, first: Int = 0, indent: String = "", longestQuotation: Int = 48
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

  /// A command for a shell; each line but the last ends in a backslash, and what stands in quotes stays together.
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

  /// - Parameter width: where the right one is broken; `nil` for nowhere: each row is one line for other programs.
  package static func table(_ rows: [(left: String, right: String)], width: Int? = Terminal.outputColumns) -> String {
    let counts = rows.map { columns($0.left) }
    let left = min(counts.max() ?? 0, width == nil ? 36 : 26)
    let indent = blanks(left + 4)
    // Of bytes: there may be ten thousand tables, and texts are put together a tenth as fast.
    var table: [UInt8] = []
    for (row, count) in zip(rows, counts) {
      table += "  ".utf8
      table += row.left.utf8
      table += (count > left ? "\n" + indent : blanks(left - count + 2)).utf8
      table += (width.map { wrapped(row.right, width: $0, first: left + 4, indent: indent) } ?? row.right).utf8
      table += "\n".utf8
    }
    return String(decoding: table, as: UTF8.self)
  }

  /// Letters that are more than a byte are counted as they are seen, which takes longer.
  private static func columns(_ text: String) -> Int {
    text.utf8.allSatisfy { (0x20..<0x7F).contains($0) } ? text.utf8.count : text.count
  }

  /// `String(repeating:count:)` appends one after the other.
  private static func blanks(_ count: Int) -> String {
    String(decoding: repeatElement(UInt8(ascii: " "), count: count), as: UTF8.self)
  }
}

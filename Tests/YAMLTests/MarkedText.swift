/// A text with `‸` before each place of an expected finding.
struct MarkedText {
  /// A place in the text without its marks; line and column begin with 1.
  struct Mark: Equatable, CustomStringConvertible {
    var line: Int
    var column: Int
    var description: String { "\(line):\(column)" }
  }

  let text: String
  let marks: [Mark]

  var bytes: [UInt8] { Array(text.utf8) }

  init(_ marked: String) {
    var text = ""
    var marks: [Mark] = []
    var here = Mark(line: 1, column: 1)
    for scalar in marked.unicodeScalars {
      if scalar == "‸" {
        marks.append(here)
        continue
      }
      text.unicodeScalars.append(scalar)
      here = scalar == "\n" ? Mark(line: here.line + 1, column: 1) : Mark(line: here.line, column: here.column + 1)
    }
    self.text = text
    self.marks = marks
  }
}

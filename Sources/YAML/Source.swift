/// A text that was read, kept so that a finding can show the line it is about.
package final class Source: Sendable, Equatable {
  /// The name to show to a person: a path, or `<standard input>`.
  package let name: String
  package let text: String

  package init(name: String, text: String) {
    self.name = name
    self.text = text
  }

  /// The line with this number, counted from 1, without its line break; empty when there is none.
  package func line(_ number: Int) -> Substring {
    var current = 1
    var start = text.unicodeScalars.startIndex
    let scalars = text.unicodeScalars
    while current < number {
      guard let end = scalars[start...].firstIndex(of: "\n") else { return "" }
      start = scalars.index(after: end)
      current += 1
    }
    let end = scalars[start...].firstIndex { $0 == "\n" || $0 == "\r" } ?? scalars.endIndex
    return text[start..<end]
  }

  package static func == (left: Source, right: Source) -> Bool {
    left === right || (left.name == right.name && left.text == right.text)
  }
}

package struct Place: Sendable, Equatable {
  package let source: Source
  /// Counted from 1.
  package let line: Int
  /// Counted from 1, in Unicode scalars.
  package let column: Int

  package init(source: Source, line: Int, column: Int) {
    self.source = source
    self.line = line
    self.column = column
  }
}

/// A text with its lines, so that a finding can show the one it concerns.
package final class Source: Sendable, Equatable {
  package let name: String  // The name shown to the user: a path, or `<standard input>`.
  package let text: String

  package init(name: String, text: String) {
    self.name = name
    self.text = text
  }

  /// The line with this number, beginning with 1, without its line break; empty if it does not exist.
  package func line(_ number: Int) -> Substring {
    let lines = text.unicodeScalars.split(separator: "\n", maxSplits: number, omittingEmptySubsequences: false)
    return number <= lines.count ? Substring(lines[number - 1].prefix { $0 != "\r" }) : ""
  }

  package static func == (left: Source, right: Source) -> Bool {
    left === right || (left.name == right.name && left.text == right.text)
  }
}

package struct Place: Sendable, Equatable {
  package let source: Source
  package let line: Int  // Beginning with 1.
  package let column: Int  // Beginning with 1, in Unicode scalars.

  package init(source: Source, line: Int, column: Int) {
    self.source = source
    self.line = line
    self.column = column
  }

  /// The place that follows this beginning of the text.
  package init(source: Source, after before: Substring.UnicodeScalarView) {
    self.init(
      source: source, line: 1 + before.count { $0 == "\n" },
      column: 1 + before.reversed().prefix { $0 != "\n" }.count)
  }
}

import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrText
import CredmgrYAML

extension Finding {
  /// Returns `file:line:column: error: sentence`, the source line unless it is empty, and a caret below the place.
  /// Without `columns`, the sentence is one line.
  func report(columns: Int? = nil) -> String {
    let name = Message.visible(place.source.name)
    let text = "\(name):\(place.line):\(place.column): \(severity.rawValue): \(Message.visible(sentence))"
    let head = (columns.map { Layout.wrapped(text, width: $0, indent: "  ", longestQuotation: .max) } ?? text) + "\n"
    let shownWidth = columns.map { max($0 - 4, Self.narrowest) } ?? Self.shownWidth
    // A tab becomes one blank, which keeps the caret in its place.
    let source = String(place.source.line(place.line)).exchanging("\t", for: " ")
    let line = Array(Message.visible(source).unicodeScalars)
    guard line.contains(where: { $0 != " " }) else { return head }
    // Of a very long line, show only the part around the place.
    let column = min(max(place.column - 1, 0), line.count)
    let start = column > shownWidth / 2 && line.count > shownWidth ? column - shownWidth / 2 : 0
    let end = min(start + shownWidth, line.count)
    var shown = start > 0 ? "…" : ""
    let caret = String(repeating: " ", count: column - start + shown.count) + "^"
    shown.unicodeScalars.append(contentsOf: line[start..<end])
    if end < line.count { shown += "…" }
    return "\(head)  \(shown)\n  \(caret)\n"
  }

  var json: JSONValue {
    [
      "file": .string(place.source.name), "line": .integer(place.line), "column": .integer(place.column),
      "severity": .string(severity.rawValue), "sentence": .string(sentence),
    ]
  }

  private static let shownWidth = 160
  private static let narrowest = 20
}

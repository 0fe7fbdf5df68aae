import Platform
import Descriptors

/// What a person is told beside the result.
///
/// Where a program reads along, a sentence is one line. On a terminal it is as many as its width needs, broken between
/// words; what stands in quotes, such as a command that is there to be copied, is never broken.
package enum StandardError {
  /// Tells a person something.
  static func tell(_ sentence: String) {
    Terminal.writeError(lines("credmgr: ", Message.visible(sentence), columns: columns))
  }

  /// Tells a person what is wrong, and what mends it.
  ///
  /// - Parameter program: the name in front of each sentence.
  package static func show(_ message: Message, program: String = "credmgr") {
    show(message, program: program, after: nil)
  }

  /// The same with hints that are completed with the command that failed.
  static func show(_ message: Message, program: String = "credmgr", after line: CommandLine?) {
    show(message.findings)
    Terminal.writeError(message.lines(program: program, after: line, style: Style(number), columns: columns))
  }

  /// Shows what is wrong in a descriptor, and where.
  package static func show(_ findings: [Finding]) {
    // Nothing is wrong in what nobody came to see.
    for finding in findings where finding.closedFolder == nil { Terminal.writeError(finding.report(columns: columns)) }
  }

  /// A question, with the cursor behind it.
  static func ask(_ question: String) { Terminal.writeError(prompt(question)) }

  /// The same, for whoever writes it elsewhere.
  static func prompt(_ question: String) -> String {
    let question = Message.visible(question)
    return (columns.map { Layout.wrapped(question, width: $0 - 1) } ?? question) + " "
  }

  /// The columns in which sentences are broken; `nil` for nowhere.
  static var columns: Int? { Terminal.errorColumns.flatMap { $0 < narrowest ? nil : $0 } }

  /// Fewer columns are none that anybody could read sentences in.
  private static let narrowest = 40
  private static let number: Int32 = 2

  /// A sentence with its line break.
  ///
  /// - Parameters:
  ///   - head: what stands in front of it, beginning with a name to which further lines are indented.
  ///   - shown: the same with emphasis.
  static func lines(_ head: String, shown: String? = nil, _ sentence: String, columns: Int?) -> String {
    guard let columns else { return (shown ?? head) + sentence + "\n" }
    let name = head.prefix { $0 != " " }
    let indent = String(repeating: " ", count: name.count + 1)
    return (shown ?? head)
      + Layout.wrapped(sentence, width: columns, first: head.count, indent: indent, longestQuotation: .max) + "\n"
  }
}

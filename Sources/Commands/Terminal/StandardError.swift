import Platform
import Descriptors

/// Where a program reads along, a sentence is one line. On a terminal it is as many as its width needs, broken between
/// words; what stands in quotes, such as a command that is there to be copied, is never broken.
package enum StandardError {
  package static func tell(_ sentence: String) {
    Terminal.writeError(lines("credmgr: ", Message.visible(sentence), columns: columns))
  }

  /// Completes hints with the command that failed.
  package static func show(_ message: Message, program: String = "credmgr", after line: CommandLine? = nil) {
    show(message.findings)
    Terminal.writeError(message.lines(program: program, after: line, style: Style(2), columns: columns))
  }

  package static func show(_ findings: [Finding]) {
    // Nothing is wrong in what nobody came to see.
    for finding in findings where finding.closedFolder == nil { Terminal.writeError(finding.report(columns: columns)) }
  }

  static func prompt(_ question: String) -> String {
    let question = Message.visible(question)
    return (columns.map { Layout.wrapped(question, width: $0 - 1) } ?? question) + " "
  }

  /// The columns in which sentences are broken; `nil` for nowhere.
  static var columns: Int? { Terminal.errorColumns.flatMap { $0 < 40 ? nil : $0 } }

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

/// Emphasis, on a terminal that shows it to a person who wants it (no-color.org).
struct Style: Sendable {
  let isOn: Bool

  static let plain = Style(isOn: false)

  private init(isOn: Bool) { self.isOn = isOn }

  init(_ descriptor: Int32, environment: (String) -> String? = Environment.value) {
    isOn =
      Terminal.isTerminal(descriptor) && (environment("NO_COLOR") ?? "").isEmpty
      && ![nil, "", "dumb"].contains(environment("TERM"))
  }

  func bold(_ text: String) -> String { shown(text, "1") }
  func red(_ text: String) -> String { shown(text, "1;31") }
  func green(_ text: String) -> String { shown(text, "32") }
  func yellow(_ text: String) -> String { shown(text, "33") }

  private func shown(_ text: String, _ code: String) -> String { isOn ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text }
}

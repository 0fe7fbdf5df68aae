import CredmgrDescriptors
import CredmgrMessages
import CredmgrPlatform
import Synchronization

/// Writes messages. For programs, each sentence is one line. On a terminal, long sentences wrap between words, except
/// quoted text such as commands, which users may copy.
package enum StandardError {
  /// Whether the cursor's line has a countdown, which the next message replaces.
  private static let isCounting = Mutex(false)

  /// Shows a text in the cursor's line until the next call or message.
  static func count(_ text: String) {
    isCounting.withLock { $0 = true }
    Terminal.writeError("\r" + text + "\u{1B}[K")
  }

  static func endCount() {
    let wasCounting = isCounting.withLock { isCounting in
      defer { isCounting = false }
      return isCounting
    }
    if wasCounting { Terminal.writeError("\r\u{1B}[K") }
  }

  package static func tell(_ sentence: String) {
    endCount()
    Terminal.writeError(lines("credmgr: ", Message.visible(sentence), columns: columns))
  }

  /// Writes a sentence and a list below it.
  static func tell(_ sentence: String, list items: [String]) {
    tell(sentence + ":")
    Terminal.writeError(items.map { item($0, columns: columns) }.joined())
  }

  /// Writes a message about something that is not an error, and its hint.
  static func tell(notice: Message) {
    if notice.items.isEmpty { tell(notice.text) } else { tell(notice.sentence, list: notice.items) }
    notice.hint().map { tell("hint: " + $0) }
  }

  /// Shows a message and adds the failed command's options to its hints.
  package static func show(_ message: Message, program: String = "credmgr", after line: CommandLine? = nil) {
    endCount()
    show(message.findings)
    Terminal.writeError(message.lines(program: program, after: line, style: Style(2), columns: columns))
  }

  package static func show(_ findings: [Finding]) {
    // Omit the findings about a directory that is not readable, because they are not errors.
    for finding in findings where finding.closedFolder == nil { Terminal.writeError(finding.report(columns: columns)) }
  }

  static func prompt(_ question: String) -> String {
    let question = Message.visible(question)
    return (columns.map { Layout.wrapped(question, width: $0 - 1) } ?? question) + " "
  }

  static func item(_ text: String, columns: Int?) -> String {
    lines("  ", Message.visible(text), columns: columns, indent: "    ")
  }

  /// The columns for wrapping; `nil` for no wrapping.
  static var columns: Int? { Terminal.errorColumns.flatMap { $0 < 40 ? nil : $0 } }

  /// - Parameters:
  ///   - head: the text before the sentence. It starts with a name that sets the indentation of further lines.
  ///   - shown: the head with emphasis.
  ///   - indent: the indentation of further lines, if the head has no name.
  static func lines(
    _ head: String, shown: String? = nil, _ sentence: String, columns: Int?, indent: String? = nil
  ) -> String {
    guard let columns else { return (shown ?? head) + sentence + "\n" }
    let name = head.prefix { $0 != " " }
    let indent = indent ?? String(repeating: " ", count: name.count + 1)
    return (shown ?? head)
      + Layout.wrapped(sentence, width: columns, first: head.count, indent: indent, longestQuotation: .max) + "\n"
  }
}

extension Message {
  /// Returns the lines of the message. Wraps sentences at `columns`; `nil` keeps each on one line for other programs.
  func lines(
    program: String = "credmgr", after line: CommandLine? = nil, style: Style = .plain, columns: Int? = nil
  ) -> String {
    func shown(_ sentence: String, as label: String, _ emphasis: (String) -> String) -> String {
      StandardError.lines("\(program): \(label) ", shown: "\(program): \(emphasis(label)) ", sentence, columns: columns)
    }
    return shown(items.isEmpty ? text : sentence + ":", as: "error:", style.red)
      + items.map { StandardError.item($0, columns: columns) }.joined()
      + (hint(after: line).map { shown($0, as: "hint:", style.bold) } ?? "")
  }
}

/// Emphasis, if the terminal and the user allow it (no-color.org).
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

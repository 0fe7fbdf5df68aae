import Platform

extension Command {
  static let doctor = Command(
    name: "doctor", operands: "[ID]", operandCount: 0...1,
    summary: "Check the set-up, and say how to mend what is wrong",
    options: [
      Option("--reach", value: "ID", repeats: true, "ask the servers of this provider for an answer, too"), json,
    ],
    notes: [
      "It looks at the home, the vault, the clock, the browser, the keyrings, git's and docker's configuration, "
        + "descriptors, certificates and proxies. It changes nothing, asks for no passphrase and shows no secret. "
        + "Without ID "
        + "and \"--reach\" nothing is sent anywhere.",
      "Exit status 0 when there is no problem; else that of the first one: 2 for the set-up, 3 for a login, 5 for the "
        + "network, 6 for the vault.",
    ],
    examples: [
      ("credmgr doctor", "what is wrong here"),
      ("credmgr doctor github", "the same, and whether GitHub can be reached"),
    ], asksNobody: true, needsHome: false
  ) { invocation, context throws(CommandError) in
    var doctor = Doctor(context)
    // What needs the network comes first: another program takes this one's place for it, and begins anew.
    for text in invocation.operands + invocation.all("--reach") { try doctor.reach(context.provider(text)) }
    doctor.examine()
    let found = doctor.diagnostics
    let problems = found.filter { $0.severity == .problem }
    if invocation.has("--json") {
      try context.output(.array(found.map(\.json)))
    } else {
      try context.output(shown(found))
      context.tell(
        problems.isEmpty ? "all is well" : problems.count == 1 ? "one problem" : "\(problems.count) problems")
    }
    if let first = problems.first { throw .ended(first.message.status) }
  }

  private static func shown(_ diagnostics: [Diagnostic]) -> String {
    let (style, columns) = (Style(1), Terminal.outputColumns)
    func padded(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: width - text.count) }
    let width = (diagnostics.map(\.check.rawValue.count).max() ?? 0) + 2
    let indent = padded("", 9 + width)
    func shown(_ sentence: String) -> String {
      let sentence = Message.visible(sentence)
      // A command is not broken: it is there to be copied.
      return columns.map {
        Layout.wrapped(sentence, width: $0, first: indent.count, indent: indent, longestQuotation: .max)
      } ?? sentence
    }
    var text = ""
    for diagnostic in diagnostics {
      let state = padded(diagnostic.severity.rawValue, 9)
      let shade = [Diagnostic.Severity.ok: style.green, .note: style.yellow, .problem: style.red][diagnostic.severity]
      text += shade?(state) ?? state
      text += padded(diagnostic.check.rawValue, width) + shown(diagnostic.message.text) + "\n"
      for hint in diagnostic.message.hints.compactMap({ $0.sentence() }) {
        text += indent + style.bold(shown(hint)) + "\n"
      }
    }
    return text
  }
}

import CredmgrMessages
import CredmgrPlatform

extension Command {
  static let doctor = Command(
    name: "doctor", operands: "[ID]", operandCount: 0...1,
    summary: "Find problems in your setup and show how to fix them",
    options: [
      Option("--reach", value: "ID", repeats: true, "also check that the servers of this provider answer"), json,
    ],
    notes: [
      "credmgr checks its directories, the vault, the clock, the browser, the keyrings, the configuration of git and "
        + "docker, descriptors, certificates and proxies. It changes nothing, asks for no passphrase and shows no "
        + "secret. Without ID or \"--reach\", it uses the network only for the servers of shared vaults.",
      "The exit status is 0 if it finds no problems. Otherwise, the first problem sets it: 2 for the setup, 3 for a "
        + "login, 5 for the network, 6 for the vault.",
    ],
    examples: [
      ("credmgr doctor", "Find problems on this machine"),
      ("credmgr doctor github", "Also check the connection to GitHub"),
    ], asksNobody: true, needsHome: false
  ) { invocation, context throws(CommandError) in
    var doctor = Doctor(context)
    for text in invocation.operands + invocation.all("--reach") { try doctor.reach(context.provider(text)) }
    doctor.examine()
    let found = doctor.diagnostics
    let problems = found.filter { $0.severity == .problem }
    if invocation.has("--json") {
      try context.output(.array(found.map(\.json)))
    } else {
      try context.output(shown(found))
      context.tell(
        problems.isEmpty ? "no problems found" : problems.count == 1 ? "1 problem" : "\(problems.count) problems")
    }
    if let first = problems.first { throw .ended(first.message.status) }
  }

  private static func shown(_ diagnostics: [Diagnostic]) -> String {
    let (style, columns) = (Style(1), Terminal.outputColumns)
    func padded(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: width - text.count) }
    let width = (diagnostics.map(\.check.rawValue.count).max() ?? 0) + 2
    let indent = padded("", 9 + width)
    func shown(_ sentence: String, further: String = "") -> String {
      let (sentence, indent) = (Message.visible(sentence), indent + further)
      // Keep commands on one line so that users can copy them.
      return columns.map {
        Layout.wrapped(sentence, width: $0, first: indent.count, indent: indent, longestQuotation: .max)
      } ?? sentence
    }
    var text = ""
    for diagnostic in diagnostics {
      let state = padded(diagnostic.severity.rawValue, 9)
      let shade = [Diagnostic.Severity.ok: style.green, .note: style.yellow, .problem: style.red][diagnostic.severity]
      text += shade?(state) ?? state
      let message = diagnostic.message
      text += padded(diagnostic.check.rawValue, width)
      text += shown(message.items.isEmpty ? message.text : message.sentence + ":") + "\n"
      for item in message.items { text += indent + "- " + shown(item, further: "  ") + "\n" }
      for hint in message.hints.compactMap({ $0.sentence() }) {
        text += indent + style.bold(shown(hint)) + "\n"
      }
    }
    return text
  }
}

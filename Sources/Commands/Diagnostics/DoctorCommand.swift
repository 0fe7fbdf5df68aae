import JSON
import Platform

/// What the doctor found at one place.
struct Diagnosis {
  let check: SetUpFinding.Check
  let state: SetUpFinding.State
  let sentence: String
  /// What to do, in a line each.
  let hints: [Remedy]
  /// The exit status that a command has that comes across it.
  let status: ExitStatus

  var json: JSONValue {
    [
      "check": .string(check.rawValue), "state": .string(state.rawValue), "sentence": .string(sentence),
      "hints": .array(hints.compactMap { $0.sentence() }.map(JSONValue.string)),
    ]
  }
}

extension Command {
  static let doctor = Command(
    name: "doctor", operands: "[ID]", operandCount: 0...1,
    summary: "Check the set-up, and say how to mend what is wrong",
    options: [
      Option("--reach", value: "ID", repeats: true, "ask the servers of this provider for an answer, too"), json,
    ],
    notes: [
      "It looks at the home, the vault, the clock, the browser, the keyrings, git's and docker's configuration, "
        + "descriptors, certificates and proxies. It changes nothing, asks for no passphrase and shows no secret. Without ID "
        + "and \"--reach\" nothing is sent anywhere.",
      "Exit status 0 when there is no problem; else that of the first one: 2 for the set-up, 3 for a login, 5 for the "
        + "network, 6 for the vault.",
    ],
    examples: [
      Example("credmgr doctor", "what is wrong here"),
      Example("credmgr doctor github", "the same, and whether GitHub can be reached"),
    ], asksNobody: true, needsHome: false
  ) { invocation, context throws(CommandError) in
    var doctor = Doctor(context)
    // What needs the network comes first: another program takes this one's place for it, and begins anew.
    for text in invocation.operands + invocation.all("--reach") { try doctor.reach(context.provider(text)) }
    doctor.examine()
    let findings = doctor.findings
    if invocation.has("--json") {
      try context.output(.array(findings.map(\.json)))
    } else {
      try context.output(shown(findings))
    }
    let problems = findings.filter { $0.state == .problem }
    if !invocation.has("--json") {
      context.tell(
        problems.isEmpty ? "all is well" : problems.count == 1 ? "one problem" : "\(problems.count) problems")
    }
    return problems.first?.status ?? .done
  }

  private static func shown(_ findings: [Diagnosis]) -> String {
    let style = Style(1)
    let columns = Terminal.outputColumns
    let width = findings.map(\.check.rawValue.count).max() ?? 0
    let indent = String(repeating: " ", count: 9 + width + 2)
    var text = ""
    for finding in findings {
      let state = finding.state.rawValue
      let word =
        switch finding.state {
        case .well: style.green(state)
        case .note: style.yellow(state)
        case .problem: style.red(state)
        }
      let check = finding.check.rawValue
      text += word + String(repeating: " ", count: 9 - state.count) + check
      text += String(repeating: " ", count: width - check.count + 2)
      func shown(_ sentence: String) -> String {
        let sentence = Message.visible(sentence)
        // A command is not broken: it is there to be copied.
        return columns.map {
          Layout.wrapped(sentence, width: $0, first: indent.count, indent: indent, longestQuotation: .max)
        } ?? sentence
      }
      text += shown(finding.sentence) + "\n"
      for hint in finding.hints.compactMap({ $0.sentence() }) { text += indent + style.bold(shown(hint)) + "\n" }
    }
    return text
  }
}

@testable import CredmgrCommands
import Testing
import CredmgrMessages

@Suite struct StandardErrorTests {
  @Test func aProgramReadsOneLine() {
    let sentence = String(repeating: "word ", count: 40) + "end"
    #expect(StandardError.lines("credmgr: ", sentence, columns: nil) == "credmgr: \(sentence)\n")
  }

  @Test func aTerminalShowsWholeWords() {
    let lines = StandardError.lines("credmgr: ", String(repeating: "word ", count: 40) + "end", columns: 80)
      .split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines.allSatisfy { $0.count <= 80 && $0.hasSuffix("word") || $0.hasSuffix("end") })
    #expect(lines[0].hasPrefix("credmgr: word"))
    #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("         w") })
  }

  /// The terminal wraps a long command, so copying it still gives one line.
  @Test(arguments: [40, 60, 80, 120]) func aCommandIsOnOneLine(_ columns: Int) {
    let command = "\"credmgr login github --account '\(String(repeating: "a b ", count: 20))'\""
    let lines = StandardError.lines("credmgr: hint: ", "run \(command), or wait", columns: columns)
      .split(separator: "\n")
    #expect(lines.count { $0.contains(command) } == 1)
    #expect(lines.allSatisfy { $0.count <= columns || $0.trimmingPrefix(while: { $0 == " " }).hasPrefix(command) })
  }

  @Test func emphasisTakesNoColumns() {
    let sentence = String(repeating: "word ", count: 20)
    let plain = StandardError.lines("credmgr: error: ", sentence, columns: 50)
    let shown = StandardError.lines(
      "credmgr: error: ", shown: "credmgr: \u{1B}[1merror:\u{1B}[0m ", sentence, columns: 50)
    #expect(shown.replacing("\u{1B}[1m", with: "").replacing("\u{1B}[0m", with: "") == plain)
  }

  @Test func everyHintHasItsLine() {
    let message = Message("no", hints: ["one", "two"], status: .usage)
    #expect(message.lines() == "credmgr: error: no\ncredmgr: hint: one\n")
    #expect(message.lines(program: "other", columns: 80) == "other: error: no\nother: hint: one\n")
  }
}

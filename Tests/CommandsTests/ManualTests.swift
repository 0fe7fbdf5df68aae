import Glibc
import CredmgrPlatform
import Testing

@testable import CredmgrCommands

/// Tests the manual pages as source and in two viewers.
@Suite struct ManualTests {
  /// Generated once, because that takes seconds.
  private static let manual = Result { try Manual() }

  private let pages: [String: String]
  private let complaints: String
  private let shown: [String: String]

  init() throws {
    let manual = try Self.manual.get()
    (pages, complaints, shown) = (manual.pages, manual.complaints, manual.shown)
  }

  @Test func noViewerReportsAMistake() { #expect(complaints == "") }

  @Test(.enabled(if: Manual.hasReader)) func noLineIsLongerThanATerminal() {
    #expect(shown.count >= pages.count)
    for (name, text) in shown {
      let lines = text.split(separator: "\n")
      #expect(lines.count > 10, "\(name)")
      for line in lines where line.count > 80 { Issue.record("\(name): \(line)") }
    }
  }

  @Test func everyCommandHasAPageOfItsName() throws {
    for group in Command.groups {
      for command in group.commands where !Command.groups.contains(where: { $0.name == command.name }) {
        let page = try #require(pages["credmgr-\(command.name).1"], "\(command.name)")
        // whatis(1) shows this line.
        let summary = (command.summary.prefix(1).lowercased() + command.summary.dropFirst())
          .replacing("-", with: "\\-").replacing("'", with: "\\(aq")
        #expect(page.contains(".Sh NAME\n.Nm credmgr-\(command.name)\n.Nd \(summary)\n"), "\(command.name)")
        for option in command.options {
          let name = option.name.dropFirst().replacing("-", with: "\\-")
          #expect(page.contains("Fl " + name), "\(command.name) \(option.name)")
        }
      }
      for command in group.commands {
        #expect(command.help.contains("\"man credmgr-\(command.name)\""), "\(command.name)")
      }
    }
  }

  @Test func everyGroupHasAPage() {
    let names = Command.groups.map { "credmgr-\($0.name).1" }
    let others = ["credmgr.1", "credmgr-descriptor.5", "docker-credential-credmgr.1", "git-credential-credmgr.1"]
    let commands = Command.all.map { "credmgr-\($0.name).1" }
    #expect(Set(pages.keys) == Set(names + others + commands))
  }

  @Test func everyCommandAndOptionHasAnEntry() throws {
    func written(_ text: String) -> String { text.replacing("-", with: "\\-") }
    let overview = try #require(pages["credmgr.1"])
    for group in Command.groups {
      let page = try #require(pages["credmgr-\(group.name).1"])
      for command in group.commands {
        #expect(overview.contains(".It Cm \(written(command.name))\n"), "\(command.name)")
        #expect(page.contains(".Ss credmgr \(written(command.name))\n"), "\(command.name)")
        for option in command.options {
          #expect(page.contains("Fl " + written(String(option.name.dropFirst()))), "\(command.name) \(option.name)")
        }
        for operation in command.operations {
          #expect(page.contains(".It Cm \(written(operation.name))"), "\(operation.name)")
        }
        for example in command.examples {
          let line = written(example.line).replacing("'", with: "\\(aq").replacing("~", with: "\\(ti")
          #expect(page.replacing(" \\e\n    ", with: " ").contains(line), "\(line)")
        }
      }
    }
    for option in Command.common { #expect(overview.contains("Fl " + written(String(option.name.dropFirst())))) }
  }

  /// The schema contains every key of a descriptor.
  @Test func everyDescriptorKeyHasAnEntry() throws {
    let page = try #require(pages["credmgr-descriptor.5"])
    let schema = try File.read(Path.joining(HelpTests.root, "docs/descriptor.schema.json"), limit: 1 << 20)
    let keys = String(decoding: schema, as: UTF8.self).matches(of: /"properties": ?\{\s*"(\w+)"/).map(\.output.1)
    #expect(keys.count > 5)
    for key in keys { #expect(page.contains(key), "\(key)") }
  }

  @Test func aPageIsDatedByItsSources() { #expect(pages["credmgr.1"]?.contains(".Dd September 21, 2026\n") == true) }
}

/// The output of script/manual.
private struct Manual {
  let pages: [String: String]
  let complaints: String
  /// The pages on a terminal with 80 columns, by viewer and name; empty if no viewer is installed.
  let shown: [String: String]

  init() throws {
    let folder = "/tmp/credmgr-manual.\(UInt64.random(in: 0 ... .max))"
    let program = Path.joining(Path.directory(of: try Path.executable()) ?? "", "credmgr-manual")
    let script = Path.joining(HelpTests.root, "script/manual")
    var environment = Environment.all()
    environment["SOURCE_DATE_EPOCH"] = "1790000000"
    let completion = try Launcher.run(script, [folder, program], environment: environment)
    try #require(completion.status == 0)
    var pages: [String: String] = [:]
    let names = try File.names(in: folder)
    for name in names {
      pages[name] = String(decoding: try File.read(Path.joining(folder, name), limit: 1 << 20), as: UTF8.self)
    }
    self.pages = pages
    let written = pages.keys.sorted()
    complaints = try Self.complaints(about: written.map { Path.joining(folder, $0) })
    var shown: [String: String] = [:]
    for (program, script) in Self.readers where (try? Launcher.find(program)) != nil {
      for name in written {
        let completion = try Launcher.run("/bin/sh", ["-c", script, "sh", Path.joining(folder, name)], limit: 1 << 22)
        shown["\(program) \(name)"] = String(decoding: completion.output, as: UTF8.self)
      }
    }
    self.shown = shown
    for name in names { try File.remove(Path.joining(folder, name)) }
    unsafe rmdir(folder)
  }

  /// Returns the warnings of mandoc and groff, which find different mistakes.
  private static func complaints(about files: [String]) throws -> String {
    let script = """
      command -v mandoc >/dev/null && mandoc -Tlint -Wwarning "$@"
      command -v groff >/dev/null && for page; do groff -ww -Kutf8 -mdoc -Tutf8 "$page" 2>&1 >/dev/null; done
      exit 0
      """
    let completion = try Launcher.run("/bin/sh", ["-c", script, "sh"] + files, limit: 1 << 22)
    return String(decoding: completion.output, as: UTF8.self)
  }

  /// The commands that man(1) uses on a terminal with 80 columns. They leave two columns free and show no bold text.
  private static let readers = [
    ("mandoc", #"mandoc -Tutf8 -O width=78 "$1" | sed 's/.\x08//g'"#),
    ("groff", #"groff -Kutf8 -mdoc -Tutf8 -P-cbou -rLL=78n "$1""#),
  ]

  static let hasReader = readers.contains { (try? Launcher.find($0.0)) != nil }
}

import Glibc
import Testing
import CredmgrText

@testable import CredmgrPlatform

struct LauncherTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test func runs() throws {
    let input = [UInt8](repeating: 7, count: 300_000)
    #expect(try Launcher.run("cat", [], input: input) == .init(status: 0, output: input))
    #expect(try Launcher.run("cat", []).output == [])
    #expect(try Launcher.run("sh", ["-c", "exit 7"]).status == 7)
    #expect(try Launcher.run("sh", ["-c", "kill -KILL $$"]).status == 137)
    // A program may ignore its input.
    #expect(try Launcher.run("true", [], input: input).status == 0)
  }

  @Test func passesArgumentsAndEnvironmentUnchanged() throws {
    let arguments = ["a b", "", "$HOME", "'\"", "é\n"]
    let result = try Launcher.run("printf", ["[%s]"] + arguments)
    #expect(String(decoding: result.output, as: UTF8.self) == arguments.map { "[\($0)]" }.joined())
    let variables = try Launcher.run("env", [], environment: ["A": "b c"]).output
    #expect(String(decoding: variables, as: UTF8.self) == "A=b c\n")
  }

  /// A reader of our standard error would wait for the last descendant.
  @Test func endsAllDescendants() throws {
    let folder = try TemporaryFolder()
    let script = "sh -c 'trap \"\" TERM; echo $$ > \"$0\"; while :; do sleep 1; done' \"$0\" & wait"
    #expect(throws: POSIXError.timedOut) {
      try Launcher.run("sh", ["-c", script, folder("pid")], timeout: .seconds(3))
    }
    let child = try #require(pid_t(try folder.text("pid").filter(\.isNumber)))
    // The orphan is reparented, and init may not have reaped it yet.
    func isThere() -> Bool {
      let state = try? String(decoding: File.read("/proc/\(child)/stat", limit: 4096), as: UTF8.self)
      return state.map { !$0.contains(") Z ") } ?? false
    }
    let clock = SystemClock()
    let end = clock.monotonic() + .seconds(300)
    while isThere(), clock.monotonic() < end { try clock.sleep(for: .milliseconds(10)) }
    #expect(!isThere())
  }

  @Test func fails() throws {
    #expect(throws: POSIXError.commandNotFound("no-such-command")) { try Launcher.run("no-such-command", []) }
    #expect(throws: POSIXError.commandNotFound("/no/such")) { try Launcher.run("/no/such", []) }
    #expect(throws: POSIXError.commandNotFound("")) { try Launcher.run("", []) }
    #expect(throws: POSIXError.system(call: "execve", path: nil, code: EINVAL)) { try Launcher.run("true", ["a\0b"]) }
    #expect(throws: POSIXError.timedOut) { try Launcher.run("sleep", ["60"], timeout: .milliseconds(10)) }
    #expect(throws: POSIXError.tooLarge(path: "-", limit: 100)) { try Launcher.run("yes", [], limit: 100) }
    #expect(throws: POSIXError.notFound(path: "/no/such")) {
      try Launcher.replaceProcess("/no/such", [Array("such".utf8)])
    }
  }

  /// A program that has closed its output may still run.
  @Test func endsAProgramThatClosedItsOutput() throws {
    #expect(throws: POSIXError.timedOut) {
      try Launcher.run("sh", ["-c", "exec >&-; sleep 20"], timeout: .milliseconds(300))
    }
    #expect(try Launcher.run("sh", ["-c", "exec >&-; sleep 0.1; exit 3"]).status == 3)
  }

  @Test func findsCommandsInPath() throws {
    try folder.write("tool", "#!/bin/sh\n", mode: 0o700)
    try folder.write("text", "", mode: 0o600)
    #expect(try Launcher.find("tool", path: "/no/such:\(folder.path)") == folder("tool"))
    #expect(throws: POSIXError.commandNotFound("text")) { try Launcher.find("text", path: folder.path) }
    #expect(throws: POSIXError.commandNotFound("tool")) { try Launcher.find("tool", path: "/no/such") }
  }

  @Test func startsProgramsThatOutliveUs() throws {
    let script = "while [ ! -e end ]; do sleep 0.01; done; read line < /proc/$$/stat; echo \"$line\" > stat; : > ended"
    #expect(try Launcher.launch("sh", ["-c", "cd '\(folder.path)'; \(script)"]).status(within: .zero) == nil)
    try File.replace(folder("end"), [])
    try folder.awaitFile("ended")
    // proc(5): process, name, state, parent, process group, session.
    let fields = try folder.text("stat").split(separator: " ")
    #expect(fields[0] == fields[4])
    #expect(fields[0] == fields[5])
  }

  @Test func noticesImmediateFailures() throws {
    #expect(try Launcher.launch("sh", ["-c", "exit 3"]).status(within: .seconds(300)) == 3)
    #expect(try Launcher.launch("sh", ["-c", "read x && exit 1; echo x; exit 0"]).status(within: .seconds(300)) == 0)
  }

  @Test(
    arguments: [
      ("", []), ("firefox", [["firefox", "U"]]), ("a %s b:c", [["a", "U", "b"], ["c", "U"]]),
      ("a --x=%s%%", [["a", "--x=U%"]]), ("a %x %", [["a", "%x", "%", "U"]]),
      ("'a b'  \"c 'd\" e''", [["a b", "c 'd", "e", "U"]]), ("::", []),
    ] as [(String, [[String]])])
  func browserCommands(variable: String, own: [[String]]) {
    // The desktop's own way follows the user's choice, and the way of Windows is last.
    #expect(Browser.commands("U", browser: variable) == own + [["xdg-open", "U"], ["wslview", "U"]])
  }

  @Test(arguments: [
    ("https://ok.example/d?code=$(calc.exe)", "https://ok.example/d?code=%24%28calc.exe%29"),
    ("https://h/a;b'c\"d`e|f{g}h[i]j^k\\l<m>", "https://h/a%3Bb%27c%22d%60e%7Cf%7Bg%7Dh%5Bi%5Dj%5Ek%5Cl%3Cm%3E"),
    ("https://h/?s=a%20b%2f&t=%zz%4#$(x)", "https://h/?s=a%20b%2f&t=%25zz%254#%24%28x%29"),
    ("https://h/\n\u{7F}é", "https://h/%0A%7F%C3%A9"), ("[x]://[y]/", "%5Bx%5D://%5By%5D/"),
    ("a?://[y]", "a?://%5By%5D"),
    // Characters that providers use stay unchanged.
    ("http://[::1]:8080/authorize?a=b&c=d", "http://[::1]:8080/authorize?a=b&c=d"),
    ("https://h:1/~a/b-c_d.e!*?f=g+h%2B,i:j@k&l=m#n/o?p", "https://h:1/~a/b-c_d.e!*?f=g+h%2B,i:j@k&l=m#n/o?p"),
  ]) func harmlessAddress(text: String, harmless: String) {
    #expect(text.harmlessAddress == harmless)
    #expect(harmless.harmlessAddress == harmless)
    #expect(Browser.commands(text, browser: "") == [["xdg-open", harmless], ["wslview", harmless]])
  }

  @Test func urlsAreNeverOptions() { #expect(Browser.commands("--help", browser: "a") == []) }

  @Test func opensInTheFirstBrowserThatWorks() throws {
    try folder.write("fails", "#!/bin/sh\nexit 1\n", mode: 0o700)
    try folder.write(
      "works", "#!/bin/sh\nprintf '%s' \"$1\" > '\(folder("url"))'\nenv > '\(folder("env"))'\n", mode: 0o700)
    let url = "https://h/?a=b&c='$(touch x)'%20\"#f"
    let environment = [
      "BROWSER": "no-such:fails:works %s", "PATH": "\(folder.path):/usr/bin:/bin",
      "CREDMGR_PASSPHRASE_FILE": "x", "DISPLAY": ":0",
    ]
    #expect(try Browser.open(url, environment: environment, patience: .seconds(30)).isOpen)
    // A command may be a script that passes the URL to a shell, as `wslview` does.
    #expect(try folder.text("url") == "https://h/?a=b&c=%27%24%28touch%20x%29%27%20%22#f")
    #expect(try folder.text("env").contains("DISPLAY=:0\n"))
    #expect(try !folder.text("env").contains("CREDMGR_"))
  }

  @Test func withoutABrowser() throws {
    try folder.write("fails", "#!/bin/sh\nexit 1\n", mode: 0o700)
    #expect(
      try !Browser.open("https://h/", environment: ["BROWSER": "fails", "PATH": folder.path], patience: .seconds(30))
        .isOpen)
    try folder.write("xdg-open", "#!/bin/sh\n", mode: 0o700)
    #expect(
      try Browser.open("https://h/", environment: ["BROWSER": "fails", "PATH": folder.path], patience: .seconds(30))
        .isOpen)
  }

  /// The status of a program that is still running can be checked later.
  @Test func browserThatFailsLater() throws {
    let gate = folder("gate")
    try #require(unsafe mkfifo(gate, 0o600) == 0)
    try folder.write("slow", "#!/bin/sh\nread x <'\(gate)'\nexit 3\n", mode: 0o700)
    let opening = try Browser.open(
      "https://h/", environment: ["BROWSER": "slow", "PATH": "\(folder.path):/usr/bin:/bin"], patience: .zero)
    guard case .running("slow", let program) = opening else {
      Issue.record("\(opening)")
      return
    }
    #expect(try program.status(within: .zero) == nil)
    let file = unsafe open(gate, O_WRONLY)
    close(file)
    #expect(try program.status(within: .seconds(300)) == 3)
  }
}

import Glibc
import CredmgrPlatform
import Synchronization

/// Runs a transcript in its own directory, with a server for its answers, and with an environment independent of the
/// machine.
final class Stage {
  let folder: String
  private let server: AnswerServer
  private let environment: [String: String]
  /// The shipped descriptors, which the programs find next to their build directory.
  private let shipped: String

  struct NoFolder: Error {}

  init(_ transcript: Transcript) throws {
    var template = Array("/tmp/credmgr-commands.XXXXXX".utf8CString)
    let made = unsafe template.withUnsafeMutableBufferPointer {
      guard let base = $0.baseAddress else { return false }
      return unsafe mkdtemp(base) != nil
    }
    guard made else { throw NoFolder() }
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    self.folder = folder
    let requests = Mutex("")
    server = try AnswerServer { authority in
      transcript.sections.filter { $0.kind == "answer" }.map {
        AnswerServer.Answer(route: $0.name, $0.text.replacing("$SERVER", with: "http://\(authority)"))
      }
    } note: { request in
      let all = requests.withLock { text in
        text += Self.shown(request)
        return text
      }
      try? File.replace(folder + "/requests", Array(all.utf8))
    }
    let programs = Path.joining(Path.directory(of: #filePath) ?? "", "Programs")
    let binaries = try Self.binaries()
    shipped =
      String(binaries.prefix(upTo: binaries.firstRange(of: "/.build/")?.lowerBound ?? binaries.endIndex)) + "/providers"
    environment = [
      "PATH": "\(binaries):\(programs):/usr/local/bin:/usr/bin:/bin", "HOME": folder,
      "CREDMGR_HOME": folder + "/home", "LC_ALL": "C.UTF-8", "BROWSER": "browser", "WORK": folder,
      "SERVER": "http://127.0.0.1:\(server.port)", "PORT": "\(server.port)",
      "GIT_CONFIG_GLOBAL": folder + "/gitconfig", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
      "CREDMGR_CHEAP_PASSPHRASES": "1",
    ]
    for section in transcript.sections where section.kind == "file" {
      let text = section.text.replacing("$SERVER", with: "http://127.0.0.1:\(server.port)")
        .replacing("$PORT", with: "\(server.port)").replacing("$WORK", with: folder)
      if let parent = Path.directory(of: Path.joining(folder, section.name)) { try File.createDirectory(parent) }
      try File.replace(Path.joining(folder, section.name), Array(text.utf8))
    }
  }

  deinit {
    _ = try? Launcher.run("/bin/sh", ["-c", "chmod -R u+rwX \"$0\"; rm -rf \"$0\"", folder], environment: environment)
  }

  /// Returns the directory of the programs: that of the file `CREDMGR_BIN`, or else that of the tests.
  private static func binaries() throws -> String {
    let program = try Environment.value("CREDMGR_BIN") ?? Path.executable()
    let folder = Path.directory(of: program) ?? "."
    return folder.hasPrefix("/") ? folder : Path.joining(try Path.currentDirectory(), folder)
  }

  /// Runs a command in a new shell.
  func run(_ command: Transcript.Command) throws -> Transcript.Outcome {
    let script = "cd \"$WORK\" || exit 126\nexec 2>\"$WORK/.errors\"\n\(command.lines.joined(separator: "\n"))\n"
    let completion = try Launcher.run("/bin/bash", ["-c", script], environment: environment, timeout: .seconds(60))
    let errors = try File.read(folder + "/.errors", limit: 1 << 20)
    return Transcript.Outcome(
      output: settled(String(decoding: completion.output, as: UTF8.self)),
      errors: settled(String(decoding: errors, as: UTF8.self)), status: completion.status)
  }

  /// Returns a request for a transcript: everything that credmgr decided, without connection headers.
  private static func shown(_ request: String) -> String {
    let parts = request.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    var lines = parts[0].split(separator: "\r\n").map(String.init)
    let line = lines.removeFirst().split(separator: " ").prefix(2).joined(separator: " ")
    let unimportant = ["host:", "content-length:", "user-agent:", "accept-encoding:"]
    let fields = lines.filter { field in !unimportant.contains { field.lowercased().hasPrefix($0) } }
    let body = parts.count > 1 && !parts[1].isEmpty ? [String(parts[1])] : []
    return ([line] + fields.sorted() + body).map { $0 + "\n" }.joined()
  }

  /// Replaces varying values with names.
  private func settled(_ text: String) -> String {
    text.replacing(folder, with: "$WORK").replacing(shipped, with: "$SHIPPED")
      .replacing("127.0.0.1:\(server.port)", with: "127.0.0.1:$PORT")
      .replacing("127.0.0.1%3A\(server.port)", with: "127.0.0.1%3A$PORT")
      // The simulator's tokens last an hour, and a second may have passed.
      .replacing("valid for 59 min", with: "valid for 1 h")
      .replacing(/-linux-(x86_64|aarch64)/, with: "-linux-$MACHINE")
      .replacing(/127\.0\.0\.1:\d{4,5}/, with: "127.0.0.1:$FREE")
      .replacing(/127\.0\.0\.1%3A\d{4,5}/, with: "127.0.0.1%3A$FREE")
      .replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/, with: "$TIME")
      .replacing(/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT/, with: "$DATE")
      .replacing(/password_expiry_utc=\d{10}/, with: "password_expiry_utc=$TIME")
      .replacing(/(state|code_challenge|code_verifier)=[\w-]{43}/) { "\($0.output.1)=$RANDOM" }
      .replacing(/(oauth_nonce|oauth_signature|oauth_timestamp)=(\\?")[^"\\]+/) {
        "\($0.output.1)=\($0.output.2)$RANDOM"
      }
  }
}

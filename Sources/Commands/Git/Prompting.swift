import HTTP
import Platform

/// Whether there is somebody who can be asked to log in.
struct Prompting {
  let context: Context
  let uri: URI

  init(_ context: Context, _ uri: URI) {
    self.context = context
    self.uri = uri
  }

  var isAllowed: Bool {
    if let prompt = value("GIT_TERMINAL_PROMPT"), GitCredential.isFalse(prompt) { return false }
    // A program that answers nothing is how scripts say that nobody is there.
    if let program = value("GIT_ASKPASS"), ["true", "false", "echo", ":"].contains(Path.lastComponent(of: program)) {
      return false
    }
    guard SessionKind(environment: context.environment) == .desktop || ControllingTerminal() != nil else {
      return false
    }
    // Only git knows all of the places where this can stand.
    let arguments = ["config", "--get-urlmatch", "credential.interactive", uri.origin]
    guard let said = try? Launcher.run("git", arguments, errors: .silenced), said.status == 0 else { return true }
    return !GitCredential.isFalse(String(decoding: said.output.filter { $0 > 0x20 }, as: UTF8.self))
  }

  private func value(_ name: String) -> String? { Environment.text(name, context.environment) }
}

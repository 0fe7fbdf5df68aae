import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

/// The result for one place: correct, notable, or broken, with a remedy.
struct Diagnostic {
  enum Check: String, Sendable {
    case home, vault, accounts, clock, browser, keyring, programs, git, docker, descriptors, hosts, rules, certificates
    case proxy, network
  }

  enum Severity: String, Sendable {
    case ok
    case note, problem
  }

  let check: Check
  let severity: Severity
  /// The message has the exit status of a command that fails for this reason.
  let message: Message

  var json: JSONValue {
    [
      "check": .string(check.rawValue), "state": .string(severity.rawValue), "sentence": .string(message.text),
      "hints": .array(message.hints.compactMap { $0.sentence() }.map(JSONValue.string)),
    ]
  }
}

/// Checks everything that a command may depend on. Changes nothing and never prompts.
///
/// Each check has its own file, with the test, the message and the remedy.
struct Doctor {
  let context: Context
  private(set) var diagnostics: [Diagnostic] = []
  /// Whether another user owns the home, so nothing else in it works.
  var isForeign = false

  init(_ context: Context) { self.context = context }

  mutating func examine() {
    let remote = diagnostics
    diagnostics = []
    checkHome()
    let accounts = checkVault()
    checkSharedVaults()
    if let accounts { checkAccounts(accounts) }
    // Report a wrong clock only once, whichever check found it.
    if !(remote + diagnostics).contains(where: { $0.check == .clock }) { checkClock(accounts) }
    checkBrowser()
    checkKeyring()
    checkPrograms()
    let claims = (try? context.source.hostClaims()) ?? []
    checkGit(claims.filter { $0.helper == .git })
    checkDocker(claims.filter { $0.helper == .docker })
    checkDescriptors(accounts)
    checkHosts(claims)
    checkRules(accounts)
    checkCertificates()
    checkProxy()
    diagnostics += remote
  }

  mutating func ok(_ check: Diagnostic.Check, _ text: String) {
    add(Message(text, status: .done), check, severity: .ok)
  }

  mutating func note(
    _ check: Diagnostic.Check, _ sentence: String, items: [String] = [], hint: Remedy? = nil, hints: [Remedy] = []
  ) {
    add(Message(sentence, items: items, hint: hint, hints: hints, status: .done), check, severity: .note)
  }

  mutating func problem(
    _ check: Diagnostic.Check, _ sentence: String, items: [String] = [], hints: Remedy..., status: ExitStatus = .usage
  ) {
    problem(check, Message(sentence, items: items, hints: hints, status: status))
  }

  mutating func problem(_ check: Diagnostic.Check, _ message: Message) { add(message, check, severity: .problem) }

  private mutating func add(_ message: Message, _ check: Diagnostic.Check, severity: Diagnostic.Severity) {
    // Report a cause only once, at the first place affected.
    guard severity == .ok || !diagnostics.contains(where: { $0.message.text == message.text }) else { return }
    let message = message.with(hints: context.resolved(message.hints))
    diagnostics.append(Diagnostic(check: check, severity: severity, message: message))
  }

  func tellAll() {
    for diagnostic in diagnostics where diagnostic.severity != .ok {
      StandardError.tell(notice: diagnostic.message.with(hints: []))
      for remedy in diagnostic.message.hints { context.tell(hint: remedy) }
    }
  }

  /// Reports why another program cannot use its configuration.
  mutating func tell(_ fault: FileFault, of path: String, as check: Diagnostic.Check) {
    problem(check, "\(check.rawValue) cannot use \(quoted(path)): \(fault.words)", hints: fault.remedy)
  }

  /// The most faults of one kind to show, because there may be thousands.
  static let shown = 5

  func value(_ variable: String) -> String? { Environment.text(variable, context.environment) }
}

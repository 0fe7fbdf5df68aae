import CredentialManager
import Platform

/// Looks at everything that a command may depend on. Nothing is changed, and nobody is asked.
///
/// A check is a file: what is looked at, what is said of it and what mends it stand together there.
struct Doctor {
  let context: Context
  private(set) var diagnostics: [Diagnostic] = []
  /// Whether the home is another user's, which is why nothing else in it can be used.
  var isForeign = false

  init(_ context: Context) { self.context = context }

  mutating func examine() {
    let remote = diagnostics
    diagnostics = []
    checkHome()
    let accounts = checkVault()
    if let accounts { checkAccounts(accounts) }
    // One cause is one finding, whatever clock it was found by.
    if !remote.contains(where: { $0.check == .clock }) { checkClock(accounts) }
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

  // MARK: What is found

  mutating func ok(_ check: Diagnostic.Check, _ text: String) {
    diagnostics.append(Diagnostic(check: check, severity: .ok, text: text))
  }

  mutating func note(_ check: Diagnostic.Check, _ text: String, _ remedies: Remedy...) {
    note(check, text, remedies: remedies)
  }

  mutating func note(_ check: Diagnostic.Check, _ text: String, remedies: [Remedy]) {
    tell(Diagnostic(check: check, severity: .note, text: Message.visible(text), remedies: remedies))
  }

  mutating func problem(
    _ check: Diagnostic.Check, _ text: String, _ remedies: Remedy..., status: ExitStatus = .usage
  ) {
    problem(check, Message(text, hints: remedies, status: status))
  }

  /// What an ordinary error says.
  mutating func problem(_ check: Diagnostic.Check, _ message: Message) {
    tell(
      Diagnostic(
        check: check, severity: .problem, text: message.text, remedies: message.hints, status: message.status))
  }

  private mutating func tell(_ diagnostic: Diagnostic) {
    // One cause is told once, at whatever it was met first.
    guard !diagnostics.contains(where: { $0.text == diagnostic.text }) else { return }
    diagnostics.append(diagnostic)
  }

  /// Tells a person on standard error what is not as it should be.
  func tellAll() {
    for diagnostic in diagnostics where diagnostic.severity != .ok {
      context.tell(diagnostic.text)
      for remedy in diagnostic.remedies { context.tell(hint: remedy) }
    }
  }

  // MARK: What several checks need

  var isRoot: Bool { UserEntry.identifier == 0 }

  var program: String { context.program }

  /// The value of a variable that is set.
  func value(_ variable: String) -> String? { context.environment(variable).flatMap { $0.isEmpty ? nil : $0 } }

  /// A folder that does not let the person through, or does not say what is in it.
  mutating func tellClosed(_ folder: String) {
    problem(
      .home, POSIXError.permissionDenied(path: folder).message.with(hints: [.opening(folder)]))
  }
}

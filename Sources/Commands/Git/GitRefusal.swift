import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrHTTP
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// Logs in or tells the reason if the vault has no answer for git.
extension GitHelper: RefusingHelper {
  /// Tells git to stop. Otherwise, it would prompt for a password, although a stored one may be the answer.
  static func ending(_ error: CommandError, _ context: Context) throws(CommandError) -> CommandError {
    switch error {
    case .handOver, .ended: break
    default: try context.output("quit=1\n")
    }
    return error
  }

  func refuse(
    _ error: CredentialError?, _ choice: AccountChoice?, in session: HelperSession
  ) throws(CommandError) {
    let context = session.context
    switch error {
    case .loginNeeded(_, let name, let reason)?:
      // A name without an account is the new account's name if the user chose it, but not if another program did.
      let isMeant = reason != .noCredential || (choice.map { $0.reason != .username } ?? false)
      if mayPrompt(context) { return try logIn(isMeant ? name : nil, choice, in: session) }
      // Report a login that no longer works, and an account that the user chose.
      if isMeant, let error { throw CommandError(error) }
    case .unknownAccount(_, let provider, let known)?:
      guard let error, let message = context.message(CommandError(error)) else { return }
      // git would prompt for a password next, which this host does not accept.
      if mayPrompt(context) { try context.output("quit=1\n") }
      guard choice?.reason == .username, claim?.namesAccount == false, let one = known.first else {
        throw .failed(message)
      }
      let use: Remedy = "\(credmgr: "use", provider, one, "--for", uri.origin) to use one of them for this host"
      throw .failed(message.with(hints: [use] + message.hints))
    default: hint(context)
    }
  }

  private func mayPrompt(_ context: Context) -> Bool {
    func value(_ name: String) -> String? { Environment.text(name, context.environment) }
    if let prompt = value("GIT_TERMINAL_PROMPT"), GitCredential.isFalse(prompt) { return false }
    if SessionKind(environment: context.environment) != .desktop, ControllingTerminal() == nil { return false }
    // This setting can be in many places, so let git look it up.
    func configured(_ arguments: String...) -> String? {
      let said = try? Launcher.run("git", ["config"] + arguments, errors: .silenced)
      return said?.status == 0 ? String(decoding: said?.output.filter { $0 > 0x20 } ?? [], as: UTF8.self) : nil
    }
    // Scripts set an askpass program that prints nothing to show that no user is present.
    let mutes = ["true", "false", "echo", ":"]
    let program = value("GIT_ASKPASS") ?? configured("--get", "core.askPass") ?? value("SSH_ASKPASS")
    if let program, mutes.contains(Path.lastComponent(of: program)) { return false }
    let url = RepositoryContext(environment: context.environment).url(uri, path: request["path"])
    return !GitCredential.isFalse(configured("--get-urlmatch", "credential.interactive", url) ?? "")
  }

  private func logIn(
    _ name: String?, _ choice: AccountChoice?, in session: HelperSession
  ) throws(CommandError) {
    let context = session.context
    guard let provider else { return }
    FaultPoint.reach("git.login")
    let programs = WaitingPrograms { $0.hasPrefix("git") }
    context.tell("git requires a login to \(context.titled(provider))" + (name.map { " as \"\($0)\"" } ?? ""))
    var wish = LoginOptions()
    wish.account = name
    wish.unlessAlive = true
    let offered = (try? context.home.library.load(provider))?.descriptor.grants ?? []
    let page = ["credmgr", "login", provider] + accountOption(name) + ["--no-browser"]
    let fitting = Command.fittingGrant(of: offered, page: page, context)
    wish.grant = fitting?.grant
    wish.opensBrowser = SessionKind(environment: context.environment) == .desktop
    wish.hasLocalBrowser = !SessionKind.isRemote(context.environment)
    let user = TerminalUser(
      provider: provider, offered: offered, fitting: fitting, context, terminal: ControllingTerminal(),
      waiting: programs)
    defer { user.end() }
    let account: Account
    do throws(CredentialError) { account = try context.source.login(provider, wish, user: context.user(user)) } catch {
      // git would prompt for a password next, which this host does not accept.
      try context.output("quit=1\n")
      throw CommandError(error)
    }
    if let choice, choice.reason == .username, choice.name != account.name,
      claim?.isName(choice.name, of: account) != true
    {
      try context.output("quit=1\n")
      throw .failed(
        "you logged in as \"\(account.name)\", but the URL names \"\(choice.name)\"",
        hint: "\(credmgr: "login", provider, "--account", choice.name)", status: .loginNeeded)
    }
    let fresh: Account
    do throws(CredentialError) { fresh = try freshAccount(account.name, of: provider, context) } catch {
      try context.output("quit=1\n")
      throw CommandError(error)
    }
    try session.answer(fresh)
  }

  /// Names the login that requests the scope, if the server refused an earlier token because of it.
  func tellMissingScope(_ context: Context) throws(CommandError) {
    guard let provider, let required = RequiredScope(challenges: request.list("wwwauth")) else { return }
    let name = try choice(provider, context)?.name
    guard let account = try? context.source.accountsIfAny()?.resolve(name, provider: provider) else { return }
    let (words, remedy) = context.missingScope(required, of: account)
    context.tell("\(quoted(uri.host ?? "")) refused the token: " + words)
    context.tell(hint: remedy)
  }

  /// Suggests a provider for a host without one, using the realms that the server sent.
  private func hint(_ context: Context) {
    guard let host = HostPattern.authority(uri), uri.isSecure, !request.realms.isEmpty,
      let (provider, realm) = context.source.providers(ofRealms: request.realms).first
    else { return }
    let isAdded = (try? context.source.accountsIfAny()?.registration(of: provider.identifier)) != nil
    context.tell("\"\(host)\" reports that it is \(realm), but no provider is set up for it")
    let name = isAdded ? ["--as", "\(provider.identifier)-\(host.exchanging(":", for: "-"))"] : []
    var needs = ClientNeeds(provider)
    needs.leaveOut(["host": host])
    let options = name + ["--set", "host=\(host)"] + needs.options
    context.tell(hint: "\(credmgr: ["add-provider", provider.identifier] + options)")
  }
}

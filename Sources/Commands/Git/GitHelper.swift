import CredentialManager
import Cryptography
import HTTP
import OAuth
import Platform
import Text

/// A question of git, for a host that there can be (gitcredentials(7), CUSTOM HELPERS).
struct GitHelper: HelperProtocol {
  let request: GitCredential
  let uri: URI
  let claims: [HostClaim]
  let claim: HostClaim?

  /// `nil` for a question about no host, or about one that is not to be told anything.
  init?(_ request: GitCredential, _ context: Context) throws(CommandError) {
    guard let uri = request.uri else {
      if let host = request["host"], !host.utf8.allSatisfy({ $0 < 0x80 }) {
        context.tell("the host \(quoted(host)) is not looked up: write it as DNS has it, with \"xn--\"")
      }
      return nil
    }
    self.request = request
    self.uri = uri
    let host = uri.isSecure || uri.scheme == "http" ? HostPattern.authority(uri) : nil
    claims = if let host { try manager(context.source.claims(of: host, for: .git)) } else { [] }
    let repository = RepositoryContext(environment: context.environment)
    claim = try context.claim(among: claims, username: request["username"]) {
      repository.remotes(uri, path: request["path"])
    }
    if let claim, !uri.isSecure, !uri.isLoopback {
      // Whoever listens on the way would read it.
      context.tell("\"\(uri.host ?? "")\" is of \"\(claim.provider)\", whose credentials go over https alone")
      return nil
    }
  }

  var provider: String? { claim?.provider }

  var providers: [String] { claims.map(\.provider) }

  var refused: GivenToken? { wasMisplaced ? nil : GivenToken(gitStates: request.list("state")) }

  /// Whether a server that takes Bearer alone was sent a password: git asked before it knew (`http.proactiveAuth`).
  var wasMisplaced: Bool {
    let isPassword = request["password"] != nil || GivenToken(gitStates: request.list("state"))?.isPassword == true
    return isPassword && request.needsBearer && request.has(capability: "authtype")
  }

  var logins: HostLoginPattern? {
    HostLoginPattern(
      origin: uri.origin, path: request["path"], username: request["username"],
      takesSchemes: request.has(capability: "authtype"))
  }

  var recipient: String { "git " + (request["host"] ?? "") }

  var password: Secret? { (request["password"] ?? request["credential"]).map { Secret($0) } }

  private var username: String? { request["username"] }

  func choice(_ provider: String, _ context: Context) throws(CommandError) -> AccountChoice? {
    guard let claim else { return nil }
    let repository = RepositoryContext(environment: context.environment)
    return try context.choice(username: username, claim, stored: logins) {
      repository.remotes(uri, path: request["path"])
    }
  }

  func freshAccount(_ name: String?, of provider: String, _ context: Context) throws(CredentialError) -> Account {
    guard let claim else { throw .loginNeeded(provider: provider, account: name, .noCredential) }
    // A clone goes on for some minutes, and git asks but once.
    return try context.source.handOut(
      name, of: provider, by: .helper, to: .claimed(claim), RefreshPolicy(preferredLifetime: .seconds(300)))
  }

  func isOurs(_ login: HostLogin, _ accounts: [Account]) -> Bool {
    if login.scheme != nil || claims.contains(where: { $0.ignoresUsername || $0.username == login.username }) {
      return true
    }
    return accounts.contains { account in
      account.credential.accessToken == login.password || account.matches(username: login.username ?? "")
    }
  }

  /// What git wants to be stored, for so long; `nil` where that is of no use later.
  func login(at now: Moment, lifetime: Duration?) -> HostLogin? {
    // What is of use only now is not kept (git-credential(1), `ephemeral`).
    if let ephemeral = request["ephemeral"], !GitCredential.isFalse(ephemeral) { return nil }
    var login: HostLogin
    if let scheme = request["authtype"], let credential = request["credential"] {
      login = HostLogin(username: username, password: Secret(credential), scheme: scheme)
    } else if let username, let password = request["password"] {
      login = HostLogin(username: username, password: Secret(password))
    } else {
      return nil
    }
    login.path = request["path"]
    login.expiresAt = request["password_expiry_utc"].flatMap { Int64($0) }.map(Moment.init(secondsSince1970:))
    login.refreshToken = request["oauth_refresh_token"].map { Secret($0) }
    if let lifetime { login.expiresAt = min(login.expiresAt ?? now + lifetime, now + lifetime) }
    if let expiresAt = login.expiresAt, expiresAt <= now { return nil }
    return login
  }

  func answer(_ account: Account, _ context: Context) throws(CommandError) -> String {
    let credential = account.credential
    let token = credential.accessToken.reveal()
    var answer = ""
    let knowsSchemes = request.has(capability: "authtype")
    let isBearer = knowsSchemes && request.needsBearer
    if knowsSchemes {
      // Another helper that keeps it would hand it out when it is old.
      answer += "capability[]=authtype\nephemeral=1\n"
    }
    if isBearer {
      answer += try "authtype=Bearer\n" + GitCredential.line("credential", token)
    } else {
      let name = credential.identity ?? account.name
      let username = username.flatMap { $0.isEmpty ? nil : $0 } ?? claim?.username(for: name) ?? name
      answer += try GitCredential.line("username", username) + GitCredential.line("password", token)
    }
    if let expiresAt = credential.expiresAt { answer += "password_expiry_utc=\(expiresAt.secondsSince1970)\n" }
    if request.has(capability: "state") {
      answer +=
        try "capability[]=state\n" + GitCredential.line("state[]", GivenToken(account, isPassword: !isBearer).gitState)
      // Once, a refused token is asked for again, and not given up.
      if refused == nil, account.isRefreshable(at: context.clock.now()) { answer += "continue=1\n" }
    }
    return answer
  }

  func answer(_ login: HostLogin) throws(CommandError) -> String {
    var answer = ""
    if let scheme = login.scheme { answer += try "capability[]=authtype\n" + GitCredential.line("authtype", scheme) }
    if let username = login.username { answer += try GitCredential.line("username", username) }
    answer += try GitCredential.line(login.scheme == nil ? "password" : "credential", login.password.reveal())
    if let expiresAt = login.expiresAt { answer += "password_expiry_utc=\(expiresAt.secondsSince1970)\n" }
    if let token = login.refreshToken { answer += try GitCredential.line("oauth_refresh_token", token.reveal()) }
    return answer
  }

  /// git would ask for a user name and a password next, which cannot help: what is stored here may be the answer.
  static func ending(_ error: CommandError, _ context: Context) throws(CommandError) -> CommandError {
    switch error {
    case .handOver, .ended: break
    case .failed, .credential: try context.output("quit=1\n")
    }
    return error
  }

  func refuse(
    _ error: CredentialError?, _ choice: AccountChoice?, _ session: HelperSession<Self>
  ) throws(CommandError) {
    let context = session.context
    switch error {
    case .loginNeeded(_, let name, let reason)?:
      // What names no account yet is what the person calls the new one, unless another program said it.
      let isMeant = reason != .noCredential || (choice.map { $0.reason != .username } ?? false)
      if mayPrompt(context) { return try logIn(isMeant ? name : nil, choice, session) }
      // Where there is something that does not work any more, the person is told.
      if reason != .noCredential, let error { throw CommandError(error) }
    case .unknownAccount(_, let provider, let known)?:
      guard let error, let message = context.message(CommandError(error)) else { return }
      // git would ask for a password next, which is none that this host takes.
      if mayPrompt(context) { try context.output("quit=1\n") }
      guard choice?.reason == .username, claim?.namesAccount == false, let one = known.first else {
        throw .failed(message)
      }
      let use: Remedy = "\(credmgr: "use", provider, one, "--for", uri.origin) to have one of them for this host"
      throw .failed(message.with(hints: [use] + message.hints))
    default: hint(context)
    }
  }

  private func mayPrompt(_ context: Context) -> Bool {
    func value(_ name: String) -> String? { Environment.text(name, context.environment) }
    if let prompt = value("GIT_TERMINAL_PROMPT"), GitCredential.isFalse(prompt) { return false }
    // A program that answers nothing is how scripts say that nobody is there.
    if SessionKind(environment: context.environment) != .desktop, ControllingTerminal() == nil { return false }
    // Only git knows all of the places where this can stand.
    func configured(_ arguments: String...) -> String? {
      let said = try? Launcher.run("git", ["config"] + arguments, errors: .silenced)
      return said?.status == 0 ? String(decoding: said?.output.filter { $0 > 0x20 } ?? [], as: UTF8.self) : nil
    }
    let mutes = ["true", "false", "echo", ":"]
    let program = value("GIT_ASKPASS") ?? configured("--get", "core.askPass") ?? value("SSH_ASKPASS")
    if let program, mutes.contains(Path.lastComponent(of: program)) { return false }
    let url = RepositoryContext(environment: context.environment).url(uri, path: request["path"])
    return !GitCredential.isFalse(configured("--get-urlmatch", "credential.interactive", url) ?? "")
  }

  private func logIn(
    _ name: String?, _ choice: AccountChoice?, _ session: HelperSession<Self>
  ) throws(CommandError) {
    let context = session.context
    guard let provider else { return }
    guard context.source.hasNetwork else { throw .handOver(input: nil) }
    FaultPoint.reach("git.login")
    let programs = WaitingPrograms { $0.hasPrefix("git") }
    context.tell("git needs a login to \"\(provider)\"" + (name.map { " for the account \"\($0)\"" } ?? ""))
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
    do throws(CredentialError) { account = try context.source.login(provider, wish, user: user) } catch {
      // git would ask for a password next, which is none that this host takes.
      try context.output("quit=1\n")
      throw CommandError(error)
    }
    if let choice, choice.reason == .username, choice.name != account.name, !account.matches(username: choice.name) {
      try context.output("quit=1\n")
      throw .failed(
        "the login was for \"\(account.name)\", and the URL asks for \"\(choice.name)\"",
        hint: "\(credmgr: "login", provider, "--account", choice.name)", status: .loginNeeded)
    }
    try session.answer(account)
  }

  /// A host that nobody claims may still tell what it is.
  private func hint(_ context: Context) {
    guard let host = HostPattern.authority(uri), uri.isSecure, !request.realms.isEmpty,
      let (provider, realm) = context.source.providers(ofRealms: request.realms).first
    else { return }
    let isAdded = (try? context.source.accountsIfAny()?.registration(of: provider.identifier)) != nil
    context.tell("\"\(host)\" says that it is \(realm), and no provider claims it")
    let name = isAdded ? ["--as", "\(provider.identifier)-\(host.exchanging(":", for: "-"))"] : []
    let options = name + ["--set", "host=\(host)"] + ClientNeeds(provider).options
    context.tell(hint: "\(credmgr: ["add-provider", provider.identifier] + options)")
  }
}

extension Context {
  /// The account that a user name in a URL names, else the one that the environment or a rule does; `nil` for the
  /// default one. A user name that names no account says nothing where the token goes with a name of its own, unless a
  /// login is stored with it, or there are several accounts, and nothing says which of them is meant.
  func choice(
    username: String?, _ claim: HostClaim, stored: HostLoginPattern?, remotes: () -> [RemoteAddress]
  ) throws(CommandError) -> AccountChoice? {
    guard let username, !username.isEmpty, username != claim.username, !claim.ignoresUsername else {
      return try choice(nil, of: claim.provider, remotes: remotes)
    }
    let accounts = try manager(source.accountsIfAny())
    if let name = try manager(accounts?.name(forUsername: username, of: claim.provider)) {
      return AccountChoice(name, .username)
    }
    let isStored = try stored.map { pattern throws(CommandError) in try manager(source.hostLogin(pattern)) != nil }
    if claim.namesAccount || isStored == true { return AccountChoice(username, .username) }
    if let choice = try choice(nil, of: claim.provider, remotes: remotes) { return choice }
    let count = try manager(accounts?.accounts(of: claim.provider).count ?? 0)
    return count > 1 ? AccountChoice(username, .username) : nil
  }
}

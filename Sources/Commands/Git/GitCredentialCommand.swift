import CredentialManager
import Cryptography
import Descriptors
import HTTP
import OAuth
import Platform
import Text

extension Command {
  static let gitCredential = Command(
    name: "git-credential", operands: "get|store|erase|capability", operandCount: 1...1,
    summary: "The git credential helper",
    options: [
      Option("--timeout", value: "DURATION", "forget what git stores after that; a number alone counts seconds")
    ],
    notes: [
      "\"credmgr git-setup\" enters it into git's configuration.",
      "A host that no provider claims gets what git stored for it.",
    ],
    examples: [
      Example("echo url=https://github.com | credmgr git-credential get", "what git would get")
    ]
  ) { invocation, context throws(CommandError) in
    let operation = invocation.operands[0]
    if operation == "capability" {
      try context.output("version 0\ncapability authtype\ncapability state\n")
      return .done
    }
    let number = invocation.value("--timeout").flatMap { Int64($0) }
    let lifetime = if let number { number } else { try context.duration("--timeout", invocation) }
    let input = try system { () throws(POSIXError) in try File.readStandardInput(limit: 1 << 20) }
    do throws(CommandError) {
      switch operation {
      case "get": try GitQuestion(GitCredential(input), context)?.get()
      case "store": try GitQuestion(GitCredential(input), context)?.store(for: lifetime)
      case "erase": try GitQuestion(GitCredential(input), context)?.erase()
      // Operations that we do not know are passed over (gitcredentials(7)).
      default: break
      }
    } catch .handOver {
      throw .handOver(input: input)
    }
    return .done
  }
}

/// One question of git, for a host that there can be (gitcredentials(7), CUSTOM HELPERS).
private struct GitQuestion {
  let request: GitCredential
  let context: Context
  let uri: URI
  /// Whose host it is.
  let claim: HostClaim?

  /// Seconds that a token should live when git gets it: a clone goes on for some minutes, and git asks but once.
  private static let comfort: Int64 = 300

  /// `nil` for a question about no host, or about one that is not to be told anything.
  ///
  /// - Throws: `CommandError` where the vault has to be looked into for it, and does not open.
  init?(_ request: GitCredential, _ context: Context) throws(CommandError) {
    guard let uri = request.uri else { return nil }
    self.request = request
    self.context = context
    self.uri = uri
    guard uri.isSecure || uri.scheme == "http" else {
      claim = nil
      return
    }
    claim = try manager { () throws(CredentialError) in
      guard let host = HostPattern.authority(uri) else { return nil }
      return try context.source.claim(of: host, for: .git)
    }
    if let claim, !uri.isSecure, !uri.isLoopback {
      // Whoever listens on the way would read it.
      context.tell("\"\(uri.host ?? "")\" is of \"\(claim.provider)\", whose credentials go over https alone")
      return nil
    }
  }

  private var username: String? { request["username"] }

  // MARK: get

  func get() throws(CommandError) {
    var missing: (account: String?, error: CommandError)?
    if let claim {
      var account: Account?
      let name = try accountName(claim)
      do throws(CredentialError) {
        try rejectGiven(claim)
        account = try context.source.freshAccount(name, of: claim.provider, Freshen(comfort: Self.comfort))
      } catch {
        switch error {
        case .loginNeeded(_, let account, let reason):
          // Where there is something that does not work any more, the person is told.
          missing = (
            account, reason == .noCredential ? .noCredential(provider: claim.provider, account: account) : .init(error)
          )
        case .unknownAccount(let name, _, _): missing = (name, .noCredential(provider: claim.provider, account: name))
        default: throw CommandError(error)
        }
      }
      if let account { return try answer(account, claim) }
    }
    if let login = try manager({ () throws(CredentialError) in try context.source.hostLogin(pattern()) }) {
      return try answer(login)
    }
    guard let claim, let missing else { return try hint() }
    if Person(context, uri).isThere { return try logIn(missing.account, claim) }
    if case .failed = missing.error { throw missing.error }
  }

  /// The account that git means: the user name in the URL, unless that is the one that goes with every token; else what the
  /// rules say. A user name may also be whom the provider knows the account as.
  private func accountName(_ claim: HostClaim) throws(CommandError) -> String? {
    if let username, let name = try context.accountName(forUsername: username, claim) { return name }
    let place = Workplace(environment: context.environment)
    return try context.choice(nil, of: claim.provider) { place.remotes(uri, path: request["path"]) }?.name
  }

  /// git asks again within one request: the server refused what it got before.
  private func rejectGiven(_ claim: HostClaim) throws(CredentialError) {
    guard let state = GitState(request.list("state")), state.provider == claim.provider,
      let account = try context.source.accountsIfAny()?.account(state.account, of: state.provider),
      account.revision == state.revision, !account.credential.isRejected
    else { return }
    try context.source.reject(account.credential.accessToken, account: account.name, of: account.provider)
  }

  private func answer(_ account: Account, _ claim: HostClaim) throws(CommandError) {
    context.source.noteHandOut(account, to: "git " + (request["host"] ?? ""))
    let credential = account.credential
    let token = credential.accessToken.reveal()
    var answer = ""
    let knowsSchemes = request.has(capability: "authtype")
    let schemes = request.schemes
    if knowsSchemes {
      // Another helper that keeps it would hand it out when it is old.
      answer += "capability[]=authtype\nephemeral=1\n"
    }
    if knowsSchemes, schemes.contains("bearer"), !schemes.contains("basic") {
      answer += "authtype=Bearer\ncredential=\(token)\n"
    } else {
      let name = credential.identity ?? account.name
      let username = username.flatMap { $0.isEmpty ? nil : $0 } ?? claim.username(for: name)
      answer += "username=\(username)\npassword=\(token)\n"
    }
    if let expiresAt = credential.expiresAt { answer += "password_expiry_utc=\(expiresAt)\n" }
    if request.has(capability: "state") {
      answer += "capability[]=state\nstate[]=\(GitState(account).text)\n"
      // Once, a refused token is asked for again, and not given up.
      let isSecond = GitState(request.list("state")) != nil
      if !isSecond, credential.isRefreshable(at: context.clock.now()) { answer += "continue=1\n" }
    }
    try context.output(answer)
  }

  private func answer(_ login: HostLogin) throws(CommandError) {
    context.source.noteHandOut(uri.origin, login.username ?? "", to: "git " + (request["host"] ?? ""))
    var answer = ""
    if let scheme = login.scheme { answer += "capability[]=authtype\nauthtype=\(scheme)\n" }
    if let username = login.username { answer += "username=\(username)\n" }
    answer += (login.scheme == nil ? "password=" : "credential=") + login.password.reveal() + "\n"
    if let expiresAt = login.expiresAt { answer += "password_expiry_utc=\(expiresAt)\n" }
    if let refreshToken = login.refreshToken { answer += "oauth_refresh_token=\(refreshToken.reveal())\n" }
    try context.output(answer)
  }

  // MARK: Login

  private func logIn(_ name: String?, _ claim: HostClaim) throws(CommandError) {
    guard context.source.hasNetwork else { throw .handOver(input: nil) }
    context.tell("git needs a login to \"\(claim.provider)\"" + (name.map { " for the account \"\($0)\"" } ?? ""))
    var wish = LoginWish()
    let offered = (try? context.home.library.load(claim.provider))?.descriptor.grants ?? []
    let option = name.map { " --account " + argument($0) } ?? ""
    let page = "\"credmgr login \(claim.provider)\(option) --no-browser\""
    let fitting = Command.fittingGrant(offered, page, context)
    wish.grant = fitting?.grant
    let isAlternative = wish.grant == nil && offered.first != .deviceCode && offered.contains(.deviceCode)
    wish.opensBrowser = Surroundings(environment: context.environment) == .desktop
    let user = TerminalUser(
      provider: claim.provider, offersDevice: isAlternative, reason: fitting?.reason, context,
      terminal: ControllingTerminal())
    defer { user.settle() }
    let account: Account
    do throws(CredentialError) {
      account = try context.source.login(claim.provider, wish, user: user)
    } catch {
      // git would ask for a password next, which is none that this host takes.
      try context.output("quit=1\n")
      throw CommandError(error)
    }
    guard name == nil || name == account.name || name == account.credential.identity else {
      try context.output("quit=1\n")
      throw .failed(
        Message(
          "the login was for \"\(account.name)\", and git asks for \"\(name ?? "")\"",
          hint: "run \"credmgr login \(claim.provider) --account \(argument(name ?? ""))\"", status: .loginNeeded))
    }
    try answer(account, claim)
  }

  /// A host that nobody claims may still tell what it is.
  private func hint() throws(CommandError) {
    guard let host = HostPattern.authority(uri) else { return }
    guard uri.isSecure, !request.realms.isEmpty else { return }
    guard let provider = context.source.providers(ofRealms: request.realms).first else { return }
    let isAdded = (try? context.source.accountsIfAny()?.registration(of: provider.identifier)) != nil
    context.tell("\"\(host)\" says that it is \(provider.title), and no provider claims it")
    context.tell(
      "hint: run \"credmgr add-provider \(provider.identifier)"
        + (isAdded ? " --as \(provider.identifier)-\(host.exchanging(":", for: "-"))" : "")
        + " --set host=\(host)\(ClientNeeds(provider).options)\"")
  }

  // MARK: store and erase

  private func pattern(_ password: Secret? = nil) -> HostLoginPattern {
    HostLoginPattern(
      origin: uri.origin, path: request["path"], username: request["username"], password: password,
      takesSchemes: password != nil || request.has(capability: "authtype"))
  }

  /// - Parameter lifetime: the seconds after which it is forgotten.
  func store(for lifetime: Int64?) throws(CommandError) {
    // What is of use only now is not kept (git-credential(1), `ephemeral`).
    if let ephemeral = request["ephemeral"], !GitCredential.isFalse(ephemeral) { return }
    var login: HostLogin
    if let scheme = request["authtype"], let credential = request["credential"] {
      login = HostLogin(username: username, password: Secret(credential), scheme: scheme)
    } else if let username, let password = request["password"] {
      login = HostLogin(username: username, password: Secret(password))
    } else {
      return
    }
    login.path = request["path"]
    login.expiresAt = request["password_expiry_utc"].flatMap { Int64($0) }
    login.refreshToken = request["oauth_refresh_token"].map { Secret($0) }
    let now = context.clock.now()
    if let lifetime { login.expiresAt = min(login.expiresAt ?? .max, now + min(lifetime, .max - now)) }
    if let expiresAt = login.expiresAt, expiresAt <= now { return }
    try manager { () throws(CredentialError) in
      if let claim, try isOurs(login, claim) { return }
      try context.source.store(login, for: uri.origin)
    }
  }

  /// Whether it is what an account got from its provider, which only the provider changes.
  private func isOurs(_ login: HostLogin, _ claim: HostClaim) throws(CredentialError) -> Bool {
    guard let accounts = try context.source.accountsIfAny()?.accounts(of: claim.provider), !accounts.isEmpty else {
      return false
    }
    if login.scheme != nil || login.username == claim.username || claim.ignoresUsername { return true }
    return accounts.contains { account in
      account.credential.accessToken == login.password || account.matches(username: login.username ?? "")
    }
  }

  func erase() throws(CommandError) {
    let password = (request["password"] ?? request["credential"]).map { Secret($0) }
    try manager { () throws(CredentialError) in
      if let claim, let password, try context.source.accountsIfAny() != nil {
        try context.source.reject(password, account: GitState(request.list("state"))?.account, of: claim.provider)
      }
      var pattern = pattern(password)
      pattern.takesSchemes = true
      try context.source.eraseHostLogins(pattern)
    }
  }
}

extension Context {
  /// The account that a user name in a URL means; `nil` where it says nothing about the account.
  func accountName(forUsername username: String, _ claim: HostClaim) throws(CommandError) -> String? {
    guard !username.isEmpty, username != claim.username, !claim.ignoresUsername else { return nil }
    return try manager { () throws(CredentialError) in
      try source.accountsIfAny()?.name(forUsername: username, of: claim.provider) ?? username
    }
  }
}

/// Whether there is somebody who can be asked to log in.
private struct Person {
  let context: Context
  let uri: URI

  init(_ context: Context, _ uri: URI) {
    self.context = context
    self.uri = uri
  }

  var isThere: Bool {
    if let prompt = value("GIT_TERMINAL_PROMPT"), GitCredential.isFalse(prompt) { return false }
    // A program that answers nothing is how scripts say that nobody is there.
    if let program = value("GIT_ASKPASS"), ["true", "false", "echo", ":"].contains(Path.lastComponent(of: program)) {
      return false
    }
    guard Surroundings(environment: context.environment) == .desktop || ControllingTerminal() != nil else {
      return false
    }
    // Only git knows all of the places where this can stand.
    let arguments = ["config", "--get-urlmatch", "credential.interactive", uri.origin]
    guard let said = try? Launcher.run("git", arguments, errors: .silenced), said.status == 0 else { return true }
    return !GitCredential.isFalse(String(decoding: said.output.filter { $0 > 0x20 }, as: UTF8.self))
  }

  private func value(_ name: String) -> String? { Environment.text(name, context.environment) }
}

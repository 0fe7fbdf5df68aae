import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrHTTP
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// A request from git for a valid host (gitcredentials(7), CUSTOM HELPERS).
struct GitHelper: HelperProtocol {
  let request: GitCredential
  let uri: URI
  let claims: [HostClaim]
  let claim: HostClaim?

  /// `nil` if the request names no host, or a host that must not get an answer.
  init?(_ request: GitCredential, _ context: Context) throws(CommandError) {
    guard let uri = request.uri else {
      if let host = request["host"], !host.utf8.allSatisfy({ $0 < 0x80 }) {
        context.tell("cannot look up the host \(quoted(host)): write it in its DNS form with \"xn--\"")
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
      // Without TLS, others on the network could read the token.
      context.tell(
        "credmgr sends credentials of \(context.titled(claim.provider)) to \(quoted(uri.host ?? "")) only over https")
      return nil
    }
  }

  var provider: String? { claim?.provider }

  var providers: [String] { claims.map(\.provider) }

  var refused: GivenToken? { wasMisplaced ? nil : GivenToken(gitStates: request.list("state")) }

  /// Whether a server that accepts only Bearer got a password, because git asked early (`http.proactiveAuth`).
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
    // Another provider at this host sends this name with its tokens, so the name does not select an account either.
    let isFixed = claims.contains { $0.username == username }
    return try context.choice(username: isFixed ? nil : username, claim, stored: logins) {
      repository.remotes(uri, path: request["path"])
    }
  }

  func freshAccount(_ name: String?, of provider: String, _ context: Context) throws(CredentialError) -> Account {
    guard let claim else { throw .loginNeeded(provider: provider, account: name, .noCredential) }
    // A clone may take minutes, and git asks only once.
    return try context.source.handOut(
      name, of: provider, by: .helper, to: .claimed(claim), RefreshPolicy(preferredLifetime: .seconds(300)))
  }

  func isOurs(_ login: HostLogin, _ accounts: [Account]) -> Bool {
    if login.scheme != nil || claims.contains(where: { $0.ignoresUsername || $0.username == login.username }) {
      return true
    }
    return accounts.contains { account in
      account.credential.accessToken == login.password
        || claims.contains { $0.provider == account.provider && $0.isName(login.username ?? "", of: account) }
    }
  }

  /// Returns the login that git wants to store for at most `lifetime`; `nil` if the login would be useless later.
  func login(at now: Moment, lifetime: Duration?) -> HostLogin? {
    // Do not store short-lived credentials (git-credential(1), `ephemeral`).
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
      // Keeps other helpers from storing the token and returning it after it expires.
      answer += "capability[]=authtype\nephemeral=1\n"
    }
    if isBearer {
      answer += try "authtype=Bearer\n" + GitCredential.line("credential", token)
    } else {
      // The user name in the URL may be only the account's name, or one that the server does not accept with a token.
      let owner = credential.identity
      let username = claim?.username(of: account, owner: owner) ?? owner ?? account.name
      answer += try GitCredential.line("username", username) + GitCredential.line("password", token)
    }
    if let expiresAt = credential.expiresAt { answer += "password_expiry_utc=\(expiresAt.secondsSince1970)\n" }
    if request.has(capability: "state") {
      answer +=
        try "capability[]=state\n" + GitCredential.line("state[]", GivenToken(account, isPassword: !isBearer).gitState)
      // Let git ask again once after a refused token, instead of giving up.
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
}

extension Context {
  /// Returns the account in a URL's user name, the environment or a rule; `nil` for the default account. If the token
  /// has its own user name, this ignores a user name without an account. It does not ignore the name if a login with it
  /// is stored, or if the choice between several accounts is open.
  func choice(
    username: String?, _ claim: HostClaim, stored: HostLoginPattern?, remotes: () -> [RemoteAddress]
  ) throws(CommandError) -> AccountChoice? {
    guard let username, !username.isEmpty, username != claim.username, !claim.ignoresUsername else {
      return try choice(nil, of: claim.provider, remotes: remotes)
    }
    let accounts = try manager(source.accountsIfAny())
    if let name = try manager(accounts?.name(forUsername: username, of: claim)) {
      return AccountChoice(name, .username)
    }
    let isStored = try stored.map { pattern throws(CommandError) in try manager(source.hostLogin(pattern)) != nil }
    if claim.namesAccount || isStored == true { return AccountChoice(username, .username) }
    if let choice = try choice(nil, of: claim.provider, remotes: remotes) { return choice }
    let count = try manager(accounts?.accounts(of: claim.provider).count ?? 0)
    return count > 1 ? AccountChoice(username, .username) : nil
  }
}

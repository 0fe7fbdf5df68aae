import CredmgrCryptography
import CredmgrJSON
import CredmgrStore
import CredmgrText

/// A user name and a password for a host without a provider, as git and docker store them.
package struct HostLogin: Sendable, Equatable {
  package var username: String?  // `nil` differs from empty.
  package var password: Secret  // With `scheme`, the rest of the header.
  /// The authentication scheme, such as `Bearer`, if this is not a password (git-credential(1), `authtype`).
  package var scheme: String?
  package var path: String?  // Without the leading slash; `nil` for all paths.
  package var expiresAt: Moment?
  package var refreshToken: Secret?

  package init(username: String?, password: Secret, scheme: String? = nil) {
    self.username = username
    self.password = password
    self.scheme = scheme
  }

  /// The user name for lists: empty without one, and `…` for one that may be a token.
  package var shownUser: String { username.map(CredentialSource.shown) ?? "" }

  var encoded: Secret {
    var members: [JSONValue.Member] = [
      .init("username", .optional(username)), .init("password", .string(password.reveal())),
      .init("path", .optional(path)),
    ]
    if let scheme { members.append(.init("scheme", .string(scheme))) }
    if let expiresAt { members.append(.init("expires_at", .moment(expiresAt))) }
    if let refreshToken { members.append(.init("refresh_token", .string(refreshToken.reveal()))) }
    return Secret(JSONValue.object(members).encoded)
  }

  init?(decoding secret: Secret) {
    guard let value = try? JSONValue.parse(secret.revealBytes()), let password = value["password"]?.text else {
      return nil
    }
    username = value["username"]?.text
    self.password = Secret(password)
    scheme = value["scheme"]?.text
    path = value["path"]?.text
    expiresAt = value["expires_at"]?.moment
    refreshToken = value["refresh_token"]?.text.map { Secret($0) }
  }
}

/// Selects logins. `nil` matches anything, as in git's helpers (gitcredentials(7)).
package struct HostLoginPattern: Sendable {
  package var origin: String
  package var path: String?
  package var username: String?
  package var password: Secret?  // Prevents erasing a newer password by mistake.
  package var takesSchemes: Bool

  package init(
    origin: String, path: String? = nil, username: String? = nil, takesSchemes: Bool = false
  ) {
    self.origin = origin
    self.path = path
    self.username = username
    self.takesSchemes = takesSchemes
  }

  func matches(_ login: HostLogin) -> Bool {
    (path == nil || path == login.path) && (username == nil || username == login.username)
      && (password == nil || password == login.password) && (takesSchemes || login.scheme == nil)
  }
}

extension CredentialSource {
  private static func identifier(_ origin: String, _ login: HostLogin) -> RecordIdentifier {
    // The encoding keeps different pairs distinct.
    let name = JSONValue.array([.optional(login.username), .optional(login.path)]).encoded
    return RecordIdentifier(kind: .login, provider: origin, account: name)
  }

  private func logins(_ pattern: HostLoginPattern, _ accounts: Accounts) throws(CredentialError) -> [(
    record: Record, login: HostLogin
  )] {
    try accounts.records(.login, of: pattern.origin).compactMap { record in
      HostLogin(decoding: record.payload).map { (record, $0) }
    }.filter { pattern.matches($0.login) }.sorted { $0.record.revision > $1.record.revision }
  }

  package func hostLogin(_ pattern: HostLoginPattern) throws(CredentialError) -> HostLogin? {
    guard let accounts = try accountsIfAny() else { return nil }
    let now = clock.now()
    let valid = try logins(pattern, accounts).map(\.login).filter { $0.expiresAt.map { $0 > now } ?? true }
    // A login for one path is not meant for the others.
    return valid.first { $0.path == pattern.path } ?? valid.first
  }

  package func hostLogins() throws(CredentialError) -> [(origin: String, login: HostLogin)] {
    guard let accounts = try accountsIfAny() else { return [] }
    return try accounts.records(.login, of: nil)
      .compactMap { record in HostLogin(decoding: record.payload).map { (record.identifier.provider, $0) } }
      .sorted { ($0.0, $0.1.username ?? "") < ($1.0, $1.1.username ?? "") }
  }

  /// Replaces the login with the same user name and path; with `isOnly`, all logins of the origin.
  package func store(_ login: HostLogin, for origin: String, isOnly: Bool = false) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    let identifier = Self.identifier(origin, login)
    let others = isOnly ? try logins(HostLoginPattern(origin: origin), accounts).map(\.record.identifier) : []
    let removals = others.filter { $0 != identifier }.map { Change.remove($0) }
    // git stores after every use, so skip writing an identical login.
    if removals.isEmpty, try accounts.record(identifier).flatMap({ HostLogin(decoding: $0.payload) }) == login {
      return
    }
    let note = noting(.store, account: login.username.map(Self.logged), detail: origin)
    try accounts.apply(removals + [.store(login.encoded, as: identifier), note])
  }

  /// Stores a login that replaces only `known`. Throws `.vault(.conflict)` if another process has stored one since.
  package func store(_ login: HostLogin, for origin: String, replacing known: HostLogin?) throws(CredentialError) {
    let accounts = try accounts(.readWrite)
    let identifier = Self.identifier(origin, login)
    let record = try accounts.record(identifier)
    let now = clock.now()
    let there = record.flatMap { HostLogin(decoding: $0.payload) }.flatMap { login in
      login.expiresAt.map { $0 <= now } == true ? nil : login
    }
    if let record, let there, there != known { throw .vault(.conflict(identifier, actual: record.revision)) }
    let condition = record.map { Precondition.revision($0.revision) } ?? .absent
    let note = noting(.store, account: login.username.map(Self.logged), detail: origin)
    try accounts.apply([.store(login.encoded, as: identifier, if: condition), note])
  }

  package func eraseHostLogins(_ pattern: HostLoginPattern) throws(CredentialError) {
    guard try accountsIfAny() != nil else { return }
    let accounts = try accounts(.readWrite)
    var changes = try logins(pattern, accounts).map { Change.remove($0.record.identifier, if: .any) }
    guard !changes.isEmpty else { return }
    changes.append(noting(.erase, account: pattern.username.map(Self.logged), detail: pattern.origin))
    try accounts.apply(changes)
  }

  /// Returns a user name for lists.
  static func shown(_ username: String) -> String { username.contains("@") ? username : logged(username) }

  /// Some hosts take a token as the user name, so the log omits a name that is long enough to be a token.
  static func logged(_ username: String) -> String { username.count < 20 ? username : "…" }
}

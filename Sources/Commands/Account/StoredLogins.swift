import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

/// A login for a host without a provider, as git or docker stored it or `import` moved it: for `list`, `status` and
/// `logout`.
struct StoredLogin {
  /// The address for git, and `docker:` with the registry for docker.
  let origin: String
  private let path: String?  // Of git's login for one repository.
  /// Empty without a user name, and `…` for one that may be a token.
  let user: String
  private let isExpired: Bool
  private let expiresAt: Moment?

  var isDocker: Bool { origin.hasPrefix(RegistryAddress.prefix) }

  /// The address without the prefix, for a sentence.
  var place: String { isDocker ? String(origin.dropFirst(RegistryAddress.prefix.count)) : origin }

  /// The address for lists, with the path that the login is for.
  var address: String { path.map { origin + "/" + $0 } ?? origin }

  /// The kind of credential in words.
  var kindWords: String { isDocker ? "docker login" : "git login" }

  var stateWords: String { isExpired ? "log in again" : "ready to use" }

  /// The fields of an account, so that programs can read both alike.
  var json: JSONValue {
    [
      "provider": .string(origin), "account": .string(user), "default": .boolean(false), "identity": .null,
      "earlier_identity": .null, "subject": .null, "vault": .null, "grant": "given",
      "kind": .string(isDocker ? "docker_login" : "git_login"), "ends_soon": .boolean(false), "key_expires_at": .null,
      "verified": .boolean(false), "scope": .array([]), "withheld_scope": .array([]), "authorization_details": .null,
      "obtained_at": .null, "expires_at": .optional(expiresAt?.text), "refresh_token": .boolean(false),
      "refresh_token_expires_at": .null, "state": .string(isExpired ? "expired" : "usable"),
      "next": .string(isExpired ? "login" : "valid"), "interrupted": .boolean(false),
    ]
  }

  /// The command that deletes all logins of the address.
  var deletion: Remedy { "\(credmgr: "logout", address)" }

  /// Returns the logins that git and docker would get, or those of one provider, which has none.
  static func all(of provider: String?, _ context: Context) throws(CommandError) -> [StoredLogin] {
    guard provider == nil else { return [] }
    let now = context.clock.now()
    return try manager(context.source.hostLogins()).map { origin, login in
      StoredLogin(
        origin: origin, path: origin.hasPrefix(RegistryAddress.prefix) ? nil : login.path, user: login.shownUser,
        isExpired: login.expiresAt.map { $0 <= now } ?? false, expiresAt: login.expiresAt)
    }
  }

  /// Deletes the logins of an address, or the one with a user name; `nil` if the word is not the address of a login.
  static func delete(_ word: String, user: String?, _ context: Context) throws(CommandError) -> [StoredLogin]? {
    let stored = try all(of: nil, context).filter { [$0.origin, $0.place, $0.address].contains(word) }
    guard !stored.isEmpty else {
      guard Command.isURL(word) || word.hasPrefix(RegistryAddress.prefix) else { return nil }
      // The address may contain a password.
      throw .usage(
        "the vault has no login of git or docker for this address", hint: "\(credmgr: "list") to see the logins")
    }
    let logins = stored.filter { user == nil || $0.user == user }
    guard !logins.isEmpty else {
      throw .usage(
        "\(quoted(stored[0].origin)) has no login of \(quoted(user ?? ""))",
        hint: "\(credmgr: "logout", stored[0].origin) to delete its logins")
    }
    for login in logins {
      var pattern = HostLoginPattern(
        origin: login.origin, path: login.origin == word || login.place == word ? nil : login.path, username: user)
      pattern.takesSchemes = true
      try manager(context.source.eraseHostLogins(pattern))
      let name = login.user.isEmpty ? "" : " of " + quoted(login.user)
      context.tell("deleted the \(login.kindWords)\(name) for \(quoted(login.isDocker ? login.place : login.address))")
    }
    return logins
  }
}

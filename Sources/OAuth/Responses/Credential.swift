import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrText

package struct Credential: Sendable, Equatable {
  package var grant: Grant
  package var accessToken: Secret  // For OAuth 1.0a, its token.
  package var tokenType: String?
  package var expiresAt: Moment?
  package var keyExpiresAt: Moment?  // When what the user brought to get tokens expires; `nil` if the user did not say.
  package var refreshToken: Secret?
  package var refreshTokenExpiresAt: Moment?
  package var tokenSecret: Secret?  // RFC 5849, 2.3
  package var sessionHandle: Secret?  // OAuth Session 1.0
  package var proofKey: Secret?  // The key to which the provider bound the token (RFC 9449); `nil` for other tokens.
  package var serverNonces: [String: String] = [:]  // The last nonce of each server, by origin (RFC 9449, 8.2).
  package var isCertificateBound = false  // Whether the provider bound the token to the client's certificate.
  /// Whether requests need only the token (``Grant/Binding/isUsableAlone``); `nil` for a login of an earlier version.
  package var isUsableAlone: Bool?
  package var idToken: Secret?
  package var isIDTokenVerified = false  // Whether its signature was verified (OpenID Connect Core 1.0, 3.1.3.7).
  package var requestedScope: [String] = []
  package var grantedScope: [String]?  // `nil` if the provider omitted it; the requested scope applies (RFC 6749, 5.1).
  package var requestedDetails: AuthorizationDetails?
  /// The granted ones; `nil` if the provider omitted them (RFC 9396, 7).
  package var grantedDetails: AuthorizationDetails?
  package var kept: [String: String] = [:]
  package var keptSecrets: [String: Secret] = [:]  // Further tokens of the same login, by name.
  /// The refresh token of another tool from which the login began, by which an import recognizes it after a rotation.
  package var importedFrom: Secret?
  package var variables: [String: String] = [:]  // The variables of this login alone.
  package var redirectURI: String?  // Some providers require it again at a refresh.
  package var identity: String?  // The user's name, as the provider reported it for this token.
  /// The name that the provider reported for an earlier token: if it reported none for this one, or if a renamed user's
  /// account still has it.
  package var earlierIdentity: String?
  package var subject: String?  // The user's durable identifier, which stays if the provider renames the user.
  package var issuer: String?  // The issuer of the login; `nil` if the descriptor named none.
  package var obtainedAt: Moment
  package var loggedInAt: Moment  // Unchanged by a refresh.
  /// Tells the login from others in the same second, and is unchanged by a refresh; `nil` for a login of an earlier
  /// version.
  package var loginIdentifier: String?
  package var margin: Duration  // How long before expiry to refresh.
  /// Whether a server refused this token, so credmgr must refresh before the next use.
  package var isRejected = false
  package var isGiven = false  // The user supplied the token; no login issued it.
  package var isUnverified = false  // The provider has not confirmed what the user supplied.
  /// The shared vault that refreshes this copy; `nil` if the credential is not a copy.
  package var vault: String?
  /// Whether the credential is on its way to that vault, which may not have it yet.
  package var isMoving = false
  /// Whether a credential on its way replaces the vault's account of this name, which a login has renewed.
  package var isReplacing = false
  /// The revision of that account when the move began; `nil` without a readable one.
  package var replacedRevision: Int64?
  /// When the login of that account was made; `nil` without a readable one, and for a move by an earlier version.
  package var replacedLogin: Moment?
  /// A digest of the destinations that the user agreed to before a login; `nil` once it has ended.
  package var registrationDigest: String?

  package init(grant: Grant, accessToken: Secret, obtainedAt: Moment, margin: Duration = .seconds(60)) {
    self.grant = grant
    self.accessToken = accessToken
    self.obtainedAt = obtainedAt
    loggedInAt = obtainedAt
    self.margin = margin
  }

  /// Returns the credential with a further token of the login instead of its own; `nil` without a token of this name.
  package func presenting(_ name: String) -> Credential? {
    guard let token = keptSecrets[name] else { return nil }
    var credential = self
    credential.accessToken = token
    return credential
  }

  /// Returns the copy that a machine keeps of a credential in a shared vault: without what only a refresh needs, and to
  /// be refreshed earlier by `spread`, so that many machines do not ask in the same second.
  package func copied(from vault: String, spread: Duration) -> Credential {
    var copy = self
    copy.vault = vault
    (copy.refreshToken, copy.refreshTokenExpiresAt, copy.sessionHandle) = (nil, nil, nil)
    copy.importedFrom = nil
    copy.margin += spread
    return copy
  }

  /// Returns the credential as a clock shows it that is ahead by `time`. The moment of the login stays, because it also
  /// tells logins apart.
  package func shifted(by time: Duration) -> Credential {
    var shifted = self
    shifted.obtainedAt = obtainedAt + time
    shifted.expiresAt = expiresAt.map { $0 + time }
    shifted.keyExpiresAt = keyExpiresAt.map { $0 + time }
    shifted.refreshTokenExpiresAt = refreshTokenExpiresAt.map { $0 + time }
    return shifted
  }

  /// Returns the credential with only the refresh token of a newer one.
  package func rotated(by newer: Credential) -> Credential {
    guard let refreshToken = newer.refreshToken, refreshToken != self.refreshToken else { return self }
    var credential = self
    credential.refreshToken = refreshToken
    credential.refreshTokenExpiresAt = nil
    return credential
  }

  /// The user that a login to the account must be for.
  package var ownIdentity: String? { identity ?? earlierIdentity }

  /// Whether the user typed or pasted it, so that only the user can replace it.
  package var isTyped: Bool { typedWords != nil }

  /// The words for a credential that the user typed or pasted; `nil` if the provider issued it.
  package var typedWords: String? { isGiven ? "token" : grant.traits.typed }

  /// Whether requests need a proof besides the token, so that the token alone is of no use.
  package var isBound: Bool { proofKey != nil || isCertificateBound }

  /// The secret that a refresh sends; `nil` if a refresh sends none.
  package var refreshedWith: Secret? {
    switch grant.traits.renewal {
    case .login, .none: nil
    case .sessionHandle: sessionHandle
    case .refreshToken: refreshToken
    }
  }
}

// The JSON object stored in the vault. Absent members are omitted.
extension Credential {
  package var encoded: Secret {
    var members: [JSONValue.Member] = [
      .init("grant", .string(grant.rawValue)), .init("access_token", .string(accessToken.reveal())),
      .init("obtained_at", .moment(obtainedAt)), .init("logged_in_at", .moment(loggedInAt)),
      .init("margin", .duration(margin)), .init("requested_scope", .array(requestedScope.map(JSONValue.string))),
    ]
    func add(_ name: String, _ value: JSONValue?) {
      if let value { members.append(.init(name, value)) }
    }
    add("login", loginIdentifier.map(JSONValue.string))
    add("token_type", tokenType.map(JSONValue.string))
    add("expires_at", expiresAt.map(JSONValue.moment))
    add("key_expires_at", keyExpiresAt.map(JSONValue.moment))
    add("refresh_token", refreshToken.map { .string($0.reveal()) })
    add("refresh_token_expires_at", refreshTokenExpiresAt.map(JSONValue.moment))
    add("token_secret", tokenSecret.map { .string($0.reveal()) })
    add("session_handle", sessionHandle.map { .string($0.reveal()) })
    add("proof_key", proofKey.map { .string($0.reveal()) })
    add("server_nonces", serverNonces.isEmpty ? nil : Self.object(serverNonces))
    add("id_token", idToken.map { .string($0.reveal()) })
    add("id_token_verified", isIDTokenVerified ? true : nil)
    add("granted_scope", grantedScope.map { .array($0.map(JSONValue.string)) })
    add("requested_authorization_details", requestedDetails.map { .string($0.text) })
    add("authorization_details", grantedDetails.map { .string($0.text) })
    add("kept", kept.isEmpty ? nil : Self.object(kept))
    add("kept_secrets", keptSecrets.isEmpty ? nil : Self.object(keptSecrets.mapValues { $0.reveal() }))
    add("imported_from", importedFrom.map { .string($0.reveal()) })
    add("variables", variables.isEmpty ? nil : Self.object(variables))
    add("redirect_uri", redirectURI.map(JSONValue.string))
    add("identity", identity.map(JSONValue.string))
    add("subject", subject.map(JSONValue.string))
    add("earlier_identity", earlierIdentity.map(JSONValue.string))
    add("certificate_bound", isCertificateBound ? true : nil)
    add("usable_alone", isUsableAlone.map(JSONValue.boolean))
    add("issuer", issuer.map(JSONValue.string))
    add("rejected", isRejected ? true : nil)
    add("given", isGiven ? true : nil)
    add("unverified", isUnverified ? true : nil)
    add("vault", vault.map(JSONValue.string))
    add("moving", isMoving ? true : nil)
    add("replacing", isReplacing ? true : nil)
    add("replaced_revision", replacedRevision.map { .integer($0) })
    add("replaced_login", replacedLogin.map(JSONValue.moment))
    add("registration_digest", registrationDigest.map(JSONValue.string))
    return Secret(JSONValue.object(members).encoded)
  }

  private static func object(_ texts: [String: String]) -> JSONValue {
    .object(texts.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })
  }

  package init(decoding secret: Secret) throws(OAuthError) {
    guard let value = try? JSONValue.parse(secret.revealBytes()),
      let grant = value["grant"]?.text.flatMap(Grant.init(rawValue:)), let token = value["access_token"]?.text,
      let obtainedAt = value["obtained_at"]?.moment, let margin = value["margin"]?.duration
    else { throw .malformedCredential }
    self.init(grant: grant, accessToken: Secret(token), obtainedAt: obtainedAt, margin: margin)
    loggedInAt = value["logged_in_at"]?.moment ?? obtainedAt
    loginIdentifier = value["login"]?.text
    tokenType = value["token_type"]?.text
    expiresAt = value["expires_at"]?.moment
    keyExpiresAt = value["key_expires_at"]?.moment
    refreshToken = value["refresh_token"]?.text.map { Secret($0) }
    refreshTokenExpiresAt = value["refresh_token_expires_at"]?.moment
    tokenSecret = value["token_secret"]?.text.map { Secret($0) }
    sessionHandle = value["session_handle"]?.text.map { Secret($0) }
    proofKey = value["proof_key"]?.text.map { Secret($0) }
    // Most credentials have none of these, and the type of a dictionary is expensive at its first use.
    if let nonces = value["server_nonces"] { serverNonces = Self.texts(nonces) }
    idToken = value["id_token"]?.text.map { Secret($0) }
    isIDTokenVerified = value["id_token_verified"] == .boolean(true)
    requestedScope = value["requested_scope"]?.elements?.compactMap(\.text) ?? []
    grantedScope = value["granted_scope"]?.elements?.compactMap(\.text)
    requestedDetails = value["requested_authorization_details"]?.text.flatMap { AuthorizationDetails($0) }
    grantedDetails = value["authorization_details"]?.text.flatMap { AuthorizationDetails($0) }
    if let fields = value["kept"] { kept = Self.texts(fields) }
    if let secrets = value["kept_secrets"] { keptSecrets = Self.texts(secrets).mapValues { Secret($0) } }
    importedFrom = value["imported_from"]?.text.map { Secret($0) }
    if let values = value["variables"] { variables = Self.texts(values) }
    redirectURI = value["redirect_uri"]?.text
    identity = value["identity"]?.text
    earlierIdentity = value["earlier_identity"]?.text
    subject = value["subject"]?.text
    isCertificateBound = value["certificate_bound"] == .boolean(true)
    if case .boolean(let isUsable)? = value["usable_alone"] { isUsableAlone = isUsable }
    issuer = value["issuer"]?.text
    isRejected = value["rejected"] == .boolean(true)
    isGiven = value["given"] == .boolean(true)
    isUnverified = value["unverified"] == .boolean(true)
    vault = value["vault"]?.text
    isMoving = value["moving"] == .boolean(true)
    isReplacing = value["replacing"] == .boolean(true)
    replacedRevision = value["replaced_revision"]?.integer
    replacedLogin = value["replaced_login"]?.moment
    registrationDigest = value["registration_digest"]?.text
  }

  private static func texts(_ value: JSONValue) -> [String: String] {
    var texts: [String: String] = [:]
    for member in value.members ?? [] { texts[member.name] = member.value.text }
    return texts
  }
}

import CredmgrCryptography
import CredmgrText
import CredmgrHTTP
import CredmgrDescriptors

package enum Validity: Sendable, Equatable {
  case active
  case inactive
}

extension ErrorResponse {
  /// Whether the code says that a token may be valid, but may not ask this. A descriptor translates the code of a
  /// provider that has a status for wrong tokens here (401).
  package var concernsRights: Bool { ["insufficient_scope", "access_denied"].contains(code) }
}

extension HTTPResponse {
  /// Whether a server rejects the token itself. A refusal of the proof, of the scope (RFC 6750, 3.1) or of how the user
  /// authenticated (RFC 9470, 3) says nothing against the token, and a refresh would change none of them.
  package func rejectsToken(of credential: Credential) -> Bool {
    guard status == 401, !concernsProof(of: credential) else { return false }
    let errors = Set(challenges.compactMap { $0["error"] })
    return errors.contains("invalid_token")
      || errors.isDisjoint(with: ["insufficient_scope", "insufficient_user_authentication"])
  }
}

extension Client {
  /// Builds the introspection request (RFC 7662, 2.1), or an identity request if the provider has no introspection.
  package func validationRequest(
    _ credential: Credential, nonce: RequestNonce
  ) throws(OAuthError) -> (kind: EndpointKind, request: HTTPRequest) {
    // An introspection endpoint for access tokens may not know the tokens that users make (GitLab).
    let isForeign = credential.isTyped && credential.grant.traits.isKey && descriptor.endpoints[.identity] != nil
    if !isForeign, let endpoint = descriptor.endpoints[.introspection] {
      let field = endpoint.tokens.first ?? .accessToken
      return (.introspection, try request(.introspection, for: field, of: credential, nonce: nonce))
    }
    return (.identity, try identityRequest(credential, nonce: nonce))
  }

  /// Whether the provider has an endpoint that says whether a token is valid.
  package var canValidate: Bool {
    descriptor.endpoints[.introspection] != nil || descriptor.endpoints[.identity] != nil
  }

  /// Whether the provider can verify what the user brings. An introspection for a client is about the tokens that this
  /// client got.
  package var canVerify: Bool {
    if descriptor.endpoints[.identity] != nil { return true }
    return descriptor.endpoints[.introspection]?.authentication == .accessToken
  }

  /// Throws if an answer with a success status does not show that the provider knows the credential. Proxies and
  /// changed APIs also answer with such a status: with a page, or with an empty document.
  package func requireEvidence(_ response: HTTPResponse, of credential: Credential? = nil) throws(OAuthError) {
    let rules = try endpoint(.identity).response
    let answer = try Answer(response, of: .identity, by: rules, allowsRepeated: true)
    let owner = try identity(response, of: credential, element: 0)
    let isNamed = owner.name != nil || owner.subject != nil || !owner.kept.isEmpty
    let mustName = !descriptor.account.isEmpty || !rules.keep.isEmpty
    guard !answer.isEmpty, isNamed || !mustName else { throw .noEvidence(.identity) }
  }

  /// Throws if the user of a verified ID token is not in the answer of OpenID Connect's `userinfo`, which always names
  /// the user (OpenID Connect Core 1.0, 5.3.2). Other APIs have another field for the user.
  private func requireSubject(_ response: HTTPResponse, of credential: Credential?) throws(OAuthError) {
    let rules = try endpoint(.identity).response
    guard credential?.idToken != nil, verifiesIDTokens, descriptor.subject == Descriptor().subject, rules.element == nil
    else { return }
    let answer = try Answer(response, of: .identity, by: rules, allowsRepeated: true)
    guard answer.text(FieldPath("sub")) != nil else { throw .idToken(.identity, .missing(claim: "sub")) }
  }

  /// Reads the answer to a validation request (RFC 7662, 2.2). Throws if the identity endpoint names another user than
  /// the ID token of `credential`.
  package func validity(
    _ response: HTTPResponse, _ kind: EndpointKind, of credential: Credential? = nil
  ) throws(OAuthError) -> Validity {
    let rules = try endpoint(kind).response
    let isRefusal = [400, 401, 404].contains(response.status)
    let isByStatus = kind == .identity || rules.active == .status
    do throws(OAuthError) {
      if kind == .identity {
        try requireEvidence(response, of: credential)
        try requireSubject(response, of: credential)
        return .active
      }
      if isByStatus, (200..<300).contains(response.status) {
        if Answer.isPage(response.body) { throw .noEvidence(kind) }
        return .active
      }
      let answer = try Answer(response, of: kind, by: rules)
      guard case .field(let path, let values) = rules.active else { return .active }
      return answer.text(path).map { values.contains($0) } == true ? .active : .inactive
    } catch .refused(let kind, let error) {
      // An unknown token answers the question. An unknown client does not, and neither does a missing right (403, see
      // RFC 6750, 3.1).
      let isAboutClient = ["invalid_client", "unauthorized_client", "invalid_request"].contains(error.code)
      let isAboutToken = error.status == 403 && error.code == "invalid_token"
      guard !error.concernsRights, isByStatus || !isAboutClient,
        isRefusal || isAboutToken || error.status == 200
      else { throw .refused(kind, error) }
      return .inactive
    }
  }

  /// Builds one request for each token to revoke (RFC 7009, 2.1).
  package func revocationRequests(_ credential: Credential, nonce: RequestNonce) throws(OAuthError) -> [HTTPRequest] {
    let endpoint = descriptor.endpoints[.revocation]
    // No client issued a key or an access token that the user made.
    if credential.grant.traits.typed != nil, endpoint?.authentication != .accessToken { return [] }
    let tokens = endpoint?.tokens ?? []
    return try tokens.filter { $0 != .refreshToken || credential.refreshToken != nil }
      .map { field throws(OAuthError) in try request(.revocation, for: field, of: credential, nonce: nonce) }
  }

  /// Builds the page request that ends the user's session at the provider (OpenID Connect RP-Initiated Logout 1.0, 2);
  /// `nil` without such a page or an ID token.
  package func endSessionRequest(_ credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest? {
    guard let idToken = credential.idToken, descriptor.endpoints[.endSession] != nil else { return nil }
    let parameters: FormParameters = [("id_token_hint", idToken.reveal()), ("client_id", identifier)]
    return try request(.endSession, parameters, credential: credential, nonce: nonce)
  }

  /// Throws if the revocation failed. A token that the provider no longer knows counts as revoked (RFC 7009, 2.2).
  package func checkRevocation(_ response: HTTPResponse) throws(OAuthError) {
    let kind = EndpointKind.revocation
    let endpoint = try endpoint(kind)
    // A token that is deleted like a document, as at GitHub, is then not found. RFC 7009 answers 200 instead, so a 404
    // means that nothing is at this address.
    if response.status == 404, endpoint.method == "DELETE", response.mediaType?.hasSuffix("json") == true { return }
    do {
      _ = try Answer(response, of: kind, by: endpoint.response)
    } catch .unreadable {
      // Section 2.2: only the status counts, not the body. Some providers still report errors with status 200.
      return
    } catch .refused(_, let error) where ["invalid_token", "invalid_grant"].contains(error.code) {
      return
    }
  }

  /// Builds the identity request (OpenID Connect Core 1.0, 5.3.1, or the provider's own way).
  package func identityRequest(_ credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPRequest {
    try request(.identity, [], credential: credential, proof: proof(credential), nonce: nonce)
  }

  /// Whether a login calls the identity endpoint: for the account's name, or for a field that is kept.
  package func asksIdentity(after grant: Grant) -> Bool {
    guard let endpoint = descriptor.endpoints[.identity] else { return false }
    guard grant.traits.needsPerson || endpoint.followed.contains(.clientCredentials) else { return false }
    return !descriptor.account.isEmpty || !endpoint.response.keep.isEmpty
  }

  /// Whether each refresh calls the identity endpoint again, because its fields may have changed.
  package func asksIdentity(afterRefreshOf grant: Grant) -> Bool {
    descriptor.endpoints[.identity]?.followsRefresh == true && asksIdentity(after: grant)
  }

  /// Returns the user's name, the durable identifier and the kept fields. Leaves out any text that contains a secret of
  /// the credential.
  package func identity(
    _ response: HTTPResponse, of credential: Credential? = nil, element index: Int? = nil
  ) throws(OAuthError) -> (name: String?, subject: String?, kept: [String: String]) {
    var answer = try Answer(response, of: .identity, by: endpoint(.identity).response)
    try choose(index, in: &answer, for: credential)
    try answer.requireSingle(descriptor.account + descriptor.subject + [FieldPath("sub")])
    try checkSubject(answer, of: credential)
    func isShown(_ text: String) -> Bool { !text.isEmpty && credential?.holds(text) != true }
    return (
      descriptor.account.lazy.compactMap { answer.text($0) }.first(where: isShown),
      descriptor.subject.lazy.compactMap { answer.text($0) }.first(where: isShown),
      try kept(answer).filter { isShown($0.value) }
    )
  }

  /// Returns the account's name that the user typed or, without an identity endpoint, from the token answer; `nil` if
  /// neither has a name.
  package func accountName(in credential: Credential) -> String? {
    let typed = credential.grant.traits.variables.lazy.compactMap { credential.variables[$0.name] }.first
    guard descriptor.endpoints[.identity] == nil else { return typed }
    let secret = descriptor.variables.filter(\.isSecret).map(\.name)
    let names = descriptor.account.map(\.text).filter { !secret.contains($0) }
    let values = names.lazy.compactMap { credential.kept[$0] ?? credential.variables[$0] }
    return values.first { !credential.holds($0) } ?? typed
  }

  private func request(
    _ kind: EndpointKind, for field: ResponseField, of credential: Credential, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let token = field == .refreshToken ? credential.refreshToken : credential.accessToken
    let proof = proof(credential)
    let parameters: FormParameters =
      proof == .token ? [] : [("token", token?.reveal() ?? ""), ("token_type_hint", field.rawValue)]
    return try request(kind, parameters, credential: credential, proof: proof, nonce: nonce)
  }

  private func proof(_ credential: Credential) -> RequestProof {
    binding(of: credential.grant).authenticatesClient ? .token : .asDescribed
  }
}

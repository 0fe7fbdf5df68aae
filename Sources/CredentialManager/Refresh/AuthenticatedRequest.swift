import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import CredmgrStore

extension CredentialSource {
  /// Returns the headers that present an account's credential, refreshing it if needed. Signing requires `request`.
  /// `demanded` is the nonce that the server of the request demanded (RFC 9449, 9).
  package func headerFields(
    _ name: String?, of provider: String, for request: HTTPRequest?, token field: String? = nil,
    nonce demanded: String? = nil, by route: Route = .header
  ) throws(CredentialError) -> HTTPFields {
    let account = try freshAccount(name, of: provider)
    let permit = try permit(route, provider, variables: account.credential.variables)
    let client = permit.client
    let credential = try credential(of: account, token: field)
    if let request { try permit.require(request.uri, of: credential) }
    var nonce = nonce
    nonce.demanded = demanded ?? request.flatMap { client.binding(of: credential).lastNonce(of: $0.uri.origin) }
    return try core(provider, client.headerFields(presenting: credential, on: request, nonce: nonce))
  }

  /// Returns the account's credential, with one of its further tokens if `field` names one.
  private func credential(of account: Account, token field: String?) throws(CredentialError) -> Credential {
    guard let field else { return account.credential }
    guard let credential = account.credential.presenting(field) else {
      throw .tokenMissing(provider: account.provider, field, known: account.credential.keptSecrets.keys.sorted())
    }
    return credential
  }

  /// Sends a request with an account's credential and returns the head. On 401, refreshes and repeats, once with a new
  /// token; follows a GET or HEAD within its origin. `receive` gets only the last answer. `body` replaces the request's
  /// own. It is read from its start each time, and into memory only for a signature.
  package func send(
    _ request: HTTPRequest, body: (any HTTPBodySource)? = nil, account name: String?, of provider: String,
    token field: String? = nil, by route: Route = .request, limits: HTTPLimits, receive: @escaping (HTTPPart) -> Bool
  ) throws(CredentialError) -> HTTPResponse {
    _ = try network()
    var account = try freshAccount(name, of: provider)
    var (request, body) = (request, body)
    var redirectsLeft = 5
    // A token that another machine got may be refused as well.
    var (canTakeOver, isRepetition) = (true, false)
    var isNoted = false
    while true {
      let permit = try permit(route, provider, variables: account.credential.variables)
      let client = permit.client
      let credential = try credential(of: account, token: field)
      try permit.require(request.uri, of: credential)
      if let source = body, client.signsBody(of: request, with: credential) {
        do { request.body = try source.readAll() } catch { throw .http(error, provider: provider) }
        body = nil
      }
      let canRepeat = !isRepetition && canRefresh(account)
      var isRefused = false
      var isPresented = false
      var next: URI?
      let binding = client.binding(of: account.credential)
      let head = try stream(to: permit, body: body, limits: limits, bound: binding) { nonce throws(OAuthError) in
        let presented = try client.presenting(credential, on: request, nonce: nonce)
        isPresented = binding.isPresented(in: presented)
        if !isNoted { noteHandOut(account, to: "request " + (request.uri.host ?? "")) }
        isNoted = true
        return presented
      } receive: { part in
        if case .head(let response) = part, canRepeat, isPresented, response.rejectsToken(of: credential) {
          isRefused = true
          return false
        }
        if case .head(let response) = part, redirectsLeft > 0, let target = response.redirection(of: request) {
          next = target
          return false
        }
        return receive(part)
      }
      if let next {
        request.uri = next
        redirectsLeft -= 1
        continue
      }
      if !isRefused {
        // Another token of the login says nothing about this one.
        if field == nil, isPresented, head.rejectsToken(of: credential) {
          try reject(account.credential.accessToken, account: account.name, of: provider)
        }
        return head
      }
      do throws(CredentialError) {
        let before = exchanges(for: account)
        account = try refreshed(account, RefreshPolicy(always: true, acceptsNewer: canTakeOver))
        isRepetition = !canTakeOver || account.credential.vault == nil || exchanges(for: account) != before
        canTakeOver = false
      } catch {
        // The server refused the token, and credmgr cannot get another one.
        if case .loginNeeded = error, field == nil {
          try? reject(account.credential.accessToken, account: account.name, of: provider)
        }
        throw error
      }
    }
  }

  package func validate(
    _ name: String?, of provider: String
  ) throws(CredentialError) -> (account: Account, validity: Validity) {
    _ = try network()
    try find(name, of: provider)
    let accounts = try accounts(neededFor: name, of: provider)
    let account = try accounts.resolve(name, provider: provider)
    let permit = try permit(.validate, provider, variables: account.credential.variables)
    let client = permit.client
    if !client.made(account.credential) {
      throw .loginNeeded(provider: provider, account: account.name, .otherIssuer)
    }
    secrets.learn(account.credential)
    tellInterruption(try accounts.note(account.id), of: account.id, accounts)
    let answer: (kind: EndpointKind, response: HTTPResponse)
    do { answer = try self.answer(about: account.credential, with: permit) } catch .oauth(.noEndpoint, _) {
      throw .notValidatable(provider: provider)
    }
    let validity = try core(provider, client.validity(answer.response, answer.kind, of: account.credential))
    if validity == .active, account.credential.isUnverified || account.credential.isRejected {
      try confirm(account, in: self.accounts(.readWrite))
    }
    return (account, validity)
  }

  /// Asks the provider whether a credential is valid, or who owns it. Throws if the answer says nothing about the
  /// credential, because no request presented it.
  func answer(
    about credential: Credential, asksOwner: Bool = false, with permit: Permit
  ) throws(CredentialError) -> (kind: EndpointKind, response: HTTPResponse) {
    let client = permit.client
    let binding = client.binding(of: credential)
    var kind = EndpointKind.identity
    var isPresented = true
    let response = try send(to: permit, bound: binding) { nonce throws(OAuthError) in
      let question =
        try asksOwner
        ? (kind: .identity, request: client.identityRequest(credential, nonce: nonce))
        : client.validationRequest(credential, nonce: nonce)
      kind = question.kind
      isPresented = kind != .identity || binding.isPresented(in: question.request)
      return question.request
    }
    if !isPresented, response.status < 500 { throw .oauth(.noChallenge(kind), provider: permit.provider) }
    return (kind, response)
  }

  /// Notes that the provider knows a credential, unless another one has replaced it.
  private func confirm(_ account: Account, in accounts: Accounts) throws(CredentialError) {
    var credential = account.credential
    // The server that rejected it may not know the provider's credentials, or not at this address.
    (credential.isUnverified, credential.isRejected) = (false, false)
    do throws(StoreError) {
      let record = RecordIdentifier(.credential, of: account.id)
      try accounts.store.apply([.store(credential.encoded, as: record, if: .revision(account.revision))])
    } catch {
      if case .conflict = error { return }
      throw .vault(error)
    }
  }

  package enum Revocation: Sendable, Equatable {
    case done
    case notAsked
    case refused(CredentialError)  // At least one token may still be valid.
  }

  /// Revokes an account's tokens unless `keepsRemote`, then deletes them, unless the provider is unreachable.
  package func logout(_ name: String?, of provider: String, keepsRemote: Bool) throws(CredentialError) -> (
    account: String, revocation: Revocation
  ) {
    if !keepsRemote { _ = try network() }
    if keepsRemote, shared != nil, let name, try dropLost(AccountID(provider, name)) { return (name, .notAsked) }
    let existing = try accounts(neededFor: name, of: provider)
    let account = try existing.resolve(name, provider: provider)
    let accounts = try accounts(.readWrite)
    if account.credential.vault != nil {
      // The tokens belong to all members. With `keepsRemote`, the user gives up an account on its way, for example to a
      // vault whose server is lost.
      guard !account.credential.isMoving || keepsRemote else {
        throw .shared(
          .unfinishedShare(provider: provider, account: account.name, vault: account.credential.vault ?? ""))
      }
      // An answer that waits for the vault stays until this machine leaves it.
      tellInterruption(try accounts.note(account.id), of: account.id, accounts)
      try forget(account, in: accounts)
      return (account.name, .notAsked)
    }
    // Lock out refreshes, because one could replace the token during revocation, and the new one would stay valid.
    return try withAccountLock(
      account.id,
      isDone: { () throws(CredentialError) -> (account: String, revocation: Revocation)? in
        // A login may take minutes.
        guard let note = try accounts.note(account.id), accounts.isLogin(note, of: account.id) else { return nil }
        throw .accountInLogin(provider: provider, account: account.name, process: note.process)
      }
    ) { locked throws(CredentialError) in
      guard var current = try accounts.account(account.id) else { return (account.name, .notAsked) }
      // Revoke a newer token that was not yet committed.
      if let kept = accounts.answer(of: current) { current.credential = kept.credential }
      let note = try accounts.note(account.id)
      tellUnfinishedLogin(note, account.id)
      var unused = note.flatMap { accounts.unfinishedLogin($0, account.id) }.map { [$0] } ?? []
      var staged: Credential?  // The tokens of an interrupted login without a name.
      let permit = keepsRemote ? nil : try permit(.logout, provider, variables: current.credential.variables)
      let requests =
        try permit.map { permit throws(CredentialError) in try revocation(of: current.credential, permit.client) } ?? []
      var result = requests.isEmpty ? Revocation.notAsked : .done
      // Note this first, or a revoked token that was not deleted could still be used.
      let pending =
        if result == .done {
          try locked.begin(ExchangeNote(.logout, startedAt: clock.now(), after: note), keepsAnswer: false)
        } else { locked.resume() }
      if result == .done { FaultPoint.reach("logout.noted") }
      do throws(CredentialError) {
        if let permit { result = try revoke(current.credential, with: permit) }
      } catch {
        _ = try? pending.finish(error.mayHaveArrived ? .unfinished : .ended(noting: nil))
        throw error
      }
      FaultPoint.reach("logout.revoked")
      var changes: [Change] = [
        .remove(RecordIdentifier(.credential, of: account.id)), .remove(RecordIdentifier(.failure, of: account.id)),
      ]
      do throws(CredentialError) {
        if try accounts.selected(for: provider) == account.name {
          changes.append(.remove(Accounts.selection(provider)))
        }
        if try accounts.accounts(of: provider).count == 1 {
          // With the last account, also remove the note of an unnamed login.
          let anybody = AccountID(provider)
          let note = try accounts.note(anybody)
          staged = note.flatMap { accounts.unfinishedLogin($0, anybody) }
          // The next login finishes an import, whose refresh token no other tool has.
          if staged?.importedFrom != nil {
            staged = nil
          } else {
            tellInterruption(note, of: anybody, accounts)
            changes += [
              .remove(RecordIdentifier(.pending, of: anybody)), .remove(RecordIdentifier(.failure, of: anybody)),
            ]
          }
        }
      } catch {
        _ = try? pending.finish(.unfinished)
        throw error
      }
      changes.append(
        noting(.logout, of: provider, account: account.name, detail: result == .done ? "revoked" : "forgotten"))
      do throws(CommitError) { try pending.finish(.committed(changes)) } catch { throw .vault(error.reason) }
      FaultPoint.reach("logout.committed")
      if let staged {
        accounts.store.removeAnswer(for: AccountID(provider))
        unused.append(staged)
      }
      drop(unused, of: provider, keepsRemote: keepsRemote)
      return (account.name, result)
    }
  }

  /// Removes an account of a shared vault that was altered, removed or set back, so that no member can read or
  /// revoke its tokens; returns `false` if the vault has no such account.
  private func dropLost(_ id: AccountID) throws(CredentialError) -> Bool {
    let accounts = try accounts(.readWrite)
    let identifier = RecordIdentifier(.credential, of: id)
    guard try inStore(accounts.store.isLost(identifier)) else { return false }
    var changes: [Change] = [
      .remove(identifier), noting(.logout, of: id.provider, account: id.name, detail: "forgotten"),
    ]
    if (try? accounts.selected(for: id.provider)) == id.name {
      changes.append(.remove(Accounts.selection(id.provider)))
    }
    do throws(StoreError) { try accounts.store.apply(changes) } catch { throw .vault(error) }
    // The store does not remove a row that is missing, and that this machine has never seen.
    if try inStore(accounts.store.isLost(identifier)) { throw .vault(.damagedRecord(identifier)) }
    return true
  }

  /// Revokes each token of a credential; does nothing if the provider does not support it.
  func revoke(_ credential: Credential, with permit: Permit) throws(CredentialError) -> Revocation {
    let client = permit.client
    let requests = try revocation(of: credential, client)
    var result = requests.isEmpty ? Revocation.notAsked : .done
    for index in requests.indices {
      let response = try send(to: permit, bound: client.binding(of: credential)) { nonce throws(OAuthError) in
        try client.revocationRequests(credential, nonce: nonce)[index]
      }
      do throws(CredentialError) { try core(permit.provider, client.checkRevocation(response)) } catch {
        if case .oauth(.unavailable, _) = error { throw error }
        // The provider would refuse the same request again, but may revoke another token.
        if result == .done { result = .refused(error) }
      }
    }
    return result
  }

  private func revocation(of credential: Credential, _ client: Client) throws(CredentialError) -> [HTTPRequest] {
    secrets.learn(credential)
    guard client.made(credential) else { return [] }
    do throws(OAuthError) {
      return try client.revocationRequests(credential, nonce: nonce)
    } catch .clientSecretMissing {
      // The provider (GitHub) does not let public clients revoke, so credmgr sends no request.
      return []
    } catch {
      throw .oauth(error, provider: client.descriptor.identifier)
    }
  }
}

extension HTTPResponse {
  /// Returns the target of a redirect that is safe to follow (RFC 9110, 15.4); `nil` for all others and for other
  /// origins, because the user's headers may be meant for this origin only.
  fileprivate func redirection(of request: HTTPRequest) -> URI? {
    guard [301, 302, 303, 307, 308].contains(status), ["GET", "HEAD"].contains(request.method),
      let location = fields["Location"], let target = request.uri.resolving(location),
      target.origin == request.uri.origin
    else { return nil }
    return target.with(fragment: nil)
  }
}

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrStore

/// The owner of a new credential.
extension Login {
  private static let standardName = "default"

  /// Returns the account for a credential. Asks `user` whether to store a typed key that could not be verified. `known`
  /// is what the provider has already said about the owner.
  func identified(
    _ credential: Credential, with element: ExchangedElement?, as known: Identity? = nil, _ user: (any User)?
  ) throws(CredentialError) -> IdentifiedAccount {
    var credential = credential
    credential.add(options)
    credential.loginIdentifier = Hexadecimal.encode(source.random.bytes(8))
    credential = source.learn(credential)
    // Ask for the owner only with a token of the provider.
    let (verified, doubt) = try source.verifyingIDToken(of: credential, with: permit)
    credential = verified
    if let doubt { source.notice(.idTokenUnverified(provider: provider, doubt)) }
    let identity = if let known { known } else { try identity(credential, user) }
    let (owner, fault, isConfirmed) = identity
    credential.isUnverified = !isConfirmed
    credential.isUsableAlone = permit.client.isUsableAlone(credential)
    let found = owner.name
    if credential.isTyped, found == nil { try requireName() }
    let unsure = found == nil && !credential.isGiven ? try likelyAccount() : nil
    // A name that no account can have says that the provider knows the user, who may not be the account's.
    let renewed: String? = if let unsure, fault != .unnameable, try !works(unsure) { unsure.name } else { nil }
    let all = try accounts.accounts(of: provider)
    // The provider renamed the user of an account that has the user's earlier name.
    let (new, kept) = (credential, credential.kept.merging(owner.kept) { $1 })
    func isUser(_ account: Account) -> Bool {
      // An account that is called like an organization may be for another one of the user.
      self.isUser(account, owner, of: new) && !isOfOtherElement(account, than: kept)
    }
    let renamed = all.first { isUser($0) && $0.hasNameOfUser }?.name
    let own = try found.map { name throws(CredentialError) in
      try self.name(of: owner, name, as: new, keeping: kept, among: all)
    }
    var wanted = if let name = id.name ?? renamed ?? own ?? renewed { name } else { try freeName() }
    if options.refreshToken != nil {
      wanted = try freeName(wanted) { name throws(CredentialError) in
        guard let there = try accounts.readableAccount(AccountID(provider, name)) else { return false }
        return isKept(there, besides: owner, of: credential)
      }
    } else if try isImported(wanted), options.replaces, credential.isTyped || options.hasKeyFile {
      wanted = try freeName(wanted) { name throws(CredentialError) in
        try accounts.readableAccount(AccountID(provider, name)) != nil
      }
    }
    let existing = try accounts.readableAccount(AccountID(provider, wanted))
    // The same name may use other code points.
    let name = existing?.name ?? wanted
    let replaces = options.replaces && !options.keeps.contains(name)
    let isKey = credential.isTyped || options.hasKeyFile
    if !replaces, let existing,
      credential.isTyped && existing.credential.accessToken != credential.accessToken
        || isKey && existing.credential.variables != credential.variables
    {
      throw .alreadyThere([RecordIdentifier(.credential, of: existing.id)], files: [])
    }
    let expected = existing?.credential.ownIdentity
    let other = all.first { other in
      other.name != name && isOfServer(other, as: credential)
        && (isUser(other) || found.map(other.isPerson) ?? false)
    }
    let isSame = existing.map { self.isUser($0, owner, of: credential) } ?? false
    // Another user may have taken the name since. The durable identifiers decide, if both are known.
    let isOther = existing.map { isAnotherUser($0, than: owner, of: credential) } ?? false
    // If the provider does not name the user, accept the token: losing it would be worse than an unverified user.
    if let existing, let expected, !isSame, isOther || found.map({ $0 != expected }) ?? (fault == .unnameable),
      try !givesAway(existing, of: expected, to: found, user: other == nil ? user : nil)
    {
      let isNameReused = isOther && found == expected
      let isHere = isOfServer(existing, as: credential)
      func told(_ name: String, subject: String?, issuer: String?) -> String {
        isNameReused ? name + ((isHere ? subject : issuer).map { " (\($0))" } ?? "") : name
      }
      throw .identityMismatch(
        provider: provider, account: name,
        expected: told(expected, subject: existing.credential.subject, issuer: existing.credential.issuer),
        found: found.map { told($0, subject: owner.subject, issuer: credential.issuer) }, other: other?.name)
    }
    try settle(element, for: owner, of: existing, in: &credential, user)
    if isSame, let expected, let found, found != expected {
      source.notice(.renamed(provider: provider, account: name, before: expected, now: found))
    }
    switch fault {
    case .unnameable: source.notice(.unnameable(account: name, provider: provider))
    case .unidentified(let error):
      source.notice(
        existing == nil
          ? .unidentified(account: name, beside: unsure?.id, error) : .unchecked(account: name, error))
      if let words = credential.typedWords, let error, !error.confirmsToken {
        source.notice(.unconfirmed(account: name, provider: provider, credential: words))
      }
    case nil: break
    }
    if existing == nil, let found, let other {
      source.notice(.sameIdentity(provider: provider, account: name, identity: found, other: other.name))
    }
    if let unused = try likelyAccount(), unused.name != name,
      try state(of: unused).needsLogin
    {
      source.notice(.defaultNeedsLogin(provider: provider, account: unused.name, other: name))
    }
    credential.identity = found
    credential.subject = owner.subject ?? (found == nil || found == expected ? existing?.credential.subject : nil)
    if found == nil {
      credential.earlierIdentity = fault == .unnameable ? nil : expected
    } else if isSame, name != found, existing?.hasNameOfUser == true {
      credential.earlierIdentity = name
    }
    credential.kept.merge(owner.kept.filter { !source.secrets.reveals($0.value) }) { ofToken, _ in ofToken }
    keepElement(of: existing, for: owner, besides: element, in: &credential)
    let fields = client.descriptor.elementFields()
    if let existing, !isOther, isSame || found == expected,
      fields.allSatisfy({ existing.credential.kept[$0] == credential.kept[$0] })
    {
      credential.variables.merge(options.choices) { typed, _ in typed }
    }
    credential.registrationDigest = nil
    let following = try following(credential)
    source.keepNonces(in: &credential, permit)
    let place = RecordIdentifier(.credential, of: AccountID(provider, name))
    var changes: [Change] = [
      following,
      .store(credential.encoded, as: place, if: try condition(existing, at: place)),
    ]
    for id in [id, AccountID(provider, name)] {
      changes += [.remove(RecordIdentifier(.pending, of: id)), .remove(RecordIdentifier(.failure, of: id))]
    }
    if try accounts.accounts(of: provider).isEmpty {
      changes.append(.store(Secret(name), as: Accounts.selection(provider)))
    }
    changes.append(source.noting(.login, of: provider, account: name, detail: credential.grant.rawValue))
    return IdentifiedAccount(name: name, credential: credential, changes: changes, identity: identity)
  }

  /// Returns the change that stores the registration again. A process that changes the provider at this moment notices
  /// by its revision that there is another account. Throws if another process has removed or changed the provider since
  /// the login began: the account would follow a registration with servers, or for a client, that must not get its
  /// tokens.
  func following(_ credential: Credential) throws(CredentialError) -> Change {
    let place = Accounts.registration(provider)
    while true {
      if let record = try accounts.record(place) {
        // The user's own token is of no client.
        let isOfClient = !credential.isTyped && !credential.isGiven
        let now = try accounts.registration(of: provider)?.digest(withClient: isOfClient)
        guard now == earlierRegistration?.digest(withClient: isOfClient) else { throw .providerChanged(provider) }
        return .store(record.payload, as: place, if: .revision(record.revision))
      }
      guard let registration else { throw .notAdded(provider: provider, ClientNeeds(client.descriptor)) }
      do throws(CredentialError) {
        try source.store(
          [provider: registration], with: [source.noting(.addProvider, of: provider)], after: [provider: nil])
      } catch .alreadyAdded {
        continue
      }
      let values = registration.variables.sorted { $0.key < $1.key }.filter { name, value in
        client.descriptor.variable(name).map { !$0.isSecret && $0.defaultValue != value } ?? false
      }
      if !values.isEmpty { source.notice(.valuesStay(provider: provider, values.map { "\($0.key)=\($0.value)" })) }
    }
  }

  /// Whether an account may belong to another user than before. Asks `user` only if the account no longer works, for
  /// example after the provider renamed the user.
  private func givesAway(
    _ account: Account, of expected: String, to found: String?, user: (any User)?
  ) throws(CredentialError) -> Bool {
    if options.givesAway { return true }
    guard let user, user.canAnswer, try state(of: account).needsLogin else { return false }
    ending.show(.question(found, instead: expected))
    let givesAway = user.givesAway(account.name, of: expected, to: found)
    // An interruption is not an answer. The next login continues with the token.
    if !givesAway, user.isCancelled { throw .interrupted }
    return givesAway
  }

  /// Returns the account that a login without a name is probably for: the only account or the default account.
  func likelyAccount() throws(CredentialError) -> Account? {
    guard id.name == nil, grant.traits.needsPerson else { return nil }
    return try accounts.likely(at: provider)
  }

  /// Whether an account works, so a login of unknown identity, which may be another user's, must not replace it.
  private func works(_ account: Account) throws(CredentialError) -> Bool {
    var state = try state(of: account)
    if state == .refreshable {
      // The provider may have revoked the token. Only a refresh shows that.
      _ = try? source.refreshed(account, RefreshPolicy())
      state = try self.state(of: accounts.existing(account.id))
    }
    if case .refused = state { return false }
    return !state.needsLogin
  }

  /// Whether a login of unknown identity would replace an account that may belong to another user.
  private func isTaken(_ name: String) throws(CredentialError) -> Bool {
    // Client credentials always belong to the same client.
    guard grant.traits.needsPerson, let there = try accounts.readableAccount(AccountID(provider, name)) else {
      return false
    }
    return try works(there) || there.credential.ownIdentity != nil
  }

  func requireName() throws(CredentialError) {
    if id.name == nil, try isTaken(Self.standardName) {
      throw .nameNeeded(provider: provider, account: Self.standardName)
    }
  }

  /// Returns an unused name for a login of unknown identity.
  private func freeName() throws(CredentialError) -> String { try freeName(Self.standardName, isTaken) }

  /// Returns a name, with a number if it is taken.
  func freeName(
    _ wanted: String, _ isTaken: (String) throws(CredentialError) -> Bool
  ) throws(CredentialError) -> String {
    var (name, number) = (wanted, 1)
    while try isTaken(name) {
      number += 1
      name = "\(wanted)-\(number)"
    }
    return name
  }

  func state(of account: Account) throws(CredentialError) -> AccountState {
    try accounts.state(of: account, accounts.note(account.id), at: source.clock.now())
  }

  func isAlive(_ account: Account) throws(CredentialError) -> Bool { try state(of: account).isAlive }

  /// The owner of a credential, as the provider said.
  typealias Identity = (owner: Owner, fault: IdentityFault?, isConfirmed: Bool)

  /// Why the user is unknown.
  enum IdentityFault: Equatable {
    case unidentified(CredentialError?)  // `nil` if the user already knows the error.
    case unnameable  // The provider's user name is not valid as an account name.
  }

  /// Asks the provider who logged in. If this fails, the token is not lost. `isConfirmed` is false for a credential
  /// that the user brings, unless the provider knows it.
  private func identity(
    _ credential: Credential, _ user: (any User)?
  ) throws(CredentialError) -> Identity {
    var owner = Owner(name: client.accountName(in: credential))
    if client.descriptor.subject == Descriptor().subject { owner.subject = credential.idTokenSubject }
    // A key is verified even if the answer does not name the user.
    // No provider has seen a token that the client made.
    let isUnknown = credential.isTyped || client.makesTokens(of: credential.grant)
    var isConfirmed = !isUnknown
    let canVerify = isUnknown && client.canVerify || options.verifies && client.canValidate
    if client.asksIdentity(after: credential.grant) || canVerify && credential.grant.traits.needsPerson {
      do throws(CredentialError) {
        let answer = try answer(about: credential, isUnknown: isUnknown, user)
        owner = Owner(
          name: answer.name ?? owner.name, subject: answer.subject ?? owner.subject, kept: answer.kept,
          element: answer.element)
        isConfirmed = true
      } catch {
        // Some providers refuse valid keys that cannot read the profile.
        if isUnknown, error.refusesToken, options.verifies || !options.keepsUnverified {
          let refused = credential.typedWords ?? "token"
          throw .tokenRefused(provider: provider, refused: refused, words: error.refusalWords)
        }
        // The token does not belong to the user that the provider names, so it may have been swapped.
        if case .oauth(.idToken, _) = error { throw error }
        if case .oauth(.valueOutOfBounds, _) = error { throw error }
        if case .oauth(.elementMissing, _) = error { throw error }
        if error == .interrupted { throw error }
        if options.verifies {
          if isUnknown, !error.concernsRights { throw error }
        } else if isUnknown, !error.confirmsToken, !options.keepsUnverified {
          // The question shows the error.
          switch user?.confirmStoring(unverified: error) {
          case true?: return (owner, .unidentified(nil), false)
          case false?: throw user?.isCancelled == true ? .interrupted : .notStored
          case nil: throw user?.isCancelled == true ? .interrupted : .unverified(provider: provider, error)
          }
        }
        return (owner, .unidentified(error), isConfirmed || error.confirmsToken)
      }
    }
    if let subject = owner.subject, source.secrets.reveals(subject) || !Accounts.isName(subject) { owner.subject = nil }
    if let name = owner.name, source.secrets.reveals(name) { throw .oauth(.secretAccount, provider: provider) }
    guard let name = owner.name, !Accounts.isName(name) else { return (owner, nil, isConfirmed) }
    owner.name = nil
    return (owner, .unnameable, isConfirmed)
  }

  /// Asks the provider who owns a credential, or else whether it is valid. If the credential `isUnknown`, the answer
  /// must show that the provider knows it.
  private func answer(
    about credential: Credential, isUnknown: Bool, _ user: (any User)?
  ) throws(CredentialError) -> Owner {
    var permit = permit
    if credential.variables != options.variables {
      permit = try source.permitToLogIn(loaded, needsClient: false, variables: credential.variables).permit
    }
    let client = permit.client
    let hasIdentity = client.descriptor.endpoints[.identity] != nil
    let response = try source.answer(about: credential, asksOwner: hasIdentity, with: permit).response
    if hasIdentity {
      let element = try element(of: response, as: credential, at: client, user)
      let (name, subject, kept) = try source.core(
        provider, client.identity(response, of: credential, element: element?.place ?? 0))
      if isUnknown { try source.core(provider, client.requireEvidence(response, of: credential)) }
      return Owner(name: name, subject: subject, kept: kept, element: element)
    }
    if try source.core(provider, client.validity(response, .introspection)) == .inactive {
      throw .tokenRefused(provider: provider, refused: credential.typedWords ?? "token", words: nil)
    }
    return Owner()
  }
}

/// The user of a new credential, as the provider reports.
struct Owner {
  var name: String?  // The name that people see.
  var subject: String?  // The durable identifier.
  var kept: [String: String] = [:]
  var element: UsedElement?  // The element of the list in the provider's answer.
}

extension Account {
  /// Whether the account is called like its user, or like its user was once, perhaps with a number. Then the user did
  /// not name it.
  fileprivate var hasNameOfUser: Bool {
    [credential.identity, credential.earlierIdentity].compactMap(\.self).contains { user in
      name == user || name.hasPrefix(user + "-") && Int(name.dropFirst(user.count + 1)) != nil
    }
  }
}

extension Credential {
  /// Adds what the user gave with the login.
  mutating func add(_ options: LoginOptions) {
    variables = options.variables.merging(variables) { _, typed in typed }
    guard let end = options.expiresAt else { return }
    if isTyped { expiresAt = end } else { keyExpiresAt = end }
  }
}

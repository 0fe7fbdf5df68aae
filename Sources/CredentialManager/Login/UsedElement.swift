import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrStore

/// The element of a list that a login uses: an organization or a site of the user.
struct UsedElement {
  enum Reason {
    case asked  // The user chose it.
    case only
    case first  // The login could not ask.
    case earlier(Account)  // The account uses it, and the login is probably for this account.
  }

  let list: ElementList
  let place: Int
  let reason: Reason

  var label: String { list.labels[place] }
}

/// The element of a token exchange, which comes before the provider says who logged in.
struct ExchangedElement {
  let used: UsedElement
  let read: (_ place: Int) throws(OAuthError) -> Step
}

extension CredentialSource {
  /// Returns the element that `account` uses, if the list still has it, or else the user's choice. Without a prompt,
  /// the first one counts.
  func element(
    of list: ElementList, as account: Account?, at provider: String, _ user: (any User)?
  ) throws(CredentialError) -> UsedElement {
    if list.labels.count == 1 { return UsedElement(list: list, place: 0, reason: .only) }
    if let account, let place = list.place(of: account.credential.kept) {
      return UsedElement(list: list, place: place, reason: .earlier(account))
    }
    let place = try user?.choice(among: list.labels, of: provider)
    return UsedElement(list: list, place: place ?? 0, reason: place == nil ? .first : .asked)
  }
}

extension Login {
  /// Returns the account that the login renews, whose element of a list stays. If the login does not name the account,
  /// the likely one counts only for a login that cannot ask.
  func earlierAccount(_ user: (any User)?) throws(CredentialError) -> Account? {
    if id.name != nil { return try accounts.readableAccount(id) }
    return user?.canAnswer == true ? nil : try likelyAccount()
  }

  /// Returns the element in an answer that also names the user; `nil` without a list.
  func element(
    of response: HTTPResponse, as credential: Credential, at client: Client, _ user: (any User)?
  ) throws(CredentialError) -> UsedElement? {
    guard let list = try source.core(provider, client.elements(in: response, .identity, for: credential)) else {
      return nil
    }
    let (name, subject, _) = try source.core(provider, client.identity(response, of: credential, element: 0))
    let person = person(Owner(name: name, subject: subject), in: credential)
    let earlier = try earlierAccount(user)
    guard let earlier, isUser(earlier, person, in: credential) == false else {
      // Each element may be an account of the user, who then chooses.
      let paths = client.descriptor.account + client.descriptor.subject
      let asks = user?.canAnswer == true && paths.contains { $0.inElement != nil }
      let own: Account? = if id.name == nil, !asks { try account(of: person, in: credential) } else { nil }
      return try source.element(of: list, as: own ?? earlier, at: provider, user)
    }
    // A login for an account of another user fails, so the user need not choose.
    let needsLogin = try state(of: earlier).needsLogin
    if id.name != nil, !options.givesAway, !needsLogin || user?.canAnswer != true {
      return UsedElement(list: list, place: 0, reason: .first)
    }
    return try source.element(of: list, as: account(of: person, in: credential), at: provider, user)
  }

  /// Decides about the element of a list once the user is known: that of another user's account does not count.
  func settle(
    _ exchanged: ExchangedElement?, for owner: Owner, of existing: Account?, in credential: inout Credential,
    _ user: (any User)?
  ) throws(CredentialError) {
    let person = person(owner, in: credential)
    for (used, read) in [(exchanged?.used, exchanged?.read), (owner.element, nil)] {
      guard var used else { continue }
      if let read, case .earlier(let there) = used.reason, isUser(there, person, in: credential) == false {
        used = try source.element(of: used.list, as: account(of: person, in: credential), at: provider, user)
        try credential.exchange(for: source.core(provider, read(used.place)), source)
      }
      let isOther =
        existing.map { there in
          isUser(there, person, in: credential) != false && used.list.isKnown(there.credential.kept)
            && used.list.place(of: there.credential.kept) != used.place
        } ?? false
      switch used.reason {
      case .asked:
        if let existing, isOther { source.notice(.uses(provider: provider, used.label, account: existing.name)) }
      case .first:
        source.notice(
          .chosen(
            provider: provider, used.label, of: used.list.labels.count, variable: client.descriptor.choosingVariable))
      case .earlier(let account):
        guard isUser(account, person, in: credential) == nil else { continue }
        source.notice(.usedAgain(provider: provider, used.label, account: account.name))
      case .only:
        guard let existing, isOther else { continue }
        source.notice(
          used.list.isNamed
            ? .uses(provider: provider, used.label, account: existing.name)
            : .usedInstead(provider: provider, used.label, account: existing.name))
      }
    }
  }

  /// Keeps the element of the account that the login renews if no answer lists elements.
  func keepElement(
    of existing: Account?, for owner: Owner, besides exchanged: ExchangedElement?, in credential: inout Credential
  ) {
    guard let existing, exchanged == nil, owner.element == nil,
      isUser(existing, person(owner, in: credential), in: credential) != false
    else { return }
    let fields = client.descriptor.elementFields(of: [.identity, .tokenExchange])
    let kept = existing.credential.kept.filter { fields.contains($0.key) }
    if kept.isEmpty { return }
    credential.kept.merge(kept) { $1 }
    source.notice(.elementKept(provider: provider, account: existing.name))
  }

  /// Returns what is known of the user. A name or an identifier of an element says nothing about the user.
  private func person(_ owner: Owner, in credential: Credential) -> Owner {
    let descriptor = client.descriptor
    let fields = descriptor.endpoints[.identity] == nil ? descriptor.elementFields() : []
    func areOfElement(_ paths: [FieldPath]) -> Bool {
      paths.contains { $0.inElement != nil || fields.contains($0.text) }
    }
    var person = Owner(subject: areOfElement(descriptor.subject) ? nil : owner.subject)
    if descriptor.subject == Descriptor().subject { person.subject = person.subject ?? credential.idTokenSubject }
    if !areOfElement(descriptor.account) { person.name = owner.name }
    return person
  }

  /// Whether an account belongs to a person who logged in; `nil` if that is unknown.
  private func isUser(_ account: Account, _ person: Owner, in new: Credential) -> Bool? {
    if isUser(account, person, of: new) { return true }
    if isAnotherUser(account, than: person, of: new) { return false }
    guard let name = person.name, let own = account.credential.ownIdentity else { return nil }
    return name.lowercased() == own.lowercased()
  }

  /// Returns the account of a person that the login will renew: with the person's name, or else the default one.
  private func account(of person: Owner, in credential: Credential) throws(CredentialError) -> Account? {
    let own = try accounts.accounts(of: provider).filter { isUser($0, person, in: credential) == true }
    let selected = try accounts.selected(for: provider)
    return own.first { $0.name == person.name } ?? own.first { $0.name == selected } ?? own.first
  }
}

extension Credential {
  /// Takes the tokens and fields of another element.
  fileprivate mutating func exchange(for step: Step, _ source: CredentialSource) {
    guard case .done(var other, _) = step else { return }
    other = source.learn(other)
    if other.idToken == idToken { other.isIDTokenVerified = isIDTokenVerified }
    other.variables = variables
    (other.isUnverified, other.isUsableAlone) = (isUnverified, isUsableAlone)
    self = other
  }
}

extension Descriptor {
  /// Returns the fields that an account keeps of an element.
  func elementFields(of kinds: [EndpointKind] = EndpointKind.allCases) -> [String] {
    kinds.compactMap { endpoints[$0] }.flatMap(\.response.keep).filter(\.isOfElement).map(\.name)
  }

  /// The variable that a condition for an element compares, so that a login can choose without a question.
  fileprivate var choosingVariable: String? { choosingVariables.first }

  var choosingVariables: [String] {
    endpoints.values.flatMap { $0.response.element?.conditions ?? [] }.flatMap { $0.value?.names ?? [] }
      .filter { variable($0) != nil }
  }
}

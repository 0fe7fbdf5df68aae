import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

extension CredentialSource {
  /// Returns the copy of a credential that this machine keeps, without the secrets that only a refresh needs. It is
  /// refreshed up to 10 % of its life earlier, but at most 5 minutes, by chance. Its moments are those of this
  /// machine's clock.
  func copy(
    of credential: Credential, from vault: String, for descriptor: Descriptor?
  ) throws(CredentialError) -> Credential {
    let offset = try joined(vault).shared?.clockOffset ?? .zero
    let life = credential.expiresAt.map { max($0 - credential.obtainedAt, .zero) } ?? .zero
    let longest = min(life / 10, .minutes(5))
    let chance = random.bytes(2).reduce(0) { $0 << 8 | Int($1) }
    var copy = credential.shifted(by: .zero - offset)
      .copied(from: vault, spread: .seconds(longest.wholeSeconds * Int64(chance) / 65536))
    if let descriptor, credential.grant.traits.typed == nil {
      let needed = descriptor.namesInRequests
      copy.variables = copy.variables.filter { name, _ in
        descriptor.variable(name)?.isSecret != true || needed.contains(name)
      }
    }
    return copy
  }

  /// Returns the check before this machine stores another token of a shared account, or refreshes it.
  func accepts(_ copy: Account) -> Accepts {
    { [unowned self] registration throws(CredentialError) in
      try requirePlaces(of: copy.provider, within: registration, of: copy.credential.vault ?? "")
    }
  }

  /// Returns an account of this shared vault whose token a machine may store. Another machine may have got the token at
  /// a server to which the members moved the provider meanwhile. The token and the registration are read together.
  func accepted(_ account: Account, _ accepts: Accepts) throws(CredentialError) -> Account? {
    if account.credential.accessToken == ownToken { return account }
    let accounts = try accounts()
    func look() throws(CredentialError) -> Account? {
      let current = try accounts.account(account.id)
      if current != nil { try accepts(accounts.registration(of: account.provider)) }
      return current
    }
    return try inStore(accounts.store.snapshot(look)).get()
  }

  /// Throws if this machine would send the tokens of a shared account to a place that the vault's registration does not
  /// name: the machine has another provider of the same name.
  func requirePlaces(
    of provider: String, within theirs: Registration?, of vault: String
  ) throws(CredentialError) {
    guard let own = try accountsIfAny()?.registration(of: provider) else { return }
    guard let theirs, let agreed = theirs.agreement else {
      throw .vault(.server(.damaged(Accounts.registration(provider)), vault: vault))
    }
    let places = newPlaces(from: agreed, to: sealed(own, of: provider), theirs.variables == own.variables)
    if places.isEmpty { return }
    throw .shared(
      .otherProvider(provider: provider, vault: vault, places, own.vault == vault ? .isOutdated : .isOwn))
  }

  /// Returns the vault's registration. Throws if the members of the vault would send the tokens of this machine's
  /// account to a place that its own registration does not name.
  @discardableResult func requirePlaces(in vault: String, of provider: String) throws(CredentialError) -> Record? {
    guard let record = try joined(vault).accounts().record(Accounts.registration(provider)) else { return nil }
    guard let theirs = Registration(decoding: record.payload) else { throw .malformedRegistration(provider: provider) }
    guard let own = try accountsIfAny()?.registration(of: provider), let agreement = theirs.agreement else {
      return record
    }
    let places = newPlaces(from: sealed(own, of: provider), to: agreement, theirs.variables == own.variables)
    if places.isEmpty { return record }
    throw .shared(
      .otherProvider(provider: provider, vault: vault, places, own.vault == vault ? .isOutdated : .isGiven))
  }

  /// Throws if the tokens of the vault's registration would go elsewhere, because a file of the user takes the place of
  /// one of the vault's descriptors, or because the members changed a descriptor together with another provider.
  func requirePlaces(
    of provider: String, within theirs: Registration, of vault: String, with descriptors: [String: String]
  ) throws(CredentialError) {
    guard let loaded = try? library(with: descriptors).load(provider) else { return }
    let places = placesBeyond(theirs, with: loaded)
    if places.isEmpty { return }
    var texts: [String: [UInt8]] = [:]
    for record in try joined(vault).accounts().records(.descriptor, of: nil) {
      texts[path(ofOwn: record.identifier.provider)] = record.payload.revealBytes()
    }
    let differing = zip([loaded.path] + loaded.bases, loaded.contents).first { path, text in
      path.hasPrefix(home.userProviders + "/") && texts[path] != text
    }
    if let file = differing?.0 {
      throw .shared(.otherProvider(provider: provider, vault: vault, places, .hasFile(path: file)))
    }
    if theirs.agreement?.ownFiles != nil {
      throw .shared(.notAgreed(provider: provider, vault: vault, places))
    }
  }

  /// Returns the places that get the tokens of a vault's registration with a descriptor and that it does not name.
  private func placesBeyond(_ theirs: Registration, with loaded: DescriptorLibrary.Loaded) -> [NewPlace] {
    guard let agreed = theirs.agreement, ownFiles(of: loaded) != agreed.ownFiles,
      let client = try? client(loaded.descriptor, theirs)
    else { return [] }
    return newPlaces(from: agreed, to: Agreement(client), false)
  }

  /// Returns the other providers of a shared vault that extend a changed descriptor, if their tokens would go to places
  /// to which the members have not agreed for them.
  package func dependents(of addition: ProviderAddition, in vault: String) throws(CredentialError) -> [String] {
    let source = try joined(vault)
    let theirs = try source.accounts()
    var texts = try source.sharedDescriptors()
    for (path, text) in zip([addition.loaded.path] + addition.loaded.bases, addition.loaded.contents)
    where [home.userProviders, Home.systemFolder].contains(Path.directory(of: path)) {
      texts[String(Path.lastComponent(of: path).dropLast(".yaml".count))] = String(decoding: text, as: UTF8.self)
    }
    if let file = addition.file { texts[addition.identifier] = String(decoding: file, as: UTF8.self) }
    let library = library(with: texts)
    var dependents: [String] = []
    for other in try theirs.addedProviders() where other != addition.identifier {
      if let registration = try theirs.registration(of: other), let loaded = try? library.load(other),
        !placesBeyond(registration, with: loaded).isEmpty
      {
        dependents.append(other)
      }
    }
    return dependents
  }

  /// Returns the origins of one registration that get tokens and that another one does not name. A shipped descriptor
  /// names the same provider in each version of credmgr.
  private func newPlaces(from agreed: Agreement, to other: Agreement, _ haveSameVariables: Bool) -> [NewPlace] {
    if agreed.ownFiles == "", other.ownFiles == "", haveSameVariables { return [] }
    return agreed.newPlaces(in: other).filter { [.secrets, .tokens].contains($0.kind) }
  }

  /// The place of a token of another issuer is a file or a variable of one machine. Taken from a shared vault, it would
  /// let the other members choose what this machine reads and sends.
  func requireShareable(_ variables: [String: String], of descriptor: Descriptor) throws(CredentialError) {
    for variable in descriptor.variables where variable.isAtExchange && variables[variable.name] != nil {
      throw .shared(.notShareable(provider: descriptor.identifier, variable: variable.name))
    }
  }
}

extension Descriptor {
  /// The names whose values a use of a token needs: for requests with it, about it and to revoke it, and for programs.
  fileprivate var namesInRequests: Set<String> {
    var templates = [headerStyle.path, headerStyle.username, headerStyle.password].compactMap(\.self)
    templates += (headerStyle.parameters + extraHeaders).map(\.value) + extraQuery.compactMap(\.value)
    templates += hosts + (git?.hosts ?? []) + (docker?.hosts ?? []) + (kubectl?.hosts ?? [])
    templates += [git?.username, docker?.username].compactMap(\.self)
    for (kind, endpoint) in endpoints where !kind.leg.issuesCredentials && kind != .registration {
      templates += [endpoint.url.template] + endpoint.headers.map(\.value) + endpoint.parameters.compactMap(\.value)
    }
    return Set((templates + signatureTemplates).flatMap(\.names) + environment.keys)
  }
}

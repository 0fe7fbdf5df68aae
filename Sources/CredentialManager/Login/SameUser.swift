import CredmgrDescriptors
import CredmgrOAuth
import CredmgrStore

/// Whether an account belongs to the user who logs in.
extension Login {
  /// Whether the durable identifiers are known and are the same.
  func isUser(_ account: Account, _ owner: Owner, of new: Credential) -> Bool {
    owner.subject != nil && account.credential.subject == owner.subject && isOfServer(account, as: new)
  }

  /// Whether the durable identifiers are known and differ, or another server issued the account's tokens.
  func isAnotherUser(_ account: Account, than owner: Owner, of new: Credential) -> Bool {
    guard isOfServer(account, as: new) else { return true }
    guard let known = account.credential.subject, let subject = owner.subject else { return false }
    return known != subject
  }

  /// Whether the server that issued a new credential also issued the account's. Variables may name the server.
  func isOfServer(_ account: Account, as new: Credential) -> Bool {
    let (there, names) = (account.credential, client.descriptor.variablesOfServers)
    // Both follow the provider, also to another issuer.
    if names.allSatisfy({ there.variables[$0] == new.variables[$0] }) { return true }
    if let issuer = there.issuer, let other = new.issuer { return issuer == other }
    func value(_ name: String, _ credential: Credential) -> String? {
      credential.variables[name] ?? earlierRegistration?.variables[name]
        ?? client.descriptor.variable(name)?.defaultValue
    }
    return names.allSatisfy { value($0, there) == value($0, new) }
  }

  /// Returns the name of the account for a user, who may have the name of a user at another server: two realms of one
  /// server have an administrator each. `kept` are the fields that the account will keep. Two organizations may have
  /// one name as well.
  func name(
    of owner: Owner, _ found: String, as credential: Credential, keeping kept: [String: String], among all: [Account]
  ) throws(CredentialError) -> String {
    func isHere(_ account: Account) -> Bool {
      isOfServer(account, as: credential) && !isOfOtherElement(account, than: kept)
    }
    guard let there = try accounts.readableAccount(AccountID(provider, found)), !isHere(there) else { return found }
    let own = all.first { account in
      isHere(account) && account.isPerson(found) && !isAnotherUser(account, than: owner, of: credential)
    }
    if let own { return own.name }
    return try freeName(found) { name throws(CredentialError) in
      try accounts.readableAccount(AccountID(provider, name)) != nil
    }
  }
}

extension Login {
  /// Whether an account that is called like an element of a list is of another element.
  func isOfOtherElement(_ account: Account, than kept: [String: String]) -> Bool {
    guard client.descriptor.account.contains(where: { $0.inElement != nil }) else { return false }
    return client.descriptor.elementFields().contains { account.credential.kept[$0] != kept[$0] }
  }
}

extension Descriptor {
  /// The variables in the addresses that decide which server issues a credential.
  fileprivate var variablesOfServers: [String] {
    let templates = endpoints.values.map(\.url.template) + hosts + [issuer].compactMap(\.self)
    let names = Set(templates.flatMap(\.names))
    return variables.map(\.name).filter(names.contains)
  }
}

import CredmgrDescriptors
import CredmgrOAuth

package struct AccountChoice: Sendable, Equatable {
  package enum Reason: Sendable, Equatable {
    case option
    case username  // The user name that git passes or that a URL contains.
    case environment  // The variable `CREDMGR_ACCOUNT`.
    case rule(AccountRule)
    case selected
    case only
  }

  package let name: String
  package let reason: Reason

  package init(_ name: String, _ reason: Reason) {
    self.name = name
    self.reason = reason
  }

  /// Parses `CREDMGR_ACCOUNT`: `NAME` for every provider, or `PROVIDER=NAME,…`.
  package static func named(in text: String) -> [(provider: String?, name: String)] {
    let pairs = text.split(separator: ",").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    if !pairs.isEmpty, pairs.allSatisfy({ $0.count == 2 && DescriptorLibrary.isIdentifier($0[0]) }) {
      return pairs.map { ($0[0], $0[1]) }
    }
    return text.isEmpty ? [] : [(nil, text)]
  }

  /// Returns the first part of `CREDMGR_ACCOUNT` that names no account, or a second one of the same provider; `nil` if
  /// all parts are valid. A text that does not begin with `PROVIDER=` is a name.
  package static func fault(in text: String) -> (part: String, isSecond: Bool)? {
    var providers: Set<Substring> = []
    for part in text.split(separator: ",") {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let isPair = pair.count == 2 && DescriptorLibrary.isIdentifier(String(pair[0]))
      if !isPair, providers.isEmpty { return nil }
      if !isPair || pair[1].isEmpty { return (String(part), false) }
      if !providers.insert(pair[0]).inserted { return (String(part), true) }
    }
    return nil
  }
}

extension CredentialSource {
  /// Reads the rules. Without rules, this costs only one lookup of a missing file.
  package func accountRules() throws(CredentialError) -> AccountRules {
    try AccountRules(path: home.accountRules, home: home.person)
  }

  package func standardChoice(of provider: String) throws(CredentialError) -> AccountChoice {
    let accounts = try accounts(neededFor: nil, of: provider)
    let account = try accounts.resolve(nil, provider: provider)
    return AccountChoice(account.name, try accounts.selected(for: provider) == account.name ? .selected : .only)
  }
}

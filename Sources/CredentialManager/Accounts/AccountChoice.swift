import Descriptors
import OAuth

package struct AccountChoice: Sendable, Equatable {
  package enum Reason: Sendable, Equatable {
    case option
    case username  // The user name that git passes, or that stands in a URL.
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

  /// The accounts that `CREDMGR_ACCOUNT` names: `NAME` for every provider, or `PROVIDER=NAME,…`.
  package static func named(in text: String) -> [(provider: String?, name: String)] {
    let pairs = text.split(separator: ",").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    if !pairs.isEmpty, pairs.allSatisfy({ $0.count == 2 && DescriptorLibrary.isIdentifier($0[0]) }) {
      return pairs.map { ($0[0], $0[1]) }
    }
    return text.isEmpty ? [] : [(nil, text)]
  }
}

extension CredentialSource {
  /// Costs a user without rules one look for a file that is not there.
  package func accountRules() throws(CredentialError) -> AccountRules {
    try AccountRules(path: home.accountRules, home: home.person)
  }

  package func standardChoice(of provider: String) throws(CredentialError) -> AccountChoice {
    let accounts = try accounts(neededFor: nil, of: provider)
    let account = try accounts.resolve(nil, provider: provider)
    return AccountChoice(account.name, try accounts.selected(for: provider) == account.name ? .selected : .only)
  }
}

import CredentialManager
import Cryptography
import OAuth
import Vault

/// Makes vaults with many accounts. `credmgr login` makes one at a time and waits for the disk each time; here they all
/// go into one change.
enum Filling {
  /// The provider whose accounts they are; `script/bench` adds it.
  static let provider = "bench"

  /// Puts the accounts `account-1` to `account-<count>` into the vault of a home, with tokens that do not expire
  /// and a length that tokens have; the first one becomes the default. And the registrations of the providers
  /// `another-1` to `another-<others>`, whose descriptors are there.
  static func fill(home path: String, count: Int, others: Int) throws {
    let home = try Home(environment: { $0 == "CREDMGR_HOME" ? path : nil }, executable: path)
    let random = SystemRandomSource()
    let vault = try Vault.open(home.vaultLocation, .readWrite, random: random)
    var changes: [Change] = [
      .store(
        Secret("account-1"), as: RecordIdentifier(kind: .selection, provider: provider, account: ""), if: .any)
    ]
    for number in 1...max(count, 1) {
      let name = "account-\(number)"
      changes.append(
        .store(
          credential(random).encoded, as: RecordIdentifier(kind: .credential, provider: provider, account: name),
          if: .any))
    }
    for number in stride(from: 1, through: others, by: 1) {
      let registration = RecordIdentifier(kind: .registration, provider: "another-\(number)", account: "")
      changes.append(.store(Secret(#"{"client_id":"bench","variables":{}}"#), as: registration, if: .any))
    }
    try vault.apply(changes)
  }

  /// A credential as an ordinary provider gives it.
  static func credential(_ random: some RandomSource) -> Credential {
    var credential = Credential(
      grant: .authorizationCode, accessToken: Secret(Base64.encodeURL(random.bytes(30))), obtainedAt: 1_700_000_000)
    credential.tokenType = "Bearer"
    credential.refreshToken = Secret(Base64.encodeURL(random.bytes(30)))
    credential.requestedScope = ["read", "write"]
    credential.identity = "ada@example.org"
    return credential
  }
}

import Platform
import Store
import Vault

/// The vault as this process has it open: opened at the first use, and anew for writing, without asking again.
struct OpenVault {
  private var open: (vault: Vault, access: StoreAccess)?
  private var known: OpenedKeys?
  /// The keys for the program that takes this one's place, where somebody would be asked for them again.
  private(set) var keysToLeave: OpenedKeys?

  mutating func vault(_ access: StoreAccess, for source: CredentialSource) throws(StoreError) -> Vault {
    if let open, open.access == .readWrite || access == .readOnly { return open.vault }
    if let vault = open?.vault { known = OpenedKeys(of: vault) }
    let holders = known.map { known in [KeyHolder.opened { $0 == known.vault ? known.keys : nil }] } ?? []
    let vault = try source.keys.asking { () throws(StoreError) in
      try Vault.open(
        source.home.vaultLocation, access, random: source.random, now: source.clock.now(),
        holders: holders + source.keys.holders)
    }
    open = (vault, access)
    if [.passphrase, .secretService].contains(vault.keysFoundBy) { keysToLeave = OpenedKeys(of: vault) }
    return vault
  }

  /// Lets go of the vault: the next use opens it anew, with these keys if they are the right ones.
  mutating func close(keeping keys: OpenedKeys?) {
    open = nil
    known = keys
  }
}

extension OpenedKeys {
  init(of vault: Vault) {
    let opened = vault.openedKeys
    self.init(vault: opened.vault, keys: opened.keys)
  }
}

extension CredentialSource {
  /// The vault, for what no other store has: ways to its key, copies of its file.
  func vault(_ access: StoreAccess = .readOnly) throws(CredentialError) -> Vault {
    try inStore(openVault.vault(access, for: self))
  }

  /// Opens the store at the first use; `.absent` when there is none yet and nothing is to be written.
  package func accounts(_ access: StoreAccess = .readOnly) throws(CredentialError) -> Accounts {
    Accounts(store: try vault(access))
  }

  /// Makes a process that opens one vault and ends quicker. For programs, before anything else is done with a vault.
  package static func configureForOneShotUse() { Vault.configureForOneShotUse() }

  package func verifyVault() throws(CredentialError) -> [VaultFinding] {
    let vault = try vault()
    return try inStore(vault.verify())
  }
}

extension Home {
  package var vaultLocation: VaultLocation { VaultLocation(directory: vault) }

  package var passphraseLock: LockPlace { vaultLocation.passphraseLock }

  /// The lock that keeps processes from changing the rules at the same time. Who has rules has a vault.
  var rulesLock: LockPlace { vaultLocation.rulesLock }
}

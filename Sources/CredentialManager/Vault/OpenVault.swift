import CredmgrPlatform
import CredmgrStore
import CredmgrText
import CredmgrVault

/// This process's open vault. It opens at the first use, and again for writing without another prompt.
struct OpenVault {
  private var open: (vault: Vault, access: StoreAccess)?
  private var known: OpenedKeys?

  var isWritable: Bool { open?.access == .readWrite }

  mutating func vault(_ access: StoreAccess, for source: CredentialSource) throws(StoreError) -> Vault {
    if let open, open.access == .readWrite || access == .readOnly { return open.vault }
    if let vault = open?.vault { known = OpenedKeys(of: vault) }
    let holders = known.map { known in [KeyHolder.opened { $0 == known.vault ? known.keys : nil }] } ?? []
    let vault = try source.keys.asking { () throws(StoreError) in
      let now = source.clock.now()
      return try Vault.open(
        source.home.vaultLocation, access, random: source.random, now: now,
        holders: holders + source.keys.holders(now: now))
    }
    open = (vault, access)
    return vault
  }

  /// Closes the vault. The next use opens it again, with these keys if they fit.
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
  /// Returns the vault for operations that only a vault has: slots and backups.
  func vault(_ access: StoreAccess = .readOnly) throws(CredentialError) -> Vault {
    try inStore(openVault.vault(access, for: self))
  }

  /// Opens the store at the first use. Throws `.absent` if the vault does not exist and this process only reads.
  package func accounts(_ access: StoreAccess = .readOnly) throws(CredentialError) -> Accounts {
    if let shared { return Accounts(store: shared.store) }
    let isOpened = access == .readWrite && !openVault.isWritable
    let accounts = Accounts(store: try vault(access))
    if isOpened { recordClaims(accounts) }
    return accounts
  }

  /// Returns the status without needing a key. `keyFileFault` is the problem with the key file.
  package func vaultStatus() throws(CredentialError) -> (
    status: VaultStatus, unlockedUntil: Moment?, keyFileFault: StoreError?
  ) {
    let location = home.vaultLocation
    return try inStore { () throws(StoreError) in
      let name = try Vault.keyName(of: location)
      let status = try Vault.status(of: location)
      return (status, KeptKeys(name, now: clock.now())?.deadline, Vault.keyFileFault(at: location))
    }
  }

  /// Optimizes a process for opening one vault and exiting quickly. Call it before using a vault.
  package static func configureForOneShotUse() { Vault.configureForOneShotUse() }
}

extension Home {
  package var vaultLocation: VaultLocation { VaultLocation(directory: vault) }

  package var passphraseLock: LockPlace { vaultLocation.passphraseLock }

  /// The lock that prevents simultaneous changes to the rules. Users with rules have a vault.
  var rulesLock: LockPlace { vaultLocation.rulesLock }
}

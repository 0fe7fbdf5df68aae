import CredmgrCredentialManager
import CredmgrMessages
import CredmgrStore
import CredmgrText

extension Doctor {
  /// Checks the servers of the joined vaults.
  mutating func checkSharedVaults() {
    for name in (try? context.source.joinedVaults()) ?? [] {
      guard context.source.vaults != nil else {
        ok(.vault, "this machine joined the vault \(quoted(name)); its server was not checked")
        continue
      }
      do throws(CredentialError) {
        let store = try context.source.joined(name).sharedStore()
        let status: SharedVaultStatus
        do throws(StoreError) {
          status = try store.sharedStatus()
          // A new token could not be stored in a server that accepts no changes.
          try store.check([])
        } catch { throw .vault(error) }
        if status.lacksStandby {
          problem(.vault, .unreachable(SharedVaultOperations.standbyMissing(name)))
        } else if status.hasStandby == false {
          note(.vault, "no standby of the vault \(quoted(name)) confirms commits, so its disk has the only copy")
        } else {
          ok(.vault, "the server of the vault \(quoted(name)) answers")
        }
        checkClock(of: status.server, context.clock.now() + store.clockOffset)
      } catch { tell(error, as: .vault) }
    }
  }
}

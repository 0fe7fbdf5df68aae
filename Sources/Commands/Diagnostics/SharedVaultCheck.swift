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
    for name in (try? context.source.vaultsWithAnswersOfOthers()) ?? [] {
      note(.vault, SharedVaultOperations.answerWaits(for: name), hint: .synchronizing(name))
    }
  }
}

extension SharedVaultOperations {
  static func tellStandby(_ status: SharedVaultStatus, _ context: Context) {
    guard status.hasStandby == false else { return }
    context.tell("no standby confirms commits, so a new token can be lost together with the server's disk")
  }

  /// The sentence for a server whose changes wait for ever.
  static func standbyMissing(_ vault: String) -> String {
    "the server of the vault \(quoted(vault)) waits for a standby, and none is connected"
  }

  fileprivate static func answerWaits(for vault: String) -> String {
    "a new token of an account that is logged out here waits on this machine for the vault \(quoted(vault))"
  }

  static func tellAnswersOfOthers(_ context: Context) throws(CommandError) {
    for name in try manager(context.source.vaultsWithAnswersOfOthers()) {
      context.tell(answerWaits(for: name))
      context.tell(hint: .synchronizing(name))
    }
  }
}

extension Remedy {
  fileprivate static func synchronizing(_ vault: String) -> Remedy {
    "\(credmgr: "vault", "sync", "--vault", vault) to store it"
  }
}

import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore

extension Vault: AccountStore {
  package func lock(
    _ account: AccountID, timeout: Duration, clock: any WallClock, waiting: (Duration) -> Bool
  ) throws(LockError) -> LockedAccount {
    let place = location.lock(hiddenName(of: account))
    let lock: FileLock?
    do throws(POSIXError) {
      lock = try FileLock.acquire(place, timeout: timeout, clock: clock, onWait: waiting)
    } catch {
      switch error {
      case .timedOut: throw .timedOut
      case .interrupted: throw .interrupted
      default: throw .store(.file(error))
      }
    }
    guard let lock else { throw .gaveUp }
    return LockedAccount(account, of: self, clock: clock, lock: HeldLock(lock))
  }

  package func isLocked(_ account: AccountID) -> Bool {
    (try? FileLock.isHeld(location.lock(hiddenName(of: account)))) ?? false
  }

  /// The name of an account's lock and of the file for its response, which does not change with the vault key.
  package func hiddenName(of account: AccountID) -> String { opening.keys.hiddenName(of: account) }
}

private final class HeldLock {
  private let lock: FileLock

  init(_ lock: consuming FileLock) { self.lock = lock }
}

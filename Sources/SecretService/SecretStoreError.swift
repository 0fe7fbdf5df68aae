/// Why the Secret Service did not do what it was asked for. The number is the exit status of the program that asks it.
public enum SecretStoreError: Int32, Error, Sendable {
  /// Another failure than those below.
  case failed = 1
  /// Wrong use of the program.
  case usage = 2
  /// There is no such item.
  case noItem = 3
  /// The collection is locked, and nobody unlocks it here; or there is none.
  case locked = 4
  /// Nobody on the bus offers the service.
  case noService = 5
  /// There is no session bus, and none is started.
  case noBus = 6
  /// libsecret is not installed.
  case noLibrary = 7
}

/// The exit statuses of every command.
package enum ExitStatus: Int32, Sendable {
  /// Done.
  case done = 0
  /// Something unexpected.
  case unexpected = 1
  /// Usage, or input that does not parse or validate.
  case usage = 2
  /// A login is needed.
  case loginNeeded = 3
  /// The provider refused.
  case refused = 4
  /// The provider could not be reached.
  case unreachable = 5
  /// The vault is locked, damaged or not ours.
  case vault = 6
  /// A command that takes this program's place cannot be run (env(1)).
  case notExecutable = 126
  /// There is no command to take this program's place (env(1)).
  case commandNotFound = 127
  /// Interrupted.
  case interrupted = 130
}

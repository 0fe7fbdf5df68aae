import CredmgrCPOSIX

package enum ProcessProtection {
  /// Forbids core dumps, and attaching by processes of the same user (RLIMIT_CORE, PR_SET_DUMPABLE). Returns the
  /// earlier limit of core dumps for ``lift(coreLimit:)``, or `nil` if the limit could not be set.
  @discardableResult package static func apply() -> UInt64? {
    _ = credmgr_set_undumpable()
    var before: UInt64 = 0
    guard unsafe credmgr_get_core_limit(&before) == 0, credmgr_set_core_limit(0) == 0 else { return nil }
    return before
  }

  /// Allows core dumps again for the program that replaces us, because limits survive execve(2).
  package static func lift(coreLimit: UInt64) { _ = credmgr_set_core_limit(coreLimit) }
}

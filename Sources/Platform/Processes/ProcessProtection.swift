import CPOSIX

package enum ProcessProtection {
  /// Forbids core dumps and, to processes of the same user, attaching (RLIMIT_CORE, PR_SET_DUMPABLE). The earlier limit
  /// of core dumps is for ``lift(coreLimit:)``; `nil` if it could not be set.
  @discardableResult package static func apply() -> UInt64? {
    _ = credmgr_set_undumpable()
    var before: UInt64 = 0
    guard unsafe credmgr_get_core_limit(&before) == 0, credmgr_set_core_limit(0) == 0 else { return nil }
    return before
  }

  /// Gives core dumps back to the program that is about to take our place: limits outlive execve(2).
  package static func lift(coreLimit: UInt64) { _ = credmgr_set_core_limit(coreLimit) }
}

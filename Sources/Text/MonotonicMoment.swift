import Glibc

/// A moment of a clock that never goes back, unlike the date of a ``Moment``.
package struct MonotonicMoment: Sendable, Comparable {
  private let sinceBoot: Duration

  package init(sinceBoot: Duration) { self.sinceBoot = sinceBoot }

  /// The time since boot includes the time suspended. `ContinuousClock` would pull in the library of Swift's
  /// concurrency, which adds 0.6 MB to each program.
  package static func now() -> MonotonicMoment {
    var time = timespec()
    unsafe clock_gettime(CLOCK_BOOTTIME, &time)
    return MonotonicMoment(sinceBoot: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec))
  }

  package static func < (left: MonotonicMoment, right: MonotonicMoment) -> Bool { left.sinceBoot < right.sinceBoot }

  package static func + (moment: MonotonicMoment, duration: Duration) -> MonotonicMoment {
    MonotonicMoment(sinceBoot: moment.sinceBoot + duration)
  }

  package static func - (end: MonotonicMoment, start: MonotonicMoment) -> Duration { end.sinceBoot - start.sinceBoot }
}

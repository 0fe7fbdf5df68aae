import CredmgrPlatform
import CredmgrText

/// The time since 1970, with fractions of a second. Its whole seconds are always those of the wall clock, with which
/// clients on this machine compare it, also after the clock was set. The monotonic clock only adds the fractions.
final class SimulationClock {
  private let clock: any WallClock
  private let start: MonotonicMoment
  private var startedAt: Duration  // The time since 1970 at `start`, as far as it is known.

  init(_ clock: any WallClock) {
    self.clock = clock
    (startedAt, start) = (.seconds(clock.now().secondsSince1970), clock.monotonic())
  }

  func now() -> Duration {
    let second = Duration.seconds(clock.now().secondsSince1970)
    let elapsed = clock.monotonic() - start
    let time = min(max(startedAt + elapsed, second), second + .milliseconds(999))
    startedAt = time - elapsed
    return time
  }
}

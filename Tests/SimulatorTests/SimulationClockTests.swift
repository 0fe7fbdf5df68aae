import CredmgrPlatform
import CredmgrText
import Synchronization
import Testing

@testable import CredmgrSimulator

struct SimulationClockTests {
  /// A machine whose two clocks are set separately.
  private final class Machine: WallClock {
    let times = Mutex((wall: Duration.seconds(1_800_000_000), boot: Duration.zero))

    func now() -> Moment { times.withLock { 0 + $0.wall } }
    func monotonic() -> MonotonicMoment { MonotonicMoment(sinceBoot: times.withLock { $0.boot }) }
    func sleep(for time: Duration) throws(POSIXError) { pass(time) }

    func pass(_ time: Duration) {
      times.withLock {
        $0.wall += time
        $0.boot += time
      }
    }

    func set(_ difference: Duration) { times.withLock { $0.wall += difference } }
  }

  /// Clients count whole seconds of the same clock, so the simulator must not lag behind them.
  @Test func theWholeSecondsAreThoseOfTheWallClock() {
    for start in stride(from: 0, to: 1000, by: 90) {
      let machine = Machine()
      machine.set(.milliseconds(start))
      let clock = SimulationClock(machine)
      for _ in 0..<40 {
        machine.pass(.milliseconds(170))
        #expect(clock.now().wholeSeconds == machine.now().secondsSince1970)
      }
    }
  }

  @Test func theFractionsAdvance() {
    let machine = Machine()
    let clock = SimulationClock(machine)
    let first = clock.now()
    machine.pass(.milliseconds(300))
    #expect(clock.now() - first == .milliseconds(300))
  }

  /// The clock is set after a suspend, for summer time by hand, or by NTP.
  @Test(arguments: [3600, -3600, 12, -12, 1, -1]) func theWallClockIsSet(_ seconds: Int) {
    let machine = Machine()
    let clock = SimulationClock(machine)
    _ = clock.now()
    machine.set(.seconds(seconds))
    for _ in 0..<5 {
      machine.pass(.milliseconds(450))
      #expect(clock.now().wholeSeconds == machine.now().secondsSince1970)
    }
  }
}

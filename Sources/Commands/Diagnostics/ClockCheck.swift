import CredentialManager
import Text

extension Doctor {
  /// A token cannot be obtained in the future.
  mutating func checkClock(_ vault: Accounts?) {
    let now = context.clock.now()
    let latest = (try? vault?.accounts(of: nil))?.map(\.credential.obtainedAt).max() ?? 0
    if latest > now + Self.tolerance {
      tellClock("\(duration(latest - now)) behind the moment at which a token was obtained")
    } else {
      ok(.clock, "it is \(now.text)")
    }
  }

  /// - Parameter date: what it is at a server.
  mutating func checkClock(of host: String, _ date: Moment) {
    let difference = context.clock.now() - date
    let size = max(difference, .zero - difference)
    guard size > Self.tolerance, !diagnostics.contains(where: { $0.check == .clock }) else { return }
    tellClock("\(duration(size)) \(difference < .zero ? "behind" : "ahead of") that of \(quoted(host))")
  }

  private mutating func tellClock(_ words: String) {
    problem(.clock, "the clock is " + words, hints: "\(run: "sudo", "timedatectl", "set-ntp", "true")")
  }

  /// By how much clocks may differ: as many as a token is refreshed before its end, at least.
  private static let tolerance = Duration.seconds(60)
}

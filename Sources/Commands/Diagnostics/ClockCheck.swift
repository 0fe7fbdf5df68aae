import CredmgrCredentialManager
import CredmgrText

extension Doctor {
  /// A token dated in the future shows that the clock is wrong.
  mutating func checkClock(_ vault: Accounts?) {
    let now = context.clock.now()
    let latest = (try? vault?.accounts(of: nil))?.map(\.credential.obtainedAt).max() ?? 0
    if latest > now + Self.tolerance {
      tellClock("\(duration(latest - now)) behind the time at which a token was stored")
    } else {
      ok(.clock, "the time is \(now.text)")
    }
  }

  /// Compares this machine's clock with a server's `date`.
  mutating func checkClock(of host: String, _ date: Moment) {
    let difference = context.clock.now() - date
    let size = max(difference, .zero - difference)
    guard size > Self.tolerance, !diagnostics.contains(where: { $0.check == .clock }) else { return }
    tellClock("\(duration(size)) \(difference < .zero ? "behind" : "ahead of") that of \(quoted(host))")
  }

  private mutating func tellClock(_ words: String) {
    problem(.clock, "the clock is " + words, hints: "\(run: "sudo", "timedatectl", "set-ntp", "true")")
  }

  /// The accepted clock difference. Tokens are refreshed at least this long before expiry.
  private static let tolerance = Duration.seconds(60)
}

extension Duration {
  package static func minutes(_ count: Int64) -> Duration { .seconds(count * 60) }
  package static func hours(_ count: Int64) -> Duration { .minutes(count * 60) }
  package static func days(_ count: Int64) -> Duration { .hours(count * 24) }

  /// The duration for poll(2) and similar calls, rounded up so that they do not return early.
  package var millisecondsRoundedUp: Int32 {
    Int32(clamping: Int64((min(self, .days(20)) / .milliseconds(1)).rounded(.up)))
  }

  package var wholeSeconds: Int64 { components.seconds }
  package var secondsRoundedUp: Int64 { components.seconds + (components.attoseconds > 0 ? 1 : 0) }

  /// Reads `90s`, `5m`, `8h` or `30d`.
  package init?(_ text: String) {
    let factors: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    guard let unit = text.last, let factor = factors[unit],
      text.dropLast().allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int64(text.dropLast())
    else { return nil }
    let (product, overflow) = number.multipliedReportingOverflow(by: factor)
    if overflow { return nil }
    self = .seconds(product)
  }
}

/// A waiting time for a message, rounded up.
package func patience(_ time: Duration) -> String {
  time < .minutes(10) ? "\(time.wholeSeconds) s" : duration(time + .seconds(59))
}

/// A duration that a person typed, to the second: `90 s`.
package func exactDuration(_ time: Duration) -> String {
  time.wholeSeconds % 60 == 0 || time >= .hours(1) ? duration(time) : "\(time.wholeSeconds) s"
}

/// A duration for a message.
package func duration(_ time: Duration) -> String {
  let seconds = time.wholeSeconds
  return switch seconds {
  case ..<60: "\(seconds) s"
  case ..<3600: "\(seconds / 60) min"
  case ..<86_400: seconds / 60 % 60 == 0 ? "\(seconds / 3600) h" : "\(seconds / 3600) h \(seconds / 60 % 60) min"
  default: seconds / 3600 % 24 == 0 ? "\(seconds / 86_400) d" : "\(seconds / 86_400) d \(seconds / 3600 % 24) h"
  }
}

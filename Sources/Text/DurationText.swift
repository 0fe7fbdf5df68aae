/// The seconds of `90s`, `5m`, `8h` or `30d`; `nil` for anything else.
package func seconds(ofDuration text: String) -> Int64? {
  let factors: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
  guard let unit = text.last, let factor = factors[unit],
    text.dropLast().allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int64(text.dropLast())
  else { return nil }
  let (product, overflow) = number.multipliedReportingOverflow(by: factor)
  return overflow ? nil : product
}

/// What a person reads who has to wait, which is never less than that.
package func patience(_ seconds: Int64) -> String { seconds < 600 ? "\(seconds) s" : duration(seconds + 59) }

/// What a person reads for a count of seconds.
package func duration(_ seconds: Int64) -> String {
  switch seconds {
  case ..<60: "\(seconds) s"
  case ..<3600: "\(seconds / 60) min"
  case ..<86_400: seconds / 60 % 60 == 0 ? "\(seconds / 3600) h" : "\(seconds / 3600) h \(seconds / 60 % 60) min"
  default: seconds / 3600 % 24 == 0 ? "\(seconds / 86_400) d" : "\(seconds / 86_400) d \(seconds / 3600 % 24) h"
  }
}

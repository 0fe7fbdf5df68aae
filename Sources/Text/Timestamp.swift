import CredmgrJSON

/// A moment in UTC, to the second, without leap seconds.
package struct Moment: Sendable, Hashable, Comparable, ExpressibleByIntegerLiteral {
  package let secondsSince1970: Int64

  /// The largest distance from 1970 in seconds, so that sums and differences of moments cannot overflow.
  package static let farthest: Int64 = 1_000_000_000_000_000

  package init(secondsSince1970: Int64) {
    self.secondsSince1970 = min(max(secondsSince1970, -Self.farthest), Self.farthest)
  }

  package init(integerLiteral seconds: Int64) { self.init(secondsSince1970: seconds) }

  package static func < (one: Moment, other: Moment) -> Bool { one.secondsSince1970 < other.secondsSince1970 }

  package static func - (end: Moment, start: Moment) -> Duration {
    .seconds(end.secondsSince1970 - start.secondsSince1970)
  }

  /// Adds a duration without its fraction of a second.
  package static func + (moment: Moment, duration: Duration) -> Moment {
    Moment(secondsSince1970: moment.secondsSince1970 + min(max(duration.wholeSeconds, -2 * farthest), 2 * farthest))
  }

  package static func - (moment: Moment, duration: Duration) -> Moment { moment + (.zero - duration) }

  /// Reads `YYYY-MM-DD`, `T` or a space, `hh:mm:ss`, an ignored fraction, and `Z`, an offset, or nothing for UTC (RFC
  /// 3339, 5.6, and OCLC's variant).
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    func number(_ range: Range<Int>) -> Int64? {
      guard range.upperBound <= bytes.count, bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      return bytes[range].reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    func mark(_ index: Int, _ allowed: String) -> Bool { index < bytes.count && allowed.utf8.contains(bytes[index]) }
    guard let year = number(0..<4), mark(4, "-"), let month = number(5..<7), mark(7, "-"), let day = number(8..<10),
      mark(10, "Tt "), let hour = number(11..<13), mark(13, ":"), let minute = number(14..<16), mark(16, ":"),
      let second = number(17..<19), (1...12).contains(month), (1...31).contains(day), hour < 24,
      minute < 60, second <= 60
    else { return nil }
    var rest = 19
    if mark(rest, ".,") {
      rest += 1
      guard number(rest..<(rest + 1)) != nil else { return nil }
      while rest < bytes.count, (0x30...0x39).contains(bytes[rest]) { rest += 1 }
    }
    var offset: Int64 = 0
    if mark(rest, "+-") {
      let colon = mark(rest + 3, ":") ? 1 : 0
      guard let hours = number((rest + 1)..<(rest + 3)), let minutes = number((rest + 3 + colon)..<(rest + 5 + colon)),
        bytes.count == rest + 5 + colon, hours < 24, minutes < 60
      else { return nil }
      offset = (hours * 3600 + minutes * 60) * (bytes[rest] == UInt8(ascii: "-") ? -1 : 1)
    } else {
      guard rest == bytes.count || (mark(rest, "Zz") && rest + 1 == bytes.count) else { return nil }
    }
    let midnight = Moment(secondsSince1970: Self.days(year, month, day: day) * 86_400)
    // A day that the month does not have would be a day of the next month.
    guard midnight.text.utf8.prefix(10).elementsEqual(bytes.prefix(10)) else { return nil }
    self = midnight + .seconds(hour * 3600 + minute * 60 + second - offset)
  }

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Reads the preferred form of an HTTP date, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
  package init?(httpDate text: String) {
    let words = text.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", words[1].utf8.count == 2,
      let month = Self.months.firstIndex(of: String(words[2]))
    else { return nil }
    self.init("\(words[3])-\(month < 9 ? "0" : "")\(month + 1)-\(words[1])T\(words[4])Z")
  }

  /// The preferred form of an HTTP date, for moments after 1970.
  package var httpDate: String {
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let parts = text.split { "-T:Z".contains($0) }
    let month = Self.months[(Int(parts[1]) ?? 1) - 1]
    let time = parts[3...].joined(separator: ":")
    return "\(days[Int(secondsSince1970 / 86_400 % 7)]), \(parts[2]) \(month) \(parts[0]) \(time) GMT"
  }

  /// The moment as `2026-11-21T02:16:06Z` (RFC 3339).
  package var text: String {
    let moment = secondsSince1970
    let days = moment >= 0 ? moment / 86_400 : (moment - 86_399) / 86_400
    let time = moment - days * 86_400
    // Converts a count of days to a civil date; its years begin in March, so the leap day is the last.
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func padded(_ number: Int64, _ width: Int) -> String {
      let digits = String(number)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    return padded(year, 4) + "-" + padded(month, 2) + "-" + padded(day, 2) + "T" + padded(time / 3600, 2) + ":"
      + padded(time / 60 % 60, 2) + ":" + padded(time % 60, 2) + "Z"
  }

  /// The number of days from 1970-01-01 to a civil date.
  private static func days(_ year: Int64, _ month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}

// Records and responses contain moments and durations as numbers of seconds.
extension JSONValue {
  package static func moment(_ moment: Moment) -> JSONValue { .integer(moment.secondsSince1970) }
  package static func duration(_ duration: Duration) -> JSONValue { .integer(duration.wholeSeconds) }

  package var moment: Moment? { integer.map(Moment.init(secondsSince1970:)) }
  package var duration: Duration? { integer.map { .seconds($0) } }
}

import CredmgrText
import Testing

struct MomentTests {
  /// Computed with date(1).
  static let moments: [(text: String, moment: Moment)] = [
    ("1970-01-01T00:00:00Z", 0), ("1969-12-31T23:59:59Z", -1), ("1900-03-01T00:00:00Z", -2_203_891_200),
    ("1972-02-29T12:00:00Z", 68_212_800), ("2000-02-29T23:59:59Z", 951_868_799), ("2000-03-01T00:00:00Z", 951_868_800),
    ("2001-09-09T01:46:40Z", 1_000_000_000), ("2013-08-23T18:45:29Z", 1_377_283_529),
    ("2016-12-31T23:59:59Z", 1_483_228_799), ("2024-02-29T00:00:00Z", 1_709_164_800),
    ("2038-01-19T03:14:08Z", 2_147_483_648), ("2100-02-28T23:59:59Z", 4_107_542_399),
    ("2100-03-01T00:00:00Z", 4_107_542_400), ("9999-12-31T23:59:59Z", 253_402_300_799),
  ]

  @Test func durations() {
    #expect([90, 60, 599, 5400].map { exactDuration(.seconds($0)) } == ["90 s", "1 min", "599 s", "1 h 30 min"])
    #expect([90, 60, 599, 5400].map { duration(.seconds($0)) } == ["1 min", "1 min", "9 min", "1 h 30 min"])
  }

  @Test(arguments: moments) func momentsAreReadAndWritten(_ text: String, _ moment: Moment) {
    #expect(Moment(text) == moment)
    #expect(moment.text == text)
  }

  /// The first is the example of RFC 9110, 5.6.7.
  @Test(
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("Sun, 06 Nov 1994 08:49:37 UTC", nil), ("Sunday, 06-Nov-94 08:49:37 GMT", nil),
      ("Sun Nov  6 08:49:37 1994", nil), ("Sun, 6 Nov 1994 08:49:37 GMT", nil), ("Sun, 06 nov 1994 08:49:37 GMT", nil),
      ("Sun, 31 Feb 1994 08:49:37 GMT", nil), ("", nil),
    ] as [(String, Moment?)])
  func dateOfHTTP(_ text: String, _ moment: Moment?) { #expect(Moment(httpDate: text) == moment) }

  @Test func everyDayOfFourCenturies() {
    for day in Int64(0)..<146_097 {
      let moment = Moment(secondsSince1970: day * 86_400 + day % 86_400)
      guard Moment(moment.text) == moment else {
        Issue.record("\(moment)")
        return
      }
    }
  }

  @Test(arguments: [
    "2013-08-23 18:45:29Z", "2013-08-23T18:45:29Z", "2013-08-23t18:45:29z", "2013-08-23 18:45:29",
    "2013-08-23T18:45:29.5Z", "2013-08-23T18:45:29,123456789Z", "2013-08-23T18:45:29+00:00",
    "2013-08-23T18:45:29-00:00", "2013-08-23T20:45:29+02:00", "2013-08-23T20:45:29+0200", "2013-08-23T14:15:29-04:30",
    "2013-08-24T00:30:29.25+05:45", "2013-08-22T18:46:29-23:59",
  ]) func forms(_ text: String) { #expect(Moment(text) == 1_377_283_529) }

  @Test(arguments: [
    "", "2013", "2013-08-23", "2013-08-23T18:45", "2013-8-23T18:45:29Z", "2013-08-23_18:45:29Z",
    "2013-08-23T18:45:29ZZ", "2013-08-23T18:45:29 Z", " 2013-08-23T18:45:29Z", "2013-00-23T18:45:29Z",
    "2013-13-23T18:45:29Z", "2013-08-00T18:45:29Z", "2013-08-32T18:45:29Z", "2013-04-31T00:00:00Z",
    "2023-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2013-08-23T24:00:00Z", "2013-08-23T18:60:29Z",
    "2013-08-23T18:45:61Z", "2013-08-23T18:45:29+2", "2013-08-23T18:45:29+02", "2013-08-23T18:45:29+02:0",
    "2013-08-23T18:45:29+02:00Z", "2013-08-23T18:45:29+24:00", "2013-08-23T18:45:29+02:60", "2013-08-23T18:45:29.Z",
    "2013-08-23T18:45:29.", "Fri, 23 Aug 2013 18:45:29 GMT", "+013-08-23T18:45:29Z", "２０１３-08-23T18:45:29Z",
  ]) func nonsense(_ text: String) { #expect(Moment(text) == nil) }

  /// A clock without leap seconds reads the leap second of 2016 as the first second of 2017.
  @Test func leapSecond() { #expect(Moment("2016-12-31T23:59:60Z") == 1_483_228_800) }
}

import CredmgrDescriptors
import CredmgrText
import Testing

@testable import CredmgrOAuth

struct TimeFormTests {
  @Test(
    arguments: [
      ("1700000100", nil, 1_700_000_100), ("1700000100.9", nil, 1_700_000_100),
      ("1700000100000", .milliseconds, 1_700_000_100), ("1700000100", .date, nil),
      ("2013-08-23 18:45:29Z", nil, 1_377_283_529), ("2013-08-23 18:45:29Z", .seconds, nil),
      ("2013-08-23 18:45:29Z", .date, 1_377_283_529), ("inf", nil, nil), ("1e15", nil, nil), ("", nil, nil),
    ] as [(String, TimeForm?, Moment?)])
  func inAnAnswer(_ text: String, _ form: TimeForm?, _ moment: Moment?) { #expect(Moment(text, form) == moment) }
}

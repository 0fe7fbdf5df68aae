import Descriptors
import Text

extension Moment {
  /// More seconds than anything lives, and few enough to be added to any moment.
  static let longest: Int64 = 1_000_000_000_000_000

  /// Seconds of ten years: a lifetime that is longer was not meant as a number, and would be for ever.
  static let longestLifetime: Int64 = 10 * 365 * 86_400

  static func lifetime(_ text: String, _ form: TimeForm?) -> Int64? {
    guard let number = Double(text), !number.isNaN else { return nil }
    let bound = Double(longestLifetime)
    return Int64(min(max(form == .milliseconds ? number / 1000 : number, -bound), bound))
  }

  /// Seconds of a duration in an answer; fractions are cut off.
  static func duration(_ text: String, _ form: TimeForm?) -> Int64? {
    guard let number = Double(text), number.magnitude < Double(longest) else { return nil }
    return Int64(form == .milliseconds ? number / 1000 : number)
  }

  /// A moment in an answer, also within a token (RFC 7519, 4.1.4); within the bounds of `longest`.
  static func stated(_ text: String, _ form: TimeForm?) -> Int64? {
    let moment = form == .jwt ? JWTClaims.parse(text)?["exp"]?.integer : moment(text, form)
    return moment.map(bounded)
  }

  static func bounded(_ moment: Int64) -> Int64 { min(max(moment, -longest), longest) }

  static func moment(_ text: String, _ form: TimeForm?) -> Int64? {
    switch form {
    case .jwt: nil
    case .seconds, .milliseconds: duration(text, form)
    case .date: parse(text)
    case nil: duration(text, .seconds) ?? parse(text)
    }
  }
}

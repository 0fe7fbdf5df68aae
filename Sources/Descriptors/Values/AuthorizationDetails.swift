import CredmgrJSON
import CredmgrYAML

/// Authorization details (RFC 9396, 2): the access that a token gives, as a JSON list of objects with a type each.
package struct AuthorizationDetails: Sendable, Equatable {
  package let text: String  // JSON without spaces.
  package let types: [String]

  /// Parses the JSON; `nil` unless it is a list of objects, each with a type. Servers could read different values of a
  /// repeated member.
  package init?(_ text: String) {
    guard let value = try? JSONValue.parse(Array(text.utf8)) else { return nil }
    self.init(value)
  }

  package init?(_ value: JSONValue) {
    guard let elements = value.elements, !elements.isEmpty, !value.hasRepeatedNames else { return nil }
    var types: [String] = []
    for element in elements {
      guard let type = element["type"]?.text, !type.isEmpty else { return nil }
      types.append(type)
    }
    (text, self.types) = (value.encoded, types)
  }

  package static let form = "a JSON list of objects without repeated members, each with a \"type\" (RFC 9396, 2)"
}

package struct AuthorizationDetailsRules: Sendable, Equatable {
  package var requested: AuthorizationDetails?  // `nil` if a login requests none by default.
  package var types: [String] = []  // The types that the provider knows; empty if it does not say.
}

extension AuthorizationDetailsRules {
  static let keys = Table("authorization_details", AuthorizationDetailsRules(), short: "default") {
    Key(
      "default", at: \.requested, as: .authorizationDetails, type: "text with JSON", default: "none",
      change: .harmless, means: "the details that `login` requests without `--authorization-details`",
      for: "open banking: `payment_initiation`")
    Key(
      "types", at: \.types, as: .texts, change: .harmless,
      means: "the types that the provider knows, so that a login with another one fails before it begins",
      for: "issuers with `authorization_details_types_supported`")
  }
}

extension Notation<AuthorizationDetails> {
  static var authorizationDetails: Self {
    Notation(
      .text,
      read: { decoder, node in
        guard let text = decoder.text(node) else { return nil }
        let details = AuthorizationDetails(text)
        if details == nil { decoder.add(.wrongType(expected: AuthorizationDetails.form), at: node.place) }
        return details
      }, write: { .text($0.text) })
  }
}

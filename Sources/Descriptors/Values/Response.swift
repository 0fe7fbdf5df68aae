import CredmgrText

/// A path of names and indices, joined by dots (`authed_user.access_token`, `errors.0.errorType`), or `header:NAME`.
package struct FieldPath: Sendable, Equatable {
  package let components: [String]

  /// The path inside of the chosen element of a list; `nil` for another path.
  package var inElement: FieldPath? {
    components.first == ElementRules.name && components.count > 1
      ? FieldPath(components.dropFirst().joined(separator: ".")) : nil
  }

  package init(_ text: String) {
    components = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  }

  package var header: String? {
    text.hasPrefix(Self.headerPrefix) ? String(text.dropFirst(Self.headerPrefix.count)) : nil
  }

  private static let headerPrefix = "header:"

  package var text: String { components.joined(separator: ".") }
}

/// A field of a response; the raw values are the RFCs' names, and otherwise our own.
package enum ResponseField: String, Sendable, CaseIterable {
  case accessToken = "access_token"  // RFC 6749, 5.1
  case tokenType = "token_type"  // RFC 6749, 5.1
  case expiresIn = "expires_in"  // RFC 6749, 5.1: from now
  case expiresAt = "expires_at"
  case refreshToken = "refresh_token"  // RFC 6749, 5.1
  case refreshTokenExpiresIn = "refresh_token_expires_in"  // LinkedIn, OCLC
  case refreshTokenExpiresAt = "refresh_token_expires_at"  // OCLC
  case scope  // RFC 6749, 5.1
  case authorizationDetails = "authorization_details"  // RFC 9396, 7
  case idToken = "id_token"  // OpenID Connect Core 1.0, 3.1.3.3
  case code  // RFC 6749, 4.1.2
  case state  // RFC 6749, 4.1.2
  case issuer = "iss"  // RFC 9207
  case requestURI = "request_uri"  // RFC 9126, 2.2
  case deviceCode = "device_code"  // RFC 8628, 3.2
  case userCode = "user_code"  // RFC 8628, 3.2
  case verificationURI = "verification_uri"  // RFC 8628, 3.2
  case verificationURIComplete = "verification_uri_complete"  // RFC 8628, 3.2
  case interval  // RFC 8628, 3.2: seconds
  case authReqID = "auth_req_id"  // CIBA Core 1.0, 7.3
  case oauthToken = "oauth_token"  // RFC 5849, 2.1
  case oauthTokenSecret = "oauth_token_secret"  // RFC 5849, 2.1
  case oauthCallbackConfirmed = "oauth_callback_confirmed"  // RFC 5849, 2.1
  case oauthVerifier = "oauth_verifier"  // RFC 5849, 2.2
  case oauthSessionHandle = "oauth_session_handle"  // OAuth Session 1.0 draft 1, 5
  case clientID = "client_id"  // RFC 7591, 3.2.1
  case clientSecret = "client_secret"  // RFC 7591, 3.2.1
  case clientSecretExpiresAt = "client_secret_expires_at"  // RFC 7591, 3.2.1: 0 means never
  case tokenEndpointAuthMethod = "token_endpoint_auth_method"  // RFC 7591, 2
  case registrationAccessToken = "registration_access_token"  // RFC 7592, 3
  case registrationClientURI = "registration_client_uri"  // RFC 7592, 3

  /// The texts that a login passes on unchanged; a dry run invents them in every response.
  package static let passedOn: [ResponseField] = [
    .accessToken, .refreshToken, .oauthToken, .oauthTokenSecret, .oauthSessionHandle, .requestURI, .deviceCode,
    .userCode, .authReqID,
  ]

  /// The endpoints whose responses may contain this field.
  package var readers: [EndpointKind] {
    let own = EndpointKind.allCases.filter { $0.leg.fields.contains(self) }
    return own.isEmpty ? [.authorization] + EndpointKind.allCases.filter(\.leg.issuesToken) : own
  }
}

package enum ResponseFormat: String, Sendable, CaseIterable {
  case json  // RFC 6749, 5.1
  case form  // RFC 5849, 2.1; GitHub
  case fragment  // RFC 6749, 4.2.2
  case query  // RFC 6749, 4.1.2
  case xml  // Names of elements are names of members.
  case text  // The whole body is the member `text`.
}

/// The form of a moment or a duration in a response.
package enum TimeForm: String, Sendable, CaseIterable {
  case seconds
  case milliseconds
  case date  // With an offset, otherwise in UTC; a space may replace the `T` (RFC 3339).
  case jwt  // RFC 7519, 4.1.4: `exp`
}

package struct FieldSource: Sendable, Equatable {
  package var paths: [FieldPath]  // The first existing one counts.
  /// The form of times; without one, a number means seconds and other texts a date.
  package var time: TimeForm?
}

package struct KeptField: Sendable, Equatable {
  package var name = ""
  package var paths: [FieldPath] = []  // The first one that exists and is not empty counts.
  package var pattern: String?  // Must match the whole value.
  package var after: String?  // The value begins after this text.
  package var before: String?  // The value ends before this text.
  package var isSecret = false  // A further token, which is never shown.

  /// Whether the value is one of the chosen element of a list, at least if the element has it.
  package var isOfElement: Bool { paths.contains { $0.inElement != nil } }

  /// Returns the piece of a text that is kept; `nil` if a text around it is missing.
  package func piece(of text: String) -> String? {
    var piece = text[...]
    if let after {
      guard let place = piece.firstPlace(of: after) else { return nil }
      piece = piece[place.upperBound...]
    }
    if let before {
      guard let place = piece.firstPlace(of: before) else { return nil }
      piece = piece[..<place.lowerBound]
    }
    return String(piece)
  }
}

/// The element of a list in an answer that the path `element` stands for.
package struct ElementRules: Sendable, Equatable {
  package var list = FieldPath("")  // If it is empty, the answer is the list.
  /// The values at paths of an element. A condition without a value is left out.
  package var conditions: [ParameterRule] = []
  package var label: [FieldPath] = []  // The text in the question; the first path that exists counts.

  package static let name = "element"

  package var isAnswer: Bool { list.text.isEmpty }
}

package struct ErrorRules: Sendable, Equatable {
  // RFC 6749, 5.2, and the extension "problem reporting" of OAuth 1.0a.
  package var code: [FieldPath] = [FieldPath("error"), FieldPath("oauth_problem")]
  package var description: [FieldPath] = [FieldPath("error_description"), FieldPath("oauth_problem_advice")]
  package var success: [String] = []  // Values of the code that mean success (`ok`, `0`).
  /// The meanings of codes, compared without case, a leading `error:` and a final full stop.
  package var meanings: [String: String] = [:]

  package init() {}

  package func canonical(_ code: String) -> String? {
    let wanted = Self.normalized(code)
    if success.contains(where: { Self.normalized($0) == wanted }) { return nil }
    return meanings.first { Self.normalized($0.key) == wanted }?.value ?? code
  }

  package func isTranslated(_ code: String) -> Bool {
    let wanted = Self.normalized(code)
    return meanings.contains { Self.normalized($0.key) == wanted }
  }

  private static func normalized(_ text: String) -> String {
    var text = Substring(text.lowercased())
    func trim() {
      text = text.drop { $0.isWhitespace }
      while let last = text.last, last.isWhitespace || last == "." { text = text.dropLast() }
    }
    trim()
    if text.hasPrefix("error:") {
      text = text.dropFirst("error:".count)
      trim()
    }
    return String(text)
  }
}

package enum ActiveRule: Sendable, Equatable {
  case field(FieldPath, values: [String])  // RFC 7662, 2.2: `active` is `true`.
  case status  // Any success means yes, and 400 to 404 mean no.
}

package struct ResponseRules: Sendable, Equatable {
  package var format: ResponseFormat?  // `nil` for a redirect, whose format depends on the grant.
  package var within: FieldPath?  // The object that contains the fields.
  package var fields: [ResponseField: FieldSource] = [:]
  package var keep: [KeptField] = []
  package var element: ElementRules?
  package var errors = ErrorRules()
  package var active = ActiveRule.field(FieldPath("active"), values: ["true"])

  package init() {}

  /// Whether a token or a secret field is one of the chosen element, so another element would be another user's token.
  package var hasTokenOfElement: Bool {
    fields.values.contains { $0.paths.contains { $0.inElement != nil } }
      || keep.contains { $0.isSecret && $0.isOfElement }
  }

  package func source(of field: ResponseField) -> FieldSource {
    fields[field] ?? FieldSource(paths: [FieldPath(field.rawValue)], time: nil)
  }
}

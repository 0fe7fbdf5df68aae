/// Where in an answer something stands: names and indices, joined by dots (`authed_user.access_token`,
/// `errors.0.errorType`).
package struct FieldPath: Sendable, Equatable {
  /// The names, from the outside in.
  package let components: [String]

  /// A path as it is written in a descriptor.
  package init(_ text: String) {
    components = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  }

  /// A path of these names.
  package init(components: [String]) { self.components = components }

  /// The header of the answer that is meant, of `header:NAME`.
  package var header: String? {
    text.hasPrefix(Self.headerPrefix) ? String(text.dropFirst(Self.headerPrefix.count)) : nil
  }

  private static let headerPrefix = "header:"

  /// The path as it is written in a descriptor.
  package var text: String { components.joined(separator: ".") }
}

/// What an answer says about a credential; the raw values are the RFC's names, and ours where it has none.
package enum ResponseField: String, Sendable, CaseIterable {
  /// RFC 6749, 5.1
  case accessToken = "access_token"
  /// RFC 6749, 5.1
  case tokenType = "token_type"
  /// RFC 6749, 5.1: seconds from now
  case expiresIn = "expires_in"
  /// The moment of expiry, in a form that `expires_at` names.
  case expiresAt = "expires_at"
  /// RFC 6749, 5.1
  case refreshToken = "refresh_token"
  /// Seconds from now until the refresh token expires (LinkedIn, OCLC).
  case refreshTokenExpiresIn = "refresh_token_expires_in"
  /// The moment when the refresh token expires (OCLC).
  case refreshTokenExpiresAt = "refresh_token_expires_at"
  /// RFC 6749, 5.1
  case scope
  /// OpenID Connect Core 1.0, 3.1.3.3
  case idToken = "id_token"
  /// RFC 6749, 4.1.2
  case code
  /// RFC 6749, 4.1.2
  case state
  /// RFC 9207
  case issuer = "iss"
  /// RFC 8628, 3.2
  case deviceCode = "device_code"
  /// RFC 8628, 3.2
  case userCode = "user_code"
  /// RFC 8628, 3.2
  case verificationURI = "verification_uri"
  /// RFC 8628, 3.2
  case verificationURIComplete = "verification_uri_complete"
  /// RFC 8628, 3.2: seconds
  case interval
  /// RFC 5849, 2.1
  case oauthToken = "oauth_token"
  /// RFC 5849, 2.1
  case oauthTokenSecret = "oauth_token_secret"
  /// RFC 5849, 2.1
  case oauthCallbackConfirmed = "oauth_callback_confirmed"
  /// RFC 5849, 2.2
  case oauthVerifier = "oauth_verifier"
  /// OAuth Session 1.0 draft 1, 5
  case oauthSessionHandle = "oauth_session_handle"
  /// RFC 7591, 3.2.1
  case clientID = "client_id"
  /// RFC 7591, 3.2.1
  case clientSecret = "client_secret"
  /// RFC 7591, 3.2.1: seconds since 1970, 0 for never
  case clientSecretExpiresAt = "client_secret_expires_at"
  /// RFC 7591, 2
  case tokenEndpointAuthMethod = "token_endpoint_auth_method"
  /// RFC 7592, 3
  case registrationAccessToken = "registration_access_token"
  /// RFC 7592, 3
  case registrationClientURI = "registration_client_uri"
}

/// How an answer is written.
package enum ResponseFormat: String, Sendable, CaseIterable {
  /// A JSON object (RFC 6749, 5.1).
  case json
  /// `application/x-www-form-urlencoded` (RFC 5849, 2.1; GitHub).
  case form
  /// The fragment of the redirect (RFC 6749, 4.2.2).
  case fragment
  /// The query of the redirect (RFC 6749, 4.1.2).
  case query
}

/// The form of a moment or a duration in an answer.
package enum TimeForm: String, Sendable, CaseIterable {
  /// A number of seconds, from now or since 1970.
  case seconds
  /// A number of milliseconds, from now or since 1970.
  case milliseconds
  /// `2013-08-23T18:45:29Z`, `2013-08-23 18:45:29Z`, with an offset where there is one, UTC where there is none (RFC
  /// 3339).
  case date
  /// The `exp` of a JWT (RFC 7519, 4.1.4).
  case jwt
}

/// Where a field stands in an answer.
package struct FieldSource: Sendable, Equatable {
  /// The first of these that is there counts.
  package var paths: [FieldPath]
  /// For times: the form; where it is not given, a number is seconds and a text that is no number a date.
  package var time: TimeForm?
}

/// A field of an answer that is kept with the credential under a name.
package struct KeptField: Sendable, Equatable {
  /// The name under which it is kept, and by which templates use it.
  package var name: String
  /// The first of these that is there and not empty counts.
  package var paths: [FieldPath]
}

/// How an error is recognised in an answer, at any status.
package struct ErrorRules: Sendable, Equatable {
  /// Where the error code stands; the first of these that is there counts.
  package var code: [FieldPath] = [FieldPath("error")]
  /// Where the words for people stand.
  package var description: [FieldPath] = [FieldPath("error_description")]
  /// Values of the code that mean that all is well (`ok`, `0`, `true`).
  package var success: [String] = []
  /// What the provider's codes mean in the RFC's words; compared without regard to case, an `error:` before them and
  /// a full stop behind them.
  package var meanings: [String: String] = [:]

  /// RFC 6749, 5.2.
  package init() {}

  /// The RFC's code for a code of the provider; `nil` when it means that all is well.
  package func canonical(_ code: String) -> String? {
    let wanted = Self.normalized(code)
    if success.contains(where: { Self.normalized($0) == wanted }) { return nil }
    return meanings.first { Self.normalized($0.key) == wanted }?.value ?? code
  }

  /// Whether the descriptor says itself what a code of the provider means.
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

/// How the answer to "is this token good?" is read.
package enum ActiveRule: Sendable, Equatable {
  /// A field, and the values that mean yes (RFC 7662, 2.2: `active` is `true`).
  case field(FieldPath, values: [String])
  /// Any success status means yes, 400 to 404 mean no.
  case status
}

/// How the answer of an endpoint is read.
package struct ResponseRules: Sendable, Equatable {
  /// How it is written; `nil` for a redirect, where the grant decides.
  package var format: ResponseFormat?
  /// Where the object with the fields is, when it is not the answer itself.
  package var within: FieldPath?
  /// Where the fields stand that do not stand at their own name.
  package var fields: [ResponseField: FieldSource] = [:]
  /// What is kept besides.
  package var keep: [KeptField] = []
  /// How errors are recognised.
  package var errors = ErrorRules()
  /// How a validation is read.
  package var active = ActiveRule.field(FieldPath("active"), values: ["true"])

  /// The RFCs' defaults.
  package init() {}

  /// Where a field stands.
  package func source(of field: ResponseField) -> FieldSource {
    fields[field] ?? FieldSource(paths: [FieldPath(components: [field.rawValue])], time: nil)
  }
}

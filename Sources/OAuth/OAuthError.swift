import Descriptors

package enum OAuthError: Error, Sendable, Equatable {
  case noEndpoint(EndpointKind)
  case url(EndpointKind, URLTemplateError)
  case missingValue(EndpointKind, name: String)
  case refused(EndpointKind, ErrorResponse)
  /// 429, a status of 500 and above, or one of the RFC's words for it. The status is `nil` for a redirect.
  case unavailable(EndpointKind, status: Int?, words: String?, retryAfter: Duration?)
  /// The endpoint sends us elsewhere, which is not followed: it would carry secrets along.
  case redirected(EndpointKind, status: Int)
  case unreadable(EndpointKind, expected: ResponseFormat, mediaType: String?)
  case missingField(EndpointKind, ResponseField)
  case malformedField(EndpointKind, ResponseField)
  /// A parameter or a member that is read, and that the answer has several times (RFC 6749, 3.1).
  case repeated(EndpointKind, name: String)
  /// A token that is presented in a way that is not the descriptor's (RFC 6749, 7.1).
  case tokenType(EndpointKind, String)
  case idToken(EndpointKind, IDTokenFault)
  /// An assertion for an endpoint of another origin than that of the token endpoint.
  case foreignAssertion(EndpointKind, origin: String)
  /// An assertion for another server than that of the token endpoint.
  case foreignAudience(String)
  /// What the descriptor keeps of an answer is not what it allows there.
  case valueOutOfBounds(EndpointKind, name: String)
  /// The parameter or the header is longer than templates may become.
  case computedValueTooLong(EndpointKind, name: String)
  case insecurePage(ResponseField)  // The page where a device's code is entered is no `https`.
  /// It is at an origin that is neither an endpoint's nor that of the provider's answer.
  case foreignPage(origin: String)
  case secretAccount
  case stateMismatch
  case stateMissing
  case issuerMismatch(expected: String, found: String)
  case issuerMissing(expected: String)
  /// The answer names an issuer on a host that is not the provider's, whose issuer no descriptor names.
  case foreignIssuer(found: String, host: String)
  /// The address of an endpoint sets a parameter that only the engine sets.
  case ownedParameter(EndpointKind, name: String)
  case notARedirect
  case foreignRedirect(expected: String)
  case tokenMismatch
  case callbackNotConfirmed
  case deviceCodeExpired
  case clientSecretMissing
  case privateKeyIsNotSent  // The descriptor would have a private key sent as the client secret.
  case unknownAuthentication(String)
  case clientKeyMalformed
  case noSignatures  // This program is static and cannot sign; one that is linked dynamically can.
  case unknownSignature(String)
  case notRefreshable
  case foreignHost(String)
  case presentedInQuery  // The token or the signature goes into the URL or the body.
  case credentialHeader(String)
  case signatureNeedsURL
  case malformedHeader(name: String)
  case malformedCredential
}

/// What a provider said when it said no (RFC 6749, 5.2 and 4.1.2.1).
package struct ErrorResponse: Sendable, Equatable {
  package let code: String  // The code in the RFC's words, where the descriptor translates the provider's.
  /// The provider's words for people, in one line, without control characters, 500 characters at most.
  package let words: String?
  package let status: Int?

  package init(code: String, words: String?, status: Int?) {
    self.code = code
    self.words = words.map(Self.oneLine)
    self.status = status
  }

  private static func oneLine(_ text: String) -> String {
    var line = ""
    for scalar in text.unicodeScalars.prefix(500) {
      line.unicodeScalars.append(scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) ? " " : scalar)
    }
    return line
  }
}

import CredmgrDescriptors
import CredmgrXML

package enum OAuthError: Error, Sendable, Equatable {
  case noEndpoint(EndpointKind)
  case noIssuer  // The descriptor or its variables name none, so no ID token is verified.
  case url(EndpointKind, URLTemplateError)
  case missingValue(EndpointKind, name: String)
  case refused(EndpointKind, ErrorResponse)
  /// The endpoint answered 429, 5xx or an equivalent error code. `status` is `nil` if the error came in a redirect.
  case unavailable(EndpointKind, status: Int?, words: String?, retryAfter: Duration?)
  /// The endpoint redirected the request. The redirect is not followed, because it would forward secrets.
  case redirected(EndpointKind, status: Int)
  case unreadable(EndpointKind, expected: ResponseFormat, mediaType: String?)
  case unreadableXML(EndpointKind, XMLError)
  case noKeys  // The key set is not an object with a list of `keys` (RFC 7517, 5).
  case noEvidence(EndpointKind)  // A success status whose answer does not show that the provider knows the credential.
  case noChallenge(EndpointKind)  // The server sent no challenge that credmgr can answer with the credential.
  case missingField(EndpointKind, ResponseField)
  case malformedField(EndpointKind, ResponseField)
  /// The answer contains a parameter or member several times (RFC 6749, 3.1).
  case repeated(EndpointKind, name: String)
  /// The token must be presented differently from what the descriptor says (RFC 6749, 7.1).
  case tokenType(EndpointKind, String)
  case issuedTokenType(EndpointKind, String)  // The exchange issued a token that gives no access (RFC 8693, 2.2.1).
  case tokenNotBound(EndpointKind, String)  // The answer has a token of this type instead of one bound to our key.
  case idToken(EndpointKind, JWTFault)
  case signedAnswer(JWTFault)  // The redirect's JWT (JARM, 2.4).
  /// The request would send an assertion to an origin other than those of the token endpoint and of the audience.
  case foreignAssertion(EndpointKind, origin: String)
  /// The audience of the assertion is a server other than the token endpoint's.
  case foreignAudience(String)
  /// The answer contains a value that the descriptor does not allow for a kept field.
  case valueOutOfBounds(EndpointKind, name: String)
  /// No element of the list in the answer fulfils the descriptor's conditions.
  case elementMissing(EndpointKind)
  /// The token is of an element, and not exactly one has the fields that the account keeps.
  case elementUnknown(EndpointKind)
  /// The parameter or header exceeds the maximum length of a filled template.
  case computedValueTooLong(EndpointKind, name: String)
  case insecurePage(ResponseField)  // The page for the device code is not `https`.
  /// The page is at an origin that belongs neither to an endpoint nor to the provider's answer.
  case foreignPage(origin: String)
  case secretAccount
  case stateMismatch
  case stateMissing
  case issuerMismatch(expected: String, found: String)
  case issuerMissing(expected: String)
  /// The answer names an issuer on a foreign host, and the descriptor names no issuer.
  case foreignIssuer(found: String, host: String)
  /// The endpoint's address sets a parameter that only credmgr may set.
  case ownedParameter(EndpointKind, name: String)
  case notARedirect
  case foreignRedirect(expected: String)
  case tokenMismatch
  case callbackNotConfirmed
  case deviceCodeExpired
  case clientSecretMissing
  case clientCertificateMissing  // The client's secret does not contain a certificate.
  case clientSecretBesideCertificateMissing  // The client authenticates with a secret, and presents a certificate.
  case clientCertificate(CertificateFault)
  case privateKeyIsNotSent  // The descriptor would send a private key as the client secret.
  case unknownAuthentication(String)
  case clientKeyMalformed
  case clientKeyEncrypted  // The private key has a passphrase.
  case clientKeyOpenSSH  // The form of OpenSSH, which only its own programs read.
  case clientKeyTooShort  // An RSA key of fewer than 2048 bits (RFC 7518, 3.3).
  case noSignatures  // A statically linked program cannot sign; a dynamically linked one can.
  case libraryMissing(String)  // The library for the format of an answer is not installed.
  case unknownSignature(String)
  case notRefreshable
  case foreignHost(String)
  case ambiguousQuery  // A signature covers the query, and servers decode a plus in different ways.
  case presentedInQuery  // The token or signature goes into the URL or the body.
  case challengeNeeded  // Requests present the credential only after a challenge of the server.
  case bodyNeeded  // The token goes into a JSON or form body, and the request has none.
  case malformedPath  // The token cannot be part of a path.
  case credentialHeader(String)
  case signatureNeedsURL
  case malformedHeader(name: String)
  case malformedCredential
}

extension OAuthError {
  /// The codes with which servers refuse the times in a signed request: of an assertion (RFC 7523, 3), a request object
  /// (RFC 9101, 7), a proof (RFC 9449, 5), or a signature (OAuth 1.0a).
  private static let codesOfTimes: Set<String> = [
    "invalid_client", "invalid_grant", "invalid_request_object", "invalid_dpop_proof", "timestamp_refused",
  ]

  /// Adds the difference between the clocks if it may explain a refusal of a signed request.
  package func explained(byClockDifference difference: Duration) -> OAuthError {
    guard case .refused(let kind, var response) = self, Self.codesOfTimes.contains(response.code),
      max(difference, .zero - difference) > IDToken.leeway
    else { return self }
    response.clockDifference = difference
    return .refused(kind, response)
  }
}

/// A provider's error answer (RFC 6749, 5.2 and 4.1.2.1).
package struct ErrorResponse: Sendable, Equatable {
  /// The RFC's code if the descriptor translates the provider's code. One line, at most 200 characters.
  package let code: String
  /// The provider's text for people: one line without control characters, at most 500 characters.
  package let words: String?
  package let status: Int?
  /// How far the provider's clock is ahead of ours, if that may be the reason: the request was signed, and the
  /// difference is more than servers tolerate.
  package var clockDifference: Duration?

  package init(code: String, words: String?, status: Int?) {
    self.code = Self.oneLine(code, 200)
    self.words = words.map { Self.oneLine($0, 500) }
    self.status = status
  }

  /// Codes are short, but a server may say anything.
  private static func oneLine(_ text: String, _ limit: Int) -> String {
    var line = ""
    for scalar in text.unicodeScalars.prefix(limit) {
      line.unicodeScalars.append(scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) ? " " : scalar)
    }
    return line
  }
}

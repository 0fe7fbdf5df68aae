import Descriptors

/// Why a flow cannot go on.
package enum OAuthError: Error, Sendable, Equatable {
  /// The provider has no such endpoint.
  case noEndpoint(EndpointKind)
  /// A URL template of this endpoint did not yield a URL.
  case url(EndpointKind, URLTemplateError)
  /// A descriptor's template needs a value that is not there.
  case missingValue(EndpointKind, name: String)
  /// The provider said no; what it said.
  case refused(EndpointKind, ErrorResponse)
  /// The provider cannot answer now: 429, a status of 500 and above, or one of the RFC's words for it. Its words, and
  /// the seconds after which it wants to be asked again, where it says so; the status is `nil` for a redirect.
  case unavailable(EndpointKind, status: Int?, words: String?, retryAfter: Int64?)
  /// The endpoint sends us elsewhere, which is not followed: it would carry secrets along.
  case redirected(EndpointKind, status: Int)
  /// The answer is not in the format that the descriptor names; its media type, where it says one.
  case unreadable(EndpointKind, expected: ResponseFormat, mediaType: String?)
  /// The answer lacks something without which there is no going on.
  case missingField(EndpointKind, ResponseField)
  /// The answer has something that cannot be read as what it should be.
  case malformedField(EndpointKind, ResponseField)
  /// The redirect's `state` is not ours (RFC 6749, 10.12).
  case stateMismatch
  /// The redirect has no `state`.
  case stateMissing
  /// The redirect comes from another issuer (RFC 9207, 2.4).
  case issuerMismatch(expected: String, found: String)
  /// The redirect does not say from which issuer it comes, and this one always says so (RFC 9207, 2.4).
  case issuerMissing(expected: String)
  /// What was pasted is neither a redirect of this login nor a code.
  case notARedirect
  /// What the person pasted is another address than the redirect URI.
  case foreignRedirect(expected: String)
  /// The redirect is for another temporary credential (RFC 5849, 2.2).
  case tokenMismatch
  /// The provider did not confirm the callback (RFC 5849, 2.1).
  case callbackNotConfirmed
  /// The person did not confirm in time (RFC 8628, 3.5).
  case deviceCodeExpired
  /// The grant needs a client secret, and there is none.
  case clientSecretMissing
  /// The client was registered with a way to show who it is that is none of ours.
  case unknownAuthentication(String)
  /// The client secret is not a private key, which RSA signatures need.
  case clientKeyMalformed
  /// A private key has to sign, which this program cannot do, and one that is linked dynamically can.
  case noSignatures
  /// A signature method or transport that is none.
  case unknownSignature(String)
  /// There is nothing to refresh with.
  case notRefreshable
  /// The credential is not presented to this host.
  case foreignHost(String)
  /// The token or the signature goes into the URL or the body; there is no header to show.
  case presentedInQuery
  /// A request has a header already that the credential goes into.
  case credentialHeader(String)
  /// A request is signed, so its URL must be known.
  case signatureNeedsURL
  /// A header's value has a line break or a control character.
  case malformedHeader(name: String)
  /// The kept credential cannot be read.
  case malformedCredential
}

/// What a provider said when it said no (RFC 6749, 5.2 and 4.1.2.1).
package struct ErrorResponse: Sendable, Equatable {
  /// The code in the RFC's words, where the descriptor translates the provider's.
  package let code: String
  /// The provider's words for people, in one line, without control characters, 500 characters at most.
  package let words: String?
  /// The HTTP status; `nil` for a redirect.
  package let status: Int?

  /// A refusal.
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

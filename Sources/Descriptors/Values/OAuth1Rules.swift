/// The signature of requests (RFC 5849, 3.4).
package enum SignatureMethod: String, Sendable, CaseIterable {
  case hmacSHA1 = "HMAC-SHA1"  // RFC 5849, 3.4.2
  case hmacSHA256 = "HMAC-SHA256"
  case hmacSHA512 = "HMAC-SHA512"
  case rsaSHA1 = "RSA-SHA1"  // RFC 5849, 3.4.3
  case rsaSHA256 = "RSA-SHA256"
  case rsaSHA512 = "RSA-SHA512"
  case plaintext = "PLAINTEXT"  // RFC 5849, 3.4.4

  package var isRSA: Bool { rawValue.hasPrefix("RSA-") }
}

/// The location of the protocol parameters (RFC 5849, 3.5).
package enum SignatureTransport: String, Sendable, CaseIterable {
  case header  // RFC 5849, 3.5.1
  case body  // RFC 5849, 3.5.2
  case query  // RFC 5849, 3.5.3
}

/// Rules of OAuth 1.0a; the first two properties are one of `SignatureMethod` and one of `SignatureTransport`.
package struct OAuth1Rules: Sendable, Equatable {
  package var signatureMethod = Template(literal: SignatureMethod.hmacSHA1.rawValue)
  package var transport = Template(literal: SignatureTransport.header.rawValue)
  package var realm: Template?
  package var sendsVersion = true
  package var requiresCallbackConfirmed = true
  package var requiresVerifier = true  // OAuth 1.0 without "a" has no verifier (RFC 5849, 2.2).
  package var callback = EndpointKind.temporaryCredentials  // OAuth 1.0 used `authorization`.
}

extension OAuth1Rules {
  static let keys = Table("oauth1", OAuth1Rules()) {
    Key(
      "signature_method", at: \.signatureMethod, as: .template(of: SignatureMethod.self),
      change: .compared,
      means: "the signature of requests (RFC 5849, 3.4); with RSA, the client secret is the private key as PEM",
      for: "Launchpad: `PLAINTEXT`")
    Key(
      "transport", at: \.transport, as: .template(of: SignatureTransport.self),
      means: "the location of the protocol parameters (RFC 5849, 3.5)", for: "Launchpad: `body`")
    Key("realm", at: \.realm, as: .template(), means: "the realm of the header (RFC 5849, 3.5.1)", for: "NetSuite")
    Key(
      "version", at: \.sendsVersion, as: .boolean, means: "whether to send `oauth_version` (RFC 5849, 3.1)", for: "–")
    Key(
      "callback", at: \.callback, as: .choice(among: [.temporaryCredentials, .authorization]),
      means: "the leg that sends the callback: `authorization` in OAuth 1.0 without \"a\"", for: "TripIt")
    Key(
      "callback_confirmed", at: \.requiresCallbackConfirmed, as: .requirement,
      change: .compared, means: "whether the answer must contain `oauth_callback_confirmed` (RFC 5849, 2.1)",
      for: "services of 1.0 without \"a\"")
    Key(
      "verifier", at: \.requiresVerifier, as: .requirement,
      change: .compared, means: "whether the redirect must contain a verifier (RFC 5849, 2.2)", for: "TripIt, Goodreads"
    )
  }
}

import CredmgrYAML

extension AssertionRules {
  static let keys = Table("assertion", AssertionRules()) {
    Key(
      "algorithm", at: \.algorithm, as: .choice(), default: "`HS256` with `client_secret_jwt`, else `RS256`",
      means: "the signature algorithm (RFC 7518, 3.1)", for: "Apple: `ES256`")
    Key(
      "key", at: \.key, as: .template(DescriptorDecoder.endpointNames),
      means: "the private key as PEM, or the secret of an HMAC", for: "a key that is not the client secret")
    Key(
      "header", at: \.header, as: .parameters(names: DescriptorDecoder.assertionNames),
      type: "mapping of templates",
      means: "members of the header in addition to `alg` and `typ` (RFC 7515, 4.1)", for: "Apple: `kid`")
    Key(
      "claims", at: \.claims, as: .parameters(names: DescriptorDecoder.assertionNames),
      type: "mapping of templates, or `null`",
      default: "`iss` and `sub`: the client; `aud`: see `audience`; `jti`, `iat`, `exp`",
      means: "claims to add or replace; `null` drops one (RFC 7519, 4.1)", for: "Google: `sub: null`")
    Key(
      "audience", at: \.audience, as: .choice(),
      means: """
        the audience without `aud` below `claims`: the `issuer` of the descriptor, or else the URL of `token`; or the \
        URL of the leg that gets the assertion
        """, for: "glewlwyd: `endpoint`")
    Key(
      "lifetime", at: \.lifetime, as: .duration, default: "`5m`", change: .compared, means: "from `iat` to `exp`",
      for: "Google: `1h`")
  }
}

extension ExpiryRules {
  static let keys = Table("expiry", ExpiryRules()) {
    Key(
      "lifetime", at: \.lifetime, as: .duration, default: "until the provider refuses the token",
      means: "a token's lifetime if the answer contains none", for: "Workday: `1h`")
    Key(
      "margin", at: \.margin, as: .duration,
      means: "the time before expiry at which credmgr refreshes a token; at most half of the token's lifetime",
      for: "Exact Online: `30s`")
  }
}

extension DeviceRules {
  static let keys = Table("device", DeviceRules()) {
    Key(
      "verification_uri_complete", at: \.verificationURIComplete, as: .devicePage, type: "URL template",
      default: "the one in the answer",
      means: """
        the page's URL with the code, made from `{verification_uri}` and `{user_code}`; must use `https` and the host \
        of an endpoint or of `{verification_uri}`
        """, for: "`l2p`")
    Key(
      "hosts", at: \.hosts, as: .hosts(), type: "list of host templates", default: "those of the endpoints",
      means: "the hosts of the page for entering the code; in your own descriptor they require consent",
      for: "`google`: `www.google.com`")
    Key(
      "interval", at: \.interval, as: .duration,
      means: "the polling interval if the answer contains none (RFC 8628, 3.2)", for: "–")
    Key(
      "slow_down", at: \.slowDown, as: .slowDown,
      means: "the time that `slow_down` adds to the interval, or its factor (RFC 8628, 3.5)", for: "`l2p`: `x1.2`")
  }
}

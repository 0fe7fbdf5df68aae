import YAML

extension Descriptor {
  static let keys = Table("descriptor", Descriptor()) {
    Key(
      "provider", at: \.identifier, as: .identifier, isRequired: true,
      means: "the provider's identifier, the same as the file's name", for: "all")
    Key(
      "title", at: \.title, as: .shownText, default: "the identifier",
      means: "the provider's name for people", for: "all")
    Key(
      checked: "extends", as: .base,
      means: "the descriptor that this one is laid over: [Extending](#extending)", for: "`github-enterprise`")
    Key(
      "grant", at: \.grants, as: .choices(), type: "list of [grants](#grants)", isRequired: true,
      means: "how a credential is obtained; `login` takes the first that fits the place", for: "all")
    Key(
      "variables", at: \.variables, as: .variables,
      means: "what is left open, name by name: [Variables](#variables)", for: "`github`, `oclc`, `oauth1`")
    Key(
      "endpoints", at: \.endpoints, as: .endpoints, isRequired: true,
      means: "the exchanges with the provider: [Legs](#legs)", for: "all")
    Key(
      checked: "response_format", as: Notation<ResponseFormat>.choice(), default: "`json`", from: "RFC 6749, 5.1",
      means: "how answers are written: [Answers](#answers)", for: "`github`: `form`; `oclc`: `fragment`")
    Key(
      checked: "response", as: ResponseRules.keys.notation, means: "how answers are read: [Answers](#answers)",
      for: "`oclc`, `l2p`")
    Key(
      "header_style", at: \.headerStyle, as: HeaderStyle.keys.notation, type: "scheme, or mapping", default: "`Bearer`",
      means: "how a token is presented to the API: [Presentation](#presentation)", for: "`github`: `token`")
    Key(
      "extra_headers", at: \.extraHeaders,
      as: .headers(DescriptorDecoder.endpointNames + DescriptorDecoder.requestNames),
      type: "mapping of [templates](#templates)", means: "headers that go with every request to the API",
      for: "`github`")
    Key(
      "scope", at: \.scope, as: ScopeRules.keys.notation, type: "list, or mapping", default: "nothing is asked for",
      means: "how scopes are written (RFC 6749, 3.3): [Scopes](#scopes)", for: "`github`: commas in the answer")
    Key(
      "redirect", at: \.ownRedirect, as: .redirect, type: "URL template, or `oob`",
      default: "`http://127.0.0.1/callback/ID`", from: "RFC 8252, 7.3",
      means: "where the browser comes back to (RFC 6749, 3.1.2): [Redirect](#redirect)", for: "`linkedin`")
    Key(
      "state", at: \.state, as: .choice(), from: "RFC 6749, 10.12",
      means: "whether `state` has to come back (RFC 6749, 10.12)", for: "`oclc`: `optional`")
    Key(
      "pkce", at: \.pkce, as: .choice(), from: "RFC 7636, 4.2",
      means: "the proof key (RFC 7636, 4.2); `S256-hex` is a challenge in hexadecimal",
      for: "`linkedin`: `none`; TikTok: `S256-hex`")
    Key(
      "issuer", at: \.issuer, as: .template(isShown: true),
      means: "the issuer; an `iss` in the redirect has to be the same (RFC 9207)",
      for: "`github`, `google`, `keycloak`, `zoom`")
    Key(
      "iss", at: \.issuerResponse, as: .choice(), from: "RFC 9207, 2.4",
      means: "whether `iss` has to come back, where `issuer` is known (RFC 9207, 2.4)",
      for: "servers whose metadata says so")
    Key(
      "nonce", at: \.sendsNonce, as: .boolean, from: "OpenID Connect Core 1.0, 3.1.2.1",
      means: """
        whether a random `nonce` is sent; an ID token that comes back has to have it \
        (OpenID Connect Core 1.0, 3.1.2.1)
        """, for: "Hubstaff")
    Key(
      "client", at: \.client, as: ClientRules.keys.notation, means: "how the client is registered: [Client](#client)",
      for: "`linkedin`")
    Key(
      "assertion", at: \.assertion, as: AssertionRules.keys.notation,
      means: "the JWT that the client signs (RFC 7523): [Assertion](#assertion)", for: "Apple, Okta")
    Key(
      "expiry", at: \.expiry, as: ExpiryRules.keys.notation,
      means: "lifetimes that the provider does not tell: [Expiry](#expiry)", for: "Workday")
    Key(
      "device", at: \.device, as: DeviceRules.keys.notation, means: "the device flow (RFC 8628): [Device](#device)",
      for: "`l2p`")
    Key(
      "oauth1", at: \.oauth1, as: OAuth1Rules.keys.notation, means: "OAuth 1.0a (RFC 5849): [OAuth 1.0a](#oauth-10a)",
      for: "`oauth1`")
    Key(
      "account", at: \.account, as: .paths, type: "path, or list of paths",
      means: """
        where the account's name stands, the first that is there: in the answer of `identity`, or without that leg the \
        name of a field that `keep` keeps
        """, for: "`github`: `login`; `oclc`: `principalID`")
    Key(
      "hosts", at: \.hosts, as: .hosts(), type: "list of host templates", default: "the hosts of the endpoints",
      means: "the only hosts that the credential is presented to: [Hosts](#hosts)", for: "all")
    Key("git", at: \.git, as: GitRules.keys.notation, means: "the provider's git hosts: [Git](#git)", for: "`github`")
    Key(
      "docker", at: \.docker, as: DockerRules.keys.notation,
      means: "the provider's container registries: [Docker](#docker)", for: "`github`")
    Key(
      "kubectl", at: \.kubectl, as: KubectlRules.keys.notation,
      means: "the clusters that take the provider's tokens: [kubectl](#kubectl)", for: "Keycloak, Dex")
  } finish: { decoder, root, descriptor in
    if descriptor.title.isEmpty { descriptor.title = descriptor.identifier }
    // Signed requests have no header that contains only a token.
    if root["header_style"] == nil, descriptor.grants.first == .oauth1 { descriptor.headerStyle.scheme = "none" }
    if let issuer = descriptor.issuer { decoder.refuseKeptVariables(issuer.names) }
    decoder.checkDevicePage(descriptor)
    decoder.checkEndpoints()
    for (path, node) in zip(descriptor.account, DescriptorDecoder.elements(of: root["account"])) {
      decoder.check(path, isShownAt: node)
    }
    decoder.checkProtection(root, descriptor)
  }
}

extension Notation<[Variable]> {
  /// Variables are read first, because templates use them.
  static var variables: Self {
    Notation(
      .mapping(of: Variable.keys.notation.shape, names: .pattern("^[A-Za-z0-9._-]+$", type: "name")),
      read: { decoder, _ in decoder.variables }, write: { .mapping($0.map { ($0.name, Variable.keys.write($0)) }) })
  }
}

extension Variable {
  static let keys = Table("variable", Variable(name: "")) {
    Key(
      "default", at: \.defaultValue, as: .text, means: "the value where none is given; without it, one has to be",
      for: "`github`: `github.com`")
    Key(
      "format", at: \.format, as: .choice(), type: "see below", means: "what kind of text it is",
      for: "`github`: `hostname`")
    Key(
      "pattern", at: \.pattern, as: .pattern, type: "regular expression",
      means: "what the whole value has to match", for: "`oclc`: `\"[0-9]+\"`")
    Key("choices", at: \.choices, as: .texts, means: "the only values", for: "`oauth1`: `transport`")
    Key("help", at: \.help, as: .shownText, means: "what it is, for the person who is asked", for: "all")
    Key("optional", at: \.isOptional, as: .boolean, means: "whether it may stay empty", for: "`oauth1`: `realm`")
    Key(
      "secret", at: \.isSecret, as: .boolean,
      means: """
        whether it is a secret: it is given as `--set NAME=@FILE`, or typed without echo, and never shown
        """, for: "a password; Absorb: the key of its API")
  }
}

extension HeaderStyle {
  static let keys = Table("presentation", HeaderStyle(), short: "scheme") {
    Key(
      "scheme", at: \.scheme, as: .headerValue, default: "`Bearer`", from: "RFC 6750, 2.1",
      means: """
        what stands before the token, nothing by itself with `header`; `none`: the token is in no header of its own
        """, for: "`github`: `token`")
    Key(
      "header", at: \.header, as: .headerName, default: "`Authorization`", means: "the header with the token",
      for: "Shopify: `X-Shopify-Access-Token`")
    Key(
      "query", at: \.query, as: .text, type: "name",
      means: "the token goes into this parameter of the query instead (RFC 6750, 2.3)", for: "`l2p`: `accessToken`")
    Key(
      "parameters", at: \.parameters, as: .headers(), type: "mapping of templates",
      means: """
        parameters beside the token: behind it in the same header, `name="value"`, with commas; or in the same query
        """, for: "`oclc`: `principalID`; `wechat`: `openid`; VK: `v`")
    Key(
      "token_types", at: \.tokenTypes, as: .texts,
      means: """
        the values of `token_type` that mean a token that is presented so, besides `bearer`; any other one is refused \
        (RFC 6749, 7.1)
        """, for: "`slack`: `user`, `bot`")
  }
}

extension ScopeRules {
  static let keys = Table("scope", ScopeRules(), short: "default") {
    Key(
      "default", at: \.requested, as: .texts,
      means: "what `login` asks for without `--scope`; nothing is sent when it is empty", for: "all")
    Key(
      "separator", at: \.separator, as: .text, default: "a space", from: "RFC 6749, 3.3",
      means: "between scopes in a request", for: "Strava: `\",\"`")
    Key(
      "granted_separator", at: \.grantedSeparator, as: .text, default: "`separator`", isAlwaysWritten: true,
      means: "between scopes in an answer", for: "`github`: `\",\"`")
  } finish: { _, node, rules in
    if node["granted_separator"]?.text == nil { rules.grantedSeparator = rules.separator }
    // "openid profile" is two scopes, as it is in a request.
    rules.requested = rules.requested.flatMap {
      $0.pieces(separatedBy: rules.separator).filter { !$0.isEmpty }.map { String($0) }
    }
  }
}

extension ClientRules {
  static let keys = Table("client", ClientRules()) {
    Key(
      "authentication", at: \.authentication, as: .choice(), type: "see below",
      default: "`client_secret_basic` with a secret, else `none`", from: "RFC 6749, 2.3.1",
      means: "how the client shows who it is (RFC 6749, 2.3)", for: "`linkedin`: `client_secret_post`")
    Key(
      "id", at: \.identifier, as: .shownText, means: "a client identifier that the provider gives to everybody",
      for: "Gitea")
    Key(
      "register", at: \.register, as: .page,
      means: "the page where a person registers a client; it is named when one is missing", for: "all")
  }
}

extension AssertionRules {
  static let keys = Table("assertion", AssertionRules()) {
    Key(
      "algorithm", at: \.algorithm, as: .choice(), default: "`HS256` with `client_secret_jwt`, else `RS256`",
      means: "how it is signed (RFC 7518, 3.1)", for: "Apple: `ES256`")
    Key(
      "key", at: \.key, as: .template(DescriptorDecoder.endpointNames),
      means: "the private key as PEM, or the secret of an HMAC", for: "a key apart from the secret")
    Key(
      "header", at: \.header, as: .parameters(), type: "mapping of templates",
      means: "members of the header besides `alg` and `typ` (RFC 7515, 4.1)", for: "Apple: `kid`")
    Key(
      "claims", at: \.claims, as: .parameters(), type: "mapping of templates, or `null`",
      default: "`iss` and `sub`: the client; `aud`: the `issuer`, else the URL of `token`; `jti`, `iat`, `exp`",
      means: "claims that are added or set; `null` drops one (RFC 7519, 4.1)", for: "Google: `sub: null`")
    Key("lifetime", at: \.lifetime, as: .duration, default: "`5m`", means: "from `iat` to `exp`", for: "Google: `1h`")
  }
}

extension ExpiryRules {
  static let keys = Table("expiry", ExpiryRules()) {
    Key(
      "lifetime", at: \.lifetime, as: .duration, default: "until the provider refuses the token",
      means: "how long a token lives when the answer does not say", for: "Workday: `1h`")
    Key(
      "margin", at: \.margin, as: .duration, means: "how long before its expiry a token is refreshed",
      for: "Exact Online: `30s`")
  }
}

extension DeviceRules {
  static let keys = Table("device", DeviceRules()) {
    Key(
      "verification_uri_complete", at: \.verificationURIComplete, as: .devicePage, type: "URL template",
      default: "what the answer says",
      means: """
        the page with the code in it, put together from `{verification_uri}` and `{user_code}`; `https`, at an \
        endpoint's host or that of `{verification_uri}`
        """, for: "`l2p`")
    Key(
      "hosts", at: \.hosts, as: .hosts(), type: "list of host templates", default: "those of the endpoints",
      means: "the hosts of the page where the code is entered; your own descriptor needs consent for them",
      for: "`google`: `www.google.com`")
    Key(
      "interval", at: \.interval, as: .duration,
      means: "between two questions when the answer does not say (RFC 8628, 3.2)", for: "–")
    Key(
      "slow_down", at: \.slowDown, as: .slowDown,
      means: "what `slow_down` adds to the interval, or multiplies it by (RFC 8628, 3.5)", for: "`l2p`: `x1.2`")
  }
}

extension OAuth1Rules {
  static let keys = Table("oauth1", OAuth1Rules()) {
    Key(
      "signature_method", at: \.signatureMethod, as: .template(of: SignatureMethod.self),
      means: "how requests are signed (RFC 5849, 3.4); with RSA, the client secret is the private key as PEM",
      for: "Launchpad: `PLAINTEXT`")
    Key(
      "transport", at: \.transport, as: .template(of: SignatureTransport.self),
      means: "where the protocol parameters go (RFC 5849, 3.5)", for: "Launchpad: `body`")
    Key("realm", at: \.realm, as: .template(), means: "the realm of the header (RFC 5849, 3.5.1)", for: "NetSuite")
    Key(
      "version", at: \.sendsVersion, as: .boolean, means: "whether `oauth_version` is sent (RFC 5849, 3.1)", for: "–")
    Key(
      "callback", at: \.callback, as: .choice(among: [.temporaryCredentials, .authorization]),
      means: "the leg that the callback goes with: `authorization` is 1.0 without \"a\"", for: "TripIt")
    Key(
      "callback_confirmed", at: \.requiresCallbackConfirmed, as: .requirement,
      means: "whether `oauth_callback_confirmed` has to be there (RFC 5849, 2.1)", for: "services of 1.0 without \"a\"")
    Key(
      "verifier", at: \.requiresVerifier, as: .requirement,
      means: "whether a verifier has to come back (RFC 5849, 2.2)", for: "TripIt, Goodreads")
  }
}

extension GitRules {
  static let keys = Table("git", GitRules(hosts: [])) {
    Key(
      "hosts", at: \.hosts, as: .hosts(areWhole: true), type: "list of host templates", isRequired: true,
      means: """
        the hosts whose repositories take the token, with a port where it is not the ordinary one; \
        no `*.`
        """, for: "`github`")
    Key(
      "username", at: \.username, as: .template(["account"], isShown: true),
      means: """
        the user name that goes with the token; `{account}` is whom the provider says it is for, else the account's name
        """, for: "`github`: `x-access-token`; Bitbucket: `x-token-auth`; Hugging Face: `{account}`")
    Key(
      "ignore_username", at: \.ignoresUsername, as: .boolean,
      means: "whether the user name in a remote's URL is no account's", for: "Azure DevOps: it is the organization's")
    Key(
      "realms", at: \.realms, as: .texts, type: "list of texts",
      means: """
        what a host of this kind calls itself when it asks for a password (`WWW-Authenticate: Basic realm="GitLab"`); \
        for a host that no provider claims, it leads to a hint and to nothing else, because any server can say it
        """, for: "`gitlab`, `gitea`, `github-enterprise`")
  }
}

extension KubectlRules {
  static let keys = Table("kubectl", KubectlRules()) {
    Key(
      "hosts", at: \.hosts, as: .hosts(), type: "list of host templates", isRequired: true,
      means: "the hosts of clusters; without a port, any port of the host", for: "Keycloak, Dex")
  }
}

extension DockerRules {
  static let keys = Table("docker", DockerRules()) {
    Key(
      "hosts", at: \.hosts, as: .hosts(areWhole: true), type: "list of host templates", isRequired: true,
      means: "the container registries that take the token as a password, with a port where it is not the ordinary "
        + "one; no `*.`", for: "`github`: `ghcr.io`")
    Key(
      "username", at: \.username, as: .template(["account"], isShown: true),
      means: "the user name that goes with the token; `{account}` is the account's name", for: "`github`: `{account}`")
  }
}

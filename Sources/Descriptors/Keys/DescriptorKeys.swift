import CredmgrYAML

extension Descriptor {
  static let keys = Table("descriptor", Descriptor()) {
    Key(
      "provider", at: \.identifier, as: .identifier, isRequired: true,
      change: .compared, means: "the provider's identifier, the same as the file's name", for: "all")
    Key(
      "title", at: \.title, as: .shownText, default: "the identifier",
      change: .harmless, means: "the provider's display name", for: "all")
    Key(
      "aliases", at: \.aliases, as: .texts, change: .harmless,
      means: "other names that users type, in lower case: a product, or a provider for which `setup` offers this one",
      for: "`anthropic`: `claude`; `stripe-api`: `stripe`")
    Key(
      "profile", at: \.profile, as: .choice(), change: .compared,
      means: "a profile whose requirements credmgr meets and `check` verifies: [Profiles](#profiles)",
      for: "open banking")
    Key(
      "verified", at: \.verified, as: .verification, default: "`unverified`", change: .harmless,
      means: "how and when the facts of the file were last checked: [Verification](#verification)", for: "all")
    Key(
      "group", at: \.group, as: .choice(), change: .harmless,
      means: "the category in the list of providers", for: "all")
    Key(
      checked: "extends", as: .base,
      means: "the descriptor that this one extends: [Extending](#extending)", for: "`github-enterprise`")
    Key(
      "grant", at: \.grants, as: .choices(), type: "list of [grants](#grants)", isRequired: true,
      change: .compared, means: "ways to get a credential; `login` uses the first that works in the session", for: "all"
    )
    Key(
      "variables", at: \.variables, as: .variables,
      means: "values that users supply, by name: [Variables](#variables)", for: "`github`, `oclc`, `oauth1`")
    Key(
      "key", at: \.key, as: TypedKeyRules.keys.notation,
      means: "the key or access token that users make at the provider: [Keys that users make](#keys-that-users-make)",
      for: "`openai`, `github`")
    Key(
      "endpoints", at: \.endpoints, as: .endpoints, isRequired: true, isAlwaysWritten: true,
      means: "the exchanges with the provider: [Legs](#legs)", for: "all")
    Key(
      checked: "response_format", as: Notation<ResponseFormat>.choice(), default: "`json`", from: "RFC 6749, 5.1",
      means: "the format of answers: [Answers](#answers)", for: "`github`: `form`; `oclc`: `fragment`")
    Key(
      checked: "response", as: ResponseRules.keys.notation, means: "rules for reading answers: [Answers](#answers)",
      for: "`oclc`, `l2p`")
    Key(
      "header_style", at: \.headerStyle, as: HeaderStyle.keys.notation, type: "scheme, or mapping", default: "`Bearer`",
      means: "the way of sending a token to the API: [Presentation](#presentation)", for: "`github`: `token`")
    Key(
      "extra_headers", at: \.extraHeaders,
      as: .headers(DescriptorDecoder.endpointNames + DescriptorDecoder.requestNames),
      type: "mapping of [templates](#templates)", change: .compared, means: "headers of every request to the API",
      for: "`github`")
    Key(
      "extra_query", at: \.extraQuery, as: .parameters(), type: "mapping of [templates](#templates)",
      means: "parameters in the query of every request to the API; those of the request itself win",
      for: "Judge.me: `shop_domain`; MiniMax: `GroupId`")
    Key(
      "environment", at: \.environment, as: .environment, type: "name, or mapping of names or lists",
      means: "the variables that `exec` sets without `=VARIABLE`: [Environment](#environment)",
      for: "`openai`: `OPENAI_API_KEY`")
    Key(
      "scope", at: \.scope, as: ScopeRules.keys.notation, type: "list, or mapping", default: "no scopes",
      change: .harmless, means: "requested scopes and their separators (RFC 6749, 3.3): [Scopes](#scopes)",
      for: "`github`: commas in the answer")
    Key(
      "scope_sets", at: \.scopeSets, as: .scopeSets, type: "mapping of lists", change: .harmless,
      means: "the scopes for each purpose, for `login --for`: [Scopes](#scopes)", for: "`github`: `git`, `packages`")
    Key(
      "authorization_details", at: \.authorizationDetails, as: AuthorizationDetailsRules.keys.notation,
      type: "text with JSON, or mapping", default: "none", change: .harmless,
      means: "details of the access to request (RFC 9396): [Authorization details](#authorization-details)",
      for: "open banking")
    Key(
      "redirect", at: \.ownRedirect, as: .redirect, type: "URL template, or `oob`",
      default: "`http://127.0.0.1/callback/ID`", from: "RFC 8252, 7.3",
      change: .compared, means: "the address to which the browser returns (RFC 6749, 3.1.2): [Redirect](#redirect)",
      for: "`linkedin`")
    Key(
      "state", at: \.state, as: .choice(), from: "RFC 6749, 10.12",
      change: .compared, means: "whether the answer must contain `state` (RFC 6749, 10.12)", for: "`oclc`: `optional`")
    Key(
      "issuer", at: \.issuer, as: .template(isShown: true),
      change: .compared, means: "the issuer; an `iss` in the redirect must equal it (RFC 9207)",
      for: "`github`, `google`, `keycloak`, `zoom`")
    Key(
      "resource", at: \.resource, as: .template(isShown: true),
      means: "the resource that tokens are for, sent as `resource` with each request for a token (RFC 8707, 2)",
      for: "MCP servers")
    Key(
      "iss", at: \.issuerResponse, as: .choice(), from: "RFC 9207, 2.4",
      change: .compared, means: "whether the redirect must contain `iss` if `issuer` is known (RFC 9207, 2.4)",
      for: "servers that announce `iss` in their metadata")
    Key(
      "pkce", at: \.pkce, as: .choice(), from: "RFC 7636, 4.2",
      change: .compared, means: "PKCE (RFC 7636); `S256-hex` writes the challenge in hexadecimal",
      for: "`linkedin`: `none`; TikTok: `S256-hex`")
    Key(
      "nonce", at: \.nonce, as: .boolean, default: "`true` with the scope `openid`",
      from: "OpenID Connect Core 1.0, 3.1.3.7",
      change: .compared,
      means: """
        whether to send a random `nonce`, which the ID token must contain (OpenID Connect Core 1.0, 3.1.2.1); with \
        `true`, or with `jwks`, a login with `openid` also requires an ID token
        """, for: "Hubstaff; providers that ignore it: `false`")
    Key(
      "request_object", at: \.signsRequests, as: .boolean, from: "RFC 6749, 4.1.1",
      means: """
        whether the login request is a JWT that the client signs (RFC 9101), with the key, header and algorithm of \
        `assertion`: [Signed requests](#signed-requests)
        """, for: "FAPI 2.0 Message Signing")
    Key(
      "id_token_signed_response_alg", at: \.idTokenAlgorithm, as: .choice(),
      default: "RS256, PS256, ES256 or EdDSA, with a key from `jwks`", from: "OpenID Connect Core 1.0, 3.1.3.7",
      means:
        "the only algorithm that signs ID tokens; with HMAC, the key is the client secret: [ID tokens](#id-tokens)",
      for: "servers that sign with the client secret: `HS256`")
    Key(
      "device", at: \.device, as: DeviceRules.keys.notation, change: .compared,
      means: "the device flow (RFC 8628): [Device](#device)",
      for: "`l2p`")
    Key(
      "oauth1", at: \.oauth1, as: OAuth1Rules.keys.notation, means: "OAuth 1.0a (RFC 5849): [OAuth 1.0a](#oauth-10a)",
      for: "`oauth1`")
    Key(
      "token_binding", at: \.tokenBinding, as: .choice(), from: "RFC 6750", change: .compared,
      means: "what the provider binds tokens to: [Bound tokens](#bound-tokens)", for: "FAPI 2.0")
    Key(
      "aws4", at: \.aws4, as: AWS4Rules.keys.notation,
      means: "AWS Signature Version 4, with the token as the key: [AWS Signature 4](#aws-signature-4)", for: "`aws`")
    Key(
      "client", at: \.client, as: ClientRules.keys.notation,
      means: "the client and its registration: [Client](#client)",
      for: "`linkedin`")
    Key(
      "assertion", at: \.assertion, as: AssertionRules.keys.notation,
      means: "the JWT that the client signs (RFC 7523): [Assertion](#assertion)", for: "Apple, Okta")
    Key(
      "expiry", at: \.expiry, as: ExpiryRules.keys.notation,
      change: .harmless, means: "lifetimes missing from answers: [Expiry](#expiry)", for: "Workday")
    Key(
      "account", at: \.account, as: .paths, type: "path, or list of paths",
      change: .harmless,
      means: """
        where to find the account's name: paths in the answer of `identity` or, if that leg is missing, names of kept \
        fields; the first existing one counts
        """, for: "`github`: `login`; `oclc`: `principalID`")
    Key(
      "subject", at: \.subject, as: .paths, type: "path, or list of paths", default: "`sub`",
      from: "OpenID Connect Core 1.0, 5.3.2", change: .harmless,
      means: """
        where to find the user's durable identifier, in the answer of `identity`; an account whose user was renamed \
        stays the same account
        """, for: "`github`: `id`")
    Key(
      "hosts", at: \.hosts, as: .hosts(), type: "list of host templates", default: "the hosts of the endpoints",
      change: .compared, means: "the only hosts that receive the credential: [Hosts](#hosts)", for: "all")
    Key(
      "git", at: \.git, as: GitRules.keys.notation, change: .compared, means: "the provider's git hosts: [Git](#git)",
      for: "`github`")
    Key(
      "docker", at: \.docker, as: DockerRules.keys.notation,
      change: .compared, means: "the provider's container registries: [Docker](#docker)", for: "`github`")
    Key(
      "kubectl", at: \.kubectl, as: KubectlRules.keys.notation,
      change: .compared, means: "the clusters that accept the provider's tokens: [kubectl](#kubectl)",
      for: "Keycloak, Dex")
  } finish: { decoder, root, descriptor in
    if descriptor.title.isEmpty { descriptor.title = descriptor.identifier }
    descriptor.variables = decoder.variables
    // Signed requests have no header that contains only a token.
    if root["header_style"] == nil, descriptor.grants.first == .oauth1 { descriptor.headerStyle.scheme = "none" }
    if let issuer = descriptor.issuer { decoder.refuseKeptVariables(issuer.names) }
    if let profile = descriptor.profile { decoder.apply(profile, root, to: &descriptor) }
    decoder.checkDevicePage(descriptor)
    decoder.checkEndpoints()
    for (paths, key) in [(descriptor.account, "account"), (descriptor.subject, "subject")] {
      for (path, node) in zip(paths, DescriptorDecoder.elements(of: root[key])) { decoder.check(path, isShownAt: node) }
    }
    decoder.checkProtection(root, descriptor)
    decoder.checkKeyFile(descriptor)
    decoder.checkRequestObject(descriptor)
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
      "default", at: \.defaultValue, as: .text,
      change: .compared, means: "the value if the user sets none; without a default it is required",
      for: "`github`: `github.com`")
    Key(
      "format", at: \.format, as: .choice(), type: "see below", change: .harmless, means: "the kind of text",
      for: "`github`: `hostname`")
    Key(
      "pattern", at: \.pattern, as: .pattern, type: "regular expression",
      change: .harmless, means: "a pattern that the whole value must match", for: "`oclc`: `\"[0-9]+\"`")
    Key("choices", at: \.choices, as: .texts, change: .harmless, means: "the only values", for: "`oauth1`: `transport`")
    Key("help", at: \.help, as: .shownText, change: .harmless, means: "an explanation for the user", for: "all")
    Key(
      "optional", at: \.isOptional, as: .boolean, change: .harmless, means: "whether the value may be empty",
      for: "`oauth1`: `realm`")
    Key(
      "secret", at: \.isSecret, as: .boolean,
      change: .compared,
      means: """
        whether it is secret: set with `--set NAME=@FILE` or typed without echo, and never shown
        """, for: "a password; Absorb: the key of its API")
    Key(
      "at_login", at: \.isAtLogin, as: .boolean,
      means: "whether each login prompts for it, so that it belongs to the account", for: "Datadog: two keys")
    Key(
      "at_exchange", at: \.isAtExchange, as: .boolean,
      means: """
        whether it is the token of another issuer: the user names its file or its environment variable at the login, \
        each exchange reads it again, and it is never stored; implies `at_login` and `secret`
        """, for: "`google-workload`: the ID token of a CI")
  } finish: { _, _, variable in
    if variable.isAtExchange { (variable.isAtLogin, variable.isSecret) = (true, true) }
  }
}

extension HeaderStyle {
  static let keys = Table("presentation", HeaderStyle(), short: "scheme") {
    Key(
      "scheme", at: \.scheme, as: .scheme, default: "`Bearer`", from: "RFC 6750, 2.1",
      change: .compared,
      means: """
        the word before the token; empty by default with `header`; `none` means no header for the token; `Digest` \
        answers a challenge instead: [Digest](#digest)
        """, for: "`github`: `token`; `mongodb-atlas-key`: `Digest`")
    Key(
      "header", at: \.header, as: .headerName, default: "`Authorization`", change: .compared,
      means: "the header with the token",
      for: "Shopify: `X-Shopify-Access-Token`")
    Key(
      "query", at: \.query, as: .text, type: "name",
      change: .compared, means: "the query parameter for the token instead of a header (RFC 6750, 2.3)",
      for: "`l2p`: `accessToken`")
    Key(
      "path", at: \.path, as: .template(["access_token"]), type: "template",
      means: "the beginning of each path, which contains the token instead of a header",
      for: "Telegram: `/bot{access_token}`")
    Key(
      "body", at: \.body, as: .text, type: "name",
      means: "the member of a JSON body, or the parameter of a form, for the token instead of a header",
      for: "Mailchimp Transactional: `key`")
    Key(
      "username", at: \.username, as: .template(),
      means: "the user name of Basic (RFC 7617) or Digest, whose password is the token", for: "Mailgun: `api`")
    Key(
      "password", at: \.password, as: .template(),
      means: "the password of Basic (RFC 7617) or Digest, whose user name is the token; `\"\"` for none",
      for: "Stripe: none")
    Key(
      "parameters", at: \.parameters, as: .headers(), type: "mapping of templates",
      change: .compared,
      means: """
        further parameters: after the token in its header as `name="value"` with commas, or in the same query
        """, for: "`oclc`: `principalID`; `wechat`: `openid`; VK: `v`")
    Key(
      "token_types", at: \.tokenTypes, as: .texts,
      means: """
        the values of `token_type`, besides `bearer`, for tokens sent this way; credmgr refuses any other type \
        (RFC 6749, 7.1). A login removes such a word before a pasted key, also `Bearer`, `token` and the scheme
        """, for: "`slack`: `user`, `bot`; `fly`: `FlyV1`")
  }
}

extension ScopeRules {
  static let keys = Table("scope", ScopeRules(), short: "default") {
    Key(
      "default", at: \.requested, as: .texts,
      means: "the scopes that `login` requests without `--scope`; empty sends no `scope`", for: "all")
    Key(
      "separator", at: \.separator, as: .text, default: "a space", from: "RFC 6749, 3.3",
      means: "between scopes in a request", for: "Strava: `\",\"`")
    Key(
      "granted_separator", at: \.grantedSeparator, as: .text, default: "`separator`", isAlwaysWritten: true,
      means: "between scopes in an answer", for: "`github`: `\",\"`")
    Key(
      "required_header", at: \.requiredHeader, as: .headerName, default: "`scope` of `WWW-Authenticate`",
      from: "RFC 6750, 3.1",
      means: "the header of a refused request that lists scopes, one of which is enough",
      for: "`github`: `X-Accepted-OAuth-Scopes`")
  } finish: { _, node, rules in
    if node["granted_separator"]?.text == nil { rules.grantedSeparator = rules.separator }
    // "openid profile" is two scopes, as in a request.
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
      change: .compared, means: "the client's authentication (RFC 6749, 2.3)", for: "`linkedin`: `client_secret_post`")
    Key(
      "id", at: \.identifier, as: .shownText, change: .compared,
      means: "a client identifier that the provider publishes for all users",
      for: "Gitea")
    Key(
      "metadata_document", at: \.takesDocument, as: .boolean, change: .harmless,
      means: "whether a client identifier may be the URL of a [metadata document](#metadata-documents)",
      for: "discovered issuers")
    Key(
      "register", at: \.register, as: .page,
      change: .harmless, means: "the page for registering a client; credmgr shows it if no client is set", for: "all")
    Key(
      "id_pattern", at: \.identifierPattern, as: .pattern, type: "regular expression", change: .harmless,
      means: "a pattern that every client ID of the provider matches, so that credmgr notices a wrong paste",
      for: "`google`")
    Key(
      "secret_pattern", at: \.secretPattern, as: .pattern, type: "regular expression", change: .harmless,
      means: "the same for every client secret", for: "–")
    Key(
      "other_shapes", at: \.otherShapes, as: .otherShapes, type: "mapping of regular expressions to texts",
      change: .harmless, means: "values that users paste by mistake, each with its name",
      for: "`github`: the ID of a GitHub App")
  }
}

extension TypedKeyRules {
  static let keys = Table("key", TypedKeyRules()) {
    Key(
      "page", at: \.page, as: .comparedPage, change: .harmless, means: "the page for making one; `login` shows it",
      for: "`openai`")
    Key(
      "pattern", at: \.pattern, as: .pattern, type: "regular expression", change: .harmless,
      means: "a pattern that every key of the provider matches, so that `login` notices a wrong paste",
      for: "`openai`: `sk-.*`")
    Key(
      "lifetime", at: \.lifetime, as: .duration, default: "until the provider refuses the key", change: .harmless,
      means: "the time after which each key of the provider expires", for: "–")
    Key(
      "file", at: \.file, as: .keyFile, type: "variable, or mapping of variables to paths",
      means: """
        the variables in the file of `login --key-file`: one for the private key of a PEM file, or those in a JSON file
        """, for: "`google-service`, `github-app`")
  }
}

extension GitRules {
  static let keys = Table("git", GitRules(hosts: [])) {
    Key(
      "hosts", at: \.hosts, as: .hosts(areWhole: true), type: "list of host templates", isRequired: true,
      means: """
        the hosts whose repositories accept the token, with any non-standard port; `*.` is not allowed
        """, for: "`github`")
    Key(
      "username", at: \.username, as: .template(["account"], isShown: true),
      means: """
        the user name sent with the token; `{account}` is the provider's name for the user, or the account's name; the \
        default of a user name and a password is that user name
        """, for: "`github`: `x-access-token`; Bitbucket: `x-token-auth`; Hugging Face: `{account}`")
    Key(
      "ignore_username", at: \.ignoresUsername, as: .boolean,
      means: "whether to ignore the user name in a remote's URL", for: "Azure DevOps: the organization's name")
    Key(
      "realms", at: \.realms, as: .texts, type: "list of texts",
      means: """
        the names that such hosts use when they require a password (`WWW-Authenticate: Basic realm="GitLab"`); for a \
        host without a provider, a name leads only to a hint, because any server can send it
        """, for: "`gitlab`, `gitea`, `github-enterprise`")
  }
}

extension KubectlRules {
  static let keys = Table("kubectl", KubectlRules()) {
    Key(
      "hosts", at: \.hosts, as: .hosts(), type: "list of host templates", isRequired: true,
      means: "the hosts of clusters; a host without a port includes all its ports", for: "Keycloak, Dex")
  }
}

extension DockerRules {
  static let keys = Table("docker", DockerRules()) {
    Key(
      "hosts", at: \.hosts, as: .hosts(areWhole: true), type: "list of host templates", isRequired: true,
      means: "the container registries that accept the token as a password, with any non-standard port; `*.` is "
        + "not allowed", for: "`github`: `ghcr.io`")
    Key(
      "username", at: \.username, as: .template(["account"], isShown: true),
      means: "the user name sent with the token; `{account}` is the account's name", for: "`github`: `{account}`")
  }
}

import Testing

@testable import CredmgrDescriptors
import CredmgrText

@Suite struct DescriptorTests {
  @Test func defaultsFollowTheRFCs() throws {
    let descriptor = try descriptor(
      "provider: sample\ngrant: authorization_code\nendpoints: {authorization: https://a.example/a, token: https://a.example/t}\n"
    )
    #expect(descriptor.title == "sample")
    #expect(descriptor.grants == [.authorizationCode])
    #expect(descriptor.headerStyle.location == .header(name: "Authorization", scheme: "Bearer"))
    #expect(descriptor.extraHeaders.isEmpty)
    #expect(descriptor.scope == ScopeRules(requested: [], separator: " ", grantedSeparator: " "))
    #expect(descriptor.redirect.template.literal == "http://127.0.0.1/callback/sample")
    #expect(descriptor.state == .required)
    #expect(descriptor.pkce == .s256)
    #expect(descriptor.issuer == nil && descriptor.nonce == nil && descriptor.assertion == nil)
    #expect(descriptor.client == ClientRules() && descriptor.client.hasSecret)
    #expect(descriptor.expiry == ExpiryRules(lifetime: nil, margin: .seconds(60)))
    #expect(
      descriptor.device == DeviceRules(verificationURIComplete: nil, interval: .seconds(5), slowDown: .add(.seconds(5)))
    )
    #expect(descriptor.oauth1.signatureMethod.literal == "HMAC-SHA1")
    #expect(descriptor.oauth1.transport.literal == "header")
    #expect(
      descriptor.oauth1.sendsVersion && descriptor.oauth1.requiresCallbackConfirmed
        && descriptor.oauth1.requiresVerifier)
    #expect(descriptor.account.isEmpty)
    #expect(descriptor.hosts.isEmpty)
    #expect(descriptor.git == nil && descriptor.docker == nil)
    let authorization = try #require(descriptor.endpoints[.authorization])
    #expect(authorization.method == "GET" && authorization.send == .query && authorization.response.format == nil)
    let token = try #require(descriptor.endpoints[.token])
    #expect(token.method == "POST" && token.send == .form && token.response.format == .json)
    #expect(token.authentication == nil && token.inQuery.isEmpty && token.parameters.isEmpty && token.rename.isEmpty)
  }

  /// git and docker send the user name that belongs to the password.
  @Test(arguments: [
    ("grant: basic", "{username}"), ("grant: api_key\nheader_style: { username: key }", "key"),
    ("grant: api_key", "oauth2"), ("grant: basic\ndocker: { hosts: [r.example], username: ada }", "{username}"),
  ]) func theUserNameOfAPair(_ text: String, _ expected: String) throws {
    let descriptor = try descriptor(
      """
      provider: sample
      hosts: [a.example]
      endpoints: { identity: https://a.example/me }
      git: { hosts: [a.example] }
      \(text)

      """)
    #expect(try descriptor.git?.username == Template(parsing: expected))
    #expect(try descriptor.docker.map { try $0.username == Template(parsing: "ada") } ?? true)
  }

  @Test func everyKeyIsRead() throws {
    let descriptor = try descriptor(
      """
      provider: sample
      title: Sample
      grant: [authorization_code, device_code]
      variables: {host: {default: a.example}}
      endpoints:
        authorization: https://{host}/a
        device_authorization: https://{host}/d
        token:
          url: https://{host}/t
          method: PUT
          send: json
          in_query: [redirect_uri]
          verbatim: [audience]
          parameters: {audience: "{host}", grant_type: null}
          rename: {client_id: app}
          authentication: client_secret_post
          headers: {X-A: "{client_id}"}
          response:
            format: form
            within: data.0
            fields: {access_token: [a, b.c], expires_at: {path: e, time: milliseconds}}
            keep: {team: [team.id, team_id]}
            errors: {code: [c, d], description: m, success: [ok], meanings: {"7": slow_down}}
        introspection: {url: "https://{host}/i", tokens: refresh_token, response: {active: {path: s, equals: [good, fair]}}}
        revocation: {url: "https://{host}/r", response: {active: status}}
      header_style: {header: X-Token, scheme: Key, parameters: {team: "{team}"}}
      extra_headers: {X-Team: "{team}"}
      scope: {default: [a, b], separator: ",", granted_separator: " "}
      redirect: https://{host}/callback
      state: optional
      pkce: S256-hex
      nonce: true
      assertion: {algorithm: ES256, key: "{client_secret}", header: {kid: "{client_id}"}, claims: {sub: null, aud: x}, lifetime: 1h}
      issuer: https://issuer.example
      client: {authentication: none, id: everybody, register: https://a.example/register}
      expiry: {lifetime: 1h, margin: 30s}
      device: {verification_uri_complete: "{verification_uri}?c={user_code}", interval: 7s, slow_down: x1.5}
      oauth1: {signature_method: PLAINTEXT, transport: body, realm: r, version: false, callback_confirmed: optional, verifier: optional, callback: authorization}
      account: [user.name, sub]
      hosts: ["*.{host}", "b.example:8443"]
      git: {hosts: ["{host}"], username: "{client_id}"}
      docker: {hosts: ["registry.{host}"], username: "{account}"}
      """)
    #expect(descriptor.grants == [.authorizationCode, .deviceCode])
    let token = try #require(descriptor.endpoints[.token])
    #expect(token.method == "PUT" && token.send == .json && token.inQuery == ["redirect_uri"])
    #expect(token.verbatim == ["audience"])
    #expect(token.parameters.map(\.name) == ["audience", "grant_type"])
    #expect(token.parameters.map { $0.value?.names } == [["host"], nil])
    #expect(token.rename == ["client_id": "app"])
    #expect(token.authentication == .clientSecretPost)
    #expect(token.headers.map(\.name) == ["X-A"])
    #expect(token.response.format == .form)
    #expect(token.response.within == FieldPath("data.0"))
    #expect(token.response.source(of: .accessToken).paths == [FieldPath("a"), FieldPath("b.c")])
    #expect(token.response.source(of: .expiresAt) == FieldSource(paths: [FieldPath("e")], time: .milliseconds))
    #expect(token.response.source(of: .scope) == FieldSource(paths: [FieldPath("scope")], time: nil))
    #expect(token.response.keep == [KeptField(name: "team", paths: [FieldPath("team.id"), FieldPath("team_id")])])
    #expect(token.response.errors.code == [FieldPath("c"), FieldPath("d")])
    #expect(token.response.errors.description == [FieldPath("m")])
    #expect(token.response.errors.canonical("OK") == nil)
    #expect(token.response.errors.canonical("7") == "slow_down")
    #expect(descriptor.endpoints[.introspection]?.tokens == [.refreshToken])
    #expect(descriptor.endpoints[.introspection]?.response.active == .field(FieldPath("s"), values: ["good", "fair"]))
    #expect(descriptor.endpoints[.revocation]?.tokens == [.refreshToken, .accessToken])
    #expect(descriptor.endpoints[.revocation]?.response.active == .status)
    #expect(descriptor.headerStyle.location == .header(name: "X-Token", scheme: "Key"))
    #expect(descriptor.headerStyle.parameters.map(\.name) == ["team"])
    #expect(descriptor.scope == ScopeRules(requested: ["a", "b"], separator: ",", grantedSeparator: " "))
    #expect(descriptor.redirect.template.names == ["host"])
    #expect(descriptor.state == .optional && descriptor.pkce == .s256Hexadecimal)
    #expect(descriptor.issuer?.literal == "https://issuer.example")
    #expect(
      descriptor.client
        == ClientRules(
          authentication: ClientAuthentication.none, identifier: "everybody", register: "https://a.example/register"))
    #expect(!descriptor.client.hasSecret)
    #expect(descriptor.expiry == ExpiryRules(lifetime: .hours(1), margin: .seconds(30)))
    #expect(descriptor.device.interval == .seconds(7) && descriptor.device.slowDown == .multiply(150))
    #expect(descriptor.device.verificationURIComplete?.template.names == ["verification_uri", "user_code"])
    #expect(descriptor.oauth1.signatureMethod.literal == "PLAINTEXT" && descriptor.oauth1.transport.literal == "body")
    #expect(descriptor.oauth1.realm?.literal == "r")
    #expect(
      !descriptor.oauth1.sendsVersion && !descriptor.oauth1.requiresCallbackConfirmed
        && !descriptor.oauth1.requiresVerifier)
    #expect(descriptor.oauth1.callback == .authorization && descriptor.nonce == true)
    let assertion = try #require(descriptor.assertion)
    #expect(assertion.algorithm == .es256 && assertion.lifetime == .hours(1))
    #expect(assertion.key.names == ["client_secret"] && assertion.header.map(\.name) == ["kid"])
    #expect(
      assertion.claims.map(\.name) == ["sub", "aud"] && assertion.claims.map { $0.value?.literal } == [nil, "x"])
    #expect(descriptor.account == [FieldPath("user.name"), FieldPath("sub")])
    #expect(descriptor.git?.username.names == ["client_id"])
    #expect(descriptor.docker?.username.names == ["account"])
    #expect(descriptor.docker?.hosts.map(\.names) == [["host"]])
  }

  static let headerStyles: [(text: String, location: HeaderStyle.Location)] = [
    ("token", .header(name: "Authorization", scheme: "token")), ("none", .none),
    ("{scheme: OAuth}", .header(name: "Authorization", scheme: "OAuth")),
    ("{header: X-Token}", .header(name: "X-Token", scheme: "")),
    ("{header: X-Token, scheme: Key}", .header(name: "X-Token", scheme: "Key")),
    ("{query: accessToken}", .query(name: "accessToken")), ("\"\"", .header(name: "Authorization", scheme: "")),
  ]

  @Test(arguments: headerStyles) func headerStyle(_ text: String, _ location: HeaderStyle.Location) throws {
    #expect(try descriptor(sampleHead + "header_style: \(text)\n").headerStyle.location == location)
  }

  @Test func signedRequestsHaveNoTokenHeader() throws {
    let text = """
      provider: sample
      grant: oauth1
      endpoints: {temporary_credentials: https://a.example/r, authorization: https://a.example/a, token: https://a.example/t}
      """
    let descriptor = try descriptor(text)
    #expect(descriptor.headerStyle.location == HeaderStyle.Location.none)
    #expect(descriptor.endpoints[.temporaryCredentials]?.response.format == .form)
  }

  // MARK: Inherited parts of endpoints

  static let legs = """
    provider: sample
    grant: [authorization_code, device_code, client_credentials]
    endpoints:
      authorization: https://a.example/a
      device_authorization: https://a.example/d
      token:
        url: https://a.example/t
        method: PUT
        send: json
        rename: {client_id: app}
        headers: {X-A: a}
        parameters: {audience: x}
        response: {fields: {access_token: t}, errors: {code: c}}
      device_token:
        parameters: {grant_type: device}
        headers: {X-B: b}
        response: {errors: {description: d}}
      refresh: https://a.example/refresh
    """

  @Test func refreshInheritsTokenExceptItsParameters() throws {
    let descriptor = try descriptor(Self.legs)
    let token = try #require(descriptor.endpoints[.token])
    for (leg, url) in [
      (EndpointKind.refresh, "https://a.example/refresh"), (.clientCredentials, "https://a.example/t"),
      (.deviceToken, "https://a.example/t"),
    ] {
      let endpoint = try #require(descriptor.endpoints[leg])
      #expect(endpoint.url.template.literal == url)
      #expect(endpoint.method == "PUT" && endpoint.send == .json)
      #expect(endpoint.rename == token.rename)
      #expect(!endpoint.parameters.contains { $0.name == "audience" })
      #expect(endpoint.response.source(of: .accessToken).paths == [FieldPath("t")])
      #expect(endpoint.response.errors.code == [FieldPath("c")])
    }
    #expect(token.parameters.map(\.name) == ["audience"])
    let poll = try #require(descriptor.endpoints[.deviceToken])
    #expect(poll.parameters == [ParameterRule(name: "grant_type", value: Template(literal: "device"))])
    #expect(poll.headers.map(\.name) == ["X-A", "X-B"])
    #expect(poll.response.errors.description == [FieldPath("d")])
    #expect(descriptor.endpoints[.identity] == nil)
  }

  @Test func aNullEndpointIsMissing() throws {
    let text =
      "provider: sample\ngrant: authorization_code\nendpoints: {authorization: https://a.example/a, token: https://a.example/t, refresh: ~}\n"
    let descriptor = try descriptor(text)
    #expect(descriptor.endpoints[.refresh] == nil)
    #expect(descriptor.endpoints[.clientCredentials] != nil)
  }

  @Test func nothingIsInheritedWithoutATokenEndpoint() throws {
    let text = "provider: sample\ngrant: implicit\nendpoints: {authorization: https://a.example/a}\n"
    #expect(try Set(descriptor(text).endpoints.keys) == [.authorization])
  }

  @Test func theGeneralResponseAppliesToCredentialsAndItsErrorsToAllEndpoints() throws {
    let descriptor = try descriptor(
      """
      provider: sample
      grant: authorization_code
      endpoints:
        authorization: https://a.example/a
        token: {url: https://a.example/t, response: {errors: {success: [ok]}, keep: [own]}}
        identity: https://a.example/i
        device_authorization: https://a.example/d
      response: {within: data, fields: {access_token: t}, keep: [general], errors: {code: status}}
      """)
    for leg in [EndpointKind.token, .refresh, .identity, .deviceAuthorization] {
      #expect(descriptor.endpoints[leg]?.response.errors.code == [FieldPath("status")])
    }
    // A redirect is flat and has the errors of RFC 6749, 4.1.2.1.
    #expect(descriptor.endpoints[.authorization]?.response.within == nil)
    #expect(descriptor.endpoints[.authorization]?.response.errors == ErrorRules())
    for leg in [EndpointKind.token, .refresh] {
      #expect(descriptor.endpoints[leg]?.response.within == FieldPath("data"))
    }
    for leg in [EndpointKind.authorization, .token, .refresh] {
      #expect(descriptor.endpoints[leg]?.response.source(of: .accessToken).paths == [FieldPath("t")])
    }
    for leg in [EndpointKind.identity, .deviceAuthorization] {
      #expect(descriptor.endpoints[leg]?.response.within == nil)
      #expect(descriptor.endpoints[leg]?.response.keep.isEmpty == true)
    }
    #expect(descriptor.endpoints[.authorization]?.response.keep.map(\.name) == ["general"])
    #expect(descriptor.endpoints[.token]?.response.keep.map(\.name) == ["own"])
    #expect(descriptor.endpoints[.token]?.response.errors.success == ["ok"])
  }

  @Test func aRedirectUsesOnlyItsOwnResponse() throws {
    let descriptor = try descriptor(
      """
      provider: sample
      grant: implicit
      endpoints: {authorization: {url: https://a.example/a, response: {within: data, errors: {code: why}}}}
      response: {within: body, errors: {code: status, description: words}}
      """)
    let response = try #require(descriptor.endpoints[.authorization]?.response)
    #expect(response.within == FieldPath("data"))
    #expect(response.errors.code == [FieldPath("why")] && response.errors.description == ErrorRules().description)
  }

  @Test func tokenParametersAreInheritedIfNoGrantUsesToken() throws {
    func parameters(_ grant: String, _ own: String = "") throws -> [EndpointKind: [String]] {
      try descriptor(
        """
        provider: sample
        grant: \(grant)
        endpoints:
          authorization: https://a.example/a
          device_authorization: https://a.example/d
          token: {url: https://a.example/t, parameters: {audience: x, grant_type: y}}
          \(own)
        """
      ).endpoints.mapValues { $0.parameters.map(\.name) }
    }
    let machine = try parameters("client_credentials", "client_credentials: {parameters: {grant_type: ~, own: z}}")
    #expect(machine[.clientCredentials] == ["audience", "grant_type", "own"] && machine[.refresh] == [])
    #expect(try parameters("[device_code, client_credentials]")[.deviceToken] == ["audience", "grant_type"])
    for grant in ["[authorization_code, client_credentials]", "[device_code, oauth1]"] {
      let endpoints = try parameters(
        grant, grant.contains("oauth1") ? "temporary_credentials: https://a.example/r" : "")
      #expect(endpoints[.clientCredentials] == [] && endpoints[.deviceToken] == [])
    }
  }

  @Test func aRedirectMayBeOutOfBandByDefault() throws {
    let descriptor = try descriptor(
      """
      provider: sample
      grant: authorization_code
      variables: {redirect_uri: {format: redirect, default: oob}}
      endpoints: {authorization: https://a.example/a, token: https://a.example/t}
      redirect: "{redirect_uri}"
      """)
    #expect(descriptor.redirect.template.names == ["redirect_uri"])
  }

  @Test func stateMayBeSentAgainAndTheConsumerKeyShown() throws {
    let descriptor = try descriptor(
      """
      provider: sample
      grant: oauth1
      endpoints:
        temporary_credentials: https://a.example/r
        authorization: {url: https://a.example/a, parameters: {oauth_consumer_key: "{client_id}"}}
        token: {url: https://a.example/t, parameters: {state: "{state}", nonce: "{random()}"}}
      """)
    #expect(descriptor.endpoints[.authorization]?.parameters.map(\.name) == ["oauth_consumer_key"])
    #expect(descriptor.endpoints[.token]?.parameters.map(\.name) == ["state", "nonce"])
  }

  static let formats: [(format: String, expected: [EndpointKind: ResponseFormat?])] = [
    ("json", [.authorization: nil, .token: .json, .deviceAuthorization: .json, .identity: .json]),
    (
      "form",
      [
        .authorization: nil, .token: .form, .refresh: .form, .deviceAuthorization: .form, .identity: .json,
        .revocation: .json,
      ]
    ), ("fragment", [.authorization: .fragment, .token: .json, .refresh: .json]),
    ("query", [.authorization: .query, .token: .json]),
  ]

  @Test(arguments: formats)
  func formatOfEachEndpoint(_ format: String, _ expected: [EndpointKind: ResponseFormat?]) throws {
    let descriptor = try descriptor(
      """
      provider: sample
      grant: authorization_code
      endpoints:
        authorization: https://a.example/a
        token: https://a.example/t
        device_authorization: https://a.example/d
        identity: https://a.example/i
        revocation: https://a.example/r
      response_format: \(format)
      """)
    for (leg, format) in expected { #expect(descriptor.endpoints[leg]?.response.format == format) }
  }

  @Test func aPortMayBeAVariable() throws {
    let text = """
      provider: sample
      grant: client_credentials
      variables: {port: , tenant: }
      endpoints: {token: "http://127.0.0.1:{port}/t", identity: "https://{tenant}.a.example:8443/{tenant}"}
      hosts: ["127.0.0.1:{port}", "*.{tenant}.example"]
      """
    #expect(try descriptor(text).hosts.count == 2)
  }
}

import Testing

/// A small descriptor for each kind of login.
struct Sample: CustomTestStringConvertible {
  let text: String

  var testDescription: String { String(text.prefix { $0 != "\n" }) }
}

enum Descriptors {
  static let linkedIn = Sample(
    text: """
      provider: linkedin
      grant: authorization_code
      endpoints:
        authorization: https://www.linkedin.example/oauth/v2/authorization
        token: https://www.linkedin.example/oauth/v2/accessToken
        introspection:
          url: https://www.linkedin.example/oauth/v2/introspectToken
          parameters: { token_type_hint: null }
        revocation: https://www.linkedin.example/oauth/v2/revoke
        identity: https://api.linkedin.example/v2/userinfo
      redirect: https://app.example/callback
      pkce: none
      client: { authentication: client_secret_post }
      account: email
      hosts: [api.linkedin.example]
      """)

  static let gitHub = Sample(
    text: """
      provider: github
      grant: [authorization_code, device_code]
      variables: { host: { default: github.example, format: hostname } }
      endpoints:
        authorization: https://{host}/login/oauth/authorize
        token: https://{host}/login/oauth/access_token
        device_authorization: { url: "https://{host}/login/device/code", authentication: none }
        device_token: { authentication: none }
        identity: { url: "https://api.{host}/user", headers: { Accept: application/json } }
        revocation:
          url: https://api.{host}/applications/{client_id}/token
          method: DELETE
          send: json
          authentication: client_secret_basic
          tokens: [access_token]
          rename: { token: access_token }
          parameters: { token_type_hint: null }
      response_format: form
      response: { errors: { meanings: { bad_verification_code: invalid_grant } } }
      header_style: token
      extra_headers: { X-GitHub-Api-Version: "2022-11-28" }
      scope: { default: [repo], granted_separator: "," }
      client: { authentication: client_secret_post }
      account: login
      hosts: ["api.{host}"]
      git: { hosts: ["{host}"], username: x-access-token }
      """)

  static let oclc = Sample(
    text: """
      provider: oclc
      grant: implicit
      variables:
        institution: { pattern: "[0-9]+" }
        redirect_uri: { format: redirect }
      endpoints:
        authorization:
          url: https://authn.oclc.example/oauth2/authorizeCode
          parameters: { authenticatingInstitutionId: "{institution}" }
        refresh: { url: https://authn.oclc.example/oauth2/accessToken, authentication: none }
      response_format: fragment
      response:
        fields: { expires_at: { path: expires_at, time: date } }
        keep: [principalID, principalIDNS]
      header_style:
        scheme: bearer
        parameters: { principalID: "{principalID}", principalIDNS: "{principalIDNS}" }
      scope: [WMS_NCIP, refresh_token]
      redirect: "{redirect_uri}"
      state: optional
      pkce: none
      client: { authentication: none }
      account: principalID
      hosts: ["*.oclc.example"]
      """)

  static let l2p = Sample(
    text: """
      provider: l2p
      grant: device_code
      endpoints:
        device_authorization:
          url: https://oauth.l2p.example/oauth2.svc/code
          response: { fields: { verification_uri: verification_url } }
        token: https://oauth.l2p.example/oauth2.svc/token
        device_token: { rename: { device_code: code }, parameters: { grant_type: device } }
        introspection:
          url: https://oauth.l2p.example/oauth2.svc/tokeninfo
          rename: { token: access_token }
          parameters: { token_type_hint: null }
          response: { active: { path: state, equals: valid } }
        revocation:
          url: https://oauth.l2p.example/oauth2.svc/token
          tokens: [refresh_token]
          rename: { token: refresh_token }
          parameters: { grant_type: invalidate, token_type_hint: null }
      response:
        errors:
          code: [error, status]
          success: [ok]
          meanings:
            authorization pending: authorization_pending
            slow down: slow_down
            refresh token invalid: invalid_grant
      device: { verification_uri_complete: "{verification_uri}?q=verify&d={user_code}", slow_down: x1.2 }
      header_style: { query: accessToken }
      scope: [l2p.rwth]
      client: { authentication: none }
      hosts: [www3.l2p.example]
      """)

  static let oauth1 = Sample(
    text: """
      provider: oauth1
      grant: oauth1
      variables:
        token_url: { format: url }
        signature_method: { default: HMAC-SHA1 }
        transport: { default: header }
        realm: { optional: true }
      endpoints:
        temporary_credentials: https://service.example/request_token
        authorization: https://service.example/authorize
        token: "{token_url}"
      response:
        fields: { expires_in: oauth_expires_in }
        keep: [screen_name]
        errors: { code: [oauth_problem], meanings: { token_rejected: invalid_grant } }
      oauth1: { signature_method: "{signature_method}", transport: "{transport}", realm: "{realm}" }
      account: screen_name
      hosts: [api.service.example]
      """)

  /// A provider that does most things in its own way.
  static let odd = Sample(
    text: """
      provider: odd
      grant: [authorization_code, client_credentials]
      endpoints:
        authorization:
          url: https://odd.example/authorize?v=2
          rename: { client_id: client_key, state: customState, scope: scopes }
          parameters: { audience: api, response_type: null }
        token:
          url: https://odd.example/token
          send: json
          in_query: [grant_type]
          rename: { code: auth_code }
          parameters: { audience: "{client_id}", redirect_uri: null }
          headers: { X-Api-Version: "2" }
          response:
            within: data
            fields:
              access_token: accessToken
              expires_in: { path: ttl, time: milliseconds }
              refresh_token: tokens.0.value
            keep: { team: team.name }
        refresh:
          in_query: []
          headers: { X-Api-Version: null }
          response: { fields: { access_token: token }, keep: null }
        client_credentials:
          url: https://odd.example/cc
          send: query
          in_query: null
          rename: null
          headers: null
          response: { within: null, fields: null, keep: null }
      response: { errors: { code: [ok, error], success: [true] } }
      header_style: none
      extra_headers: { X-Token: "key {access_token}", X-Team: "{team}" }
      scope: { default: [a, b], separator: "," }
      pkce: S256-hex
      issuer: https://odd.example
      account: team
      expiry: { lifetime: 2h, margin: 30s }
      hosts: [odd.example]
      """)

  /// A provider with rare features: signing clients, a nonce, an exchange, and tokens with their own expiry.
  static let rare = Sample(
    text: """
      provider: rare
      grant: [authorization_code, client_credentials]
      variables: { tenant: { default: t1 } }
      endpoints:
        authorization: { url: "https://rare.example/#/authorize", send: fragment }
        token:
          url: https://rare.example/token
          send: json
          verbatim: [ttl]
          parameters: { ttl: "60", at: "{now()}", hash: '{hex(sha256(client_secret, "|", code))}' }
          headers: { X-Sign: "{hex(hmac_sha256(client_secret, request_body, now()))}" }
        client_credentials: { parameters: { day: '{date(now("7d"))}' } }
        token_exchange: { url: https://rare.example/exchange, method: GET }
        refresh: { rename: { refresh_token: subject } }
        identity: https://rare.example/me
      response:
        fields: { refresh_token: access_token, expires_at: { path: access_token, time: jwt } }
      nonce: true
      issuer: https://{tenant}.rare.example
      client: { authentication: client_secret_jwt }
      assertion: { algorithm: HS384, header: { kid: k }, claims: { jti: null, aud: https://rare.example }, lifetime: 1m }
      scope: [openid, read]
      account: [name.full, login]
      hosts: [rare.example]
      git: { hosts: [git.rare.example], username: "{account}" }
      """)

  /// A provider that takes only pushed requests.
  static let pushed = Sample(
    text: """
      provider: pushed
      grant: authorization_code
      endpoints:
        pushed_authorization_request: https://pushed.example/par
        authorization:
          url: https://pushed.example/authorize?tenant=1
          rename: { client_id: app }
          parameters: { access_type: offline }
        token: https://pushed.example/token
        identity: https://pushed.example/me
      issuer: https://pushed.example
      client: { authentication: client_secret_post }
      scope: [read]
      account: sub
      hosts: [pushed.example]
      """)

  /// A provider that binds tokens to a key, with a public client.
  static let bound = Sample(
    text: """
      provider: bound
      grant: [authorization_code, device_code]
      endpoints:
        pushed_authorization_request: https://bound.example/par
        authorization: https://bound.example/authorize
        token: https://bound.example/token
        device_authorization: https://bound.example/device
        identity: https://bound.example/me
      token_binding: dpop
      client: { authentication: none }
      scope: [read]
      account: sub
      hosts: [bound.example]
      """)

  static let all = [linkedIn, gitHub, oclc, l2p, oauth1, odd, rare, pushed, bound]
}

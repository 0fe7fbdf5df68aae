import CredmgrCryptography
import CredmgrHTTP
import CredmgrDescriptors
import Testing

@testable import CredmgrOAuth

struct LoginRequestsTests {
  private static func plan(
    _ client: Client, _ grant: Grant, registered: Bool = true, hasToken: Bool = false
  ) throws -> LoginRequests {
    let shown = try Client(
      showing: client.descriptor, identifier: registered ? client.identifier : nil,
      hasSecret: registered ? client.secret != nil : client.descriptor.client.hasSecret,
      variables: registered ? client.variables : [:])
    return try LoginRequests(grant, shown, scope: client.descriptor.scope.requested, hasToken: hasToken)
  }

  private static func text(_ planned: LoginRequests) -> String {
    planned.requests.map { request in
      var lines = ["\(request.kind.rawValue) \(request.method) \(request.url)"]
      lines += request.query.map { "? \($0.name)=\($0.value)" }
      lines += request.fields.map { "\($0.name): \($0.value)" }
      switch request.body {
      case .none: break
      case .form(let pairs): lines += pairs.map { "\($0.name)=\($0.value)" }
      case .json(let value): lines.append(value.encoded)
      }
      return lines.map { $0 + "\n" }.joined()
    }.joined(separator: "\n")
  }

  /// While another account is logged in, the provider is asked to let the person choose.
  @Test func choosingThePerson() throws {
    let client = try Fixture.client(
      endpoints: "authorization: { url: https://provider.example/a, choose: { prompt: login, hint: \"{identity}\" } }")
    func sent(_ person: PersonChoice?) throws -> [String] {
      let planned = try LoginRequests(.authorizationCode, client, scope: [], choosing: person, hasToken: false)
      return planned.requests[0].query.filter { ["prompt", "hint"].contains($0.name) }.map(\.value)
    }
    #expect(try sent(nil) == [])
    #expect(try sent(PersonChoice(identity: nil)) == ["login"])
    #expect(try sent(PersonChoice(identity: "ada")) == ["login", "ada"])
  }

  @Test func authorizationCode() throws {
    let client = try Fixture.client(
      "scope: [read]\naccount: login", endpoints: "identity: https://api.provider.example/me")
    let planned = try Self.plan(client, .authorizationCode)
    #expect(planned.redirectURI == "http://127.0.0.1:<port>/callback/example")
    #expect(
      Self.text(planned) == """
        authorization GET https://provider.example/authorize
        ? response_type=code
        ? client_id=client-1
        ? redirect_uri=http://127.0.0.1:<port>/callback/example
        ? scope=read
        ? state=<state>
        ? code_challenge=<code_challenge>
        ? code_challenge_method=S256

        token POST https://provider.example/token
        Authorization: Basic base64(client-1:<client_secret>)
        Content-Type: application/x-www-form-urlencoded
        Accept: application/json
        grant_type=authorization_code
        code=<code>
        redirect_uri=http://127.0.0.1:<port>/callback/example
        code_verifier=<code_verifier>

        identity GET https://api.provider.example/me
        Authorization: Bearer <access_token>
        Accept: application/json

        refresh POST https://provider.example/token
        Authorization: Basic base64(client-1:<client_secret>)
        Content-Type: application/x-www-form-urlencoded
        Accept: application/json
        grant_type=refresh_token
        refresh_token=<refresh_token>

        """)
    #expect(planned.requests.map(\.isInBrowser) == [true, false, false, false])
    #expect(planned.requests.map(\.isLater) == [false, false, false, true])
  }

  /// Shows an exchange wherever it happens: after the login, and also after a refresh if it follows one.
  @Test(
    arguments: [
      ("token", [EndpointKind.authorization, .token, .tokenExchange, .refresh]),
      ("[token, refresh]", [.authorization, .token, .tokenExchange, .refresh, .tokenExchange]),
    ])
  func exchanges(_ follows: String, _ kinds: [EndpointKind]) throws {
    let client = try Fixture.client(
      "", endpoints: "token_exchange: { url: \"https://provider.example/session\", follows: \(follows) }")
    let planned = try Self.plan(client, .authorizationCode)
    #expect(planned.requests.map(\.kind) == kinds)
    #expect(planned.requests.map(\.isLater) == Array([false, false, false, true, true].prefix(kinds.count)))
    // A client's own token always uses the same requests.
    let machine = try Fixture.client(
      "", grant: "client_credentials",
      endpoints: """
        token: https://provider.example/token
        token_exchange: { url: "https://provider.example/session", follows: \(follows) }
        """)
    #expect(try Self.plan(machine, .clientCredentials).requests.map(\.kind) == [.clientCredentials, .tokenExchange])
  }

  /// A token from the user is only checked.
  @Test func aGivenToken() throws {
    let client = try Fixture.client("account: login", endpoints: "identity: https://api.provider.example/me")
    #expect(try Self.plan(client, .authorizationCode, hasToken: true).requests.map(\.kind) == [.identity])
  }

  @Test func computationsAreWrittenDown() throws {
    let client = try Fixture.client(
      """
      variables: { tenant: {}, base: { format: url }, shard: { format: hostname } }
      response: { keep: [instance_url, user.id] }
      account: name
      """, grant: "client_credentials",
      endpoints: """
        client_credentials: { url: "https://{tenant}.{shard}.example/token", send: json, parameters: { at: "{now()}" }, \
        headers: { X-Sign: '{hex(hmac_sha256(client_secret, "\\n", random()))}' } }
        token: "{base}/token"
        authorization: "{base}/authorize"
        identity: "{instance_url}/me/{user.id}"
        """, variables: ["tenant": "t", "base": "https://b.example", "shard": "s"])
    let planned = try Self.plan(client, .clientCredentials, registered: false)
    #expect(
      Self.text(planned) == """
        client_credentials POST https://<tenant>.<shard>.example/token
        Authorization: Basic base64(<client_id>:<client_secret>)
        X-Sign: hex(hmac_sha256(<client_secret>, \\n, <random>))
        Content-Type: application/json
        Accept: application/json
        {"grant_type":"client_credentials","at":"<now>"}

        """)
    let code = try Self.plan(client, .authorizationCode, registered: false)
    #expect(
      code.requests.map(\.url) == ["<base>/authorize", "<base>/token", "<instance_url>/me/<user.id>", "<base>/token"])
  }

  /// Shows every grant of every shipped descriptor, before and after a client is registered.
  @Test(arguments: try ShippedDescriptors.identifiers(), [false, true])
  func everyShippedDescriptor(_ identifier: String, _ registered: Bool) throws {
    let descriptor = try ShippedDescriptors.load(identifier)
    for grant in descriptor.grants {
      let client = try Client(
        showing: descriptor, identifier: registered ? "client-id" : nil,
        hasSecret: registered ? true : descriptor.client.hasSecret, variables: [:])
      let planned = try LoginRequests(grant, client, scope: descriptor.scope.requested, hasToken: false)
      let text = Self.text(planned)
      #expect(Set(grant.traits.requiredEndpoints).subtracting(planned.requests.map(\.kind)).isEmpty)
      let standIn = #/zq[0-9a-f]+qz|\b4999999999\b|\b49999\b|\.invalid/#.ignoresCase()
      #expect(text.firstMatch(of: standIn) == nil, "\(text)")
      // A key needs no client, and no request if nothing verifies it.
      // The token of another issuer is not typed.
      #expect(planned.typed.fields.isEmpty == (grant.traits.asked == nil) || descriptor.readsAtExchange)
      if grant.traits.asked != nil { continue }
      #expect(text.contains(registered ? "client-id" : "<client_id>"), "\(text)")
      #expect(planned.requests.first?.isLater == false)
    }
  }

  /// A dry run shows the same requests as a real login, name for name.
  @Test(arguments: try ShippedDescriptors.identifiers())
  func theNamesAreThoseOfARealLogin(_ identifier: String) throws {
    let descriptor = try ShippedDescriptors.load(identifier)
    // The real login has a value that the user must give first; the dry run has none.
    guard descriptor.grants.contains(.authorizationCode), descriptor.assertion == nil,
      descriptor.variables.allSatisfy({ $0.defaultValue != nil }) || descriptor.variables.isEmpty
    else { return }
    let client = try Client(descriptor: descriptor, identifier: "client-id", secret: Secret("secret-1"), variables: [:])
    let request = try client.authorizationRequest(
      .authorizationCode, redirectURI: "http://127.0.0.1:8417/callback", scope: descriptor.scope.requested,
      random: KnownRandom(), nonce: Fixture.nonce)
    let response = try client.authorizationResponse(
      FormParameters(
        [.init(name: "code", value: "c"), .init(name: "state", value: request.state)]
          + Set(descriptor.endpoints.values.flatMap(\.response.keep).map(\.name)).map { name in
            let values = ["k", ShippedDescriptors.instance, "https://us.zoom.us"]
            return .init(name: name, value: values.first { descriptor.accepts($0, keptAs: name) } ?? "")
          }), to: request)
    let token = try client.tokenRequest(response, nonce: Fixture.nonce)
    let shown = try Client(showing: descriptor, identifier: "client-id", hasSecret: true, variables: [:])
    let planned = try LoginRequests(.authorizationCode, shown, scope: descriptor.scope.requested, hasToken: false)
    #expect(planned.requests[0].query.map(\.name) == request.uri.queryParameters.names)
    #expect(planned.requests[1].url == token.uri.withoutQueryAndFragment.text)
    #expect(planned.requests[1].fields.map(\.name) == token.fields.map(\.name))
  }

  @Test(
    arguments: [
      ("nothing", "nothing"), ("zq", "zq"), ("zqqz", "zqqz"), ("zq61qz", "<a>"), ("ZQ61QZ", "ZQ61QZ"),
      ("https://zq61qz.invalid/x", "<a>/x"), ("https://zq61qz.example/x", "https://<a>.example/x"),
      ("zqzq61qz", "zq<a>"), ("zq61qzzq62qz", "<a><b>"), ("http://127.0.0.1:49999/", "http://127.0.0.1:<port>/"),
    ])
  func revealed(_ text: String, _ expected: String) { #expect(Placeholder.revealed(text) == expected) }
}

import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
@testable import CredmgrOAuth
import CredmgrPlatform
import CredmgrDescriptors
import Testing

@testable import CredmgrSimulator
import CredmgrText

/// A grant of a shipped descriptor.
struct ShippedGrant: CustomTestStringConvertible {
  let descriptor: Descriptor
  let grant: Grant

  var testDescription: String { descriptor.identifier + ", " + grant.rawValue }

  /// Returns every grant of every file in `providers`.
  static func all() throws -> [ShippedGrant] {
    let folder = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined() + "/providers"
    let library = DescriptorLibrary(directories: [folder]) { try? File.read($0, limit: 1 << 20) }
    return try File.names(in: folder).filter { $0.hasSuffix(".yaml") }.flatMap { name in
      let descriptor = try library.load(String(name.dropLast(".yaml".count))).descriptor
      return descriptor.grants.map { ShippedGrant(descriptor: descriptor, grant: $0) }
    }
  }
}

/// Tests each shipped descriptor with the simulator.
struct ShippedProviderTests {
  /// A key only for this test, for clients that sign.
  private static let privateKey = Secret(
    """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHvc5atP3XwFZxeZT
    Gn03dRd6n1lQiIeX6vjmpfOdQPihRANCAAT4uhS0hpkyq+01EEKMhCbVeBQJa/B7
    6LqXTmudjPtCF7X6Hxl/+dV9sgQ/dLsJrwZe5CaB4bKyM6BWcYvBajN/
    -----END PRIVATE KEY-----
    """)

  @Test("login, token, request, identity, refresh, validation, logout", arguments: try ShippedGrant.all())
  func wholeLife(_ shipped: ShippedGrant) throws {
    let signs = shipped.descriptor.assertion != nil
    let hasClient = shipped.grant.traits.brought == nil
    let secret = signs ? Self.privateKey : Secret(shipped.descriptor.client.hasSecret ? "s3cret" : "")
    let play = try Play(shipped.descriptor, secret: hasClient ? secret : nil)
    var credential = try play.login(shipped.grant)
    #expect(try play.resource(credential).status == 200)
    try checkIdentity(play, credential)

    credential = try refreshed(play, credential)
    #expect(try play.resource(credential).status == 200)
    if play.canValidate { #expect(try play.validity(credential) == .active) }

    guard play.client.descriptor.endpoints[.revocation] != nil else { return }
    // A credential without a refresh token cannot be revoked if only that can be.
    guard try !play.client.revocationRequests(credential, nonce: play.nonce()).isEmpty else { return }
    try play.revoke(credential)
    #expect(try play.resource(credential).status == 401)
    if play.canValidate { #expect(try play.validity(credential) == .inactive) }
  }

  /// Checks that the account has the user's name; a client's own token has none.
  private func checkIdentity(_ play: Play, _ credential: Credential) throws {
    guard credential.grant != .clientCredentials else { return }
    if play.client.makesTokens(of: credential.grant), play.client.descriptor.account.isEmpty { return }
    if play.client.descriptor.endpoints[.identity] == nil {
      // Some providers never name the user.
      if let name = play.client.accountName(in: credential) { #expect(!name.isEmpty) }
    } else if !play.client.descriptor.account.isEmpty {
      let response = try play.send(as: credential.grant) { try play.client.identityRequest(credential, nonce: $0) }
      #expect(try play.client.identity(response).name == "ada")
    }
  }

  /// Returns the credential after a refresh, or unchanged if it cannot expire or be refreshed.
  private func refreshed(_ play: Play, _ credential: Credential) throws -> Credential {
    guard let expiresAt = credential.expiresAt else { return credential }
    // A token that refreshes itself must still be valid.
    if credential.refreshToken == credential.accessToken { return try play.refresh(credential) }
    play.clock.advance(seconds: (expiresAt - play.clock.now) / .seconds(1))
    #expect(try play.resource(credential).status == 401)
    if play.canValidate { #expect(try play.validity(credential) == .inactive) }
    let hasRefreshed = play.client.descriptor.endpoints[.refresh] != nil
    guard hasRefreshed, credential.refreshToken != nil || credential.sessionHandle != nil else {
      return try play.login(credential.grant)
    }
    let new = try credential.grant == .oauth1 ? play.renewed(credential) : play.refresh(credential)
    #expect(new.accessToken != credential.accessToken)
    #expect(try play.resource(credential).status == 401)
    return new
  }
}

extension Play {
  fileprivate var canValidate: Bool {
    client.descriptor.endpoints[.introspection] != nil || client.descriptor.endpoints[.identity] != nil
  }

  /// Logs in with any grant, using the descriptor's scopes.
  fileprivate func login(_ grant: Grant) throws -> Credential {
    let scope = client.descriptor.scope.requested
    switch grant {
    case .authorizationCode: return try exchanged(login(scope: scope))
    case .implicit:
      let request = try authorization(.implicit, scope: scope)
      let parameters = FormParameters(decoding: try #require(try decide(request.uri).fragment))
      return try client.credential(client.authorizationResponse(parameters, to: request), now: clock.now)
    case .clientCredentials:
      let response = send(try client.clientCredentialsRequest(scope: scope, nonce: nonce()))
      return try client.outcome(
        response, .clientCredentials, grant: .clientCredentials, scope: scope, now: clock.now
      ).issued().credential
    case .deviceCode: return try deviceLogin(scope)
    case _ where grant.traits.asked != nil: return try typed(grant)
    default:
      try #require(grant == .oauth1, "no login with \(grant) is played here")
      return try oauth1Login(scope)
    }
  }

  /// Types the key that the simulator made.
  private func typed(_ grant: Grant) throws -> Credential {
    let key = try #require(simulation.value.state.key)
    let context = LoginContext(
      grant, client, scope: [], redirectURI: "", random: TestRandom(), nonce: nonce())
    guard case .prompt(let prompt) = try context.begin(),
      case let step = try prompt.read(prompt.values(of: key.lines.map(\.value)), clock.now)
    else { throw OAuthError.malformedCredential }
    if case .send = step, grant.traits.brought != nil {
      var step = step
      while case .send(let exchange) = step { step = try exchange.read(send(exchange.request(nonce())), clock.now) }
      guard case .done(let credential, _) = step else { throw OAuthError.malformedCredential }
      return credential
    }
    guard case .done(let credential, _) = step else { throw OAuthError.malformedCredential }
    if grant.traits.brought != nil { return credential }
    #expect(credential.accessToken == Secret(key.token))
    let isUsableAlone = client.descriptor.binding(of: grant).isUsableAlone
    if case .header = client.descriptor.headerStyle(of: grant).location, isUsableAlone {
      #expect(try client.headerFields(presenting: credential, on: nil, nonce: nonce()).contains { _ in true })
    }
    return credential
  }

  /// Returns the exchanged credential, if the provider has an exchange.
  private func exchanged(_ credential: Credential) throws -> Credential {
    guard client.descriptor.endpoints[.tokenExchange] != nil else { return credential }
    let request = try client.tokenExchangeRequest(credential, nonce: nonce())
    let exchanged = try client.outcome(send(request), .tokenExchange, refreshing: credential, now: clock.now)
      .issued().credential
    let rules = client.descriptor.endpoints[.tokenExchange]?.response
    let isQuestion = rules?.fields[.accessToken]?.paths.isEmpty == true
    #expect((exchanged.accessToken == credential.accessToken) == isQuestion)
    return exchanged
  }

  private func deviceLogin(_ scope: [String]) throws -> Credential {
    let device = try deviceAuthorization(scope: scope)
    try #require(poll(device, after: 5).isPending)
    try #require(poll(device, after: 1).isSlowDown)
    let page = try get(device.verificationURIComplete ?? device.verificationURI)
    #expect(page.text.hidden("user_code") == device.userCode)
    let decision: FormParameters = [("user_code", device.userCode), ("account", "ada"), ("decision", "approve")]
    #expect(try post("/simulator/device", decision).status == 200)
    return try #require(poll(device, after: 15).credential)
  }

  private func oauth1Login(_ scope: [String]) throws -> Credential {
    var callback: String?
    if case .outOfBand(let text) = try client.redirect() { callback = text }
    let temporary = try temporaryCredentials(callback: callback, scope: scope)
    let page = try page(temporary, scope: scope)
    let parameters: FormParameters =
      callback == nil
      ? try decide(page).queryParameters
      : [("oauth_token", temporary.token.reveal()), ("oauth_verifier", try codeShown(page))]
    return try credential(temporary, client.resourceOwnerAuthorization(parameters, to: temporary), scope: scope)
  }

  /// Returns the code that the user reads from a page without a redirect. A provider without verifiers accepts any
  /// code.
  private func codeShown(_ page: URI) throws -> String {
    let request = try #require(send(HTTPRequest(method: "GET", uri: page)).text.hidden("request"))
    let answer = try post("/simulator/consent", [("request", request), ("account", "ada"), ("decision", "approve")])
    #expect(answer.status == 200)
    guard let start = answer.text.firstRange(of: "<code>") else { return "done" }
    return String(answer.text[start.upperBound...].prefix { $0 != "<" })
  }
}

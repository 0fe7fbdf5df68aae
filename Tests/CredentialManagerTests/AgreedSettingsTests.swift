import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import Testing

@testable import CredmgrCredentialManager

/// Tests the consent to settings: how a login is protected, and which answer fields contain secrets.
struct AgreedSettingsTests {
  private static func text(_ more: String, _ endpoint: String = "https://provider.example/token") -> String {
    """
    grant: \(more.contains("grant:") ? "" : "[authorization_code, device_code]")
    endpoints:
      authorization: https://provider.example/authorize
      device_authorization: https://provider.example/device
      token: \(endpoint)
      revocation: https://provider.example/revoke
    \(more)

    """.replacing("grant: \n", with: "")
  }

  /// Returns the new settings that a refresh reports after the user edited the file, as key and value.
  private static func new(_ fixture: Fixture) throws -> [String] {
    do {
      _ = try fixture.another().permit(.refresh, "example")
      return []
    } catch {
      guard case .descriptorChanged(_, _, true, let places) = error else { throw error }
      return places.map { place in
        switch place.kind {
        case .setting(let key), .value(let key): "\(key) \(place.name)"
        default: "\(place.kind) \(place.name)"
        }
      }
    }
  }

  private static func token(_ more: String) -> String { text("", "{ url: https://provider.example/token, \(more) }") }

  private static let mapped = token("response: { fields: { access_token: [a, b], refresh_token: r } }")
  private static let secret = "variables: { k: { secret: true, default: none } }\n"
  private static let oauth1 = """
    grant: oauth1
    endpoints:
      temporary_credentials: https://provider.example/temporary
      authorization: https://provider.example/authorize
      token: https://provider.example/token

    """

  @Test(
    arguments: [
      ("", "pkce: none", ["pkce none"]), ("", "pkce: plain", ["pkce plain"]),
      ("pkce: plain", "pkce: none", ["pkce none"]),
      ("pkce: none", "pkce: S256", []), ("pkce: none", "pkce: plain", []), ("", "pkce: S256-hex", []),
      ("pkce: S256-hex", "", []),
      ("", "state: optional", ["state optional"]), ("state: optional", "", []),
      ("nonce: true", "nonce: false", ["nonce false"]), ("", "nonce: false", ["nonce false"]), ("", "nonce: true", []),
      ("nonce: false", "", []),
      ("issuer: https://provider.example\niss: required", "issuer: https://provider.example", ["iss optional"]),
      ("", "grant: [authorization_code, implicit]", ["grant implicit"]),
      ("client: { authentication: private_key_jwt }", "", ["client.authentication client_secret"]),
      (
        "client: { authentication: client_secret_jwt }", "client: { authentication: client_secret_post }",
        ["client.authentication client_secret"]
      ),
      (
        "client: { authentication: client_secret_basic }", "client: { authentication: client_secret_post }", []
      ), ("", "client: { authentication: client_secret_basic }", []),
      ("client: { authentication: client_secret_post }", "client: { authentication: private_key_jwt }", []),
      ("client: { authentication: private_key_jwt }", "client: { authentication: private_key_jwt }\nscope: [a]", []),
      (
        "", "response: { fields: { access_token: refresh_token } }",
        ["response.fields.access_token refresh_token"]
      ),
      ("", "response: { fields: { expires_in: lifetime } }", []),
      // These changes weaken nothing and add no place.
      (
        "",
        "title: Other\nscope: [read]\nextra_headers: { X: y }\ndevice: { interval: 9s }\nheader_style: token\naccount: a",
        []
      ),
    ])
  func aWeakerDescriptorIsAskedAbout(_ before: String, _ after: String, _ new: [String]) throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text(before))
    try fixture.editOwn(Self.text(after))
    let found = try Self.new(fixture)
    #expect(found == new)
    try fixture.editOwn(Self.text(before))
    #expect(try Self.new(fixture) == [])
  }

  @Test(
    arguments: [
      (text(""), token("authentication: client_secret_post"), []),
      (text(""), token("send: query"), ["endpoints.send token: parameters"]),
      (
        text(""), text("", "\"https://provider.example/{client_secret}\""),
        ["endpoints.send token: client_secret"]
      ),
      (
        token("send: query"), token("send: query, authentication: client_secret_post"),
        ["endpoints.send token: client_secret"]
      ),
      (
        text("header_style: { query: t, parameters: { v: x } }\nextra_headers: { X: \"{k}\" }\n" + secret),
        text("header_style: { query: t, parameters: { v: \"{k}\" } }\n" + secret), ["endpoints.send requests: k"]
      ),
      (
        text("").replacing("  revocation:", with: "  identity: https://provider.example/me\n  revocation:"),
        text("").replacing(
          "  revocation:", with: "  identity: https://provider.example/me/{access_token}\n  revocation:"),
        ["endpoints.send identity: access_token"]
      ),
      (
        token("authentication: private_key_jwt"),
        token("authentication: client_secret_post").replacing(
          "/revoke", with: "/revoke\n  refresh: { url: https://provider.example/r, authentication: private_key_jwt }"),
        ["backchannel_token", "client_credentials", "device_token", "token"].map {
          "endpoints.\($0).authentication client_secret"
        }
      ),
      (
        token("parameters: { x: \"{k}\" }") + secret,
        token("parameters: { x: \"{k}\" }") + secret.replacing("none", with: "other-default"),
        ["endpoints.token.parameters.x (another secret)"]
      ),
      (
        text("").replacing("  revocation:", with: "  token_exchange: https://provider.example/x\n  revocation:"),
        text(""), ["token_exchange not exchanged"]
      ),
      (text(""), token("parameters: { x: \"{client_secret}\" }"), ["endpoints.token.parameters.x {client_secret}"]),
      (text(""), text("header_style: { query: t }"), ["header_style query"]),
      (text("header_style: { query: t }"), text(""), []),
      (
        text("assertion: { claims: { sub: x } }"), text("assertion: { claims: { sub: x, jti: null }, lifetime: 9d }"),
        ["assertion valid for more than an hour", "assertion.claims.jti null"]
      ), (text(""), text("", "https://provider.example/other"), []),
      (
        text(""), token("response: { fields: { access_token: id_token, refresh_token: r } }"),
        ["response.fields.access_token id_token", "response.fields.refresh_token r"]
      ),
      (mapped, text(""), ["response.fields.access_token access_token", "response.fields.refresh_token refresh_token"]),
      (mapped, mapped.replacing("[a, b]", with: "a"), []),
      // A separate endpoint inherits the fields of the endpoint that it replaces.
      (mapped, mapped.replacing("  revocation:", with: "  refresh: https://provider.example/r\n  revocation:"), []),
      (
        mapped,
        mapped.replacing(
          "  revocation:",
          with:
            "  refresh: { url: https://provider.example/r, response: { fields: { access_token: r } } }\n  revocation:"),
        ["response.fields.access_token r"]
      ),
      (
        text(""),
        text("").replacing(
          "https://provider.example/authorize",
          with: "{ url: https://provider.example/authorize, response: { fields: { state: [] } } }"),
        ["state optional"]
      ),
      (oauth1, oauth1 + "oauth1: { signature_method: PLAINTEXT }", ["oauth1.signature_method PLAINTEXT"]),
      (
        oauth1, oauth1 + "variables: { m: { default: PLAINTEXT } }\noauth1: { signature_method: \"{m}\" }",
        ["oauth1.signature_method PLAINTEXT"]
      ), (oauth1, oauth1 + "oauth1: { signature_method: HMAC-SHA256 }", []),
      (
        oauth1, oauth1 + "oauth1: { verifier: optional, callback_confirmed: optional }",
        ["oauth1.callback_confirmed optional", "oauth1.verifier optional"]
      ), (oauth1 + "oauth1: { verifier: optional }", oauth1, []),
    ])
  func aWeakerLegIsAskedAbout(_ before: String, _ after: String, _ new: [String]) throws {
    let fixture = try Fixture()
    try fixture.addOwn(before)
    try fixture.editOwn(after)
    let found = try Self.new(fixture)
    #expect(found == new)
  }

  /// For a key without its own rule, credmgr asks about any other value, and about its removal.
  @Test(
    arguments: [
      (
        text("assertion: { claims: { sub: x } }"), text("assertion: { claims: { sub: y } }"), ["assertion.claims.sub y"]
      ),
      (
        text("assertion: { lifetime: 60s }"),
        text("assertion: { lifetime: 60s, claims: { exp: \"9\", iat: \"1\", jti: \"null\" } }"),
        ["assertion.claims.exp 9", "assertion.claims.iat 1", "assertion.claims.jti \"null\""]
      ),
      (text("assertion: { claims: { jti: x } }"), text(""), ["assertion.claims.jti (default)"]),
      (oauth1, oauth1 + "oauth1: { transport: query }", ["oauth1.transport query"]),
      (
        oauth1 + "oauth1: { transport: \"{t}\" }\nvariables: { t: { default: header } }",
        oauth1 + "oauth1: { transport: \"{t}\" }\nvariables: { t: { default: body, help: x } }",
        ["oauth1.transport body"]
      ), (oauth1, oauth1 + "oauth1: { callback: authorization }", ["oauth1.callback authorization"]),
      (text(""), token("parameters: { audience: x }"), ["endpoints.token.parameters.audience x"]),
      (text(""), text("", "https://provider.example/token?client_id=x"), ["endpoints.token.url ?client_id=x"]),
      (text(""), token("in_query: [client_secret]"), ["endpoints.token.in_query [client_secret]"]),
      (text(""), token("rename: { code: x }"), ["endpoints.token.rename.code x"]),
      (
        text(""), token("response: { errors: { success: [invalid_grant] } }"),
        ["endpoints.token.response.errors.success [invalid_grant]"]
      ),
      (
        token("response: { keep: { dc: a } }"), token("response: { keep: { dc: { path: b, pattern: c } } }"),
        ["endpoints.token.response.keep.dc.path [b]"]
      ), (text(""), text("header_style: { token_types: [x] }"), ["header_style.token_types [x]"]),
      // A leg that is dropped, with all that it says.
      (
        text("").replacing(
          "https://provider.example/revoke", with: "{ url: https://provider.example/revoke, method: PUT }"),
        text("").replacing("  revocation: https://provider.example/revoke\n", with: ""), []
      ),
    ])
  func anotherValueIsAskedAbout(_ before: String, _ after: String, _ new: [String]) throws {
    let fixture = try Fixture()
    try fixture.addOwn(before)
    try fixture.editOwn(after)
    let found = try Self.new(fixture)
    #expect(found == new)
    try fixture.editOwn(before)
    #expect(try Self.new(fixture) == [])
  }

  /// A file of the administrator did not come with the program.
  @Test func aSystemFileReplacesAShippedOne() throws {
    let fixture = try Fixture()
    try fixture.ship(Self.text(""))
    try fixture.add(fixture.source.addition(shipped: "example", as: nil))
    func permit(_ more: String) throws {
      let text = Array("provider: example\n\(Self.text(more))".utf8)
      let library = fixture.home.library(replacing: ["/etc/credmgr/providers/example.yaml": text])
      _ = try fixture.another().permit(.refresh, library.load("example"))
    }
    #expect(throws: CredentialError.self) { try permit("pkce: none") }
    #expect(throws: CredentialError.self) { try permit("device: { interval: 9s }\nassertion: { claims: { jti: x } }") }
    _ = try fixture.another().permit(.refresh, "example")
    try permit("title: Other")
  }

  /// Shipped descriptors may change with the program, even below a user's file that extends one.
  @Test(arguments: [nil, "extends: base\n"]) func aPackageMayChangeIt(_ own: String?) throws {
    let fixture = try Fixture()
    func ship(_ more: String) throws { try fixture.ship(Self.text(more), own == nil ? "example" : "base") }
    try ship("pkce: S256")
    if let own {
      try fixture.addOwn(own)
    } else {
      try fixture.add(fixture.source.addition(shipped: "example", as: nil))
    }
    try ship("pkce: plain")
    #expect(try Self.new(fixture) == [])
    // The user's own file replaces the program's.
    try fixture.edit(Self.text("pkce: none"))
    #expect(try Self.new(fixture) == ["pkce none"])
    try fixture.edit(Self.text("pkce: plain"))
    #expect(try Self.new(fixture) == [])
  }

  @Test func aShippedFileReplacesAUserFile() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text(""))
    try fixture.ship(Self.text("pkce: none"))
    _ = try File.remove(fixture.home.userProviders + "/example.yaml")
    #expect(throws: CredentialError.self) { try fixture.another().permit(.refresh, "example") }
  }

  /// A registration of an earlier version is completed from the current descriptor.
  @Test func valuesMissingInEarlierAgreements() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text("pkce: plain"))
    var registration = try #require(try fixture.registration())
    registration.agreement?.settings = [:]
    registration.agreement?.written = nil
    registration.agreement?.ownFiles = nil
    let record = Accounts.registration("example")
    _ = try fixture.another().vault(.readWrite).apply([.store(registration.encoded, as: record)])
    #expect(try Self.new(fixture) == [])
    #expect(try fixture.registration()?.agreement?.settings["pkce"] == ["S256-hex", "S256", "plain"])
    try fixture.editOwn(Self.text("pkce: none\nassertion: { claims: { jti: x } }"))
    #expect(try Self.new(fixture) == ["pkce none", "assertion.claims.jti x"])
  }

  /// Unchanged files have the same values, so a refresh does not collect them again.
  @Test func valuesOfUnchangedFiles() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text("pkce: plain"))
    let registration = try #require(try fixture.registration())
    var marked = registration
    marked.agreement?.written = ["marked": "x"]
    for files in [registration.agreement?.files, nil] {
      marked.agreement?.files = files
      _ = try fixture.another().vault(.readWrite).apply([
        .store(marked.encoded, as: Accounts.registration("example"))
      ])
      _ = try fixture.another().permit(.refresh, "example")
      #expect(try fixture.registration() == (files == nil ? registration : marked))
    }
  }

  /// An earlier version accepted another server's issuer without asking.
  @Test(arguments: [("https://honest.example", true), ("https://provider.example/x", false)])
  func anIssuerThatAnEarlierVersionSealed(_ issuer: String, _ asks: Bool) throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text("issuer: \(issuer)")) { _ in true }
    var registration = try #require(try fixture.registration())
    registration.agreement?.ownFiles = nil
    let record = Accounts.registration("example")
    _ = try fixture.another().vault(.readWrite).apply([.store(registration.encoded, as: record)])
    _ = try fixture.another().permit(.refresh, "example")
    #expect(try fixture.registration()?.agreement?.issuer == (asks ? nil : issuer))
    if asks {
      #expect(throws: CredentialError.self) { try fixture.login() }
    } else {
      try fixture.editOwn(Self.text("issuer: https://other.example"))
      #expect(try Self.new(fixture) == ["issuer https://other.example"])
    }
  }

  /// The stored agreement still limits the clusters, so omitting them in the descriptor does not allow more.
  @Test(arguments: ["kubectl: { hosts: [k8s.example] }", "hosts: [k8s.example]"])
  func clustersMayBeDropped(_ clusters: String) throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text(clusters + "\nvariables: { v: { default: x } }\ndocker: { hosts: [d.example] }"))
    try fixture.store(Fixture.credential())
    try fixture.editOwn(Self.text(""))
    #expect(try Self.new(fixture) == [])
    let evil = Destination.server(try URI(parsing: "https://evil.example:6443"))
    #expect(throws: CredentialError.notAgreed(provider: "example", origin: "https://evil.example:6443", .kubectl)) {
      try fixture.another().handOut(nil, of: "example", by: .kubectl, to: evil)
    }
    let server = Destination.server(try URI(parsing: "https://k8s.example"))
    _ = try fixture.another().handOut(nil, of: "example", by: .kubectl, to: server)
  }
}

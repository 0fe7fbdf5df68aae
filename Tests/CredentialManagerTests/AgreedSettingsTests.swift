import Cryptography
import Descriptors
import HTTP
import OAuth
import Platform
import Store
import Testing

@testable import CredentialManager

/// What protects a login, and where each secret stands in an answer, is agreed to as places are.
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

  /// What a refresh says is new after the person's own file was edited, as key and value.
  private static func new(_ fixture: Fixture) throws -> [String] {
    do {
      _ = try fixture.another().permit(.refresh, "example")
      return []
    } catch {
      guard case .descriptorChanged(_, _, true, let places) = error else { throw error }
      return places.map { place in
        if case .setting(let key) = place.kind { "\(key) \(place.name)" } else { "\(place.kind) \(place.name)" }
      }
    }
  }

  private static func token(_ more: String) -> String { text("", "{ url: https://provider.example/token, \(more) }") }

  private static let mapped = token("response: { fields: { access_token: [a, b], refresh_token: r } }")
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
      ("nonce: true", "", ["nonce false"]), ("", "nonce: true", []),
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
      // What makes nothing weaker, and goes nowhere else.
      ("", "title: Other\nscope: [read]\nextra_headers: { X: y }\ndevice: { interval: 9s }", []),
    ])
  func aWeakerDescriptorIsAskedAbout(_ before: String, _ after: String, _ new: [String]) throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text(before))
    try fixture.editOwn(Self.text(after))
    #expect(try Self.new(fixture) == new)
    try fixture.editOwn(Self.text(before))
    #expect(try Self.new(fixture) == [])
  }

  @Test(
    arguments: [
      (text(""), token("authentication: client_secret_post"), []),
      (text(""), token("send: query"), ["endpoints.send token: parameters"]),
      (
        text(""), text("", "\"https://provider.example/{client_secret}\""),
        [
          "endpoints.parameters token: client_secret", "endpoints.send token: client_secret",
        ]
      ),
      (text(""), token("parameters: { x: \"{client_secret}\" }"), ["endpoints.parameters token: client_secret"]),
      (text(""), text("header_style: { query: t }"), ["header_style query"]),
      (text("header_style: { query: t }"), text(""), []),
      (text("assertion: { claims: { sub: x } }"), text("assertion: { claims: { sub: y } }"), []),
      (
        text("assertion: { claims: { sub: x } }"), text("assertion: { claims: { sub: x, jti: null }, lifetime: 9d }"),
        ["assertion valid for more than an hour"]
      ),
      (text(""), token("parameters: { audience: x }"), []), (text(""), text("", "https://provider.example/other"), []),
      (
        text(""), token("response: { fields: { access_token: id_token, refresh_token: r } }"),
        ["response.fields.access_token id_token", "response.fields.refresh_token r"]
      ),
      (mapped, text(""), ["response.fields.access_token access_token", "response.fields.refresh_token refresh_token"]),
      (mapped, mapped.replacing("[a, b]", with: "a"), []),
      // A leg of its own has the fields of the one that it stands for.
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
    #expect(try Self.new(fixture) == new)
  }

  /// The program's own descriptors change with it, and a person's file that lies over one of them as well.
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
    // The person's own file in the place of the program's.
    try fixture.edit(Self.text("pkce: none"))
    #expect(try Self.new(fixture) == ["pkce none"])
    try fixture.edit(Self.text("pkce: plain"))
    #expect(try Self.new(fixture) == [])
  }

  @Test func theProgramsFileInThePlaceOfAnOwnOne() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text(""))
    try fixture.ship(Self.text("pkce: none"))
    _ = try File.remove(fixture.home.userProviders + "/example.yaml")
    #expect(throws: CredentialError.self) { try fixture.another().permit(.refresh, "example") }
  }

  /// A registration that an earlier version sealed is completed from the descriptor that is there then.
  @Test func whatAnEarlierVersionDidNotNote() throws {
    let fixture = try Fixture()
    try fixture.addOwn(Self.text("pkce: plain"))
    var registration = try #require(try fixture.registration())
    registration.agreement?.settings = [:]
    registration.agreement?.ownFiles = nil
    let record = Accounts.registration("example")
    _ = try fixture.another().vault(.readWrite).apply([.store(registration.encoded, as: record)])
    #expect(try Self.new(fixture) == [])
    #expect(try fixture.registration()?.agreement?.settings["pkce"] == ["S256-hex", "S256", "plain"])
    try fixture.editOwn(Self.text("pkce: none"))
    #expect(try Self.new(fixture) == ["pkce none"])
  }

  /// It took the issuer of another server unasked.
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

  /// The sealed agreement goes on to bound the clusters, so that nothing is wider without them.
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

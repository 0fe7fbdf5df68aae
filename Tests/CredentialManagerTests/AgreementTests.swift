import Descriptors
import OAuth
import Testing

@testable import CredentialManager

/// Where a descriptor lets credentials go.
struct AgreementTests {
  private static func agreement(_ text: String, _ variables: [String: String] = [:]) throws -> Agreement {
    let text = """
      provider: example
      grant: authorization_code
      endpoints:
        authorization: https://provider.example/authorize
        token: https://provider.example/token
      \(text)

      """
    let loaded = try DescriptorLibrary(directories: [], read: { _ in nil }).load(Array(text.utf8), name: "example.yaml")
    return Agreement(
      try Client(descriptor: loaded.descriptor, identifier: "client-1", secret: nil, variables: variables))
  }

  @Test func hosts() throws {
    let agreement = try Self.agreement(
      """
      variables: { tenant: {} }
      response: { keep: [instance_url] }
      hosts: ["{tenant}.example", "{instance_url}"]
      redirect: https://elsewhere.example/callback
      git: { hosts: [git.example] }
      """, ["tenant": "one"])
    let own = ["one.example", "provider.example", "{instance_url}"]
    #expect(agreement.secretHosts == own)
    #expect(agreement.tokenHosts == (own + ["elsewhere.example", "git.example"]).sorted())
    #expect(agreement.clientIdentifier == "client-1")
    #expect(agreement.redirect == "https://elsewhere.example/callback")
    #expect(agreement.covers("git.example"))
    #expect(!agreement.covers("evil.example"))
    #expect(Agreement(agreement.value) == agreement)
  }

  @Test func claims() throws {
    let agreement = try Self.agreement(
      """
      variables: { host: {} }
      git: { hosts: ["{host}", "gist.{host}"], username: x-access-token, ignore_username: true }
      docker: { hosts: ["registry.{host}"], username: "{account}" }
      """, ["host": "Code.example"])
    let claims = try #require(agreement.claims)
    #expect(claims.map(\.helper) == [.git, .git, .docker])
    #expect(claims.map(\.host) == ["code.example", "gist.code.example", "registry.code.example"])
    #expect(claims.map(\.username) == ["x-access-token", "x-access-token", "{account}"])
    #expect(claims.map { $0.username(for: "ana") } == ["x-access-token", "x-access-token", "ana"])
    #expect(claims.map(\.ignoresUsername) == [true, true, false])
    #expect(Agreement(agreement.value) == agreement)
    #expect(try Self.agreement("git: { hosts: [git.example] }").claims?.first?.username == "oauth2")
    #expect(try Self.agreement("").claims == [])
  }

  @Test func aNewHostIsOneThatNobodyAgreedTo() throws {
    let agreed = try Self.agreement("")
    let later = try Self.agreement("git: { hosts: [git.example] }")
    #expect(agreed.newHosts(in: later, for: .token) == ["git.example"])
    // git gets a token, and never the client's secret.
    #expect(agreed.newHosts(in: later, for: .clientSecret) == [])
    #expect(later.newHosts(in: agreed, for: .token) == [])
  }
}

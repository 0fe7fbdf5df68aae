import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrText
import Testing

@testable import CredmgrSimulator

/// The simulator plays a server that trusts another issuer (RFC 8693).
struct SubjectTokenTests {
  static let text = """
    provider: test
    grant: token_exchange
    endpoints: { token: { url: https://provider.example/token, parameters: { audience: pool } } }
    hosts: [api.provider.example]
    """

  /// The project and the pool of a cloud are the user's own.
  @Test func aVariableOfTheLoginIsFreeUnlessItIsSet() throws {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let text =
      Self.text.replacing("audience: pool", with: "audience: \"{pool}\"") + "\nvariables: { pool: { at_login: true } }"
    let descriptor = try library.load(Array(text.utf8), name: "test").descriptor
    for (set, isTaken) in [(nil, true), ("own", true), ("other", false)] as [(String?, Bool)] {
      var settings = SimulationSettings()
      settings.variables = set.map { ["pool": $0] } ?? [:]
      let play = try Play(descriptor, settings, secret: nil, variables: ["pool": "own"])
      let token = try #require(play.simulation.value.state.key?.variables["subject_token"])
      let answer = try play.post(
        "/provider.example/token",
        [
          ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"), ("subject_token", token),
          ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"), ("audience", "own"),
        ])
      #expect((answer.status == 200) == isTaken)
    }
  }

  @Test func onlyTheMachinesTokenIsExchanged() throws {
    let library = DescriptorLibrary(directories: []) { _ in nil }
    let descriptor = try library.load(Array(Self.text.utf8), name: "test").descriptor
    let play = try Play(descriptor, secret: nil)
    let token = try #require(play.simulation.value.state.key?.variables["subject_token"])
    func exchange(_ changes: [String: String?] = [:]) throws -> HTTPResponse {
      var form: FormParameters = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"), ("subject_token", token),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"), ("audience", "pool"),
      ]
      for (name, value) in changes {
        form.remove(name)
        if let value { form.append(name, value) }
      }
      return try play.post("/provider.example/token", form)
    }
    let answer = try exchange()
    #expect(answer.status == 200)
    #expect(answer.text.contains(#""issued_token_type":"urn:ietf:params:oauth:token-type:access_token""#))
    for changes: [String: String?] in [
      ["subject_token": "other"], ["subject_token": nil], ["subject_token_type": nil], ["audience": "other"],
      ["grant_type": "client_credentials"], ["grant_type": nil],
    ] { #expect(try exchange(changes).status == 400, "\(changes)") }
    play.clock.advance(seconds: 86_401)
    #expect(try exchange().status == 400)
    #expect(try play.lastRefusal() == Refusal.subjectTokenExpired.sentence)
  }
}

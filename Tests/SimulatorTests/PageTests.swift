import CredmgrDescriptors
import CredmgrHTTP
import Testing

@testable import CredmgrSimulator

/// Tests the pages that a simulated provider shows to users.
struct PageTests {
  @Test func theStartPageShowsTheSimulatorAndItsRequests() throws {
    var settings = SimulationSettings()
    settings.commands = ["credmgr add-provider 'a <b>.yaml' --as x-sim", "credmgr login x-sim"]
    settings.faults = [.noExpiry]
    settings.delay = .milliseconds(250)
    let play = try Play(Descriptors.linkedIn, settings)
    let before = try play.get(Play.origin + "/")
    #expect(before.status == 200)
    for text in [
      "<h1>Simulated ", "simulation on this machine", "&#39;a &lt;b&gt;.yaml&#39; --as x-sim\ncredmgr login",
      "<li>no-expiry: no token lifetime in the answer</li>", "waits 250 ms", "No requests yet.",
    ] { #expect(before.text.contains(text)) }
    _ = try play.login()
    _ = try play.get(Play.origin + "/nowhere")
    let after = try play.get(Play.origin)
    for text in [
      "<li>logins: 1</li>", "<li>tokens: 1</li>", "<li>unknown path: no endpoint of the descriptor has this path</li>",
    ] { #expect(after.text.contains(text)) }
    #expect(try play.post("/").status == 404)
  }

  @Test func allPagesAreLikeTheReceivers() throws {
    let play = try Play(Descriptors.linkedIn)
    let consent = play.send(HTTPRequest(method: "GET", uri: try play.authorization(.authorizationCode, scope: []).uri))
    let pages = [
      try play.get(Play.origin + "/"), consent, try play.get(Play.origin + "/simulator/device"),
      try play.post("/simulator/consent", [("decision", "approve")]),
    ]
    for page in pages {
      for text in ["<main>", "name=\"viewport\"", "light-dark(", "simulation on this machine"] {
        #expect(page.text.contains(text))
      }
      #expect(page.fields["Content-Security-Policy"]?.contains("style-src 'sha256-") == true)
    }
  }
}

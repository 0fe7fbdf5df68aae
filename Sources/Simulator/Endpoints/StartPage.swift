import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

extension Simulation {
  /// The page at the simulator's address: what it is, how to use it, and the requests so far.
  var startPage: HTTPResponse {
    var body = "<p>credmgr simulates this provider from its descriptor until you stop the simulator with Ctrl-C.</p>"
    if !settings.commands.isEmpty {
      body += "\n<h2>Log in</h2>\n<p>Run these commands in a terminal:</p>\n<pre><code>"
      body += settings.commands.map(\.htmlEscaped).joined(separator: "\n") + "</code></pre>"
    }
    if let key = state.key {
      body += "\n<h2>Key</h2>\n" + Self.list(key.lines.map { "\($0.label): \($0.value)" }, orElse: "")
    }
    let faults = settings.faults.map { "\($0.rawValue): \($0.effect)" }
    let delay =
      settings.delay > .zero ? ["slow: the token endpoint waits \(Int64(settings.delay / .milliseconds(1))) ms"] : []
    body += "\n<h2>Faults</h2>\n" + Self.list(faults + delay, orElse: "None. All answers are correct.")
    let counts = SimulationLog.Event.allCases.compactMap { event in
      state.log.counts[event].map { "\(event.rawValue.exchanging("_", for: " ")): \($0)" }
    }
    body += "\n<h2>Log</h2>\n" + Self.list(counts, orElse: "No requests yet.")
    if !state.log.reasons.isEmpty {
      body += "\n<p>Refused requests, newest last:</p>\n"
      body += Self.list(state.log.reasons.map { "\($0.place): \($0.sentence)" }, orElse: "")
    }
    body += "\n<p><a href=\"\(Self.controlPrefix)log\">Log as JSON</a></p>"
    var page = HTTPResponse.page(200, title: "Simulated \(descriptor.title)", body: body)
    // The browser shows new requests without a script.
    page.fields.set("Refresh", "5")
    return page
  }

  private static func list(_ lines: [String], orElse text: String) -> String {
    lines.isEmpty ? "<p>\(text)</p>" : "<ul>" + lines.map { "<li>\($0.htmlEscaped)</li>" }.joined() + "</ul>"
  }
}

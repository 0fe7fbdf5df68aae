import Descriptors
import HTTP
import Text

extension Simulation {
  /// What a person sees at the simulator's own address: what it is, how to use it, and what it was asked.
  var startPage: HTTPResponse {
    var body = "<p>credmgr plays this provider as its descriptor says. It runs until it is interrupted.</p>"
    if !settings.commands.isEmpty {
      body += "\n<h2>Log in</h2>\n<p>Run these in a terminal:</p>\n<pre><code>"
      body += settings.commands.map(\.htmlEscaped).joined(separator: "\n") + "</code></pre>"
    }
    let faults = settings.faults.map { "\($0.rawValue): \($0.effect)" }
    let delay =
      settings.delay > .zero ? ["slow: the token endpoint waits \(Int64(settings.delay / .milliseconds(1))) ms"] : []
    body += "\n<h2>Faults</h2>\n" + Self.list(faults + delay, orElse: "None: it answers as it should.")
    let counts = SimulationLog.Event.allCases.compactMap { event in
      state.log.counts[event].map { "\(event.rawValue.exchanging("_", for: " ")): \($0)" }
    }
    body += "\n<h2>Log</h2>\n" + Self.list(counts, orElse: "Nothing was asked yet.")
    if !state.log.reasons.isEmpty {
      body += "\n<p>Refused, the last at the end:</p>\n"
      body += Self.list(state.log.reasons.map { "\($0.place): \($0.sentence)" }, orElse: "")
    }
    body += "\n<p><a href=\"\(Self.controlPrefix)log\">The same as JSON</a></p>"
    return .page(200, title: "Simulated \(descriptor.title)", body: body)
  }

  private static func list(_ lines: [String], orElse text: String) -> String {
    lines.isEmpty ? "<p>\(text)</p>" : "<ul>" + lines.map { "<li>\($0.htmlEscaped)</li>" }.joined() + "</ul>"
  }
}

import Descriptors
import HTTP
import Text

// The pages that a person sees. Nothing on them acts by itself: a person, or a scripted browser, presses a button.

extension HTTPResponse {
  /// A page; `body` is HTML already.
  static func page(_ status: Int, title: String, body: String) -> HTTPResponse {
    let html = """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <title>\(escaped(title))</title>
      <style>
      body { font: 1.1em/1.5 system-ui, sans-serif; max-width: 36em; margin: 3em auto; padding: 0 1em; }
      dt { font-weight: bold; } button, input { font: inherit; padding: .3em .8em; }
      </style>
      </head>
      <body>
      <h1>\(escaped(title))</h1>
      \(body)
      </body>
      </html>

      """
    return HTTPResponse(
      status: status,
      fields: [
        "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
      ],
      body: Array(html.utf8))
  }

  /// A redirect of the browser.
  static func redirect(to location: String) -> HTTPResponse {
    HTTPResponse(status: 302, fields: ["Location": location, "Cache-Control": "no-store"])
  }

  /// A page that says what is wrong.
  static func page(_ refusal: Refusal) -> HTTPResponse {
    page(
      400, title: "The request was refused",
      body: "<p>\(escaped(refusal.reason.sentence))</p>")
  }

  static func escaped(_ text: String) -> String {
    text.exchanging("&", for: "&amp;").exchanging("<", for: "&lt;").exchanging(">", for: "&gt;")
      .exchanging("\"", for: "&quot;")
  }
}

extension Simulation {
  /// The page that asks for consent to what is kept under `identifier`.
  func consentPage(_ identifier: String, scope: [String], redirect: String) -> HTTPResponse {
    let escaped = HTTPResponse.escaped
    let scopes = scope.isEmpty ? "none in particular" : scope.joined(separator: ", ")
    return .page(
      200, title: "Simulated \(descriptor.title)",
      body: """
        <dl>
        <dt>Program</dt><dd>\(escaped(SimulatedProvider.clientIdentifier))</dd>
        <dt>Scopes</dt><dd>\(escaped(scopes))</dd>
        <dt>Afterwards to</dt><dd>\(escaped(redirect))</dd>
        </dl>
        <form method="post" action="/simulator/consent">
        <input type="hidden" name="request" value="\(escaped(identifier))">
        \(Self.decision)
        </form>
        """)
  }

  /// The page where the code of a device is confirmed.
  func devicePage(userCode: String?) -> HTTPResponse {
    .page(
      200, title: "Simulated \(descriptor.title)",
      body: """
        <form method="post" action="/simulator/device">
        <p><label>Code
        <input type="text" name="user_code" value="\(HTTPResponse.escaped(userCode ?? ""))"></label></p>
        \(Self.decision)
        </form>
        """)
  }

  private static let decision = """
    <p><label>Log in as <input type="text" name="account" value="ada"></label></p>
    <p><button name="decision" value="approve">Approve</button>
    <button name="decision" value="deny">Deny</button></p>
    """

  /// The name that a person logs in under: 1 to 64 characters that can be shown.
  ///
  /// - Throws: `Refusal`.
  static func account(_ text: String?) throws(Refusal) -> String {
    guard let text, (1...64).contains(text.unicodeScalars.count),
      text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) })
    else { throw .request(.malformedAccount) }
    return text
  }
}

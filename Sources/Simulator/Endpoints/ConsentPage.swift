import CredmgrDescriptors
import CredmgrHTTP

// The pages for users. Nothing happens until a user, or a scripted browser, presses a button.

extension HTTPResponse {
  /// Returns a page; `body` is HTML.
  static func page(_ status: Int, title: String, body: String) -> HTTPResponse {
    let html = PageDocument.html(
      title: title, content: "<h1>\(title.htmlEscaped)</h1>\n\(body)\n<p>\(notice)</p>")
    let fields: HTTPFields = [
      "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
      "Content-Security-Policy": PageDocument.policy,
    ]
    return HTTPResponse(status: status, fields: fields, body: Array(html.utf8))
  }

  private static let notice =
    "This is a <a href=\"/\">simulation on this machine</a>. "
    + "It is not connected to the provider, and its accounts and tokens are not real."

  static func page(_ refusal: Refusal) -> HTTPResponse {
    page(400, title: "The request was refused", body: "<p>\(refusal.sentence.htmlEscaped)</p>")
  }
}

extension Simulation {
  mutating func consentPage(_ subject: ConsentSubject, scope: [String], redirect: String) -> HTTPResponse {
    let identifier = randomText("consent-")
    state.pages[identifier] = subject
    var program = Self.clientIdentifier
    if case .authorization(let terms) = subject, let client = terms.client { program = client }
    let scopes = scope.isEmpty ? "none" : scope.joined(separator: ", ")
    return form(
      "consent",
      introduction: """
        <dl>
        <dt>Program</dt><dd>\(program.htmlEscaped)</dd>
        <dt>Scopes</dt><dd>\(scopes.htmlEscaped)</dd>
        <dt>Returns to</dt><dd>\(redirect.htmlEscaped)</dd>
        </dl>
        """, input: "<input type=\"hidden\" name=\"request\" value=\"\(identifier.htmlEscaped)\">")
  }

  /// Shows the page that confirms a device code, which may be anywhere in the address, because descriptors build it in
  /// different ways.
  func devicePage(_ request: HTTPRequest) -> HTTPResponse {
    let pieces =
      request.uri.queryParameters.pairs.map(\.value) + request.uri.path.split(separator: "/").map(String.init)
    let code = pieces.first { piece in state.deviceCodes.values.contains { $0.userCode == piece } } ?? ""
    let input = "<input type=\"text\" name=\"user_code\" value=\"\(code.htmlEscaped)\">"
    return form("device", introduction: "", input: "<p><label>Code\n\(input)</label></p>")
  }

  private func form(_ name: String, introduction: String, input: String) -> HTTPResponse {
    .page(
      200, title: "Simulated \(descriptor.title)",
      body: """
        \(introduction)
        <form method="post" action="\(Self.controlPrefix)\(name)">
        \(input)
        <p><label>Log in as <input type="text" name="account" value="ada"></label></p>
        <p><button class="first" name="decision" value="approve">Approve</button>
        <button name="decision" value="deny">Deny</button></p>
        </form>
        """)
  }

  static func codePage(_ code: String) -> HTTPResponse {
    let text = "<p>Copy this code into the program that asks for it:</p><pre><code>\(code.htmlEscaped)</code></pre>"
    return .page(200, title: "Your code", body: text)
  }

  static func redirect(to uri: String, _ parameters: FormParameters, inFragment: Bool) -> HTTPResponse {
    guard let target = try? URI(parsing: uri) else { return .page(.redirectMismatch) }
    let whole = inFragment ? target.with(fragment: parameters.encoded) : target.adding(query: parameters)
    return HTTPResponse(status: 302, fields: ["Location": whole.text, "Cache-Control": "no-store"])
  }
}

/// A page at the end of a login. It is plain text and loads nothing.
package struct Page: Sendable, Equatable {
  package enum Kind: String, Sendable {
    case done
    case refused
    case ignored  // The request does not belong to the login and changed nothing.
    case relay
  }

  package var kind: Kind
  package var title: String
  package var text: String
  package var quotation: String?  // The provider's words, which the page marks as a quotation.
  package var end: String?  // The text after the quotation.

  package init(_ kind: Kind, title: String, text: String, quotation: String? = nil, end: String? = nil) {
    self.kind = kind
    self.title = title
    self.text = text
    self.quotation = quotation
    self.end = end
  }

  /// The page whose script posts the fragment. Its text is for browsers that run no scripts.
  package static let relay = Page(
    .relay, title: "One more step", text: "Scripts are disabled. Copy the address of this page into the terminal.")

  static let opened = Page(
    .ignored, title: "This page was already opened", text: "Open the address from the terminal instead.")
}

/// The HTML of a page and the header fields that it needs.
package enum PageDocument {
  static let style = """
    :root{color-scheme:light dark;--done:light-dark(#1a7f37,#4ac26b);--refused:light-dark(#c62828,#ff7b72);\
    --ignored:light-dark(#7d5700,#e3b341);--relay:light-dark(#1f5fbf,#7ab4ff);--line:light-dark(#dfe2e7,#343841)}\
    *{box-sizing:border-box}\
    body{margin:0;min-height:100vh;display:grid;place-items:center;padding:clamp(.75rem,4vw,1.5rem);\
    background:light-dark(#f4f5f7,#15171b);\
    color:light-dark(#1d2126,#e8eaed);font:1.125rem/1.55 system-ui,sans-serif}\
    main{width:100%;max-width:34rem;padding:clamp(1.25rem,6vw,2.5rem);border-radius:1rem;\
    background:light-dark(#fff,#1f2228);border:1px solid var(--line)}\
    svg{display:block;width:3rem;height:3rem;margin:0 0 1.25rem;fill:none;stroke:currentColor;stroke-width:2;\
    stroke-linecap:round;stroke-linejoin:round}\
    .done svg{color:var(--done)}.refused svg{color:var(--refused)}.ignored svg{color:var(--ignored)}\
    .relay svg{color:var(--relay)}\
    h1{margin:0 0 .75rem;font-size:clamp(1.25rem,6vw,1.75rem);line-height:1.2;overflow-wrap:anywhere}\
    h2{margin:1.75rem 0 .5rem;font-size:1.125rem}\
    p{margin:0;white-space:pre-line;overflow-wrap:anywhere}p+p{margin-top:1rem}\
    blockquote{margin:1rem 0;padding:0 0 0 1rem;border-left:.25rem solid var(--line);overflow-wrap:anywhere}\
    dl{margin:1rem 0}dt{font-weight:600}dd{margin:0 0 .5rem;overflow-wrap:anywhere}ul{margin:0;padding-left:1.25rem}\
    form{margin-top:1.25rem}label{display:block;margin-bottom:1rem}\
    input,button{font:inherit;padding:.4rem .8rem;border:1px solid var(--line);border-radius:.5rem}\
    input{display:block;width:100%;margin-top:.25rem;background:transparent;color:inherit}\
    button{margin:0 .5rem .5rem 0;cursor:pointer}button.first{background:var(--relay);color:light-dark(#fff,#15171b)}\
    pre{margin:.5rem 0;padding:.75rem;border:1px solid var(--line);border-radius:.5rem;white-space:pre-wrap;\
    overflow-wrap:anywhere;font-size:.9rem}
    """

  static let cleaningScript = "history.replaceState(null,\"\",location.pathname)"

  /// The header with which the relay page returns the value of this login.
  static let relayField = "X-Relay"

  /// Browsers do not send fragments to servers, so the page posts it. It uses `fetch`, because a browser would send a
  /// form with the origin `null`: the page sends no referrer.
  static let relayScript = """
    (async()=>{const answer=location.hash.slice(1),main=document.querySelector("main"),\
    say=(title,text)=>{document.title=main.querySelector("h1").textContent=title;\
    main.querySelector("p").textContent=text};\(cleaningScript);\
    say("One moment","Sending the answer to credmgr.");\
    try{const response=await fetch(location.pathname,{method:"POST",\
    headers:{"Content-Type":"application/x-www-form-urlencoded","\(relayField)":main.dataset.relay},body:answer});\
    const page=new DOMParser().parseFromString(await response.text(),"text/html"),said=page.querySelector("main");\
    document.title=page.title;main.className=said.className;main.replaceChildren(...said.childNodes)}\
    catch{main.className="refused";\
    say("The login has ended","credmgr no longer waits for an answer. Start again in the terminal.")}})()
    """

  // The hashes in the Content-Security-Policy (CSP level 3, section 6.7.2.2). A test compares them with the content.
  static let styleHash = "sha256-cF23cGrWXCUIXAoE7XAxAQU8TUKgXJPxEQHL0OQ9eb0="
  static let cleaningScriptHash = "sha256-8A+3er73YJf04rRHGhbZwZQACPiiipi9EPduIeAAIDk="
  static let relayScriptHash = "sha256-T0VkvhrR3nHS2eUUBlZAyL57X0nstWHxayLSznDHB74="

  /// `relay` is the value for the page that posts a fragment; `nil` for all other pages.
  static func response(status: Int, _ page: Page, relay: String? = nil) -> [UInt8] {
    let isRelay = relay != nil
    var content = sign(page.kind) + "\n<h1>\(page.title.htmlEscaped)</h1><p>\(page.text.htmlEscaped)</p>"
    if let quotation = page.quotation {
      content += "<blockquote><p>\(quotation.htmlEscaped)</p></blockquote>"
    }
    if let end = page.end { content += "<p>\(end.htmlEscaped)</p>" }
    let value = relay.map { " data-relay=\"\($0.htmlEscaped)\"" } ?? ""
    let body = html(
      title: page.title, attributes: "class=\"\(page.kind.rawValue)\"\(value) aria-live=\"polite\"", content: content,
      script: isRelay ? relayScript : cleaningScript)
    let policy =
      policy + "; form-action 'none'; "
      + (isRelay ? "script-src '\(relayScriptHash)'; connect-src 'self'" : "script-src '\(cleaningScriptHash)'")
    return bytes(status, ["Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy], body: body)
  }

  /// The content that every page may load: its own style and an empty icon.
  package static let policy =
    "default-src 'none'; style-src '\(styleHash)'; img-src data:; base-uri 'none'; frame-ancestors 'none'"

  /// Returns a page around `content`, which is HTML.
  package static func html(
    title: String, attributes: String = "", content: String, script: String? = nil
  ) -> String {
    """
    <!doctype html>
    <html lang="en"><head><meta charset="utf-8"><title>\(title.htmlEscaped)</title>
    <meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">
    <style>\(style)</style></head>
    <body><main\(attributes.isEmpty ? "" : " ")\(attributes)>\(content)</main>
    \(script.map { "<script>\($0)</script>" } ?? "")</body></html>

    """
  }

  private static func sign(_ kind: Page.Kind) -> String {
    let path =
      switch kind {
      case .done: "M8 12.5l2.8 2.8L16 9.5"
      case .refused: "M9 9l6 6M15 9l-6 6"
      case .ignored: "M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 16.5v.01"
      case .relay: "M8 12v.01M12 12v.01M16 12v.01"
      }
    return "<svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"10\"/>"
      + "<path d=\"\(path)\"/></svg>"
  }

  static func refusal(status: Int) -> [UInt8] {
    var fields: HTTPFields = ["Content-Type": "text/plain; charset=utf-8"]
    if status == 405 { fields.append("Allow", "GET, POST") }
    return bytes(status, fields, body: "\(status) \(HTTPResponse.phrase(status))\n")
  }

  static func redirection(to location: String) -> [UInt8] { bytes(302, ["Location": location], body: "") }

  private static func bytes(_ status: Int, _ fields: HTTPFields, body: String) -> [UInt8] {
    let common: HTTPFields = [
      "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
    ]
    let fields = HTTPFields(Array(fields) + Array(common))
    return HTTPResponse(status: status, fields: fields, body: Array(body.utf8)).bytes()
  }
}

extension String {
  package var htmlEscaped: String {
    let entities: [Unicode.Scalar: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;"]
    return unicodeScalars.map { entities[$0] ?? String($0) }.joined()
  }
}

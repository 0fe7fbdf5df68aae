/// What the person's browser shows at the end of a login: plain text in a plain page, which loads nothing from anywhere.
public struct Page: Sendable, Equatable {
  /// The heading.
  public var title: String
  /// What follows; a line feed begins a new line.
  public var text: String

  /// Makes a page of plain texts; they are escaped when they are shown.
  public init(title: String, text: String) {
    self.title = title
    self.text = text
  }

  /// Shown for the moment in which a fragment is handed over.
  public static let relay = Page(title: "One moment", text: "The answer is being handed over.")
}

/// The HTML of a page and the header fields that it needs.
enum PageDocument {
  /// Follows the light or dark setting of the browser.
  static let style = """
    :root{color-scheme:light dark}\
    body{margin:0;min-height:100vh;display:grid;place-items:center;background:Canvas;color:CanvasText;\
    font:1.125rem/1.5 system-ui,sans-serif}\
    main{max-width:32rem;padding:2rem;border-top:.25rem solid #2f6fdd}\
    h1{margin:0 0 1rem;font-size:1.75rem;line-height:1.2}\
    p{margin:0;white-space:pre-line;overflow-wrap:anywhere}
    """

  /// The code goes out of the address bar and of the history.
  static let cleaningScript = "history.replaceState(null,\"\",location.pathname)"

  /// A fragment never reaches a server, so the page itself posts it. By fetch and not by a form: of a form the browser would
  /// send the origin `null`, as the page sends no referrer.
  static let relayScript = """
    (async()=>{const answer=location.hash.slice(1);\(cleaningScript);const place=document.querySelector("main");\
    try{const response=await fetch(location.pathname,{method:"POST",\
    headers:{"Content-Type":"application/x-www-form-urlencoded"},body:answer});\
    const page=new DOMParser().parseFromString(await response.text(),"text/html");\
    document.title=page.title;place.replaceChildren(...page.querySelector("main").childNodes)}\
    catch(error){place.querySelector("p").textContent=String(error)}})()
    """

  // The hashes that a Content-Security-Policy names (CSP level 3, section 6.7.2.2). A test computes them anew.
  static let styleHash = "sha256-5HLv3wAGdLMWGk5BKlX0DhZifoI0We0Rfu1nLRRaVVo="
  static let cleaningScriptHash = "sha256-8A+3er73YJf04rRHGhbZwZQACPiiipi9EPduIeAAIDk="
  static let relayScriptHash = "sha256-h6zdWcrbZjujtr2KHCUqRVdl3o5ITJyypOmilWUkINY="

  /// A whole answer, head and body.
  static func response(status: Int, _ page: Page, isRelay: Bool = false) -> [UInt8] {
    let script = isRelay ? relayScript : cleaningScript
    let body = """
      <!doctype html>
      <html lang="en"><head><meta charset="utf-8"><title>\(escaped(page.title))</title>
      <meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
      <style>\(style)</style></head>
      <body><main><h1>\(escaped(page.title))</h1><p>\(escaped(page.text))</p></main>
      <script>\(script)</script></body></html>

      """
    let policy =
      "default-src 'none'; style-src '\(styleHash)'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
      + (isRelay
        ? "script-src '\(relayScriptHash)'; connect-src 'self'" : "script-src '\(cleaningScriptHash)'")
    return head(
      status, [("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", policy)], body)
  }

  /// An answer to what is not for us: the status alone.
  static func refusal(status: Int) -> [UInt8] {
    let allow = status == 405 ? [("Allow", "GET, POST")] : []
    return head(
      status, [("Content-Type", "text/plain; charset=utf-8")] + allow, "\(status) \(phrase(status))\n")
  }

  private static func head(_ status: Int, _ fields: [(String, String)], _ body: String) -> [UInt8] {
    let always = [
      ("Content-Length", String(body.utf8.count)), ("Cache-Control", "no-store"),
      ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"), ("Connection", "close"),
    ]
    let lines = (fields + always).map { "\($0.0): \($0.1)\r\n" }.joined()
    return Array("HTTP/1.1 \(status) \(phrase(status))\r\n\(lines)\r\n\(body)".utf8)
  }

  /// RFC 9110, section 15.
  private static func phrase(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 408: "Request Timeout"
    case 411: "Length Required"
    case 413: "Content Too Large"
    case 415: "Unsupported Media Type"
    case 421: "Misdirected Request"
    case 431: "Request Header Fields Too Large"
    default: "Bad Request"
    }
  }

  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

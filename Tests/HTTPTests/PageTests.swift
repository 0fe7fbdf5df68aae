import CredmgrPlatform
import Testing

@testable import CredmgrHTTP

struct PageTests {
  @Test(arguments: [
    (PageDocument.style, PageDocument.styleHash), (PageDocument.cleaningScript, PageDocument.cleaningScriptHash),
    (PageDocument.relayScript, PageDocument.relayScriptHash),
  ]) func hashesAreThoseOfTheContents(content: String, hash: String) throws {
    let digest = try Launcher.run("openssl", ["dgst", "-sha256", "-binary"], input: Array(content.utf8)).output
    let text = try Launcher.run("base64", [], input: digest).output
    #expect(hash == "sha256-" + String(decoding: text.dropLast(), as: UTF8.self))
  }

  @Test(arguments: [false, true]) func thePolicyAllowsOnlyThePagesContent(isRelay: Bool) {
    let page = Page(.done, title: "A <b>", text: "x & \"y\" 'z'\nnext</p><script>")
    let text = String(decoding: PageDocument.response(status: 200, page, relay: isRelay ? "value" : nil), as: UTF8.self)
    #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(text.contains("<h1>A &lt;b&gt;</h1>"))
    #expect(text.contains("<p>x &amp; &quot;y&quot; &#39;z&#39;\nnext&lt;/p&gt;&lt;script&gt;</p>"))
    #expect(text.contains("<style>\(PageDocument.style)</style>"))
    let script = isRelay ? PageDocument.relayScript : PageDocument.cleaningScript
    #expect(text.contains("<script>\(script)</script>"))
    #expect(text.contains("script-src '\(isRelay ? PageDocument.relayScriptHash : PageDocument.cleaningScriptHash)'"))
    for field in [
      "default-src 'none'; style-src '\(PageDocument.styleHash)'", "Referrer-Policy: no-referrer\r\n",
      "Cache-Control: no-store\r\n", "frame-ancestors 'none'", "X-Content-Type-Options: nosniff\r\n",
    ] { #expect(text.contains(field)) }
    #expect(!text.contains("src=") && !text.contains("http:") && !text.contains("https:"))
  }

  /// The provider's text cannot pass for credmgr's own.
  @Test func providerTextIsAQuotation() {
    let page = Page(.refused, title: "No", text: "It says:", quotation: "<b>Call us</b>", end: "Close it.")
    let text = String(decoding: PageDocument.response(status: 200, page), as: UTF8.self)
    #expect(
      text.contains(
        "<p>It says:</p><blockquote><p>&lt;b&gt;Call us&lt;/b&gt;</p></blockquote><p>Close it.</p></main>"))
  }

  /// Without scripts, the page says what to do; with scripts, it says what happens.
  @Test func theRelayPageNeverContradictsItself() {
    let text = String(decoding: PageDocument.response(status: 200, .relay, relay: "v"), as: UTF8.self)
    let page = text.prefix(upTo: text.firstRange(of: "<script>")?.lowerBound ?? text.startIndex)
    #expect(page.contains("Scripts are disabled") && !page.contains("One moment") && !page.contains("noscript"))
    #expect(text.contains("say(\"The login has ended\""))
  }

  @Test func lengthIsThatOfTheBody() throws {
    let text = String(decoding: PageDocument.response(status: 400, Page(.refused, title: "é", text: "")), as: UTF8.self)
    let end = try #require(text.firstRange(of: "\r\n\r\n"))
    let body = text[end.upperBound...]
    #expect(text.contains("Content-Length: \(body.utf8.count)\r\n"))
  }
}

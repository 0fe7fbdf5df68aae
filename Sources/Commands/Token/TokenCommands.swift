import CredentialManager
import HTTP
import JSON
import Platform
import Text

extension Command {
  static let token = Command(
    name: "token", operands: "ID", operandCount: 1...1,
    summary: "Print a valid access token, refreshed first if it must be",
    options: [
      account,
      Option("--min-validity", value: "DURATION", "how long the token has to live; otherwise as the descriptor says"),
      Option("--refresh", "refresh it in any case"),
      Option("--timeout", value: "DURATION", "how long to wait for another process that refreshes it; otherwise 1m"),
      json,
    ],
    examples: [
      ("export GITHUB_TOKEN=$(credmgr token github)", "for a program that wants one there"),
      ("credmgr token github --min-validity 30m", "for something that takes half an hour"),
    ]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    let wanted = try context.duration("--min-validity", invocation)
    let policy = RefreshPolicy(
      validity: wanted, always: invocation.has("--refresh"),
      lockTimeout: try context.duration("--timeout", invocation) ?? .seconds(60))
    let account = try manager(context.source.handOut(name, of: provider, by: .token, to: .caller, policy))
    let credential = account.credential
    context.noteHandOut(account, by: "token")
    // It is the best that there is: who cannot do with it reads when it expires.
    if let wanted, let lifetime = credential.expiresAt.map({ $0 - credential.obtainedAt }), lifetime < wanted {
      let lives = "lives for \(duration(max(lifetime, .zero))) only, and not for \(exactDuration(wanted))"
      context.tell("warning: a token of \"\(provider)\" \(lives)")
    }
    try context.output(
      credential.accessToken.reveal() + "\n",
      orJSON: [
        "provider": .string(provider), "account": .string(account.name),
        "access_token": .string(credential.accessToken.reveal()), "token_type": .optional(credential.tokenType),
        "expires_at": .optional(credential.expiresAt?.text),
        "scope": .array((credential.grantedScope ?? credential.requestedScope).map(JSONValue.string)),
        "kept": .object(credential.kept.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }),
      ])
  }

  static let header = Command(
    name: "header", operands: "ID", operandCount: 1...1, summary: "Print the header lines for a request",
    options: [
      account, Option("--url", value: "URL", "the request's URL; needed where requests are signed"),
      Option("--method", short: "-X", value: "METHOD", "the request's method; otherwise GET"),
      Option("--data-file", value: "FILE", "the request's form body, which is signed too; \"-\" is standard input"),
      json,
    ],
    examples: [
      ("curl -H @<(credmgr header github) https://api.github.com/user", "no token in the arguments"),
      ("credmgr header discogs --url https://api.discogs.com/oauth/identity", "a signed request"),
    ]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    var request: HTTPRequest?
    if let url = invocation.value("--url") {
      request = HTTPRequest(method: invocation.value("--method") ?? "GET", uri: try uri(url))
    } else if invocation.has("--method") || invocation.has("--data-file") {
      throw .usage("\"--method\" and \"--data-file\" need \"--url\"")
    }
    // Before the body is read: what needs a network is handed over with standard input as it was.
    let account = try manager(context.source.handOut(name, of: provider, by: .header, to: .caller))
    if let file = invocation.value("--data-file") {
      request?.fields.set("Content-Type", "application/x-www-form-urlencoded")
      request?.body = try context.file(file, limit: 64 << 20)
    }
    let given = Set(request?.fields.map { $0.name.lowercased() } ?? [])
    let fields: HTTPFields
    do throws(CredentialError) {
      fields = try context.source.headerFields(name, of: provider, for: request)
    } catch .networkNeeded {
      // A signature with a private key: standard input may have been read by now.
      throw .handOver(input: invocation.value("--data-file") == "-" ? request?.body : nil)
    } catch { throw CommandError(error) }
    context.noteHandOut(account, by: "header")
    let shown = fields.filter { !given.contains($0.name.lowercased()) }
    try context.output(
      shown.map { "\($0.name): \($0.value)\n" }.joined(),
      orJSON: .object(shown.map { .init($0.name, .string($0.value)) }))
  }

  static func uri(_ text: String) throws(CommandError) -> URI {
    do { return try URI(parsing: text) } catch {
      throw .failed(error.message().with(hints: ["URLs are written https://HOST/PATH"]))
    }
  }

  static let request = Command(
    name: "request", operands: "ID URL", operandCount: 2...2, summary: "Make an authenticated request",
    options: [
      account, Option("--method", short: "-X", value: "METHOD", "the method; otherwise GET, or POST with a body"),
      Option("--header", short: "-H", value: "HEADER", repeats: true, "a header, as \"Name: value\""),
      Option(
        "--data", short: "-d", value: "DATA", "the body; \"@FILE\" reads it from a file, \"@-\" from standard input"),
      Option("--include", short: "-i", "print status and headers of the answer too"),
    ],
    notes: [
      "Refreshes the token and repeats the request once when the provider answers 401.",
      "A GET or HEAD that is redirected within its origin goes on there; no other redirect is followed.",
      "Exit status 4 when the answer's status is 300 or above, but for 304, and 5 for 429 and from 500 on; the body is "
        + "printed all the same.",
      "Bodies pass through in pieces. What comes from a pipe is written to a file in TMPDIR (/var/tmp) first, which "
        + "has no name: its length is sent with it, and it can be sent again.",
    ],
    examples: [
      ("credmgr request github https://api.github.com/user", "a GET"),
      ("credmgr request github https://api.github.com/gists -d @gist.json", "a POST with a file"),
    ], needsNetwork: true
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    var request = HTTPRequest(method: "GET", uri: try uri(invocation.operands[1]).with(fragment: nil))
    let progress = TransferProgress(context.clock)
    defer { progress.end() }
    var body: RequestBody?
    for header in invocation.all("--header") {
      guard let colon = header.firstIndex(of: ":") else {
        // It may be a value alone.
        throw .usage("the value of \"--header\" is no header", hint: "headers are written \"Name: value\"")
      }
      let value = header[header.index(after: colon)...].drop { $0 == " " }
      request.fields.append(String(header[..<colon]), String(value))
    }
    if let data = invocation.value("--data") {
      request.method = "POST"
      if data.hasPrefix("@") {
        let file = try system(data == "@-" ? FileBody(standardInput: ()) : FileBody(String(data.dropFirst())))
        body = RequestBody(file, progress)
      } else {
        request.body = Array(data.utf8)
      }
      if request.fields["Content-Type"] == nil {
        request.fields.set("Content-Type", "application/x-www-form-urlencoded")
      }
    }
    if let method = invocation.value("--method") { request.method = method.uppercased() }
    let name = try context.account(invocation, of: provider)
    // A terminal would act on what the provider writes; another program gets it as it is.
    var filter = Terminal.isTerminal(1) ? TerminalFilter() : nil
    var failure: CommandError?
    let head = try manager(
      context.source.send(request, body: body, account: name, of: provider, limits: .unlimited) { part in
        do throws(CommandError) {
          switch part {
          case .head(let head):
            // With a content coding, the length is not that of what is written.
            let isCoded = head.fields["Content-Encoding"] != nil
            progress.begin(of: isCoded ? nil : head.fields["Content-Length"].flatMap { Int64($0) })
            let fields = head.fields.map { "\($0.name): \($0.value)\n" }.joined()
            if invocation.has("--include") {
              let shown = filter?.shown(fields.utf8).map { $0 } ?? Array(fields.utf8)
              try system(Terminal.writeAll(1, "HTTP \(head.status)\n".utf8 + shown + [UInt8(ascii: "\n")]))
            }
          case .body(let bytes):
            progress.advance("received", by: bytes.count)
            try system(Terminal.writeAll(1, filter?.shown(bytes) ?? bytes))
          }
          return true
        } catch {
          failure = error
          return false
        }
      })
    if let failure { throw failure }
    if let rest = filter?.end() { try system(Terminal.writeAll(1, rest)) }
    if head.status >= 300, head.status != 304 { throw .failed(message(head, of: provider, account: name, context)) }
  }

  private static func message(
    _ head: HTTPResponse, of provider: String, account: String?, _ context: Context
  ) -> Message {
    if head.status < 400 {
      let target = head.fields["Location"].flatMap { try? URI(parsing: $0) }.map { " to \"\($0.origin)\"" } ?? ""
      return .refused("\"\(provider)\" redirects\(target) (status \(head.status)), which is not followed")
        .hint("\"--include\" shows the whole address")
    }
    let text = "\"\(provider)\" answered with the status \(head.status)"
    if head.status == 429 || head.status >= 500 {
      return .unreachable(text).hint(head.retryAfter.map { "try again in \(patience($0))" } ?? "try again later")
    }
    guard head.status == 401 else { return .refused(text) }
    let current = try? context.source.accountsIfAny()?.resolve(account, provider: provider)
    let canRefresh = current?.isRefreshable(at: context.clock.now()) ?? false
    let command = canRefresh ? "validate" : "login"
    return .refused(text).hint("\(credmgr: [command, provider] + accountOption(account))")
  }
}

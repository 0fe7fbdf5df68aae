import CredmgrCredentialManager
import CredmgrHTTP
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Command {
  static let token = Command(
    name: "token", operands: "ID", operandCount: 1...1,
    summary: "Print an access token, refreshing it if needed",
    options: [
      account,
      Option("--min-validity", value: "DURATION", "minimum time until expiry (default: set by the descriptor)"),
      Option("--refresh", "always refresh the token first"),
      Option("--timeout", value: "DURATION", "time to wait for another process that refreshes the token (default: 1m)"),
      Option("--field", value: "NAME", "print another value of the account, such as a user name"), json,
    ],
    examples: [
      ("credmgr token twilio --field username", "Print the user name that belongs to a password"),
      ("export GITHUB_TOKEN=$(credmgr token github)", "Set a token in the environment"),
      ("credmgr token github --min-validity 30m", "Get a token that is valid for at least 30 minutes"),
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
    // This is the best token available; callers with stricter needs can read its expiry.
    if let wanted, let lifetime = credential.expiresAt.map({ $0 - credential.obtainedAt }), lifetime < wanted {
      let (actual, wish) = (duration(max(lifetime, .zero)), exactDuration(wanted))
      context.tell("warning: \(context.titled(provider)) tokens are valid for only \(actual), not \(wish)")
    }
    let isBearer = credential.tokenType?.lowercased() == "bearer"
    if !invocation.has("--field"), !isBearer, try !manager(context.source.isUsableAlone(account)) {
      context.tell("warning: requests to \(context.titled(provider)) need a signature in addition to the token")
    }
    if let field = invocation.value("--field") {
      let value = String(decoding: try CredentialFields(of: account, by: .token, context).value(field), as: UTF8.self)
      return try context.output(
        value + "\n",
        orJSON: [
          "provider": .string(provider), "account": .string(account.name), "field": .string(field),
          "value": .string(value),
        ])
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
    name: "header", operands: "ID", operandCount: 1...1, summary: "Print the authentication headers for a request",
    options: [
      account, Option("--url", value: "URL", "URL of the request; required for signed requests"),
      Option("--method", short: "-X", value: "METHOD", "method of the request (default: GET)"),
      Option("--data-file", value: "FILE", "form body of the request, to be signed; \"-\" reads standard input"),
      json,
    ],
    examples: [
      ("curl -H @<(credmgr header github) https://api.github.com/user", "Use curl without a token in the arguments"),
      ("credmgr header discogs --url https://api.discogs.com/oauth/identity", "Sign a request"),
    ]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    var request: HTTPRequest?
    if let url = invocation.value("--url") {
      request = HTTPRequest(method: invocation.value("--method") ?? "GET", uri: try uri(url))
    } else if invocation.has("--method") || invocation.has("--data-file") {
      throw .usage("\"--method\" and \"--data-file\" require \"--url\"")
    }
    // Do this before reading the body, so that the program with networking can still read standard input.
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
      // A signature with a private key requires the other program, and standard input may already be read.
      throw .handOver(input: invocation.value("--data-file") == "-" ? request?.body : nil)
    } catch { throw CommandError(error) }
    context.noteHandOut(account, by: "header")
    let shown = fields.filter { !given.contains($0.name.lowercased()) }
    try context.output(
      shown.map { "\($0.name): \($0.value)\n" }.joined(),
      orJSON: ["headers": .object(shown.map { .init($0.name, .string($0.value)) })])
  }

  static func uri(_ text: String) throws(CommandError) -> URI {
    do { return try URI(parsing: text) } catch {
      throw .failed(error.message().with(hints: ["use a form like https://HOST/PATH"]))
    }
  }

  static let request = Command(
    name: "request", operands: "ID URL", operandCount: 2...2, summary: "Send an authenticated request",
    options: [
      account, Option("--method", short: "-X", value: "METHOD", "method (default: GET, or POST with a body)"),
      Option("--header", short: "-H", value: "HEADER", repeats: true, "add a header, written \"Name: value\""),
      Option(
        "--data", short: "-d", value: "DATA", "body; \"@FILE\" reads a file and \"@-\" standard input"),
      Option("--include", short: "-i", "also print the status and headers of the answer"),
    ],
    notes: [
      "If the provider answers 401, credmgr refreshes the token and repeats the request once.",
      "credmgr follows redirects of GET and HEAD within the same origin, and no others.",
      "credmgr always prints the body. The exit status is 4 if the answer has status 300 or above, except 304. It is 5 "
        + "for status 429 and for 500 or above.",
      "credmgr streams bodies of any size. It first copies piped input to an unnamed temporary file in TMPDIR "
        + "(default: /var/tmp), so that it can send the length and repeat the request.",
    ],
    examples: [
      ("credmgr request github https://api.github.com/user", "Fetch the signed-in user"),
      ("credmgr request github https://api.github.com/gists -d @gist.json", "Post a file"),
    ], needsNetwork: true
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    var request = HTTPRequest(method: "GET", uri: try uri(invocation.operands[1]).with(fragment: nil))
    let progress = TransferProgress(context.clock)
    defer { progress.end() }
    var body: RequestBody?
    for header in invocation.all("--header") {
      guard let colon = header.firstIndex(of: ":") else {
        // Do not repeat the text, because it may be a value without a name.
        throw .usage("invalid value of \"--header\"", hint: "use the form \"Name: value\"")
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
    // A terminal would interpret control characters from the provider; other programs get the original bytes.
    var filter = Terminal.isTerminal(1) ? TerminalFilter() : nil
    var failure: CommandError?
    var last: UInt8?
    let head = try manager(
      context.source.send(request, body: body, account: name, of: provider, limits: .unlimited) { part in
        do throws(CommandError) {
          switch part {
          case .head(let head):
            // With a content coding, this is not the length of the output.
            let isCoded = head.fields["Content-Encoding"] != nil
            progress.begin(of: isCoded ? nil : head.fields["Content-Length"].flatMap { Int64($0) })
            let fields = head.fields.map { "\($0.name): \($0.value)\n" }.joined()
            if invocation.has("--include") {
              let shown = filter?.shown(fields.utf8).map { $0 } ?? Array(fields.utf8)
              try system(Terminal.writeAll(1, "HTTP \(head.status)\n".utf8 + shown + [UInt8(ascii: "\n")]))
            }
          case .body(let bytes):
            progress.advance("received", by: bytes.count)
            last = bytes.last ?? last
            try system(Terminal.writeAll(1, filter?.shown(bytes) ?? bytes))
          }
          return true
        } catch {
          failure = error
          return false
        }
      })
    if let failure { throw failure }
    if let rest = filter?.end() {
      // At a terminal, the prompt starts on a line of its own.
      try system(
        Terminal.writeAll(1, rest + (last.map { $0 == UInt8(ascii: "\n") } ?? true ? [] : [UInt8(ascii: "\n")])))
    }
    if head.status >= 300, head.status != 304 { throw .failed(message(head, of: provider, account: name, context)) }
  }

  private static func message(
    _ head: HTTPResponse, of provider: String, account: String?, _ context: Context
  ) -> Message {
    if head.status < 400 {
      let target = head.fields["Location"].flatMap { try? URI(parsing: $0) }.map { " to \"\($0.origin)\"" } ?? ""
      return .refused(
        "\(context.titled(provider)) redirects\(target) (status \(head.status)); credmgr did not follow it"
      )
      .hint("\(add: "--include") to see the whole address")
    }
    let text = "\(context.titled(provider)) answered with status \(head.status)"
    if head.status == 429 || head.status >= 500 {
      return .unreachable(text).hint(head.retryAfter.map { "try again in \(patience($0))" } ?? "try again later")
    }
    let current = try? context.source.accountsIfAny()?.resolve(account, provider: provider)
    if let current, let descriptor = (try? context.home.library.load(provider))?.descriptor,
      let required = RequiredScope(head, of: descriptor, granted: current.credential.grantedScope ?? [])
    {
      let (words, remedy) = context.missingScope(required, of: current)
      return Message(text + ": " + words, hints: [remedy], status: .refused)
    }
    guard head.status == 401 else { return .refused(text) }
    let canRefresh = current?.isRefreshable(at: context.clock.now()) ?? false
    let command = canRefresh ? "validate" : "login"
    return .refused(text).hint("\(credmgr: [command, provider] + accountOption(account))")
  }
}

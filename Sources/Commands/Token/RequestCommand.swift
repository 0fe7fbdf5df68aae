import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Command {
  static let request = Command(
    name: "request", operands: "ID URL", operandCount: 2...2, summary: "Send an authenticated request",
    options: [
      account, field, Option("--method", short: "-X", value: "METHOD", "method (default: GET, or POST with a body)"),
      Option("--header", short: "-H", value: "HEADER", repeats: true, "add a header, written \"Name: value\""),
      Option(
        "--data", short: "-d", value: "DATA", "body; \"@FILE\" reads a file and \"@-\" standard input"),
      Option("--include", short: "-i", "also print the status and headers of the answer"),
      Option("--json", "print the status, the headers and the body as JSON"),
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
    ]
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
    if context.isJSON, invocation.has("--include") { throw .exclusive(["--include", "--json"]) }
    var whole: [UInt8] = []
    if let method = invocation.value("--method") { request.method = method.uppercased() }
    let name = try context.account(invocation, of: provider)
    // A terminal would interpret control characters from the provider; other programs get the original bytes.
    var filter = Terminal.isTerminal(1) ? TerminalFilter() : nil
    var failure: CommandError?
    var last: UInt8?
    let head = try manager(
      context.source.send(
        request, body: body, account: name, of: provider, token: invocation.value("--field"),
        limits: .unlimited
      ) { part in
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
            if context.isJSON {
              // JSON needs the whole body in memory.
              if whole.count + bytes.count > 1 << 26 {
                throw .usage("the answer is longer than 64 MiB", hint: "leave out \"--json\"")
              }
              whole += bytes
              return true
            }
            try system(Terminal.writeAll(1, filter?.shown(bytes) ?? bytes))
          }
          return true
        } catch {
          failure = error
          return false
        }
      })
    if let failure { throw failure }
    if context.isJSON {
      try context.output(json(head, whole, of: provider))
    } else if let rest = filter?.end() {
      // At a terminal, the prompt starts on a line of its own.
      try system(
        Terminal.writeAll(1, rest + (last.map { $0 == UInt8(ascii: "\n") } ?? true ? [] : [UInt8(ascii: "\n")])))
    }
    if head.status >= 300, head.status != 304 { throw .failed(message(head, of: provider, account: name, context)) }
  }

  private static func json(_ head: HTTPResponse, _ body: [UInt8], of provider: String) -> JSONValue {
    let text = String(validating: body, as: UTF8.self)
    return [
      "provider": .string(provider), "status": .integer(Int64(head.status)),
      "headers": .array(head.fields.map { ["name": .string($0.name), "value": .string($0.value)] }),
      "body": .optional(text), "body_base64": .optional(text == nil ? Base64.encode(body) : nil),
    ]
  }

  private static func message(
    _ head: HTTPResponse, of provider: String, account: String?, _ context: Context
  ) -> Message {
    if head.status < 400 {
      let target = head.fields["Location"].flatMap { try? URI(parsing: $0) }.map { " to \"\($0.origin)\"" } ?? ""
      let refusal = Message.refused(
        "\(context.titled(provider)) redirects\(target) (status \(head.status)); credmgr did not follow it")
      // The JSON contains the headers.
      return context.isJSON ? refusal : refusal.hint("\(add: "--include") to see the whole address")
    }
    let text = "\(context.titled(provider)) answered with status \(head.status)"
    if head.status == 429 || head.status >= 500 {
      return .unreachable(text).hint(head.retryAfter.map { "try again in \(patience($0))" } ?? "try again later")
    }
    let current = try? context.source.accountsIfAny()?.resolve(account, provider: provider)
    if let required = RequiredAuthentication(head) {
      // Without the name, a provider that does not tell it would get another account.
      return .refused(text + ": " + required.sentence).hint(
        "\(credmgr: ["login", provider] + accountOption(current?.name ?? account) + required.loginOptions)")
    }
    let descriptor = (try? context.home.library.load(provider))?.descriptor
    if let current, let descriptor,
      let required = RequiredScope(head, of: descriptor, granted: current.credential.grantedScope ?? [])
    {
      let (words, remedy) = context.missingScope(required, of: current)
      return Message(text + ": " + words, hints: [remedy], status: .refused)
    }
    guard head.status == 401 else { return .refused(text) }
    if let current, head.concernsProof(of: current.credential) {
      return proofMessage(head, after: text, of: current, context)
    }
    // A login does not help if the server has not seen the password.
    if let current, !current.credential.isRejected, case .digest? = descriptor?.binding(of: current.credential.grant) {
      return .refused(text + " and without a challenge that credmgr can answer")
    }
    let canRefresh = current?.isRefreshable(at: context.clock.now()) ?? false
    let command = canRefresh ? "validate" : "login"
    return .refused(text).hint("\(credmgr: [command, provider] + accountOption(account))")
  }

  /// Returns the message for a refusal that concerns the proof of the account's key (RFC 9449, 7.1 and 9).
  private static func proofMessage(
    _ head: HTTPResponse, after text: String, of account: Account, _ context: Context
  ) -> Message {
    let provider = account.provider
    guard account.credential.proofKey == nil else {
      return .refused(text + ": it refuses the proof of the account's key" + (head.proofFault.map { " (\($0))" } ?? ""))
        .hint(proofHint(wantsNonce: head.demandsNonce))
    }
    let isDescribed = (try? context.home.library.load(provider))?.descriptor.tokenBinding.needsKey == true
    return CredentialError.proofNeeded(provider: provider, account: account.name, isDescribed: isDescribed).message
  }

  /// Returns what to do about a refused proof. Its time is right if the server only wants another nonce.
  static func proofHint(wantsNonce: Bool) -> Remedy {
    wantsNonce
      ? "\(add: "--trace") to see the requests and answers" : "\(credmgr: "doctor") to check the clock of this machine"
  }

  static func uri(_ text: String) throws(CommandError) -> URI {
    do { return try URI(parsing: text) } catch {
      throw .failed(error.message().with(hints: ["use a form like https://HOST/PATH"]))
    }
  }
}

extension RequiredAuthentication {
  fileprivate var sentence: String {
    let level = contexts.isEmpty ? "" : ", with a login of the level \(some(contexts))"
    return
      (maxAge.map { "the user must have authenticated within \(duration($0))" } ?? "the user must authenticate again")
      + level
  }
}

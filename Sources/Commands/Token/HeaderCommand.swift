import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

extension Command {
  static let field = Option("--field", value: "NAME", "another token of the login, such as user_token")

  static let header = Command(
    name: "header", operands: "ID", operandCount: 1...1, summary: "Print the authentication headers for a request",
    options: [
      account, field, Option("--url", value: "URL", "URL of the request; required for signed requests"),
      Option("--method", short: "-X", value: "METHOD", "method of the request (default: GET)"),
      Option("--data-file", value: "FILE", "form body of the request, to be signed; \"-\" reads standard input"),
      Option("--nonce", value: "NONCE", "nonce that the server demanded (DPoP-Nonce)"), json,
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
      let method = invocation.value("--method") ?? "GET"
      guard HTTPFields.isValid(name: method) else { throw .failed(HTTPError.invalidMethod(method).message()) }
      request = HTTPRequest(method: method, uri: try uri(url))
    } else if ["--method", "--data-file", "--nonce"].contains(where: invocation.has) {
      throw .usage("\"--method\", \"--data-file\" and \"--nonce\" require \"--url\"")
    }
    // RFC 9449, 8.1: visible characters except the quote and the backslash.
    if let nonce = invocation.value("--nonce"),
      nonce.isEmpty || nonce.utf8.contains(where: { !(0x21...0x7E).contains($0) || $0 == 0x22 || $0 == 0x5C })
    {
      throw .usage("invalid value of \"--nonce\"", hint: "use the value of the header \"DPoP-Nonce\" in the answer")
    }
    // Do this before reading the body, so that `credmgr-online` can still read it if it must refresh the token.
    let account = try manager(context.source.handOut(name, of: provider, by: .header, to: .caller))
    if let file = invocation.value("--data-file") {
      request?.fields.set("Content-Type", "application/x-www-form-urlencoded")
      request?.body = try context.file(file, limit: 64 << 20)
    }
    let given = Set(request?.fields.map { $0.name.lowercased() } ?? [])
    let fields: HTTPFields
    do throws(CredentialError) {
      fields = try context.source.headerFields(
        name, of: provider, for: request, token: invocation.value("--field"), nonce: invocation.value("--nonce"))
    } catch {
      // The other program explains the error or signs. Standard input may already be read.
      if context.online == nil { throw .handOver(input: invocation.value("--data-file") == "-" ? request?.body : nil) }
      throw CommandError(error)
    }
    try context.noteHandOut(account, by: "header")
    if account.credential.isCertificateBound {
      context.tell(
        "warning: the header alone is of no use: each request to \(context.titled(provider)) needs a proof of the "
          + "client's certificate")
      context.tell(hint: "\(credmgr: "request", provider, "URL")")
    }
    let query = request?.uri.queryParameters
    let missing = extraQuery(of: account, context).filter { query?.contains($0) != true }
    if !missing.isEmpty {
      context.tell(
        "warning: \(context.titled(provider)) also requires \(listed(missing)) in the query of each request, which no "
          + "header can carry")
      context.tell(hint: "\(credmgr: "request", provider, "URL") to send both")
    }
    let shown = fields.filter { !given.contains($0.name.lowercased()) }
    try context.output(
      shown.map { "\($0.name): \($0.value)\n" }.joined(),
      orJSON: ["headers": .object(shown.map { .init($0.name, .string($0.value)) })])
  }

  /// Returns the names of the parameters that each request has in its query, without those whose variable is unset.
  private static func extraQuery(of account: Account, _ context: Context) -> [String] {
    guard let descriptor = try? context.home.library.load(account.provider).descriptor else { return [] }
    let registered = try? context.source.accountsIfAny()?.registration(of: account.provider)?.variables
    let values = (registered ?? [:]).merging(account.credential.variables) { $1 }
    return descriptor.extraQuery.filter { rule in
      rule.value?.names.allSatisfy { name in
        guard let variable = descriptor.variable(name), variable.defaultValue == nil else { return true }
        return values[name]?.isEmpty == false
      } ?? false
    }.map(\.name)
  }
}

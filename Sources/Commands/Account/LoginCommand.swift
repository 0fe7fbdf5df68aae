import CredentialManager
import Cryptography
import Descriptors
import OAuth
import Platform
import Text

extension Command {
  static let login = Command(
    name: "login", operands: "ID", operandCount: 1...1, summary: "Obtain a credential from a provider",
    options: [
      Option("--account", value: "NAME", "the account's name; otherwise as the provider names it"),
      Option("--grant", value: "GRANT", "one of the grants that the provider offers"),
      Option("--scope", value: "SCOPE", repeats: true, "a scope to ask for, instead of the descriptor's"),
      Option(
        "--set", value: "NAME=VALUE", repeats: true,
        "the value of a variable, for this account alone; NAME=@FILE for a secret one"),
      Option("--no-browser", "print the address, and open no browser"),
      Option("--paste", "read the address where the browser ends up, or the code it shows, from standard input"),
      Option("--with-token", "read an existing token from standard input"),
      Option("--timeout", value: "DURATION", "how long to wait; otherwise 5m"),
      Option("--dry-run", "print the requests that would be made, without secrets, and make none"),
      Option("--json", "print what \"--dry-run\" prints as JSON, whose fields stay as they are"),
    ],
    notes: [
      "With \"--dry-run\", the provider need not have been added, and ID may be the file of a descriptor.",
      "Of several grants it takes the first that fits the place: over SSH, and where there is no display, that is "
        + "device_code, if the provider offers it; else the address is printed, and the one where the browser ends up "
        + "can be pasted. A command in BROWSER is used everywhere.",
    ],
    examples: [
      ("credmgr login github", "in the browser, or as it fits where you are"),
      ("credmgr login github --account work", "a second account, under a name of your own"),
      ("credmgr login gitlab --scope api --scope read_user", "with other scopes than usual"),
      ("credmgr login github --grant device_code", "with a code that you enter on another device"),
      ("credmgr login github --with-token <token.txt", "with a token that you have already"),
      ("credmgr login github --dry-run", "what would be sent, without sending it"),
    ], needsNetwork: true, offlineOption: "--dry-run"
  ) { invocation, context throws(CommandError) in
    var wish = LoginOptions()
    wish.scope = invocation.all("--scope")
    if invocation.has("--dry-run") {
      let descriptor = try descriptor(invocation.operands[0], context)
      // What is secret is not shown, so it is not read.
      wish.variables = try context.variables(invocation, of: descriptor) { _, _ in Array("secret".utf8) }
      let fitting = try grant(of: descriptor.grants, invocation, context)
      if let reason = fitting?.reason { context.tell(reason) }
      wish.grant = fitting?.grant
      return try LoginDryRun.run(of: descriptor, options: wish, invocation, context)
    }
    if invocation.has("--json") { throw .usage("\"--json\" needs \"--dry-run\"", hint: "\(add: "--dry-run")") }
    for option in ["--paste", "--no-browser"] where invocation.has("--with-token") && invocation.has(option) {
      throw .exclusive(["--with-token", option])
    }
    let provider = try context.provider(invocation.operands[0])
    wish.account = invocation.value("--account")
    let descriptor = (try? context.home.library.load(provider))?.descriptor
    let offered = descriptor?.grants ?? []
    let fitting = try grant(of: offered, invocation, context)
    wish.grant = fitting?.grant
    var readsInput = invocation.has("--with-token") || invocation.has("--paste")
    wish.variables = try context.variables(invocation, of: descriptor) { path, name throws(CommandError) in
      if path == "-", readsInput { throw .usage("only one thing can be on standard input") }
      readsInput = readsInput || path == "-"
      return try context.secretFile(path, called: name)
    }
    wish.opensBrowser = !invocation.has("--no-browser") && SessionKind(environment: context.environment) == .desktop
    wish.hasLocalBrowser = !SessionKind.isRemote(context.environment)
    wish.pastes = invocation.has("--paste")
    wish.timeout = try context.duration("--timeout", invocation) ?? wish.timeout
    if wish.timeout == .zero {
      throw .usage("nobody can log in within no time", hint: "leave \"--timeout\" out for five minutes")
    }
    let grant = fitting?.grant ?? offered.first
    if !SessionKind.hasReader(context.environment), grant?.traits.needsPerson == true,
      !["--no-browser", "--paste", "--with-token", "--grant"].contains(where: invocation.has)
    {
      throw .failed(unread(provider, offered, grant))
    }
    let account: Account
    if invocation.has("--with-token") {
      let token = try token(provider, context)
      account = try manager(context.source.login(provider, wish, token: token))
    } else {
      let user = TerminalUser(provider: provider, offered: offered, fitting: fitting, context)
      defer { user.end() }
      do throws(CredentialError) { account = try context.source.login(provider, wish, user: user) } catch {
        guard case .timedOut(let time) = error else { throw CommandError(error) }
        let more: Remedy =
          "\(credmgr: "login", provider, "--timeout", "\(max(time.wholeSeconds / 60, 1) * 2)m") for more time"
        throw .failed(error.message.with(hints: [more]))
      }
    }
    let person = account.credential.identity.map { $0 == account.name ? "" : ", who is \(quoted($0)) there" } ?? ""
    context.tell("logged in to \"\(provider)\" as \"\(account.name)\"\(person)" + validity(account.credential, context))
    let withheld = account.credential.withheldScope
    if !withheld.isEmpty { context.tell("the provider did not grant the scope \(withheld.joined(separator: ", "))") }
    if let type = account.credential.tokenType, !["bearer", "token", "oauth"].contains(type.lowercased()) {
      context.tell("the provider says that the token's type is \"\(type)\"")
    }
  }

  /// Where nobody could read an address or a code.
  private static func unread(_ provider: String, _ offered: [Grant], _ grant: Grant?) -> Message {
    let machine: [Remedy] =
      offered.contains(.clientCredentials)
      ? ["\(add: "--grant", "client_credentials") to log in as the client itself"] : []
    let reader: Remedy = grant == .deviceCode ? "\(add: "--grant", "device_code")" : "\(add: "--no-browser")"
    return Message(
      "cannot log in to \(quoted(provider)): there is no terminal and no browser here",
      hints: machine + [reader + " if somebody reads this output"], status: .loginNeeded)
  }

  private static func token(_ provider: String, _ context: Context) throws(CommandError) -> Secret {
    let bytes = try context.secretFile("-", called: "token")
    guard bytes.contains(where: { !"\r\n".utf8.contains($0) }) else {
      throw .usage(
        "there is no token on standard input",
        hint: "\(shell: "credmgr login \(provider) --with-token <FILE"), with the file that has it")
    }
    return try context.issuedSecret(bytes, "-", called: "token")
  }

  private static func descriptor(_ source: String, _ context: Context) throws(CommandError) -> Descriptor {
    guard Context.isDescriptorFile(source) else { return try context.load(context.provider(source)).descriptor }
    let bytes = try context.descriptor(source)
    return try library(context.home.library.load(bytes, name: Context.descriptorName(source))).descriptor
  }

  /// A grant, and why it is not the provider's first.
  typealias FittingGrant = (grant: Grant, reason: String?)

  /// The grant that is asked for, or fits where we are; `nil` for the provider's first.
  private static func grant(
    of offered: [Grant], _ invocation: Invocation, _ context: Context
  ) throws(CommandError) -> FittingGrant? {
    if let text = invocation.value("--grant") {
      if let grant = Grant(rawValue: text) { return (grant, nil) }
      let known = Grant.allCases.map(\.rawValue)
      let near = nearMiss(text, among: known)
      throw .usage(
        "there is no grant \"\(text)\"\(didYouMean(near))",
        hints: .correcting(text, to: near) + ["grants are \(known.joined(separator: ", "))"])
    }
    if ["--no-browser", "--paste", "--with-token"].contains(where: invocation.has) { return nil }
    return fittingGrant(of: offered, page: ["credmgr", "login", invocation.operands[0], "--no-browser"], context)
  }

  /// - Parameter page: the command that prints an address instead.
  static func fittingGrant(of offered: [Grant], page: [String], _ context: Context) -> FittingGrant? {
    guard offered.contains(.deviceCode), let first = offered.first, first.traits.redirects else { return nil }
    let reason: String
    switch SessionKind(environment: context.environment) {
    case .desktop: return nil
    case .ssh: reason = "you are here by SSH"
    case .headless: reason = "there is no browser here"
    }
    let remedy: Remedy = "\(reason), so the grant is device_code; \(command: page) prints an address instead"
    return (.deviceCode, remedy.sentence(after: context.line) ?? reason)
  }

  static func validity(_ credential: Credential, _ context: Context) -> String {
    guard let expiresAt = credential.expiresAt else { return "" }
    return "; the token is valid for \(duration(max(expiresAt - context.clock.now(), .zero)))"
  }
}

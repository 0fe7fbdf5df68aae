import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

extension Command {
  static let login = Command(
    name: "login", operands: "ID", operandCount: 1...1, summary: "Log in to a provider",
    options: [
      Option("--account", value: "NAME", "account name (default: the user name from the provider)"),
      Option("--grant", value: "GRANT", "grant to use (default: the first that works in this session)"),
      Option("--for", value: "PURPOSES", "purposes whose scopes to request, such as git,packages"),
      Option("--scope", value: "SCOPE", repeats: true, "scope to request instead of the descriptor's scopes"),
      Option("--authorization-details", value: "FILE", "JSON file with details of the access to request (RFC 9396)"),
      Option("--step-up", "request the scopes of the account and those of \"--scope\" and \"--for\""),
      Option("--acr", value: "LEVEL", repeats: true, "required way of authentication, such as a second factor"),
      Option("--max-age", value: "DURATION", "time within which you must have authenticated"),
      Option(
        "--set", value: "NAME=VALUE", repeats: true,
        "set a variable for this account only; NAME=@FILE for a secret variable; NAME=env:VARIABLE for a CI token"),
      Option("--no-browser", "print the address instead of opening a browser"),
      Option("--paste", "read the last address in the browser, or the code on the page, from standard input"),
      Option("--with-token", "read a key or an existing token from standard input"),
      Option("--key-file", value: "FILE", "file with your private key, for a service account"),
      Option("--expires", value: "DATE", "day on which the key expires, or the time until then, such as 90d"),
      Option("--replace", "let the account belong to the user who signs in"),
      Option("--vault", value: "VAULT", "shared vault that gets the account (default: the vault that has it)"),
      Option("--yes", "store a key or a token even if the provider cannot verify it"),
      Option("--timeout", value: "DURATION", "time to wait for the login (default: 5m)"),
      Option("--dry-run", "print the requests without secrets and send nothing"),
      json,
    ],
    notes: [
      "With \"--dry-run\", ID can be a provider that has not been added or the file of a descriptor.",
      "Over SSH or without a display, credmgr uses the grant device_code if the provider offers it. Otherwise it "
        + "prints an address for a browser on another machine, and you can paste the address of the last page. A "
        + "command in BROWSER is always used.",
    ],
    examples: [
      ("credmgr login github", "Log in with the browser"),
      ("credmgr login github --account work", "Add a second account named work"),
      ("credmgr login github --account work --replace", "Sign in to an account as another user"),
      ("credmgr login github --for git,packages", "Request the scopes for git and for packages"),
      ("credmgr login gitlab --scope api --scope read_user", "Request other scopes"),
      ("credmgr login gitlab --step-up --scope api", "Add a scope to those of the account"),
      ("credmgr login github --grant device_code", "Enter a code on another device"),
      ("credmgr login github --with-token <token.txt", "Store an existing token"),
      ("credmgr login openai", "Store an API key, which credmgr prompts for"),
      ("credmgr login google-service --key-file key.json", "Log in as a service account with its key file"),
      ("credmgr login pypi-trusted --set subject_token=env:PYPI_ID_TOKEN", "Log in with the ID token of a CI job"),
      ("credmgr login github --account bot --vault team", "Log in for all members of a shared vault"),
      ("credmgr login github --dry-run", "Show the requests without sending them"),
    ]
  ) { invocation, context throws(CommandError) in
    var wish = LoginOptions()
    wish.account = invocation.value("--account")
    wish.seenDigest = context.seenDigest
    wish.details = try details(invocation, context)
    wish.keepsScope = invocation.has("--step-up")
    wish.demands = try demands(invocation, context)
    if invocation.has("--dry-run") {
      let descriptor = try descriptor(invocation.operands[0], context)
      wish.scope = try context.scope(invocation, of: descriptor)
      // Secrets are not shown, so do not read them.
      wish.variables = try context.variables(invocation, of: descriptor) { _, _ in Array("secret".utf8) }
      let fitting = try grant(of: descriptor.grants, invocation, context)
      if let reason = fitting?.reason { context.tell(reason) }
      wish.grant = fitting?.grant
      return try LoginDryRun.run(of: descriptor, options: wish, invocation, context)
    }
    for option in ["--paste", "--no-browser", "--key-file"]
    where invocation.has("--with-token") && invocation.has(option) { throw .exclusive(["--with-token", option]) }
    try Setup.checkProvider(invocation.operands[0])
    let provider = try context.provider(invocation.operands[0])
    let descriptor = (try? context.home.library.load(provider))?.descriptor
    let isOwnKey = wish.account.map { descriptor?.certainty(of: $0) ?? 0 > 0 } == true
    try context.requireNoKey(in: wish.account, called: "account name", of: isOwnKey ? [provider] : [])
    wish.scope = try context.scope(invocation, of: descriptor)
    let offered = descriptor?.grants ?? []
    let fitting = try grant(of: offered, invocation, context)
    wish.grant = fitting?.grant
    var readsInput = invocation.has("--with-token") || invocation.has("--paste")
    wish.variables = try context.variables(invocation, of: descriptor) { path, name throws(CommandError) in
      if path == "-", readsInput { throw .usage("only one value can come from standard input") }
      readsInput = readsInput || path == "-"
      return try context.secretFile(path, called: name)
    }
    wish.opensBrowser = !invocation.has("--no-browser") && SessionKind(environment: context.environment) == .desktop
    wish.hasLocalBrowser = !SessionKind.isRemote(context.environment)
    wish.pastes = invocation.has("--paste")
    wish.givesAway = invocation.has("--replace")
    wish.keepsUnverified = invocation.has("--yes")
    wish.vault = try invocation.value("--vault").map { name throws(CommandError) in
      try manager(context.source.vaultName(name))
    }
    wish.timeout = try context.duration("--timeout", invocation) ?? wish.timeout
    if wish.timeout == .zero {
      throw .usage("the timeout must be longer than 0 s", hint: "omit \"--timeout\" to wait 5 min")
    }
    wish.hasKeyFile = invocation.has("--key-file")
    if wish.hasKeyFile {
      let signing = offered.first(where: \.traits.signsJWT)
      guard descriptor?.key?.file.isEmpty == false, let signing else {
        throw .usage("\(context.titled(provider)) has no key file: a login needs other values")
      }
      wish.grant = signing
    }
    let grant = wish.grant ?? offered.first
    wish.expiresAt = try expiry(invocation, context)
    let isTyped = grant?.traits.asked != nil
    // A token that an exchange returns has an expiry of its own, but the user brings what is exchanged.
    let isBrought = isTyped ? grant?.traits.needsPerson == true : invocation.has("--with-token")
    if wish.expiresAt != nil, !isBrought {
      throw .usage("\"--expires\" is for what you bring to a login: the provider says when its own tokens expire")
    }
    let isAsked = isTyped || ["--no-browser", "--paste", "--with-token", "--grant"].contains(where: invocation.has)
    if !wish.demands.isEmpty, grant?.traits.asksForConsent != true {
      throw .usage(
        "\(context.titled(provider)) does not ask you to consent, so it cannot meet \"--acr\" and \"--max-age\"")
    }
    if !SessionKind.hasReader(context.environment), grant?.traits.needsPerson == true, !isAsked {
      if let descriptor, try manager(context.source.accountsIfAny()?.registration(of: provider)) == nil,
        let error = context.missing(to: provider, descriptor, wish.variables)
      {
        throw CommandError(error)
      }
      throw .failed(unread(context.titled(provider), offered: offered, grant))
    }
    let before = try? context.source.accountsIfAny()?.accounts(of: provider).map(\.name)
    let account: Account
    if invocation.has("--with-token"), !isTyped {
      wish.seenDigest = context.seenDigest ?? context.source.destinationsDigest(ofLogin: wish, to: provider)
      let fields = descriptor?.fieldsOfToken ?? []
      let user = TerminalUser(
        provider: provider, offered: offered, fitting: fitting, context, readsInput: true)
      if fields.count > 1 {
        account = try manager(
          context.source.login(provider, wish, given: user.lines(for: fields), user: context.user(user)))
      } else {
        let token = try token(provider, context)
        account = try manager(context.source.login(provider, wish, token: token, user: context.user(user)))
      }
    } else {
      let user = TerminalUser(
        provider: provider, offered: offered, fitting: fitting, context, patience: wish.timeout, needsReader: !isAsked,
        readsInput: invocation.has("--with-token"),
        keyFile: try invocation.value("--key-file").map { path throws(CommandError) in try context.keyFile(path) })
      defer { user.end() }
      do throws(CredentialError) {
        account = try context.source.login(provider, wish, user: context.user(user))
      } catch {
        if try Setup.askToSetUp(provider, after: error, context) {
          return try Setup(context, login: context.line.words).run(provider)
        }
        if error == .interrupted, user.isUnread {
          throw .failed(unread(context.titled(provider), offered: offered, grant))
        }
        let another = context.correctingClient(of: provider)
        if error == .interrupted, !another.isEmpty { throw .failed(error.message.with(hints: another)) }
        guard case .timedOut(let time) = error else { throw CommandError(error) }
        let more: Remedy =
          "\(credmgr: "login", provider, "--timeout", "\(max(time.wholeSeconds / 60, 1) * 2)m") for more time"
        throw .failed(error.message(titled: context.titled).with(hints: [more]))
      }
    }
    let person = account.credential.identity.map { $0 == account.name ? "" : " (\(quoted($0)))" } ?? ""
    let title = context.titled(provider)
    // The list says the same.
    let doubt = account.credential.isUnverified ? "; the provider has not confirmed it" : ""
    let rest = validity(account.credential, context) + doubt
    context.tell("logged in to \(title) as \"\(account.name)\"\(person)" + rest)
    if let before, !before.contains(account.name),
      let selected = try manager(context.source.accountsIfAny()?.selected(for: provider)), selected != account.name
    {
      context.tell(
        note: "\(quoted(selected)) is still the default account; \(credmgr: "use", provider, account.name) to change it"
      )
    }
    let withheld = account.credential.withheldScope
    if !withheld.isEmpty { context.tell("\(title) did not grant the scope \(withheld.joined(separator: ", "))") }
    if let type = account.credential.tokenType, account.credential.proofKey == nil,
      !["bearer", "token", "oauth"].contains(type.lowercased())
    {
      context.tell("\(title) reports the token type \"\(type)\"")
    }
    guard context.isJSON else { return }
    let credential = account.credential
    try context.output([
      "provider": .string(provider), "account": .string(account.name), "identity": .optional(credential.identity),
      "scope": .array((credential.grantedScope ?? credential.requestedScope).map(JSONValue.string)),
      "withheld_scope": .array(withheld.map(JSONValue.string)),
      "authorization_details": credential.detailsJSON, "expires_at": .optional(credential.expiresAt?.text),
    ])
  }

  /// Returns what the login demands of the consent.
  private static func demands(_ invocation: Invocation, _ context: Context) throws(CommandError) -> ConsentDemands {
    let demands = ConsentDemands(
      authenticationContexts: invocation.all("--acr"), maxAge: try context.duration("--max-age", invocation))
    guard demands.maxAge.map({ $0 <= .days(3650) }) ?? true else {
      throw .usage("invalid value of \"--max-age\": it must be at most 3650d")
    }
    for level in demands.authenticationContexts
    where level.isEmpty || !level.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
      throw .usage("invalid value of \"--acr\"", hint: "repeat the option for each level")
    }
    return demands
  }

  /// Returns the message for a user who cannot enter an address or a code.
  private static func unread(_ title: String, offered: [Grant], _ grant: Grant?) -> Message {
    let machine: [Remedy] =
      offered.contains(.clientCredentials)
      ? ["\(add: "--grant", "client_credentials") to log in as the client itself"] : []
    let reader: Remedy = grant == .deviceCode ? "\(add: "--grant", "device_code")" : "\(add: "--no-browser")"
    return Message(
      "cannot log in to \(title): no terminal and no browser",
      hints: machine + [reader + " if you can read this output"], status: .loginNeeded)
  }

  private static func token(_ provider: String, _ context: Context) throws(CommandError) -> Secret {
    let bytes = try context.secretFile("-", called: "token")
    guard bytes.contains(where: { !"\r\n".utf8.contains($0) }) else {
      throw .usage(
        "no token found on standard input",
        hint: "\(reading: "login", provider, "--with-token") with the file that contains it")
    }
    return try context.issuedSecret(bytes, "-", called: "token")
  }

  private static func descriptor(_ source: String, _ context: Context) throws(CommandError) -> Descriptor {
    guard Context.isDescriptorFile(source) else { return try context.load(context.provider(source)).descriptor }
    let bytes = try context.descriptor(source)
    return try library(context.home.library.load(bytes, name: Context.descriptorName(source))).descriptor
  }

  /// A grant, and the reason why it is not the provider's first grant.
  typealias FittingGrant = (grant: Grant, reason: String?)

  /// Returns the requested grant, or a grant that works in this session; `nil` for the provider's first one.
  private static func grant(
    of offered: [Grant], _ invocation: Invocation, _ context: Context
  ) throws(CommandError) -> FittingGrant? {
    if let text = invocation.value("--grant") {
      if let grant = Grant(rawValue: text) { return (grant, nil) }
      let known = Grant.allCases.map(\.rawValue)
      let near = nearMiss(text, among: known)
      let usable = offered.isEmpty ? known : offered.map(\.rawValue)
      throw .usage(
        "unknown grant\(shown(text))\(didYouMean(near))",
        hints: .correcting(text, to: near) + ["use one of \(usable.joined(separator: ", "))"])
    }
    if ["--no-browser", "--paste", "--with-token"].contains(where: invocation.has) { return nil }
    return fittingGrant(of: offered, page: ["credmgr", "login", invocation.operands[0], "--no-browser"], context)
  }

  /// Returns the device grant if a redirect cannot work here. `page` is the command that only prints an address.
  static func fittingGrant(of offered: [Grant], page: [String], _ context: Context) -> FittingGrant? {
    guard offered.contains(.deviceCode), let first = offered.first, first.traits.redirects else { return nil }
    let reason: String
    switch SessionKind(environment: context.environment) {
    case .desktop: return nil
    case .ssh: reason = "this is an SSH session"
    case .headless: reason = "no browser is available"
    }
    let remedy: Remedy = "\(reason), so credmgr uses a device code; \(command: page) prints an address instead"
    return (.deviceCode, remedy.sentence(after: context.line) ?? reason)
  }

  private static func details(
    _ invocation: Invocation, _ context: Context
  ) throws(CommandError) -> AuthorizationDetails? {
    guard let path = invocation.value("--authorization-details") else { return nil }
    let bytes = try context.file(path, limit: 1 << 16)
    if let details = AuthorizationDetails(String(decoding: bytes, as: UTF8.self)) { return details }
    let name = path == "-" ? "standard input" : quoted(path)
    throw .usage("cannot use the authorization details in \(name): expected \(AuthorizationDetails.form)")
  }

  /// Parses `--expires`: a day or a moment, or the time until then.
  private static func expiry(_ invocation: Invocation, _ context: Context) throws(CommandError) -> Moment? {
    guard let text = invocation.value("--expires") else { return nil }
    let now = context.clock.now()
    guard let moment = Moment(text) ?? Moment(text + "T00:00:00Z") ?? Duration(text).map({ now + $0 }) else {
      throw .usage("invalid date\(shown(text))", hint: "use a form like 2027-06-30 or 90d")
    }
    guard moment > now else { throw .usage("the date of \"--expires\" is in the past") }
    return moment
  }

  static func validity(_ credential: Credential, _ context: Context) -> String {
    guard let expiresAt = credential.expiresAt else { return "" }
    let rest = duration(max(expiresAt - context.clock.now(), .zero))
    return credential.isTyped ? "; valid for \(rest)" : "; the token is valid for \(rest)"
  }
}

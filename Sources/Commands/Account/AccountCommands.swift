import CredentialManager
import Cryptography
import Descriptors
import JSON
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
      Example("credmgr login github", "in the browser, or as it fits where you are"),
      Example("credmgr login github --account work", "a second account, under a name of your own"),
      Example("credmgr login gitlab --scope api --scope read_user", "with other scopes than usual"),
      Example("credmgr login github --grant device_code", "with a code that you enter on another device"),
      Example("credmgr login github --with-token <token.txt", "with a token that you have already"),
      Example("credmgr login github --dry-run", "what would be sent, without sending it"),
    ], needsNetwork: true, offlineOption: "--dry-run"
  ) { invocation, context throws(CommandError) in
    var wish = LoginOptions()
    wish.scope = invocation.all("--scope")
    if invocation.has("--dry-run") {
      let descriptor = try descriptor(invocation.operands[0], context)
      // What is secret is not shown, so it is not read.
      wish.variables = try context.variables(invocation, of: descriptor) { _ in Array("secret".utf8) }
      let fitting = try grant(invocation, descriptor.grants, context)
      if let reason = fitting?.reason { context.tell(reason) }
      wish.grant = fitting?.grant
      return try LoginDryRun.run(descriptor, wish, invocation, context)
    }
    if invocation.has("--json") { throw .usage("\"--json\" needs \"--dry-run\"", hint: "\(add: "--dry-run")") }
    for option in ["--paste", "--no-browser"] where invocation.has("--with-token") && invocation.has(option) {
      throw .exclusive(["--with-token", option])
    }
    let provider = try context.provider(invocation.operands[0])
    wish.account = invocation.value("--account")
    let descriptor = (try? context.home.library.load(provider))?.descriptor
    let offered = descriptor?.grants ?? []
    let fitting = try grant(invocation, offered, context)
    wish.grant = fitting?.grant
    var readsInput = invocation.has("--with-token") || invocation.has("--paste")
    wish.variables = try context.variables(invocation, of: descriptor) { path throws(CommandError) in
      if path == "-", readsInput { throw .usage("only one thing can be on standard input") }
      readsInput = readsInput || path == "-"
      return try context.file(path, limit: 1 << 16)
    }
    wish.opensBrowser = !invocation.has("--no-browser") && SessionKind(environment: context.environment) == .desktop
    wish.pastes = invocation.has("--paste")
    wish.timeout = try context.duration("--timeout", invocation) ?? wish.timeout
    if wish.timeout == 0 {
      throw .usage("nobody can log in within no time", hint: "leave \"--timeout\" out for five minutes")
    }
    let account: Account
    if invocation.has("--with-token") {
      let token = try token(provider, context)
      account = try manager { () throws(CredentialError) in
        try context.source.login(provider, wish, token: token)
      }
    } else {
      let isAlternative = wish.grant == nil && offered.first != .deviceCode && offered.contains(.deviceCode)
      let user = TerminalUser(provider: provider, offersDevice: isAlternative, reason: fitting?.reason, context)
      defer { user.settle() }
      do throws(CredentialError) {
        account = try context.source.login(provider, wish, user: user)
      } catch {
        if case .timedOut(let seconds) = error {
          let timeout = "\(max(seconds / 60, 1) * 2)m"
          throw .failed(
            error.message.with(hints: ["\(credmgr: "login", provider, "--timeout", timeout) for more time"]))
        }
        throw CommandError(error)
      }
    }
    context.tell("logged in to \"\(provider)\" as \"\(account.name)\"" + validity(account.credential, context))
    let withheld = account.credential.withheldScope
    if !withheld.isEmpty { context.tell("the provider did not grant the scope \(withheld.joined(separator: ", "))") }
    if let type = account.credential.tokenType, !["bearer", "token", "oauth"].contains(type.lowercased()) {
      context.tell("the provider says that the token's type is \"\(type)\"")
    }
    return .done
  }

  /// The token that is given on standard input.
  private static func token(_ provider: String, _ context: Context) throws(CommandError) -> Secret {
    let bytes = try context.file("-", limit: 1 << 16)
    guard bytes.contains(where: { !"\r\n".utf8.contains($0) }) else {
      throw .usage(
        "there is no token on standard input",
        hint: "\(shell: "credmgr login \(provider) --with-token <FILE"), with the file that has it")
    }
    return try context.secret(bytes, "-")
  }

  /// A descriptor by its identifier or its file.
  private static func descriptor(_ source: String, _ context: Context) throws(CommandError) -> Descriptor {
    let library = context.home.library
    let isFile = Context.isDescriptorFile(source)
    let bytes = isFile ? try context.descriptor(source) : []
    let identifier = isFile ? "" : try context.provider(source)
    if !isFile, let unknown = context.unknown(identifier) { throw CommandError(unknown) }
    do throws(ProviderError) {
      if !isFile { return try library.load(identifier).descriptor }
      return try library.load(bytes, name: Context.descriptorName(source)).descriptor
    } catch {
      throw CommandError(CredentialError.provider(error))
    }
  }

  /// A grant, and why it is not the provider's first.
  typealias FittingGrant = (grant: Grant, reason: String?)

  /// The grant that is asked for, or fits where we are; `nil` for the provider's first.
  private static func grant(
    _ invocation: Invocation, _ offered: [Grant], _ context: Context
  ) throws(CommandError) -> FittingGrant? {
    if let text = invocation.value("--grant") {
      if let grant = Grant(rawValue: text) { return (grant, nil) }
      let known = Grant.allCases.map(\.rawValue)
      let near = nearMiss(text, among: known)
      throw .usage(
        "there is no grant \"\(text)\"\(didYouMean(near))",
        hints: .correcting(text, to: near) + ["grants are \(known.joined(separator: ", "))"])
    }
    let asksForPage = ["--no-browser", "--paste", "--with-token"].contains { invocation.has($0) }
    return asksForPage
      ? nil : fittingGrant(offered, ["credmgr", "login", invocation.operands[0], "--no-browser"], context)
  }

  /// The grant that fits where we are; `nil` for the provider's first.
  ///
  /// - Parameter page: the command that prints an address instead.
  static func fittingGrant(_ offered: [Grant], _ page: [String], _ context: Context) -> FittingGrant? {
    guard offered.contains(.deviceCode), let first = offered.first, first.traits.redirects
    else { return nil }
    let reason: String
    switch SessionKind(environment: context.environment) {
    case .desktop: return nil
    case .ssh: reason = "you are here by SSH"
    case .headless: reason = "there is no browser here"
    }
    let remedy: Remedy = "\(reason), so the grant is device_code; \(command: page) prints an address instead"
    return (.deviceCode, remedy.sentence(after: context.line) ?? reason)
  }

  private static func validity(_ credential: Credential, _ context: Context) -> String {
    guard let expiresAt = credential.expiresAt else { return "" }
    return "; the token is valid for \(duration(max(expiresAt - context.clock.now(), 0)))"
  }

  static let status = Command(
    name: "status", operands: "[ID]", operandCount: 0...1,
    summary: "Show accounts, scopes, expiry, and what happens next",
    options: [
      Option("--why", "which account is used here, and why"),
      Option("--for", value: "URL", "which account is used for a remote's URL, and why"), json,
    ],
    examples: [
      Example("credmgr status", "everybody who is logged in"),
      Example("credmgr status github --json", "for a program"),
      Example("credmgr status --for https://github.com/octo/notes", "whom git takes for this repository"),
    ]
  ) { invocation, context throws(CommandError) in
    let provider: String? = if let text = invocation.operands.first { try context.provider(text) } else { nil }
    if invocation.has("--why") || invocation.has("--for") {
      return try whichAccount(provider, invocation, context)
    }
    let (accounts, selected, refused) = try manager {
      () throws(CredentialError) -> ([Account], [String: String], [Bool]) in
      guard let vault = try context.source.accountsIfAny() else { return ([], [:], []) }
      let accounts = try vault.accounts(of: provider)
      let refused = try vault.areRefreshesRefused(accounts)
      var selected: [String: String] = [:]
      for provider in Set(accounts.map(\.provider)) { selected[provider] = try vault.selected(for: provider) }
      return (accounts, selected, refused)
    }
    let interrupted = try manager { () throws(CredentialError) in try context.source.interruptedExchanges() }
    let now = context.clock.now()
    if invocation.has("--json") {
      try context.output(
        .array(
          zip(accounts, refused).map { account, isRefused in
            json(
              account, isDefault: selected[account.provider] == account.name, isRefused: isRefused,
              isInterrupted: interrupted.contains { $0.provider == account.provider && $0.account == account.name },
              now)
          }))
      try context.reportDamagedRecords(provider, without: accounts)
      return .done
    }
    if accounts.isEmpty {
      try context.reportDamagedRecords(provider, without: accounts)
      if let provider, let unknown = context.unknown(provider) { throw CommandError(unknown) }
      context.tell(provider.map { "nobody is logged in to \"\($0)\"" } ?? "nobody is logged in anywhere")
    }
    let style = Style(1)
    let columns = Terminal.outputColumns
    var text = ""
    for (account, isRefused) in zip(accounts, refused) {
      let isDefault = selected[account.provider] == account.name
      text += style.bold("\(account.provider)  \(account.name)") + (isDefault ? "  (default)" : "") + "\n"
      text += Layout.table(details(account.credential, isRefused: isRefused, now, style), width: columns)
    }
    try context.output(text)
    for exchange in interrupted where provider == nil || provider == exchange.provider {
      context.tell(Notice.interrupted(exchange).sentence(now: now))
    }
    try context.reportDamagedRecords(provider, without: accounts)
    return .done
  }

  private static func details(
    _ credential: Credential, isRefused: Bool, _ now: Int64, _ style: Style
  ) -> [(left: String, right: String)] {
    var rows: [(left: String, right: String)] = [("grant", credential.grant.rawValue)]
    if let identity = credential.identity { rows.append(("identity", identity)) }
    let scope = credential.grantedScope ?? credential.requestedScope
    if !scope.isEmpty { rows.append(("scope", scope.joined(separator: " "))) }
    if !credential.withheldScope.isEmpty {
      rows.append(("not granted", credential.withheldScope.joined(separator: " ")))
    }
    rows.append(("token", expiry(credential.expiresAt, now)))
    if credential.refreshToken != nil {
      let expiry = expiry(credential.refreshTokenExpiresAt, now)
      rows.append(("refresh token", isRefused ? "refused by the provider" : expiry))
    }
    // Parts of it are the provider's words.
    rows = rows.map { ($0.left, Message.visible($0.right)) }
    let next = next(credential, isRefused: isRefused, now)
    rows.append(("next", next == .login ? style.red(next.sentence) : next.sentence))
    return rows
  }

  private static func expiry(_ moment: Int64?, _ now: Int64) -> String {
    guard let moment else { return "no expiry known" }
    return moment > now ? "expires in \(duration(moment - now))" : "expired \(duration(now - moment)) ago"
  }

  private enum Next: String {
    case handOut = "valid"
    case refresh
    case login

    var sentence: String {
      switch self {
      case .handOut: "the token is handed out as it is"
      case .refresh: "the token is refreshed when it is asked for"
      case .login: "a login is needed"
      }
    }
  }

  private static func next(_ credential: Credential, isRefused: Bool, _ now: Int64) -> Next {
    if credential.isUsable(at: now) { return .handOut }
    if credential.isRefreshable(at: now), !isRefused { return .refresh }
    return credential.isUsable(at: now, for: 0) ? .handOut : .login
  }

  private static func json(
    _ account: Account, isDefault: Bool, isRefused: Bool, isInterrupted: Bool, _ now: Int64
  ) -> JSONValue {
    let credential = account.credential
    return [
      "provider": .string(account.provider), "account": .string(account.name), "default": .boolean(isDefault),
      "identity": .optional(credential.identity), "grant": .string(credential.grant.rawValue),
      "scope": .array((credential.grantedScope ?? credential.requestedScope).map(JSONValue.string)),
      "withheld_scope": .array(credential.withheldScope.map(JSONValue.string)),
      "obtained_at": .string(Moment.format(credential.obtainedAt)),
      "expires_at": .optional(credential.expiresAt.map(Moment.format)),
      "refresh_token": .boolean(credential.refreshToken != nil),
      "refresh_token_expires_at": .optional(credential.refreshTokenExpiresAt.map(Moment.format)),
      "next": .string(next(credential, isRefused: isRefused, now).rawValue), "interrupted": .boolean(isInterrupted),
    ]
  }

  static let refresh = Command(
    name: "refresh", operands: "ID|--all", operandCount: 0...1, summary: "Refresh tokens now",
    options: [
      account, Option("--all", "all accounts of all providers that can be refreshed"),
      Option("--timeout", value: "DURATION", "how long to wait for another process that refreshes it; otherwise 1m"),
    ],
    notes: [
      "When a provider has said that it will never take a refresh token again, other commands fail without asking it; "
        + "\"credmgr refresh ID\" asks."
    ],
    examples: [
      Example("credmgr refresh github", "the token of the account that is used here"),
      Example("credmgr refresh --all", "before you go on a journey"),
    ], needsNetwork: true
  ) { invocation, context throws(CommandError) in
    guard invocation.has("--all") != (invocation.operands.count == 1) else {
      throw .usage("name either a provider or \"--all\"", hint: "usage: credmgr refresh ID|--all")
    }
    if let text = invocation.operands.first {
      let provider = try context.provider(text)
      let name = try context.account(invocation, of: provider)
      let policy = RefreshPolicy(
        always: true, asksAgain: true, lockTimeout: .seconds(try context.duration("--timeout", invocation) ?? 60))
      let renewed = try manager { () throws(CredentialError) in
        try context.source.freshAccount(name, of: provider, policy)
      }
      context.tell("refreshed \"\(renewed.name)\" at \"\(provider)\"" + validity(renewed.credential, context))
      return .done
    }
    return try refreshAll(context)
  }

  /// One account that cannot be refreshed does not keep the others from it; the worst exit status is the result.
  private static func refreshAll(_ context: Context) throws(CommandError) -> ExitStatus {
    let accounts = try manager { () throws(CredentialError) in
      try context.source.accountsIfAny()?.accounts(of: nil) ?? []
    }.filter { context.source.canRefresh($0) }
    if accounts.isEmpty { context.tell("there is nothing to refresh") }
    var worst = ExitStatus.done
    for account in accounts {
      do throws(CredentialError) {
        let renewed = try context.source.freshAccount(account.name, of: account.provider, RefreshPolicy(always: true))
        context.tell("refreshed \"\(account.name)\" at \"\(account.provider)\"" + validity(renewed.credential, context))
      } catch {
        if error == .interrupted { throw CommandError(error) }
        StandardError.show(error.message)
        worst = worst == .done ? error.message.status : worst
      }
    }
    try context.reportDamagedRecords(nil)
    return worst
  }

  static let validate = Command(
    name: "validate", operands: "ID", operandCount: 1...1,
    summary: "Ask the provider whether the token is good", options: [account, json],
    notes: ["Exit status 0 when it is, 3 when it is not."],
    examples: [Example("credmgr validate github && echo good", "in a script")], needsNetwork: true
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    let result = try manager { () throws(CredentialError) in try context.source.validate(name, of: provider) }
    let isActive = result.validity == .active
    if invocation.has("--json") {
      try context.output([
        "provider": .string(provider), "account": .string(result.account.name), "active": .boolean(isActive),
      ])
    } else {
      try context.output(isActive ? "active\n" : "inactive\n")
    }
    if !isActive {
      let command = context.source.canRefresh(result.account) ? "refresh" : "login"
      let account = accountOption(invocation.has("--account") ? result.account.name : nil)
      context.tell(hint: "\(credmgr: [command, provider] + account)")
    }
    return isActive ? .done : .loginNeeded
  }

  static let logout = Command(
    name: "logout", operands: "ID", operandCount: 1...1,
    summary: "Revoke the tokens at the provider, and forget them",
    options: [
      account, Option("--all", "all accounts of the provider"),
      Option("--keep-remote", "only forget them here; the provider is not asked"),
    ],
    examples: [
      Example("credmgr logout github", "the account that is used here"),
      Example("credmgr logout github --account work --keep-remote", "another one, whose token stays good elsewhere"),
    ], needsNetwork: true
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    var names: [String?] = [try context.account(invocation, of: provider)]
    if invocation.has("--all") {
      if invocation.has("--account") { throw .exclusive(["--all", "--account"]) }
      names = try manager { () throws(CredentialError) in
        try context.source.accountsIfAny()?.accounts(of: provider).map(\.name) ?? []
      }
      if names.isEmpty {
        try context.reportDamagedRecords(provider)
        throw CommandError(.loginNeeded(provider: provider, account: nil, .noCredential))
      }
    }
    let selected = try manager { () throws(CredentialError) in
      try context.source.accountsIfAny()?.selected(for: provider)
    }
    for name in names {
      let result: (account: String, isRevoked: Bool)
      do throws(CredentialError) {
        result = try context.source.logout(name, of: provider, keepsRemote: invocation.has("--keep-remote"))
      } catch {
        let message = error.message
        if case .unknownAccount = error, let message = context.message(CommandError(error)) {
          // Nobody logs in to log out.
          let others = message.hints.without("credmgr", "login")
          throw .failed(
            message.with(
              hints: others.isEmpty ? ["\(credmgr: "status", provider) to see who is logged in"] : others))
        }
        if case .descriptorChanged = error {
          throw .failed(message.with(hints: message.hints + [forgetting(provider, name)]))
        }
        guard !invocation.has("--keep-remote"), [.refused, .unreachable].contains(message.status) else {
          throw CommandError(error)
        }
        throw .failed(kept(message, provider, name, isEverybody: invocation.has("--all")))
      }
      let remote = result.isRevoked ? "revoked at the provider and forgotten" : "forgotten"
      context.tell("\"\(result.account)\" at \"\(provider)\": \(remote)")
    }
    if !invocation.has("--all") { try tellDefault(provider, before: selected, context) }
    if invocation.has("--all") { try context.reportDamagedRecords(provider) }
    return .done
  }

  /// A logout that the provider did not see.
  private static func kept(
    _ message: Message, _ provider: String, _ name: String?, isEverybody: Bool
  ) -> Message {
    // Another login would not help to be rid of this one.
    let hints = message.hints.without("credmgr", "login")
    let forget: Remedy =
      isEverybody
      ? "\(credmgr: "logout", provider, "--all", "--keep-remote") to forget the accounts here alone"
      : forgetting(provider, name)
    return Message(message.text + "; nothing was forgotten", hints: hints + [forget], status: message.status)
  }

  private static func forgetting(_ provider: String, _ name: String?) -> Remedy {
    let command = ["logout", provider] + accountOption(name) + ["--keep-remote"]
    return "\(credmgr: command) to forget the account here alone"
  }

  /// Who goes without a default account from now on is not to find that out in a script.
  private static func tellDefault(_ provider: String, before: String?, _ context: Context) throws(CommandError) {
    guard before != nil else { return }
    let (names, selected) = try manager { () throws(CredentialError) -> ([String], String?) in
      guard let accounts = try context.source.accountsIfAny() else { return ([], nil) }
      return (try accounts.accounts(of: provider).map(\.name), try accounts.selected(for: provider))
    }
    guard selected == nil, let first = names.first else { return }
    guard names.count > 1 else { return context.tell("\"\(first)\" is the only account of \"\(provider)\" now") }
    context.tell(
      "\"\(provider)\" has no default account any more; there are "
        + names.map { "\"\($0)\"" }.joined(separator: ", "))
    context.tell(hint: "\(credmgr: "use", provider, first) to make one the default")
  }
}

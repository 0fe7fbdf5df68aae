import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

/// Moves the entries of a plan into the vault, one after the other. An entry that fails does not stop the others.
struct ImportMove {
  private enum Result {
    case account(Account, isVerified: Bool, wasThere: Bool)
    case login(origin: String, isVerified: Bool?, wasThere: Bool)  // `nil`: nothing can verify it.
  }

  private let plan: ImportPlan
  private let context: Context
  private let removes: Bool
  private let replaces: Bool
  private let isDryRun: Bool
  private let agrees: Bool
  private let start: Moment
  private var kept: [String: Set<String>] = [:]  // The accounts that this import stored, by provider.
  private var keptLogins: [String] = []

  init(_ plan: ImportPlan, _ invocation: Invocation, in context: Context) {
    (self.plan, self.context) = (plan, context)
    removes = invocation.has("--remove")
    replaces = invocation.has("--replace")
    isDryRun = invocation.has("--dry-run")
    agrees = invocation.has("--yes")
    start = context.clock.now()
  }

  mutating func run() throws(CommandError) {
    var rows: [JSONValue] = []
    // A file of a tool that the user named could not be read.
    var failure: ExitStatus? = plan.isNamed && plan.hasTroubles ? .usage : nil
    var moved: [ImportPlan.Item] = []
    var hasFailed = false
    for item in plan.items {
      if isDryRun {
        let what = item.isMovable ? "would move" : "cannot move"
        if !context.isJSON { context.tell("\(what) \(item.label): \(plan.words(item, context))") }
        rows.append(row(item, item.isMovable ? "would_move" : "skipped"))
        continue
      }
      guard item.isMovable else {
        plan.tellUnmovable(item, context)
        // The user named this tool or entry, so it is an error that it cannot be moved.
        if plan.isNamed { failure = failure ?? .usage }
        rows.append(row(item, "skipped"))
        continue
      }
      do throws(CommandError) {
        // Another import may have added the provider for another server.
        if try isElsewhere(item) { throw .usage("its provider was added for another server") }
        let (result, secret) = try move(item)
        if case .account(let account, _, _) = result {
          kept[account.provider, default: []].insert(account.name)
        }
        if case .login(let origin, _, _) = result { keptLogins.append(origin + " " + (item.entry.user ?? "")) }
        var (reason, fault): (String?, Message?) = (nil, nil)
        do throws(CommandError) { reason = removes ? try remove(item, result, having: secret) : nil } catch {
          guard isStored(secret, of: item, result), let message = context.message(error) else { throw error }
          (reason, fault, failure) = (message.text, message, failure ?? message.status)
        }
        let isRemoved = removes && reason == nil
        tell(item, result, isRemoved: isRemoved)
        if let project = item.entry.isClient ? ImportedClient(secret)?.quotaProject : nil {
          context.tell(
            "the quota project \(quoted(project)) was not moved; requests name it in the header X-Goog-User-Project")
        }
        if let reason { context.tell("left \(item.label) in \(item.entry.place): \(reason)") }
        if let hint = fault?.hint(after: context.line) { context.tell("hint: " + hint) }
        moved.append(item)
        rows.append(row(item, result, isRemoved: isRemoved, error: fault?.text))
      } catch {
        guard var message = context.message(error) else { throw error }
        if message.status == .interrupted { throw error }
        if case .credential(.providerChanged) = error {
          message = message.with(hints: ["\(credmgr: words(moving: item)) to look again"])
        }
        context.tell("cannot move \(item.label): \(message.text)")
        // The hint could name the provider of another host, or one that is removed again.
        let isOther = !item.variables.isEmpty || item.newName != nil || item.entry.isClient
        if !isOther || [.usage, .unreachable].contains(message.status), let hint = message.hint(after: context.line) {
          context.tell("hint: " + hint)
        }
        failure = failure ?? message.status
        hasFailed = !context.isJSON
        rows.append(row(item, "failed", error: message.text))
      }
    }
    if context.isJSON { try context.output(.array(rows)) }
    if hasFailed { context.tell("entries that were not moved stay in their old place") }
    if plan.items.isEmpty, failure == nil { context.tell("no credentials of other tools found") }
    if !isDryRun { tellNextSteps(moved) }
    if let failure { throw .ended(failure) }
  }

  // MARK: One entry

  private func move(_ item: ImportPlan.Item) throws(CommandError) -> (Result, Secret) {
    let (user, secret) = try login(of: item)
    if case .client(let provider) = item.entry.form {
      let importing = ImportClient(
        item, context, agrees: agrees, replaces: replaces, keeping: kept, by: words(moving: item))
      let account = try importing.account(at: provider, secret)
      return (.account(account, isVerified: true, wasThere: account.credential.loggedInAt < start), secret)
    }
    switch item.target {
    case .account(let provider, _):
      let token = item.entry.isUserToken ? item.entry.user.map { Secret($0) } ?? secret : secret
      guard let name = item.newName else { return (try account(item, at: provider, token), token) }
      var own = item
      own.variables = [:]
      let before = try manager(context.source.snapshot(of: name))
      let isNew = try add(name, extending: provider, for: item)
      own.seenDigest = context.source.destinationsDigest(ofLogin: LoginOptions(), to: name)
      do throws(CommandError) { return (try account(own, at: name, token), token) } catch {
        if isNew { try? context.source.restore(before) }
        throw error
      }
    case .gitLogin:
      let entry = item.entry
      let parts = (entry.address ?? "https://" + entry.host).pieces(separatedBy: "://")
      let path = parts[parts.count - 1].drop { $0 != "/" }.dropFirst()
      var login = HostLogin(username: entry.user, password: secret)
      login.path = path.isEmpty ? nil : String(path)
      return (try store(login, "\(parts.count > 1 ? parts[0] : "https")://\(entry.host)", of: item), secret)
    case .dockerLogin:
      let address = try RegistryAddress(item.entry.address ?? item.entry.host)
      guard let user else { throw .usage("the entry has no user name") }
      // With this name, the secret is an identity token (docker/docker-credential-helpers).
      if user == "<token>" { throw .usage(ImportAdvice.identityToken.sentence) }
      var login = HostLogin(username: user, password: secret)
      login.path = address.written == address.text ? nil : address.written
      let isVerified = try isAccepted(login, by: address)
      return (try store(login, address.origin, of: item, isVerified: isVerified), secret)
    case .issuer, .nothing: throw .usage("the entry has no provider")
    }
  }

  /// Asks a registry whether it accepts a login; throws if it does not.
  private func isAccepted(_ login: HostLogin, by address: RegistryAddress) throws(CommandError) -> Bool {
    let check = try manager(context.source.registry(at: address.host, isSecure: address.isSecure, accepts: login))
    if let server = check.tokenServer {
      context.tell("the token server of \(quoted(address.host)) got the password: \(Message.visible(server))")
    }
    switch check.isAccepted {
    case true?: return true
    case nil: return false
    case false?:
      throw .failed(
        .refused("the registry rejected the login; nothing was changed")
          .hint("\(run: "docker", "login", address.written) again"))
    }
  }

  private func login(of item: ImportPlan.Item) throws(CommandError) -> (user: String?, secret: Secret) {
    var password: Secret?
    if let variable = item.entry.passwordVariable {
      let given = Environment.text(variable, context.environment)
      if given == nil, !Question.canAsk {
        throw .usage("cannot prompt for the password of \(item.label): no terminal", hint: "set \(variable)")
      }
      if let given {
        password = Secret(given)
      } else {
        password = Secret(bytes: try Question.secret("password of \(item.label):"))
      }
    }
    return try imported { () throws(ImportFault) in try item.entry.login(plan.places, password: password) }
  }

  /// Whether the item's provider, which had not been added, has another server than the item's by now.
  private func isElsewhere(_ item: ImportPlan.Item) throws(CommandError) -> Bool {
    guard case .account(let provider, isAdded: false) = item.target, item.newName == nil,
      let registration = try manager(context.source.accountsIfAny()?.registration(of: provider)),
      let descriptor = try? context.home.library.load(provider).descriptor
    else { return false }
    return descriptor.variables.contains { variable in
      guard !variable.isAtLogin, variable.format != .redirect else { return false }
      let standard = variable.defaultValue
      return (registration.variables[variable.name] ?? standard) != (item.variables[variable.name] ?? standard)
    }
  }

  /// Adds the provider of another host under a name of its own, unless an earlier entry did.
  private func add(_ name: String, extending base: String, for item: ImportPlan.Item) throws(CommandError) -> Bool {
    let addition = try manager(context.source.addition(shipped: base, as: name))
    if context.source.hasOtherDescriptor(than: addition) {
      throw .usage("another provider has the name \(quoted(name)); nothing was changed")
    }
    if let known = try manager(context.source.accountsIfAny()?.registration(of: name)) {
      if known.variables == item.variables { return false }
      throw .usage("its provider was added for another server")
    }
    var adding = AddingProvider(
      addition: addition, isDiscovered: false, isForeign: false, variables: item.variables, isAgreed: agrees)
    adding.isForTokens = true
    _ = try adding.add(context)
    return true
  }

  private func account(
    _ item: ImportPlan.Item, at provider: String, _ secret: Secret
  ) throws(CommandError) -> Result {
    if let account = try manager(context.source.account(having: secret, of: item.entry, at: provider)) {
      return .account(account, isVerified: !account.credential.isUnverified, wasThere: true)
    }
    if !item.servers.isEmpty { try context.askWhether(item, belongsTo: provider, at: item.servers, isGiven: agrees) }
    var wish = LoginOptions()
    wish.verifies = true
    // The user agreed that the key belongs there, although it looks like that of another provider.
    wish.keepsUnverified = agrees || !item.servers.isEmpty
    wish.variables = item.variables
    wish.seenDigest = item.seenDigest
    wish.replaces = replaces
    // A replaced token of this import would be in neither place.
    wish.keeps = kept[provider] ?? []
    let account: Account
    do throws(CredentialError) { account = try login(item.entry, having: secret, to: provider, wish) } catch {
      if replaces, case .alreadyThere = error { throw isKept(item, by: context.titled(provider)) }
      // If the provider does not name its users, the account keeps the name from the tool.
      guard case .nameNeeded = error, let user = item.entry.accountName(context) else { throw CommandError(error) }
      wish.account = user
      account = try manager(login(item.entry, having: secret, to: provider, wish))
    }
    return .account(account, isVerified: !account.credential.isUnverified, wasThere: false)
  }

  private func login(
    _ entry: ImportEntry, having secret: Secret, to provider: String, _ wish: LoginOptions
  ) throws(CredentialError) -> Account {
    let isKeyFile = entry.form == .keyFile(provider: provider)
    guard isKeyFile || !entry.variables.isEmpty, let descriptor = try? context.home.library.load(provider).descriptor
    else { return try context.source.login(provider, wish, token: secret) }
    var wish = wish
    wish.hasKeyFile = isKeyFile
    let user = TerminalUser(
      provider: provider, offered: descriptor.grants, fitting: nil, context,
      keyFile: isKeyFile ? secret.reveal() : nil, values: isKeyFile ? [:] : entry.values(of: descriptor))
    return try context.source.login(provider, wish, user: context.user(user))
  }

  /// The error for an entry whose account or login has another secret from the same import.
  private func isKept(_ item: ImportPlan.Item, by place: String) -> CommandError {
    .usage(
      "this import stored another token of the same account at \(place); nothing was changed",
      hint: "\(credmgr: words(moving: item)) to replace the token that was moved, which deletes it")
  }

  /// The words of the command that moves only this entry.
  private func words(moving item: ImportPlan.Item) -> [String] {
    ["import", item.label] + (removes ? ["--remove"] : []) + (agrees ? ["--yes"] : []) + (replaces ? ["--replace"] : [])
  }

  private func store(
    _ login: HostLogin, _ origin: String, of item: ImportPlan.Item, isVerified: Bool? = nil
  ) throws(CommandError) -> Result {
    var pattern = HostLoginPattern(origin: origin, path: login.path, username: login.username)
    pattern.takesSchemes = true
    let found = try manager(context.source.hostLogin(pattern))
    let known = found?.path == login.path ? found : nil
    if known == login { return .login(origin: origin, isVerified: isVerified, wasThere: true) }
    // docker asks without a user name, so a login of any user would replace the others.
    let anybody = HostLoginPattern(origin: origin, takesSchemes: true)
    if isVerified == false, try manager(context.source.hostLogin(anybody)) != nil {
      throw .usage(
        "the vault has another login for \(quoted(origin)), and the registry did not confirm this one; "
          + "nothing was changed", hint: "\(credmgr: "logout", origin) first to replace it")
    }
    if known != nil {
      let isOfThisImport = keptLogins.contains(origin + " " + (login.username ?? ""))
      if replaces, isOfThisImport { throw isKept(item, by: quoted(origin)) }
      if !replaces {
        throw .usage(
          "the vault has another login for \(quoted(origin)); nothing was changed",
          hint: "\(add: "--replace") to replace it")
      }
    }
    do throws(CredentialError) { try context.source.store(login, for: origin, replacing: known) } catch {
      // Another process has just stored one.
      guard case .vault(.conflict) = error else { throw CommandError(error) }
      return try store(login, origin, of: item, isVerified: isVerified)
    }
    return .login(origin: origin, isVerified: isVerified, wasThere: false)
  }

  // MARK: The old place

  /// Removes the entry if the vault returns its secret; returns why it stays, or `nil`.
  private func remove(
    _ item: ImportPlan.Item, _ result: Result, having secret: Secret
  ) throws(CommandError) -> String? {
    if case .account(_, isVerified: false, _) = result { return "its provider did not confirm the token" }
    if case .login(_, isVerified: false, _) = result { return "its registry did not confirm the login" }
    guard item.entry.isRemovable else {
      return File.exists(item.entry.place)
        ? "other parts of the file belong to it; edit the file yourself" : "remove it with its own tool"
    }
    if try imported({ () throws(ImportFault) in try item.entry.hasFurtherLines(plan.places) }) {
      return "it has more lines than the secret; \(quoted("pass edit " + item.entry.name)) removes the first line"
    }
    try imported { () throws(ImportFault) in
      try item.entry.remove(plan.places) { isStored(secret, of: item, result) }
    }
    return nil
  }

  private func isStored(_ secret: Secret, of item: ImportPlan.Item, _ result: Result) -> Bool {
    switch result {
    case .account(let account, _, _):
      return item.entry.form == .secret ? context.source.has(secret, for: account.id) : context.source.has(account)
    case .login(let origin, _, _):
      let logins = try? context.source.hostLogins()
      return logins?.contains { $0.origin == origin && $0.login.password == secret } == true
    }
  }

  private func imported<Value>(_ step: () throws(ImportFault) -> Value) throws(CommandError) -> Value {
    do throws(ImportFault) { return try step() } catch { throw .failed(error.message) }
  }

  // MARK: Words

  private func tell(_ item: ImportPlan.Item, _ result: Result, isRemoved: Bool) {
    let removal = isRemoved ? ", and removed it from \(item.entry.place)" : ""
    switch result {
    case .account(let account, let isVerified, let wasThere):
      let title = context.titled(account.provider)
      let verb = wasThere ? "the vault already had" : "moved"
      let doubt = isVerified || wasThere ? "" : "; \(title) did not confirm it"
      context.tell("\(verb) \(item.label) as \(quoted(account.name)) at \(title)\(doubt)\(removal)")
    case .login(let origin, let isVerified, let wasThere):
      let isDocker = item.target == .dockerLogin
      let place = isDocker ? String(origin.dropFirst(RegistryAddress.prefix.count)) : origin
      let verb = wasThere ? "the vault already had" : "moved"
      let login = "a login of \(isDocker ? "docker" : "git") for \(quoted(place))"
      let doubt = isVerified == false && !wasThere ? "; the registry did not confirm it" : ""
      context.tell("\(verb) \(item.label) as \(login)\(doubt)\(removal)")
    }
  }

  private func tellNextSteps(_ moved: [ImportPlan.Item]) {
    if moved.contains(where: { $0.entry.use == .git }) {
      context.tell(hint: "\(credmgr: "git-setup") to make git ask credmgr")
    }
    if moved.contains(where: { $0.entry.use == .docker }) {
      context.tell(hint: "\(credmgr: "docker-credential", "setup", "--all") to make docker ask credmgr")
    }
    if removes { return }
    let labels = moved.filter { item in
      item.entry.isRemovable && (try? item.entry.hasFurtherLines(plan.places)) != true
    }.map(\.label)
    if !labels.isEmpty {
      context.tell(hint: "\(credmgr: ["import"] + labels + ["--remove"]) to clean the old place")
    }
  }

  private func row(
    _ item: ImportPlan.Item, _ state: String, account: Account? = nil, isRemoved: Bool = false, error: String? = nil
  ) -> JSONValue {
    var provider = account?.provider
    if provider == nil, case .account(let name, _) = item.target { provider = item.newName ?? name }
    return [
      "tool": .string(item.entry.source), "name": .string(item.entry.name), "state": .string(state),
      "provider": .optional(provider), "account": .optional(account?.name), "removed": .boolean(isRemoved),
      "error": .optional(error),
    ]
  }

  private func row(_ item: ImportPlan.Item, _ result: Result, isRemoved: Bool, error: String?) -> JSONValue {
    switch result {
    case .account(let account, let isVerified, _):
      row(item, isVerified ? "moved" : "moved_unverified", account: account, isRemoved: isRemoved, error: error)
    case .login(_, let isVerified, _):
      row(item, isVerified == true ? "moved" : "moved_unverified", isRemoved: isRemoved, error: error)
    }
  }
}

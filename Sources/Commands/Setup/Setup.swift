import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// Leads from a provider to its first token, with the steps that the other commands take.
///
/// Each step stores all of its result or nothing, so the user can stop at every question and continue later.
struct Setup {
  let context: Context
  /// The words of the login that led here; `nil` to log in without options.
  var login: [String]?
  /// The purposes whose scopes the login requests; `nil` for the descriptor's default.
  var purposes: String?

  /// A way to the first token.
  enum Way: Equatable {
    case registered  // The provider publishes a client, or registers one.
    case typed(Grant)  // A key or a password.
    case token  // A token that the user makes at an OAuth provider.
    case document  // The URL of a document that the user publishes.
    case client  // The user's own client.

    /// Whether the user names the client.
    var hasOwnClient: Bool { self == .client || self == .document }
  }

  init(_ context: Context, login: [String]? = nil, purposes: String? = nil) {
    (self.context, self.login, self.purposes) = (context, login, purposes)
  }

  var options: [String] { purposes.map { ["--for", $0] } ?? [] }

  func run(_ given: String?) throws(CommandError) {
    let given = given.map { SetupChoice.address($0) ?? $0 }
    if context.isJSON || !Question.canAsk { return try explain(given) }
    // An unknown word may be a key.
    var source = given.flatMap { !isSearch($0) || SetupChoice(context).knows($0) ? $0 : nil }
    do throws(CommandError) {
      var given = given
      while true {
        let isTyped = given.map(isSearch) ?? true
        let chosen = if let given, !isTyped { given } else { try SetupChoice(context).source(given: given) }
        source = chosen
        do throws(CommandError) { return try setUp(chosen) } catch {
          guard isTyped, Command.isURL(chosen), let message = Self.wrongAddress(error) else { throw error }
          // The user may have mistyped the address.
          context.tell("error: \(message.text)")
          (given, source) = (nil, nil)
        }
      }
    } catch {
      guard let message = context.message(error), message.status == .interrupted else { throw error }
      throw .failed(message.with(hints: ["\(credmgr: ["setup"] + (source.map { [$0] } ?? []) + options) to continue"]))
    }
  }

  /// Whether a word leads to a choice, because it is not a provider, or is also an alias of others.
  private func isSearch(_ word: String) -> Bool {
    if Command.isURL(word) { return SetupChoice(context).site(word) != nil }
    if Context.isDescriptorFile(word) { return false }
    if context.home.library.path(of: word) != nil { return SetupChoice(context).isAlias(word) }
    return true
  }

  /// The message of an error that an address causes; `nil` for any other error.
  private static func wrongAddress(_ error: CommandError) -> Message? {
    switch error {
    case .credential(.discovery), .credential(.http): error.message
    default: nil
    }
  }

  private func setUp(_ source: String) throws(CommandError) {
    let isAddress = Command.isURL(source)
    let isDiscovered = isAddress && !Command.isPublished(source, updates: false)
    let addition: ProviderAddition
    if isAddress {
      do throws(CommandError) {
        addition = try isDiscovered ? Command.discovered(at: source, context) : Command.published(at: source, context)
      } catch {
        guard case .credential(.alreadyAdded(let provider)) = error else { throw error }
        return try setUp(provider)
      }
    } else {
      addition = try self.addition(source)
    }
    let provider = addition.identifier
    let scope = try context.scope(Invocation(.login, [provider] + options), of: addition.descriptor)
    let isFile = !isAddress && Context.isDescriptorFile(source)
    var seen = destinations(of: provider)
    let names = try manager(context.source.accountsIfAny()?.accounts(of: provider) ?? []).map(\.name)
    let isNew = isAddress || isFile
    let title = isNew ? quoted(provider) : context.titled(provider)
    if isFile, try isAdded(addition), let installed = context.home.library.path(of: provider),
      try context.descriptor(source) != (try? File.read(installed, limit: 1 << 20))
    {
      throw .usage(
        "\(title) has already been added from another descriptor",
        hint: "\(credmgr: "add-provider", source, "--replace") to use this one")
    }
    var settings: [String] = []
    if !names.isEmpty, login == nil {
      context.tell("already logged in to \(title) as " + some(names))
      guard try Question.confirm("Log in with another account?") else { return try finish(provider) }
      // The provider does not name the user, so the name of the first account is taken.
      if addition.descriptor.account.isEmpty {
        let name = try Question.answer("name of the account:") { $0.isEmpty ? "a name is required" : nil }
        settings = ["--account", name]
      }
    }
    let isForeign = isNew || !context.source.isShipped(addition.loaded)
    var adding = AddingProvider(addition: addition, isDiscovered: isDiscovered, isForeign: isForeign)
    if try isAdded(addition) {
      let way = try names.isEmpty ? correctedWay(&adding, title, scope: scope, seeing: &seen) : nil
      try logIn(replacing: adding, scope: scope, seeing: seen) { seen throws(CommandError) in
        try logIn(to: provider, way, of: addition.descriptor, scope: scope, with: settings, seeing: seen)
      }
      return try finish(provider)
    }
    let way = try chosenWay(ways(of: addition, isForeign: isForeign), of: addition.descriptor, title: title)
    try askForSettings(&adding, title)
    settings += adding.variables.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
    let missing = try missing(of: addition, way)
    var isShown = false
    for variable in missing.filter({ !$0.isSecret }) + missing.filter(\.isSecret) {
      if variable.isSecret, isForeign, !isShown {
        try adding.preview(context)
        isShown = true
      }
      let value = try value(of: variable)
      adding.variables[variable.name] = value
      if !variable.isSecret { settings += ["--set", "\(variable.name)=\(value)"] }
    }
    if way.hasOwnClient, isForeign, !isShown { try adding.preview(context) }
    if way == .client { try askForClient(&adding, title, scope: scope) }
    if way == .document { try askForDocument(&adding) }
    try requireDestinations(seen, of: provider)
    seen = destinations(of: provider, adding.variables)
    // `login` itself adds a shipped provider that needs no client of the user, together with the first account.
    // Add any other provider here.
    if isForeign || way.hasOwnClient || missing.contains(where: \.isSecret) {
      let hidesShipped = isForeign && context.home.shippedLibrary.path(of: provider) != nil
      if hidesShipped {
        context.tell("this descriptor replaces the built-in \(quoted(provider)) for you")
        guard try Question.confirm("Add it?") else { throw .usage("nothing was added") }
      }
      _ = try adding.run(context)
      context.tell("added \(context.titled(provider))")
      if hidesShipped, try !Question.confirm("Log in?") {
        return context.tell(note: "\(credmgr: "setup", provider) to log in later")
      }
      settings = settings.first == "--account" ? Array(settings.prefix(2)) : []
      seen = destinations(of: provider)
    }
    try logIn(replacing: adding, scope: scope, seeing: seen) { seen throws(CommandError) in
      try logIn(to: provider, way, of: addition.descriptor, scope: scope, with: settings, seeing: seen)
    }
    // Nothing else has shown the token to the server.
    if isDiscovered, addition.descriptor.endpoints[.identity] == nil { test(source, provider) }
    try finish(provider)
  }

  /// Sends a request with the token to an API or an MCP server, and says whether it refuses the token.
  private func test(_ address: String, _ provider: String) {
    guard let uri = try? URI(parsing: address) else { return }
    var status: Int?
    // The answer may be a stream without an end.
    _ = try? context.source.send(
      HTTPRequest(method: "GET", uri: uri), account: nil, of: provider,
      limits: HTTPLimits(bodyBytes: 1 << 20, time: .seconds(10))
    ) { part in
      if case .head(let head) = part { status = head.status }
      return false
    }
    switch status {
    case .some(200..<300): context.tell("\(address) accepts the token")
    case 401, 403: context.tell("warning: \(address) refuses the token with status \(status ?? 0)")
    default: break
    }
  }

  func addition(_ source: String) throws(CommandError) -> ProviderAddition {
    guard Context.isDescriptorFile(source) else {
      let identifier = try context.provider(source)
      return try manager(context.source.addition(shipped: identifier, as: nil))
    }
    if source == "-" { throw .usage("the answers come from standard input, so the descriptor must be a file") }
    let bytes = try context.descriptor(source)
    return try manager(context.source.addition(bytes, named: Context.descriptorName(source), as: nil))
  }

  /// Whether the provider was added, with a client if it requires one.
  func isAdded(_ addition: ProviderAddition) throws(CommandError) -> Bool {
    guard let there = try manager(context.source.accountsIfAny()?.registration(of: addition.identifier)) else {
      return false
    }
    return !ClientNeeds(addition.descriptor).needsIdentifier || !there.clientIdentifier.isEmpty
  }

  func missing(of addition: ProviderAddition, _ way: Way) throws(CommandError) -> [Variable] {
    // Without a client, no browser returns to a redirect.
    let redirects = way.hasOwnClient || way == .registered
    return try context.missing([:], of: addition).filter { redirects || $0.format != .redirect }
  }

  private func value(of variable: Variable) throws(CommandError) -> String {
    if variable.isSecret { return try Command.asked(variable).reveal() }
    let help = variable.help.map { " (\($0))" } ?? ""
    return try Question.answer("\(variable.name)\(help):") { text in
      text.isEmpty ? "a value is required" : variable.accepts(text) ? nil : "this is not a valid value"
    }
  }

  // MARK: Ways

  /// The ways to the first token, beginning with those that require no registration.
  func ways(of addition: ProviderAddition, isForeign: Bool) -> [Way] {
    let descriptor = addition.descriptor
    let typed = descriptor.grants.filter { $0.traits.asked != nil }
    var ways: [Way] = typed.map(Way.typed)
    guard typed.count < descriptor.grants.count else { return ways }
    let needsClient = ClientNeeds(descriptor).needsIdentifier
    // Such a provider cannot be added without its client.
    let own: [Way] = (descriptor.client.takesDocument ? [.document] : []) + [.client]
    if needsClient, isForeign { return own }
    if typed.isEmpty, descriptor.key != nil, !isForeign { ways.append(.token) }
    // The options of a login are for a browser or a device code.
    let hasOptions = login?.contains { $0.hasPrefix("--") && !$0.hasPrefix("--account") } == true
    if hasOptions { ways = [] }
    return needsClient ? ways + own : [.registered] + ways
  }

  func chosenWay(_ ways: [Way], of descriptor: Descriptor, title: String) throws(CommandError) -> Way {
    guard ways.count > 1 else { return ways.first ?? .client }
    context.tell("\(title) offers \(ways.count) ways to log in:")
    return ways[try Question.choice(among: ways.map { words($0, descriptor) })]
  }

  private func words(_ way: Way, _ descriptor: Descriptor) -> String {
    let page = descriptor.key?.page.map { " that you make at " + $0 } ?? " that you make at the provider"
    return switch way {
    case .registered: "your browser, without a registration"
    case .typed(let grant): (grant.traits.asked ?? "a key") + (grant.traits.isKey ? page : "")
    case .token: "a token" + page
    case .document: "the URL of a document that you publish, without a registration"
    case .client: "your own client" + (descriptor.client.register.map { " that you register at " + $0 } ?? "")
    }
  }

  // MARK: Login

  /// Returns the digest of a login's destinations now; `nil` if no login is possible yet.
  func destinations(of provider: String, _ variables: [String: String] = [:]) -> String? {
    var wish = LoginOptions()
    wish.variables = variables
    return context.source.destinationsDigest(ofLogin: wish, to: provider)
  }

  /// Throws if another process has changed the provider since this one showed it.
  func requireDestinations(_ seen: String?, of provider: String) throws(CommandError) {
    if destinations(of: provider) != seen { throw CommandError(.providerChanged(provider)) }
  }

  private func logIn(
    to provider: String, _ way: Way?, of descriptor: Descriptor, scope: [String], with settings: [String],
    seeing seen: String?
  ) throws(CommandError) {
    var words = (login ?? ["credmgr", "login", provider]) + settings
    switch way {
    case .token?:
      if let page = descriptor.key?.page {
        let scopes = Self.scopeWords(descriptor, scope)
        context.tell("create a token at \(page)\(scopes)\(scopes.isEmpty ? "" : ", if the page asks for scopes")")
        try offer(page)
      }
      words.append("--with-token")
    case .typed(let grant)? where descriptor.grants.first != grant: words += ["--grant", grant.rawValue]
    default: words += options
    }
    while true {
      do throws(CommandError) { return try run(.login, words, seeing: seen) } catch {
        guard case .credential(.wrongPaste) = error, let message = context.message(error) else { throw error }
        context.tell(message.text)
      }
    }
  }

  /// The scopes that a token of the user needs for the same purposes as a login.
  static func scopeWords(_ descriptor: Descriptor, _ scope: [String]) -> String {
    let scope = scope.isEmpty ? descriptor.scope.requested : scope
    return scope.isEmpty ? "" : " with the scopes " + scope.joined(separator: " ")
  }

  /// Runs another command. Its errors keep their own hints.
  private func run(_ command: Command, _ words: [String], seeing seen: String? = nil) throws(CommandError) {
    let invocation = try Invocation(command, words.dropFirst(2))
    let inner = context.running(CommandLine(words, invocation, named: Command.named), seeing: seen)
    do throws(CommandError) { try command.run(invocation, inner) } catch {
      switch error {
      // Another question follows.
      case .credential(.oauth(let fault, _)) where fault.mayRefuseClient: throw error
      case .credential(.wrongPaste): throw error
      default: break
      }
      guard let message = inner.message(error) else { throw error }
      let hint = message.hint(after: inner.line)
      throw .failed(message.with(hints: hint.map { [Remedy(parts: [.words($0)])] } ?? []))
    }
  }

  /// Offers what other programs need, and says what to type next.
  private func finish(_ provider: String) throws(CommandError) {
    let unset = try UnsetHelpers(of: provider, context)
    if !unset.git.isEmpty, try Question.confirm("Let git use credmgr for \(some(unset.git))?") {
      try run(.gitSetup, ["credmgr", "git-setup"])
    }
    if !unset.docker.isEmpty, try Question.confirm("Let docker use credmgr for \(some(unset.docker))?") {
      try run(.dockerCredential, ["credmgr", "docker-credential", "setup"] + unset.docker)
    }
    let descriptor = (try? context.home.library.load(provider))?.descriptor
    if let variables = descriptor?.environment.values.flatMap(\.self).sorted(), !variables.isEmpty {
      let exec: Remedy = "\(command: "credmgr", "exec", provider, "--", "COMMAND")"
      let pronoun = variables.count > 1 ? "them" : "it"
      context.tell(note: "\(exec) sets \(some(variables)) for programs that read \(pronoun)")
    }
    if descriptor?.kubectl != nil, (try? Launcher.find("kubectl")) != nil {
      context.tell(
        note: "\(command: "credmgr", "kubectl-credential", "--help") shows the entry for your kubeconfig")
    }
    context.tell(
      note: "\(command: "credmgr", "token", provider) prints the token, and \(command: "credmgr", "list") shows your "
        + "accounts")
  }
}

extension Setup {
  /// Throws for an address or a file where a login wants a provider, which `setup` or `add-provider` adds first.
  static func checkProvider(_ word: String) throws(CommandError) {
    if SecretOption.isIn(word) { return }
    let address = Command.isURL(word) ? word : SetupChoice.address(word)
    if let address {
      throw .usage("\(quoted(word)) is an address, not a provider", hint: "\(credmgr: "setup", address)")
    }
    guard word != "-", Context.isDescriptorFile(word), File.exists(word) else { return }
    throw .usage(
      "\(quoted(word)) is a file, not a provider",
      hint: "\(credmgr: "add-provider", word.contains("/") ? word : "./" + word) first")
  }

  /// Asks whether to set up a provider that a login did not find.
  static func askToSetUp(
    _ provider: String, after error: CredentialError, _ context: Context
  ) throws(CommandError) -> Bool {
    switch error {
    case .notAdded(provider: provider, _): break
    case .provider(.missingVariable):
      guard (try? context.source.accountsIfAny()?.registration(of: provider)) == nil else { return false }
    default: return false
    }
    guard Question.canAsk, !context.isJSON else { return false }
    let title = context.titled(provider)
    context.tell("\(title) has not been added")
    return try Question.confirm("Set up \(title) now?")
  }
}

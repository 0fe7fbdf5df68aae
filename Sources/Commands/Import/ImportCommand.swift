import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Command {
  static let `import` = Command(
    name: "import", operands: "[TOOL[:NAME]]…", operandCount: 0...10_000,
    summary: "Move credentials of other tools into the vault",
    options: [
      Option("--list", "list the entries of other tools, without secrets"),
      Option("--all", "move all entries that credmgr can store, except those of .env"),
      Option("--remove", "remove moved entries from their old place"),
      Option("--replace", "replace other credentials of the same account or login"),
      Option("--yes", "send credentials without a prompt to servers that need your consent"),
      Option("--dry-run", "show the moves and change nothing"),
      json,
    ],
    notes: [
      "TOOL is one of " + ImportSource.all.map(\.name).joined(separator: ", ")
        + ". NAME selects an entry by its name or host. Without arguments, credmgr lists the entries. At a terminal, "
        + "it also prompts for your choice.",
      "credmgr sends each token to its own provider and stores it only if the provider accepts it. The account gets "
        + "its name from the provider. A login of docker is verified by the registry. A password for a host without a "
        + "provider becomes a login for git, without verification.",
      "credmgr refuses files that other users can change. With \"--remove\", a copy of the file stays next to it until "
        + "credmgr has read the moved credential back from the vault.",
    ],
    examples: [
      ("credmgr import", "Choose entries at the terminal"),
      ("credmgr import --list", "List the entries of other tools"),
      ("credmgr import gh --dry-run", "Show the move without doing it"),
      ("credmgr import gh:github.com --remove", "Move the login of the GitHub CLI"),
      ("credmgr import --all", "Move all entries that credmgr can store"),
    ]
  ) { invocation, context throws(CommandError) in
    let choosing = ["--list", "--all"].filter(invocation.has) + (invocation.operands.isEmpty ? [] : ["TOOL"])
    if choosing.count > 1 { throw .exclusive(choosing) }
    for option in ["--remove", "--replace", "--yes", "--dry-run"] where invocation.has(option) {
      if invocation.has("--list") { throw .exclusive(["--list", option]) }
    }
    var plan = try ImportPlan(invocation.operands, context)
    if invocation.has("--list") { return try plan.list(context) }
    if choosing.isEmpty, context.isJSON || !Terminal.isTerminal(0) || !Terminal.isTerminal(2) {
      // Without a terminal, credmgr moves only what the user named.
      guard ["--remove", "--replace", "--yes"].contains(where: invocation.has) else { return try plan.list(context) }
      throw .usage("name the tools whose credentials to move", hint: "\(credmgr: "import", "--list") to see them")
    }
    if !invocation.has("--dry-run") { plan.noteDestinations(context) }
    if choosing.isEmpty {
      plan.tellTroubles(context)
      try plan.choose(context)
    } else {
      plan.tellTroubles(context)
      if invocation.has("--all") { plan.leaveOutWhatMayBeOthers(context) }
    }
    var move = ImportMove(plan, invocation, in: context)
    try move.run()
  }
}

/// The entries of other tools, each with the place in the vault that would take it.
struct ImportPlan {
  enum Target: Equatable {
    case account(provider: String, isAdded: Bool)
    case gitLogin
    case dockerLogin
    case issuer  // The provider of the issuer that the decrypted entry names.
    case nothing
  }

  struct Item {
    let entry: ImportEntry
    var target: Target
    var servers: [String] = []  // Those that get the credential only if the user agrees.
    var rivals: [String] = []  // The providers that all name the entry's host.
    var variables: [String: String] = [:]  // With which the provider is added, because its defaults name another host.
    var newName: String?  // Under which the provider is added, because its own name has another host.
    var seenDigest: String?  // The digest of the provider's destinations when the plan was made.

    var label: String { entry.source + ":" + entry.name }
    var isMovable: Bool { target != .nothing }

    /// Names the provider that has or gets the client of gcloud, if the descriptor's own provider has another one.
    fileprivate mutating func useClient(_ context: Context) {
      guard case .client(let provider?) = entry.form, case .value(let text) = entry.held,
        let client = ImportedClient(text)
      else { return }
      let suffix = entry.user ?? entry.source
      switch try? context.source.place(of: client, among: [provider], suffix: suffix) {
      case .added(let name)?, .otherSecret(let name, _)?: target = .account(provider: name, isAdded: true)
      case .addition(let found)? where found.identifier != provider: newName = found.identifier
      case .addition?, nil: break
      }
    }
  }

  private(set) var items: [Item]
  let isNamed: Bool  // Whether the user named the tools.
  private let troubles: [ImportedEntries.Trouble]
  let places: ImportPlaces

  /// Finds the entries that the operands name, or all entries without operands.
  init(_ operands: [String], _ context: Context) throws(CommandError) {
    var wanted: [(source: ImportSource, name: String?)] = []
    for operand in operands {
      let parts = operand.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard let source = ImportSource.all.first(where: { $0.name == parts[0] }) else {
        if operand.contains("/") || operand.hasSuffix(".json") {
          if mayBeKey(operand), !File.exists(operand) { throw .usage("the word is not a tool") }
          throw .usage(
            "\(quoted(operand)) is not a tool", hint: "\(credmgr: "vault", "import", operand) to read an export file")
        }
        let word = parts[0].lowercased()
        let near =
          ImportSource.all.first { $0.title.lowercased().split(separator: " ").contains(word[...]) }?.name
          ?? nearMiss(parts[0], among: ImportSource.all.map(\.name))
        throw .usage(
          "unknown tool\(shown(parts[0]))\(didYouMean(near))",
          hints: .correcting(parts[0], to: near) + ["\(credmgr: "import", "--list") to see what is found"])
      }
      wanted.append((source, parts.count > 1 ? parts[1] : nil))
    }
    let providers = try manager(ProvidersOfHosts(context.source))
    var places = ImportPlaces(
      environment: context.environment, home: context.home.person, directory: try? Path.currentDirectory())
    places.gitHosts = { providers.gitHosts }
    self.places = places
    let sources = ImportSource.all.filter { source in
      wanted.isEmpty || wanted.contains { $0.source.name == source.name }
    }
    let found = ImportedEntries(sources, places)
    troubles = found.troubles
    isNamed = !wanted.isEmpty
    items = found.entries.compactMap { entry in
      let match = providers.provider(of: entry)
      if match == nil, ImportSource.all.first(where: { $0.name == entry.source })?.needsProvider == true { return nil }
      var item = Item(entry: entry, target: Self.target(of: entry, match))
      if case .another(let base, let host)? = match, case .account = item.target {
        item.newName = Self.name(ofHost: host, extending: base, context)
        // Programs also read the variable for other hosts of the provider.
        if entry.variable != nil { item.servers = [host] }
      }
      item.useClient(context)
      if match == nil, let provider = entry.hostedProvider {
        let variables = providers.variables(hosting: entry)
        item = Item(
          entry: entry, target: variables == nil ? .nothing : .account(provider: provider, isAdded: false),
          servers: entry.variable == nil ? [] : [entry.host], variables: variables ?? [:],
          newName: providers.isAdded(provider) ? Self.name(ofHost: entry.host, extending: provider, context) : nil)
      }
      if case .one(_, _, let servers)? = match { item.servers = servers }
      if case .several(let rivals)? = match { item.rivals = rivals }
      return item
    }
    defer { nameProviders(context) }
    guard !wanted.isEmpty else { return }
    for (source, name) in wanted {
      let isFound = items.contains { Self.matches($0, source, name: name) }
      guard isFound || !troubles.isEmpty else {
        throw .usage(
          "no entry of \(source.title)" + (name.map { " has the name \(quoted($0))" } ?? " found"),
          hint: "\(credmgr: "import", "--list") to see what is found")
      }
    }
    items = items.filter { item in wanted.contains { Self.matches(item, $0.source, name: $0.name) } }
  }

  /// Returns a name for the provider of a host, with a number if another provider has the name.
  private static func name(ofHost host: String, extending base: String, _ context: Context) -> String {
    let name = String(host.map { $0 == ":" ? "-" : $0 })
    let accounts = try? context.source.accountsIfAny()
    let names = [name] + (2..<100).map { "\(name)-\($0)" }
    return names.first { name in
      guard let addition = try? context.source.addition(shipped: base, as: name) else { return true }
      return (try? accounts?.registration(of: name)) == nil && !context.source.hasOtherDescriptor(than: addition)
    } ?? name
  }

  /// Names the providers that this import adds: several hosts of one descriptor are several providers.
  private mutating func nameProviders(_ context: Context) {
    var values: [String: [String: String]] = [:]
    // The host of the defaults comes first.
    for hasVariables in [false, true] {
      for index in items.indices where items[index].variables.isEmpty != hasVariables {
        guard case .account(let provider, isAdded: false) = items[index].target, items[index].newName == nil else {
          continue
        }
        let first = values[provider] ?? items[index].variables
        values[provider] = first
        if first == items[index].variables { continue }
        items[index].newName = Self.name(ofHost: items[index].entry.host, extending: provider, context)
      }
    }
  }

  /// Notes where the tokens would go, for the time until the user has answered the questions.
  fileprivate mutating func noteDestinations(_ context: Context) {
    var known: [[String]: String?] = [:]
    for index in items.indices {
      guard case .account(let provider, _) = items[index].target else { continue }
      var wish = LoginOptions()
      wish.variables = items[index].variables
      let name = items[index].newName ?? provider
      let key = [name] + wish.variables.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
      let digest = known[key] ?? context.source.destinationsDigest(ofLogin: wish, to: name)
      known[key] = .some(digest)
      items[index].seenDigest = digest
    }
  }

  private static func matches(_ item: Item, _ source: ImportSource, name: String?) -> Bool {
    item.entry.source == source.name && (name.map { [item.entry.name, item.entry.host].contains($0) } ?? true)
  }

  private static func target(of entry: ImportEntry, _ match: ProvidersOfHosts.Match?) -> Target {
    if entry.kind == .unsupported { return .nothing }
    if entry.form == .client(provider: nil) { return .issuer }
    // docker needs the user name, which a provider's account does not keep.
    if entry.use == .docker { return .dockerLogin }
    return switch (match, entry.use) {
    case (.one(let provider, let isAdded, _)?, _): .account(provider: provider, isAdded: isAdded)
    case (.another(let provider, _)?, _): .account(provider: provider, isAdded: false)
    case (.several?, _): .nothing
    case (nil, .git): .gitLogin
    case (nil, _): .nothing
    }
  }

  var hasTroubles: Bool { !troubles.isEmpty }

  /// Reports files that could not be used; the others are not affected.
  func tellTroubles(_ context: Context) {
    for trouble in troubles {
      let message = trouble.fault.message
      context.tell("skipped a file of \(trouble.source): \(message.text)")
      if let hint = context.resolved(message.hints).first { context.tell(hint: hint) }
    }
  }

  func list(_ context: Context) throws(CommandError) {
    tellTroubles(context)
    try context.output(
      Layout.table(items.map { (Message.visible($0.label), words($0, context)) }, width: Terminal.outputColumns),
      orJSON: .array(items.map(Self.json)))
    if items.isEmpty { return context.tell("no credentials of other tools found") }
    guard !context.isJSON else { return }
    tellHints(context)
    guard let first = items.first(where: \.isMovable) else { return }
    context.tell(
      hint: Terminal.isTerminal(0) && Terminal.isTerminal(2)
        ? "\(credmgr: "import") to choose what to move" : "\(credmgr: "import", first.label) to move the first of them")
  }

  private func tellHints(_ context: Context) {
    var told: Set<String> = []
    for item in items where told.insert(item.entry.host).inserted { tellHint(item, context) }
  }

  private func tellHint(_ item: Item, _ context: Context) {
    if let remedy = item.entry.advice?.remedy { return context.tell(hint: remedy) }
    guard item.target == .nothing, item.entry.kind != .unsupported else { return }
    if !item.rivals.isEmpty {
      return context.tell(hint: "\(credmgr: "login", "PROVIDER", "--with-token") to store it for one of them")
    }
    let what = item.entry.host.isEmpty ? "this provider" : item.entry.host
    context.tell(
      hint:
        "write a descriptor for \(what), then \(credmgr: "add-provider", "FILE") to move \(argument(item.label))")
  }

  func tellUnmovable(_ item: Item, _ context: Context) {
    context.tell("cannot move \(item.label): \(words(item, context))")
    tellHint(item, context)
  }

  /// Describes an entry without its secret.
  func words(_ item: Item, _ context: Context) -> String {
    let entry = item.entry
    if let advice = entry.advice { return Message.visible("\(advice.sentence) (in \(entry.place))") }
    let target: String
    switch item.target {
    case .account(let provider, let isAdded):
      let servers = item.servers.isEmpty ? "" : " at " + item.servers.joined(separator: ", ")
      let name = item.newName.map { " as " + quoted($0) } ?? ""
      target = "for " + context.titled(provider) + name + servers + (isAdded ? "" : ", not added yet")
    case .gitLogin: target = "for git at \(entry.host)"
    case .dockerLogin: target = "for docker at \(entry.host)"
    case .issuer: target = "for the issuer in the encrypted file"
    case .nothing where !item.rivals.isEmpty: target = "for one of \(item.rivals.joined(separator: ", "))"
    case .nothing:
      target = entry.host.isEmpty ? "for an unknown provider" : "for \(entry.host), which no provider names"
    }
    return Message.visible("\(entry.kind.rawValue) ******** \(target) (in \(entry.place))")
  }

  static func json(_ item: Item) -> JSONValue {
    let entry = item.entry
    var (provider, added, login): (String?, Bool, String?) = (nil, false, nil)
    switch item.target {
    case .account(let name, let isAdded): (provider, added) = (item.newName ?? name, isAdded)
    case .gitLogin: login = "git"
    case .dockerLogin: login = "docker"
    case .issuer, .nothing: break
    }
    return [
      "tool": .string(entry.source), "name": .string(entry.name), "kind": .string(entry.kind.rawValue),
      "host": .optional(entry.host.isEmpty ? nil : entry.host), "user": .optional(entry.shownUser),
      "place": .string(entry.place), "provider": .optional(provider), "added": .boolean(added),
      "login": .optional(login), "movable": .boolean(item.isMovable), "removable": .boolean(entry.isRemovable),
      "advice": .optional(entry.advice?.word), "asks_about": .array(item.servers.map { .string($0) }),
      "providers": .array(item.rivals.map { .string($0) }),
    ]
  }

  /// Leaves out `.env`, which may come with a stranger's repository, so its token could become the default account.
  mutating func leaveOutWhatMayBeOthers(_ context: Context) {
    guard items.contains(where: { Self.mayBeOthers($0) && $0.isMovable }) else { return }
    items.removeAll(where: Self.mayBeOthers)
    context.tell("left out .env, which may belong to others")
    context.tell(hint: "\(credmgr: "import", ImportSource.environmentFile.name) to move its entries")
  }

  private static func mayBeOthers(_ item: Item) -> Bool { item.entry.source == ImportSource.environmentFile.name }

  /// Lists the entries at the terminal and reads which to move.
  mutating func choose(_ context: Context) throws(CommandError) {
    let movable = items.filter(\.isMovable)
    for item in items where !item.isMovable { tellUnmovable(item, context) }
    guard !movable.isEmpty else {
      context.tell("no credentials of other tools to move")
      throw .ended(.done)
    }
    for (index, item) in movable.enumerated() {
      context.tell("\(index + 1). \(item.label): \(words(item, context))")
    }
    Signals.installInterruptFlag()
    Terminal.discardInput()
    while true {
      Terminal.writeError(StandardError.prompt("Move which? Numbers, \"all\", or Enter for none:"))
      let line = try? Terminal.readLine(0)
      if Signals.isInterrupted {
        Terminal.writeError("\n")
        throw CommandError(CredentialError.interrupted)
      }
      if var numbers = Self.numbers(in: line ?? "", upTo: movable.count) {
        if line?.lowercased() == "all" { numbers.removeAll { Self.mayBeOthers(movable[$0 - 1]) } }
        // The list showed the servers, so do not ask about them again.
        items = numbers.map { number in
          var item = movable[number - 1]
          item.servers = []
          return item
        }
        return
      }
      context.tell("enter numbers from 1 to \(movable.count), such as \"1 3-4\"")
    }
  }

  /// Reads numbers and ranges from 1; `nil` if the text is anything else.
  static func numbers(in text: String, upTo count: Int) -> [Int]? {
    let words = text.split { $0 == " " || $0 == "," || $0 == "\t" }
    if words.map({ $0.lowercased() }) == ["all"] { return Array(1...max(count, 1)) }
    var numbers: [Int] = []
    for word in words {
      let ends = word.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
      guard (1...2).contains(ends.count), let first = ends[0], let last = ends[ends.count - 1], first >= 1,
        last <= count, first <= last
      else { return nil }
      numbers += (first...last).filter { !numbers.contains($0) }
    }
    return numbers
  }
}

import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrText

/// One way to the first token, as commands that need no questions.
struct SetupRoute {
  let way: String
  var first: String?  // The task at the provider before the commands.
  var commands: [[String]]
  var input: String?  // The standard input of the last command; `nil` if it reads none.

  private var line: String { commands.map { $0.map(argument).joined(separator: " ") }.joined(separator: " && ") }

  var remedy: Remedy {
    let lead = first.map { $0 + " and " } ?? ""
    guard let input else { return "\(lead)\(all: commands)" }
    return "\(lead)\(shell: line + " <FILE") with \(input)"
  }

  var json: JSONValue {
    [
      "way": .string(way), "first": .optional(first),
      "commands": .array(commands.map { .array($0.map(JSONValue.string)) }), "input": .optional(input),
    ]
  }
}

/// The answer of `setup` without a terminal, and with `--json`.
extension Setup {
  /// Prints the routes as JSON, or throws the error whose hint names them.
  func explain(_ source: String?) throws(CommandError) {
    func fault(_ wish: String) -> String { "cannot prompt for \(wish): no terminal" }
    guard let source else {
      throw .usage(fault("a provider"), hint: "\(credmgr: "providers") to see the providers")
    }
    if let kind = SetupChoice.Server(source) {
      throw .usage(
        fault("the URL of \(kind.name)"), hint: "\(credmgr: "setup", kind.example) with the URL of \(kind.name)")
    }
    let isAddress = Command.isURL(source)
    let addition = try isAddress ? self.addition(at: source) : self.addition(source)
    let provider = addition.identifier
    if try isAdded(addition) {
      let route = SetupRoute(way: "added", commands: [["credmgr", "login", provider]])
      if context.isJSON { return try show([route], of: provider) }
      throw .usage("\(context.titled(provider)) has already been added", hint: "\(credmgr: "login", provider)")
    }
    let isForeign = isAddress || Context.isDescriptorFile(source) || !context.source.isShipped(addition.loaded)
    let ways = ways(of: addition, isForeign: isForeign)
    let routes = try ways.map { way throws(CommandError) in try route(way, to: addition, source, isForeign: isForeign) }
    if context.isJSON { return try show(routes, of: provider) }
    let title = isForeign ? quoted(provider) : context.titled(provider)
    let text: String
    switch ways.first ?? .client {
    case .token: text = fault("a token of \(title)")
    case .typed(let grant): text = fault("\(grant.traits.isKey ? "a key" : grant.traits.asked ?? "a key") of \(title)")
    case .client, .document: text = "\(title) requires a client ID"
    case .registered: text = fault(isAddress ? "your consent" : "the settings of \(title)")
    }
    let remedies = routes.map(\.remedy)
    let all = remedies.dropFirst().reduce(remedies[0]) { $0 + "; or " + $1 }
    throw .usage(text, hint: isAddress ? all + ", if you trust this server" : all)
  }

  /// Finds out whether the server at an address registers clients. Adds nothing.
  private func addition(at address: String) throws(CommandError) -> ProviderAddition {
    if Command.isPublished(address, updates: false) {
      return try manager(context.source.fetch(address, as: nil)).addition
    }
    return try manager(context.source.discover(address, as: nil, from: nil)).addition
  }

  private func show(_ routes: [SetupRoute], of provider: String) throws(CommandError) {
    try context.output(["provider": .string(provider), "ways": .array(routes.map(\.json))])
  }

  private func route(
    _ way: Way, to addition: ProviderAddition, _ source: String, isForeign: Bool
  ) throws(CommandError) -> SetupRoute {
    let (descriptor, provider) = (addition.descriptor, addition.identifier)
    let scope = try context.scope(Invocation(.login, [provider] + options), of: descriptor)
    let settings = try missing(of: addition, way).flatMap { variable in
      ["--set", variable.name + (variable.isSecret ? "=@FILE" : "=VALUE")]
    }
    var needs = ClientNeeds(descriptor)
    needs.variables = []
    let adds = isForeign || way.hasOwnClient || settings.contains { $0.hasSuffix("=@FILE") }
    let client = way.hasOwnClient ? needs.options : []
    let consent = Command.isURL(source) ? ["--as", provider, "--yes"] : []
    let added = adds ? [["credmgr", "add-provider", source] + consent + client + settings] : []
    var login = ["credmgr", "login", provider] + (adds ? [] : settings)
    switch way {
    case .token:
      let page = descriptor.key?.page.map { "create a token at \($0)" + Self.scopeWords(descriptor, scope) }
      return SetupRoute(way: "token", first: page, commands: added + [login + ["--with-token"]], input: "its file")
    case .typed(let grant):
      if descriptor.grants.first != grant { login += ["--grant", grant.rawValue] }
      return try route(grant, of: descriptor, commands: added, login: login)
    case .client:
      let rows = clientRows(of: descriptor, [:], scope: scope).map { "\($0.left): \($0.right)" }
      let page = descriptor.client.register ?? "the provider"
      return SetupRoute(
        way: "client", first: "register a client at \(page) (\(rows.joined(separator: "; ")))",
        commands: added + [login + options])
    case .document:
      return SetupRoute(
        way: "document", first: "publish a client metadata document", commands: added + [login + options])
    case .registered:
      let name = Command.isURL(source) ? "address" : "registered"
      return SetupRoute(way: name, commands: added + [login + options])
    }
  }

  /// The route with values that the user makes: on standard input, unless a login reads them from options.
  private func route(
    _ grant: Grant, of descriptor: Descriptor, commands added: [[String]], login: [String]
  ) throws(CommandError) -> SetupRoute {
    var wish = LoginOptions()
    wish.grant = grant
    let fields = try manager(context.source.plannedLogin(descriptor, wish, hasToken: false)).planned.typed.fields
    let needed = fields.filter { !$0.isOptional }
    let atExchange = (grant.traits.variables + descriptor.variables).filter(\.isAtExchange).map(\.name)
    let page = descriptor.key?.page.map { "create a key at \($0)" }
    let hasFile = fields.contains { $0.content == .keyFile }
    guard !hasFile, atExchange.isEmpty else {
      let values = needed.filter { $0.content != .keyFile && !atExchange.contains($0.name) }
      let settings = Set(atExchange).sorted().map { $0 + "=@FILE" } + values.map { $0.name + "=VALUE" }
      let options = (hasFile ? ["--key-file", "FILE"] : []) + settings.flatMap { ["--set", $0] }
      return SetupRoute(way: "key", first: hasFile ? page : nil, commands: added + [login + options])
    }
    let labels = needed.map(\.label).joined(separator: ", ")
    return SetupRoute(
      way: "key", first: page, commands: added + [login + ["--with-token"]],
      input: needed.count > 1 ? "a file of \(needed.count) lines: \(labels)" : "its file")
  }
}

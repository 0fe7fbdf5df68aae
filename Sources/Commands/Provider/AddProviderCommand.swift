import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText
import CredmgrYAML

extension Command {
  static let addProvider = Command(
    name: "add-provider", operands: "SOURCE", operandCount: 1...1,
    summary: "Add a provider from its name, a file or a URL",
    options: [
      Option("--as", value: "ID", "add the provider under another identifier"),
      Option("--client-id", value: "ID", "client ID or consumer key that the provider gave you"),
      Option("--client-document", "print the document to publish at the URL of \"--client-id\", and add nothing"),
      Option("--client-secret-file", value: "FILE", "file with the client secret; \"-\" reads standard input"),
      Option(
        "--client-certificate", value: "FILE",
        "PEM certificate of the client, with its private key unless the secret is the key"),
      Option(
        "--initial-access-token-file", value: "FILE",
        "file with the token for registering a client; \"-\" reads standard input"),
      Option(
        "--set", value: "NAME=VALUE", repeats: true,
        "set a variable of the descriptor; NAME=@FILE for a secret variable"),
      Option("--issuer", value: "URL", "authorization server of an API that has several"),
      Option("--yes", "agree to a discovered issuer, or to an unusual or changed descriptor, without a prompt"),
      Option("--replace", "change an added provider; omitted values stay the same"),
      Option("--update", "fetch the descriptor or the metadata of an added provider again, and show changes"),
      Option("--vault", value: "VAULT", "also change it for all members of this shared vault"), json,
    ],
    notes: [
      "SOURCE is a provider from \"credmgr providers\", the path of a descriptor (with \"/\" or \".yaml\"), \"-\" for "
        + "standard input, or the https URL of an issuer, an API or an MCP server. credmgr makes a descriptor from the "
        + "server's metadata and shows it before storing it.",
      "A URL that ends with \".yaml\" is that of a descriptor, for example your organization's. credmgr fetches it "
        + "once, shows it, and stores a copy with its address and SHA-256. \"--update\" fetches it again.",
      "Without \"--client-id\", credmgr registers a client at the provider if the descriptor supports it. If the "
        + "provider accepts client metadata documents instead, the client ID is the https URL of a document of yours.",
      "The client ID, secret and variables are stored in the vault.",
    ],
    examples: [
      ("credmgr add-provider github --client-id Ov23liExample", "Add a built-in provider"),
      ("credmgr add-provider gitlab --set host=git.example.org --client-id ID", "Add your own GitLab server"),
      ("credmgr add-provider https://mcp.example.org/mcp", "Add an MCP server"),
      ("credmgr add-provider https://intranet.example.org/github.yaml", "Add a descriptor of your organization"),
      ("credmgr add-provider github --update", "Look for changes of that descriptor"),
      ("credmgr add-provider ./notes.yaml --client-id ID --client-secret-file secret", "Add your own descriptor"),
    ]
  ) { invocation, context throws(CommandError) in
    let source = invocation.operands[0]
    let secretFile = invocation.value("--client-secret-file")
    let tokenFile = invocation.value("--initial-access-token-file")
    let crowded = CommandError.usage(
      "only one of the descriptor, the secrets and the token can come from standard input")
    if [source, secretFile, tokenFile].filter({ $0 == "-" }).count > 1 { throw crowded }
    var hasReadInput = false
    func read(_ path: String, _ name: String) throws(CommandError) -> [UInt8] {
      if path == "-" {
        if hasReadInput { throw crowded }
        hasReadInput = true
      }
      return try context.secretFile(path, called: name)
    }
    try context.requireNoKey(in: invocation.value("--as"), called: "provider name")
    let vault = try invocation.value("--vault").map { name throws(CommandError) in
      try manager(context.source.vaultName(name))
    }
    let updates = invocation.has("--update")
    let isPublished = isPublished(source, updates: updates)
    let addition: ProviderAddition
    if isPublished {
      addition = try published(
        at: source, as: invocation.value("--as"), updates: updates, replaces: invocation.has("--replace"),
        isAgreed: invocation.has("--yes"), context)
    } else if isURL(source) {
      addition = try discovered(
        at: source, as: invocation.value("--as"), from: invocation.value("--issuer"),
        replaces: invocation.has("--replace"), isAgreed: invocation.has("--yes"), context)
    } else if Context.isDescriptorFile(source) {
      let bytes = try context.descriptor(source)
      hasReadInput = source == "-"
      addition = try manager(
        context.source.addition(bytes, named: Context.descriptorName(source), as: invocation.value("--as")))
    } else {
      let identifier = try context.provider(source)
      do throws(CredentialError) {
        addition = try context.source.addition(shipped: identifier, as: invocation.value("--as"))
      } catch .provider(.unknown(_, suggestion: nil)) where source.contains(".") {
        // The argument looks like the host of an issuer.
        let message = CredentialError.provider(.unknown(identifier: identifier, suggestion: nil)).message
        let issuer: Remedy = "\(credmgr: "add-provider", "https://\(source)") if it is an issuer"
        throw .failed(message.with(hints: [issuer] + message.hints))
      } catch { throw CommandError(error) }
    }
    func issued(_ path: String?, _ name: String) throws(CommandError) -> Secret? {
      guard let path else { return nil }
      return try context.issuedSecret(read(path, name), path, called: name)
    }
    // A file of the user or the administrator may have replaced a shipped file unnoticed.
    let isForeign =
      isPublished || isURL(source) || Context.isDescriptorFile(source) || !context.source.isShipped(addition.loaded)
    var secret = try issued(secretFile, "client secret")
    if let file = invocation.value("--client-certificate") {
      guard let key = secret else {
        throw .usage(
          "\"--client-certificate\" requires \"--client-secret-file\" with its private key or with the client secret")
      }
      secret = try context.secret(key, withCertificate: file)
    }
    let token = try issued(tokenFile, "initial access token")
    var client = invocation.value("--client-id")
    if client == nil, updates { client = try newClient(of: addition, context) }
    let variables = try context.variables(invocation, of: addition.descriptor, read: read)
    if let variable = addition.descriptor.variables.first(where: { $0.isAtExchange && variables[$0.name] != nil }) {
      throw .usage(
        "cannot set \(quoted(variable.name)) for all accounts: it belongs to a login",
        hint: "\(credmgr: "login", addition.identifier, "--set", "\(variable.name)=@FILE") after adding the provider")
    }
    var adding = AddingProvider(
      addition: addition, isDiscovered: !isPublished && isURL(source), isForeign: isForeign,
      clientIdentifier: client,
      clientSecret: secret, initialAccessToken: token,
      variables: variables,
      replaces: updates || invocation.has("--replace"), isAgreed: invocation.has("--yes"))
    if invocation.has("--client-document") { return try adding.printDocument(context) }
    try adding.checkClient(context)
    if let vault {
      adding.shared = try manager(context.source.sharedProvider(addition.identifier, in: vault))
      adding.dependents = try manager(context.source.dependents(of: addition, in: vault))
    }
    let before = try? context.source.accountsIfAny()?.registration(of: addition.identifier)
    _ = try adding.run(context)
    if let vault {
      try manager(context.source.publish(addition.identifier, in: vault, replacing: adding.shared))
      context.tell("the other members get it with \"credmgr vault sync\"")
      for other in adding.dependents {
        let change: Remedy = .changing(other, inVault: vault)
        context.tell(note: "\(quoted(other)) extends a changed descriptor; \(change)")
      }
    }
    let title = context.titled(addition.identifier)
    if let before, vault == nil, !updates,
      try manager(context.source.accountsIfAny()?.registration(of: addition.identifier)) == before
    {
      if context.ownClient(of: addition.identifier) == nil { return context.tell("\(title) is unchanged") }
      let another = replacingClient(addition.identifier, hasSecret: before.clientSecret != nil)
      return context.tell(note: "\(title) is unchanged; \(another) for another client")
    }
    context.tell(note: "added \(title); \(credmgr: "login", addition.identifier) to log in")
    context.tellOtherGitHelpers(of: addition.identifier)
  }

  /// A stranger may have written the descriptor, so show what the user trusts it with.
  static func tellAgreement(
    on provider: String, _ context: Context, places: [NewPlace]? = nil, of descriptor: Descriptor? = nil
  ) throws(CommandError) {
    let places = if let places { places } else { try manager(context.source.agreedPlaces(of: provider)) }
    let grants = (descriptor ?? (try? context.home.library.load(provider).descriptor))?.grants ?? []
    let hasClient = grants.isEmpty || grants.contains(where: \.traits.needsClient)
    context.tell("adding \"\(provider)\" allows only the following:")
    for (kind, words) in [
      (.secrets, hasClient ? "client secret and tokens go to" : "keys and passwords go to"), (.tokens, "tokens go to"),
      (.redirect, "logins return to"),
      (.devicePage, "device codes are entered at"), (.issuer, "answers are issued by"),
      (.audience, "client signatures are for"),
    ] as [(NewPlace.Kind, String)] {
      let names = places.filter { $0.kind == kind }.map(\.name)
      if names.isEmpty { continue }
      Terminal.writeError("  " + Message.visible(words + " " + names.joined(separator: ", ")) + "\n")
    }
  }

  static func isURL(_ source: String) -> Bool {
    let beginning = source.prefix("https://".count).lowercased()
    return beginning == "https://" || beginning.hasPrefix("http://")
  }

  /// Finds the metadata of an issuer or a protected resource, and asks which authorization server to use if there are
  /// several.
  private static func discovery(
    at source: String, as name: String?, from server: String?, _ context: Context
  ) throws(CommandError) -> Discovery {
    do throws(CredentialError) { return try context.source.discover(source, as: name, from: server) } catch {
      guard case .discovery(.severalServers(let servers), _) = error, Question.canAsk else { throw CommandError(error) }
      context.tell("\(source) has \(servers.count) authorization servers:")
      return try discovery(at: source, as: name, from: servers[Question.choice(among: servers)], context)
    }
  }

  /// Makes a descriptor from an issuer's or a resource's metadata, shows it, and asks whether to add it.
  static func discovered(
    at source: String, as name: String? = nil, from server: String? = nil, replaces: Bool = false,
    isAgreed: Bool = false, _ context: Context
  ) throws(CommandError) -> ProviderAddition {
    let discovery = try discovery(at: source, as: name, from: server, context)
    let identifier = discovery.addition.identifier
    let registration = try manager(context.source.accountsIfAny()?.registration(of: identifier))
    if registration != nil, !replaces { throw CommandError(.alreadyAdded(provider: identifier)) }
    context.tell("found this metadata at \(discovery.location):")
    let lines = discovery.text.split(separator: "\n", omittingEmptySubsequences: false)
    Terminal.writeError("\n" + lines.map { ($0.isEmpty ? "" : "  " + Message.visible(String($0))) + "\n" }.joined())
    if let server = discovery.authorizationServer { context.tell("the authorization server is \(server)") }
    for endpoint in discovery.foreignEndpoints {
      context.tell("the \(endpoint.name) is on a different host than the issuer: \(endpoint.host)")
    }
    discovery.tellOfProofKeys(context)
    if isAgreed { return discovery.addition }
    guard Terminal.isTerminal(0), Terminal.isTerminal(2) else {
      throw .usage("cannot ask whether to add this provider: no terminal", hint: "\(add: "--yes") to add it")
    }
    guard try Question.confirm("Add it as \"\(identifier)\"?") else { throw .usage("nothing was added") }
    return discovery.addition
  }

  static func asked(_ variable: Variable) throws(CommandError) -> Secret {
    let name = variable.name + (variable.help.map { " (\($0))" } ?? "")
    let typed = try system(Terminal.readPassword(prompt: StandardError.prompt(name + ":"), limit: 1 << 14))
    guard !typed.isEmpty else { throw .failed(.missing([variable])) }
    return Secret(bytes: typed)
  }
}

extension Discovery {
  /// Warns if the server may ignore the challenge of a login.
  func tellOfProofKeys(_ context: Context) {
    guard let otherProofKeys else { return }
    let only = otherProofKeys.isEmpty ? "" : ", only \(first(otherProofKeys))"
    context.tell(
      "warning: the metadata does not announce PKCE with S256, which protects the login\(only); credmgr uses it, and "
        + "the server may ignore it")
  }
}

extension Context {
  /// Throws if other users can read a file with a private key.
  package func checkUnreadable(_ bytes: [UInt8], _ path: String) throws(CommandError) {
    if path != "-", !File.isGivenStream(path), bytes.firstPlace(of: "PRIVATE KEY-----".utf8) != nil {
      try system(PrivateFile.checkUnreadable(path))
    }
  }

  /// Returns a client's secret or private key with its certificate. Both are for the same connection, so one secret
  /// contains them.
  func secret(_ secret: Secret, withCertificate file: String) throws(CommandError) -> Secret {
    let pem = try self.file(file, limit: 1 << 16)
    try checkUnreadable(pem, file)
    // OpenSSL may write words before the PEM.
    let beginning = pem.firstPlace(of: "-----BEGIN ".utf8)?.lowerBound ?? 0
    return Secret(bytes: secret.revealBytes() + [UInt8(ascii: "\n")] + pem[beginning...])
  }
}

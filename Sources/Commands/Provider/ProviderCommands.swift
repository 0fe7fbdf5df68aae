import CredentialManager
import Cryptography
import Descriptors
import Platform
import Text

extension Command {
  static let addProvider = Command(
    name: "add-provider", operands: "SOURCE", operandCount: 1...1,
    summary: "Install a provider: a shipped descriptor, a file, \"-\", or an issuer",
    options: [
      Option("--as", value: "ID", "install it under another identifier"),
      Option("--client-id", value: "ID", "the client identifier, or consumer key, that the provider gave you"),
      Option("--client-secret-file", value: "FILE", "a file with the client secret; \"-\" is standard input"),
      Option(
        "--initial-access-token-file", value: "FILE",
        "a file with the token that the provider wants when a client is registered; \"-\" is standard input"),
      Option(
        "--set", value: "NAME=VALUE", repeats: true,
        "the value of a variable of the descriptor; NAME=@FILE for a secret one"),
      Option("--yes", "agree to what was discovered at an issuer, or is unusual in a descriptor, unasked"),
      Option("--replace", "replace one that was added before; what is not given stays as it was"),
    ],
    notes: [
      "SOURCE is an identifier that \"credmgr providers\" lists, a path with a \"/\" or \".yaml\" in it, or the https "
        + "URL of an issuer, whose metadata becomes a descriptor; it is shown before it is kept.",
      "Without \"--client-id\" a client is registered at the provider, where the descriptor says how.",
      "The client identifier, secret and variables are kept in the vault.",
    ],
    examples: [
      ("credmgr add-provider github --client-id Iv1.8a61f9b3", "one that credmgr knows"),
      ("credmgr add-provider gitlab --set host=git.example.org --client-id ID", "a server of your own"),
      ("credmgr add-provider ./notes.yaml --client-id ID --client-secret-file secret", "your own descriptor"),
    ]
  ) { invocation, context throws(CommandError) in
    let source = invocation.operands[0]
    let secretFile = invocation.value("--client-secret-file")
    let tokenFile = invocation.value("--initial-access-token-file")
    let crowded = CommandError.usage("only one of the descriptor, the secrets and the token can be on standard input")
    if [source, secretFile, tokenFile].filter({ $0 == "-" }).count > 1 { throw crowded }
    // A program without a network reads it, and the one with a network reads it again.
    var input: [UInt8]?
    func read(_ path: String, _ name: String) throws(CommandError) -> [UInt8] {
      if path == "-", input != nil { throw crowded }
      let bytes = try context.secretFile(path, called: name)
      if path == "-" { input = bytes }
      return bytes
    }
    let addition: ProviderAddition
    if isURL(source) {
      addition = try discovered(at: source, invocation, context)
    } else if Context.isDescriptorFile(source) {
      let bytes = try context.descriptor(source)
      if source == "-" { input = bytes }
      addition = try manager(
        context.source.addition(bytes, named: Context.descriptorName(source), as: invocation.value("--as")))
    } else {
      let identifier = try context.provider(source)
      do throws(CredentialError) {
        addition = try context.source.addition(shipped: identifier, as: invocation.value("--as"))
      } catch .provider(.unknown(_, suggestion: nil)) where source.contains(".") {
        // It looks like the host of an issuer.
        let message = CredentialError.provider(.unknown(identifier: identifier, suggestion: nil)).message
        let issuer: Remedy = "\(credmgr: "add-provider", "https://\(source)") if that is an issuer"
        throw .failed(message.with(hints: [issuer] + message.hints))
      } catch { throw CommandError(error) }
    }
    func issued(_ path: String?, _ name: String) throws(CommandError) -> Secret? {
      guard let path else { return nil }
      return try context.issuedSecret(read(path, name), path, called: name)
    }
    let secret = try issued(secretFile, "client secret")
    let token = try issued(tokenFile, "initial access token")
    var variables = try context.variables(invocation, of: addition.descriptor, read: read)
    func add() throws(CommandError) -> Registration? {
      do throws(CredentialError) {
        return try context.source.add(
          addition, clientIdentifier: invocation.value("--client-id"), clientSecret: secret, variables: variables,
          initialAccessToken: token, replaces: invocation.has("--replace"),
          confirms: { accounts, places in
            agrees(
              "the new descriptor of \"\(addition.identifier)\" \(places.words(accounts, "sends"))",
              to: places.map(\.difference))
          },
          // What an issuer says of itself was shown as a whole, and not whose login page it is.
          agrees: { places in
            isURL(source) && !places.contains(where: \.isBorrowed) || invocation.has("--yes")
              || agrees("\(quoted(addition.identifier)) needs consent:", to: places.peculiarities)
          })
      } catch .networkNeeded {
        throw .handOver(input: input)
      } catch .provider(.missingVariable) {
        let missing = try missing(variables, of: addition, context)
        guard missing.allSatisfy(\.isSecret), Terminal.isTerminal(2) else { throw .failed(.missing(missing)) }
        // What is typed is asked for by the program that can use it, and not a second time.
        if addition.descriptor.endpoints[.registration] != nil, !context.source.hasNetwork {
          throw .handOver(input: input)
        }
        for variable in missing { variables[variable.name] = try asked(variable).reveal() }
        return try add()
      } catch { throw CommandError(error) }
    }
    let registration = try add()
    StandardError.show(addition.warnings)
    if let registered = registration?.registered, let registration {
      context.tell("registered the client \"\(registration.clientIdentifier)\" at \(registered.place)")
      if let expiresAt = registered.secretExpiresAt {
        let another = "\"credmgr add-provider \(addition.identifier) --replace\" then registers another one"
        context.tell("its secret expires in \(duration(expiresAt - context.clock.now())); \(another)")
      }
    }
    if isURL(source) || Context.isDescriptorFile(source) { try tellAgreement(on: addition.identifier, context) }
    context.tell("added \"\(addition.identifier)\"; run \"credmgr login \(addition.identifier)\"")
    context.tellOtherGitHelpers(of: addition.identifier)
  }

  /// A stranger may have written the descriptor: the person sees what it is trusted with.
  private static func tellAgreement(on provider: String, _ context: Context) throws(CommandError) {
    let places = try manager(context.source.agreedPlaces(of: provider))
    context.tell("\"\(provider)\" is trusted with this, and nothing else:")
    for (kind, words) in [
      (.secrets, "client secret and tokens go to"), (.tokens, "tokens go to"), (.redirect, "logins come back to"),
      (.devicePage, "codes of devices are entered at"), (.issuer, "answers are issued by"),
      (.audience, "what the client signs is for"),
    ] as [(NewPlace.Kind, String)] {
      let names = places.filter { $0.kind == kind }.map(\.name)
      if names.isEmpty { continue }
      Terminal.writeError("  " + Message.visible(words + " " + names.joined(separator: ", ")) + "\n")
    }
  }

  private static func isURL(_ source: String) -> Bool {
    let beginning = source.prefix("https://".count).lowercased()
    return beginning == "https://" || beginning.hasPrefix("http://")
  }

  private static func discovered(
    at source: String, _ invocation: Invocation, _ context: Context
  ) throws(CommandError) -> ProviderAddition {
    let discovery = try manager(context.source.discover(source, as: invocation.value("--as")))
    let identifier = discovery.addition.identifier
    let registration = try manager(context.source.accountsIfAny()?.registration(of: identifier))
    if registration != nil, !invocation.has("--replace") { throw CommandError(.alreadyAdded(provider: identifier)) }
    context.tell("this was discovered at \(discovery.location):")
    let lines = discovery.text.split(separator: "\n", omittingEmptySubsequences: false)
    Terminal.writeError("\n" + lines.map { ($0.isEmpty ? "" : "  " + Message.visible(String($0))) + "\n" }.joined())
    for endpoint in discovery.foreignEndpoints {
      context.tell("the \(endpoint.name) is on another host than the issuer: \(endpoint.host)")
    }
    if invocation.has("--yes") { return discovery.addition }
    guard Terminal.isTerminal(0), Terminal.isTerminal(2) else {
      let text = "nobody can be asked here whether to keep what was discovered"
      throw .usage(text, hint: "\(add: "--yes") to keep it")
    }
    guard agrees("Keep it as \"\(identifier)\"?") else { throw .usage("nothing was kept") }
    return discovery.addition
  }

  static let removeProvider = Command(
    name: "remove-provider", operands: "ID", operandCount: 1...1,
    summary: "Remove a provider that was added, and its client",
    options: [Option("--keep-remote", "leave a client at the provider that was registered there by itself")],
    notes: [
      "It removes the client identifier, the secret and the variables from the vault, and your own descriptor; a "
        + "shipped one stays.",
      "Nobody may be logged in there any more. A client that \"credmgr add-provider\" registered is deleted at the "
        + "provider, where that has a way (RFC 7592).",
    ], examples: [("credmgr remove-provider github", "after \"credmgr logout github --all\"")]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let removal: ProviderRemoval
    do throws(CredentialError) {
      removal = try context.source.remove(provider, keepsRemote: invocation.has("--keep-remote"))
    } catch {
      guard [.refused, .unreachable].contains(error.message.status) else { throw CommandError(error) }
      let message = error.message
      // RFC 7592, 2.3: what a client is answered, too, that was deleted already.
      let mayBeGone = if case .oauth(.refused(_, let refusal), _) = error { refusal.status == 401 } else { false }
      let keeping: Remedy = "\(credmgr: "remove-provider", provider, "--keep-remote")"
      let removal: Remedy =
        mayBeGone
        ? "if the client is gone there already, \(keeping) to remove the provider here"
        : "\(keeping) to leave the client there"
      let text = message.text + "; nothing was removed"
      throw .failed(Message(text, hints: message.hints + [removal], status: message.status))
    }
    switch removal.client {
    case .deleted(let place)?: context.tell("deleted the client at \(place)")
    case .kept?: context.tell("the client stays registered at the provider")
    case nil: break
    }
    context.tell("removed \"\(provider)\"" + (removal.successor.map { "; the name stands for \"\($0)\" now" } ?? ""))
  }

  private static func asked(_ variable: Variable) throws(CommandError) -> Secret {
    let name = variable.name + (variable.help.map { " (\($0))" } ?? "")
    let typed = try system(Terminal.readPassword(prompt: StandardError.prompt(name + ":"), limit: 1 << 14))
    guard !typed.isEmpty else { throw .failed(.missing([variable])) }
    return Secret(bytes: typed)
  }

  private static func missing(
    _ given: [String: String], of addition: ProviderAddition, _ context: Context
  ) throws(CommandError) -> [Variable] {
    let before = try manager(context.source.accountsIfAny()?.registration(of: addition.identifier)?.variables)
    return addition.descriptor.variables.filter { variable in
      let value = given[variable.name] ?? before?[variable.name] ?? variable.defaultValue ?? ""
      return value.isEmpty && !variable.isOptional
    }
  }

  /// Shows the difference line by line, and asks a person at a terminal; nobody else agrees.
  static func agrees(_ sentence: String, to lines: [String]) -> Bool {
    guard Terminal.isTerminal(0), Terminal.isTerminal(2) else { return false }
    StandardError.tell(sentence)
    for line in lines { StandardError.tell(line) }
    return agrees("Is that what you want?")
  }

  static func agrees(_ question: String) -> Bool {
    Terminal.writeError(StandardError.prompt(question + " [y/N]"))
    let answer = (try? Terminal.readLine(0)) ?? ""
    return ["y", "yes"].contains(answer.lowercased())
  }

  private static let descriptorFolders = Option(
    "--descriptors", value: "DIR", repeats: true, "a folder of descriptors, which go before those of the machine")

  static let check = Command(
    name: "check", operands: "FILE…", operandCount: 1...10_000,
    summary: "Report every mistake in descriptors", options: [descriptorFolders],
    notes: [
      "Findings go to standard output, as FILE:LINE:COLUMN: error: SENTENCE, with the line and a caret.",
      "It says nothing when there are none.",
      "Hosts to which the tokens of a provider that was added would newly go are warned of.",
    ],
    examples: [
      ("credmgr check notes.yaml", "before you send it to somebody"),
      ("credmgr check --descriptors . *.yaml", "files that extend each other"),
    ], asksNobody: true, needsHome: false
  ) { invocation, context throws(CommandError) in
    var status = ExitStatus.done
    let library = context.home.library.behind(invocation.all("--descriptors"))
    for path in invocation.operands {
      let findings: [Finding]
      do throws(CommandError) {
        let name = Context.descriptorName(path)
        let bytes = try context.descriptor(path)
        let (descriptor, ownFindings) = library.check(bytes, name: name)
        findings = ownFindings + newHosts(of: descriptor, in: bytes, named: name, context)
      } catch .credential(.provider(.invalid(let found))) {
        findings = found
      } catch .failed(let message) {
        // The other files are looked at all the same.
        StandardError.show(message)
        status = .usage
        continue
      }
      for finding in findings { try context.output(finding.report(columns: Terminal.outputColumns)) }
      if findings.contains(where: { $0.severity == .error }) { status = .usage }
    }
    if status != .done { throw .ended(status) }
  }

  /// A host to which nobody agreed yet, where a provider with this identifier was added: who edits a descriptor is
  /// asked about it later. A vault that does not open without a person is let be.
  private static func newHosts(
    of descriptor: Descriptor?, in bytes: [UInt8], named name: String, _ context: Context
  ) -> [Finding] {
    guard let provider = descriptor?.identifier else { return [] }
    return ((try? context.source.newPlaces(of: provider, bytes, named: name)) ?? []).compactMap { new in
      new.place.map { Finding(.newHost(new.name, provider: provider), at: $0, severity: .warning) }
    }
  }

  static let simulate = Command(
    name: "simulate", operands: "ID|FILE", operandCount: 1...1,
    summary: "Play a provider on this machine, as its descriptor says it behaves",
    options: [
      Option("--port", value: "N", "listen on this port of 127.0.0.1; otherwise any free one"),
      Option("--set", value: "NAME=VALUE", repeats: true, "the value of a variable, which every request must have"),
      Option("--lifetime", value: "DURATION", "how long an access token lives"),
      Option("--grace", value: "DURATION", "how long a refresh token works after it was replaced; otherwise 0s"),
      Option("--fault", value: "NAME", repeats: true, "go wrong in one of the ways below"),
      Option("--git-host", value: "HOST:PORT", repeats: true, "a git host of the descriptor that is written"),
      Option("--keep-redirect", "keep a redirect that does not come back to this machine"),
      Option("--client-secret-file", value: "FILE", "the client's secret, or its RSA key; otherwise a random secret"),
      descriptorFolders,
    ],
    notes: [
      "It prints where it listens, a descriptor to add, and the client's identifier and secret, and goes on until it "
        + "is interrupted. What happened is at /simulator/log, and a protected resource at /simulator/resource.",
      "Faults are html, not-json, huge, redirect, error-200, drop, wrong-state, no-rotation, no-expiry, server-error, "
        + "wrong-issuer and slow=MS.",
    ],
    examples: [
      ("credmgr simulate github", "log in without the provider"),
      ("credmgr simulate notes.yaml --port 8080 --fault server-error", "what if it goes wrong"),
    ], needsHome: false, needsNetwork: true
  ) { invocation, context throws(CommandError) in
    guard let online = context.online else { throw .handOver(input: nil) }
    try online.simulate(invocation, context)
  }
}

import CredmgrCommands
import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrTLS
import CredmgrText

/// `credmgr simulate`: simulates a provider on loopback until you stop it.
package enum SimulateCommand {
  package static func run(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    Signals.installInterruptFlag(catchesQuit: true)
    var settings = try settings(invocation)
    let port = try value(of: "--port", in: invocation) { UInt16($0) } ?? 0
    let descriptor = try descriptor(invocation, context)
    let random = SystemRandomSource()
    let encryption = descriptor.usesCertificates ? try encryption(random) : nil
    let given = invocation.value("--client-secret-file")
    let practice = try? Simulation.practiceSecret(ofClientOf: descriptor, encryption?.authority)
    let secret =
      if let given { try context.secret(given, called: "client secret") } else {
        practice ?? Secret(Base64.encodeURL(random.bytes(32)))
      }
    if let given { try context.checkUnreadable(secret.revealBytes(), given) }
    var server: LoopbackServer
    do {
      server = try LoopbackServer(
        port: port == 0 ? nil : port, encryption: encryption.map { encryption in { encryption.server.session() } })
    } catch { throw unavailable(port) }
    let address = "http://127.0.0.1:\(server.port)"
    let encrypted = server.encryptedPort.map { "https://127.0.0.1:\($0)" }
    guard let origin = try? URI(parsing: address), let other = try? URI(parsing: encrypted ?? address) else {
      throw unavailable(port)
    }
    let identifier = descriptor.identifier + "-sim"
    let folder = folder(random)
    let file = Path.joining(folder, descriptor.identifier + ".yaml")
    let secretFile = Path.joining(folder, "client-secret")
    let keyFile = Path.joining(folder, "key")
    let authorityFile = encryption.map { _ in Path.joining(folder, "authority.pem") }
    let isTyped = descriptor.grants.first?.traits.asked != nil
    let subject = descriptor.variables.first(where: \.isAtExchange)
    let hasFile = isTyped && (subject != nil || descriptor.key?.file.isEmpty == false)
    let client = ["--client-id", Simulation.clientIdentifier, "--client-secret-file", secretFile]
    settings.commands = [
      ["credmgr", "add-provider", file, "--as", identifier] + (isTyped ? [] : client),
      ["credmgr", "login", identifier],
    ].map { $0.map(argument).joined(separator: " ") }
    if let subject {
      settings.commands[1] += " --set " + argument(subject.name + "=@" + keyFile)
    } else if isTyped {
      settings.commands[1] += (hasFile ? " --key-file " : " --with-token <") + argument(keyFile)
    }
    if let authorityFile, let encrypted {
      let trust = "SSL_CERT_FILE=" + argument(authorityFile) + " "
      let resource = encrypted + Simulation.controlPrefix + "resource"
      settings.commands[1] = trust + settings.commands[1]
      settings.commands.append(
        trust + ["credmgr", "request", identifier, resource].map(argument).joined(separator: " "))
    }
    let clock = SimulationClock(SystemClock())
    var simulation = try Simulation(
      descriptor, at: origin, settings: settings, clientSecret: secret, clock: { clock.now() }, random: random,
      certified: encryption.map { (other, $0.authority.certificate) },
      fetch: { try? context.source.document(at: $0) })
    let key = simulation.state.key
    defer {
      for file in [file, secretFile, key == nil ? nil : keyFile, authorityFile].compactMap({ $0 }) {
        _ = try? File.remove(file)
      }
      File.removeDirectory(folder)
    }
    try create(folder)
    do throws(POSIXError) {
      try PrivateFile.create(file, Array(simulation.descriptorText.utf8))
      try PrivateFile.create(secretFile, secret.revealBytes())
      if let key {
        let token = subject.flatMap { key.variables[$0.name] }.map { $0 + "\n" }
        let lines = token.map { [$0] } ?? key.lines.prefix(hasFile ? 1 : .max).map { $0.value + "\n" }
        try PrivateFile.create(keyFile, Array(lines.joined().utf8))
      }
      if let authorityFile, let encryption {
        try PrivateFile.create(authorityFile, Array(encryption.authority.certificate.pem.utf8))
      }
      if !context.isJSON {
        let lines = [
          ("listening on", address), ("listening with TLS on", encrypted), ("authority", authorityFile),
          ("descriptor", file), ("client-id", Simulation.clientIdentifier), ("client-secret-file", secretFile),
          ("key-file", key == nil ? nil : keyFile),
        ]
        try Terminal.writeOutput(lines.compactMap { line in line.1.map { "\(line.0) \($0)\n" } }.joined() + "ready\n")
      }
    } catch { throw CommandError(error) }
    if context.isJSON {
      try context.output([
        "url": .string(address), "descriptor": .string(file), "client_id": .string(Simulation.clientIdentifier),
        "client_secret_file": .string(secretFile), "key_file": .optional(key == nil ? nil : keyFile),
        "tls_url": .optional(encrypted), "authority_file": .optional(authorityFile),
        "commands": .array(simulation.settings.commands.map(JSONValue.string)),
      ])
    }
    if Terminal.isTerminal(2) {
      StandardError.tell("to log in, run these commands in another terminal:")
      for command in simulation.settings.commands { Terminal.writeError("  " + command + "\n") }
      if simulation.registersClients {
        let resource = address + Simulation.controlPrefix + "resource"
        StandardError.tell("or set it up like an MCP server, without a client of your own:")
        Terminal.writeError("  " + ["credmgr", "setup", resource].map(argument).joined(separator: " ") + "\n")
      }
      StandardError.tell("open \(address)/ to see the requests; press Ctrl-C to stop")
    }
    try? server.serve(isCancelled: { Signals.isInterrupted }) { request, certificate in
      var answer = simulation.answer(request, certificate: certificate.flatMap { Certificate(bytes: $0) })
      // Clients compare their clocks with it.
      answer.response.fields.set("Date", (0 + clock.now() as Moment).httpDate)
      return answer
    }
    // Without a terminal, a script may still need what it added.
    guard Terminal.isTerminal(2) else { return }
    // git would count as interrupted too.
    Signals.forgetInterruption()
    removeAdded(at: [address, encrypted ?? address], context)
  }

  private static func removeHelpers(of claims: [HostClaim], _ context: Context) {
    Command.removeGitHelpers(of: claims.filter { $0.helper == .git }, context)
    Command.removeDockerHelpers(of: claims.filter { $0.helper == .docker }, context)
  }

  /// Removes the providers that the user added with the shown commands, because their address no longer answers.
  private static func removeAdded(at addresses: [String], _ context: Context) {
    let source = context.source
    let added: [String]
    func isOurs(_ identifier: String) -> Bool {
      guard let path = context.home.library.path(of: identifier), let bytes = try? Home.descriptor(at: path) else {
        return false
      }
      let ends = [Simulation.standardPath] + (Simulation.isOurs(bytes) ? ["/"] : [])
      return addresses.contains { address in ends.contains { bytes.firstPlace(of: (address + $0).utf8) != nil } }
    }
    do throws(CredentialError) { added = try source.accountsIfAny()?.addedProviders() ?? [] } catch {
      for identifier in source.knownProviders() where isOurs(identifier) {
        // The entries of git and docker are outside the vault.
        removeHelpers(of: source.describedClaims(of: identifier), context)
        let isLocked =
          switch error {
          case .vault(.locked), .vault(.passphraseUnavailable): true
          default: false
          }
        let reason = isLocked ? "the vault is locked" : error.message.text
        StandardError.tell("cannot remove \(quoted(identifier)): \(reason)")
        if !isLocked, let hint = error.message.hints.first { context.tell(hint: hint) }
        let unlocking = isLocked ? [["credmgr", "vault", "unlock"]] : []
        let logout = unlocking + [["credmgr", "logout", identifier, "--all", "--keep-remote"]]
        // Without an account, the logout fails.
        context.tell(hint: "\(all: logout), then \(credmgr: "remove-provider", identifier, "--keep-remote")")
      }
      return
    }
    for identifier in added where isOurs(identifier) {
      guard let accounts = try? source.accountsIfAny()?.accounts(of: identifier) else { continue }
      let claims = (try? source.hostClaims()) ?? []
      for account in accounts { _ = try? source.logout(account.name, of: identifier, keepsRemote: true) }
      guard (try? source.remove(identifier, keepsRemote: true)) != nil else { continue }
      let rules = (try? source.removeRules(of: identifier, account: nil, remote: nil, folder: nil)) ?? 0
      removeHelpers(of: claims.filter { $0.provider == identifier }, context)
      StandardError.tell(
        "removed \(quoted(identifier)) and its accounts" + (rules == 0 ? "" : rules == 1 ? " and rule" : " and rules"))
    }
  }

  /// Returns the TLS for this run, and the authority of its certificates.
  private static func encryption(
    _ random: SystemRandomSource
  ) throws(CommandError) -> (server: TLSServer, authority: CertificateAuthority) {
    let key = ECPrivateKey.pem(random: random)
    do throws(CryptographyError) {
      let authority = try CertificateAuthority(name: "credmgr simulate", random: random)
      let certificate = try authority.certificate(of: "127.0.0.1", key: key, .loopbackServer)
      guard let server = TLSServer(certificate, key: key) else { throw .noSignatures }
      return (server, authority)
    } catch { throw .usage("the certificates of this provider require OpenSSL, which cannot be loaded") }
  }

  /// Creates a private temporary directory.
  private static func folder(_ random: SystemRandomSource) -> String {
    let parent = Environment.value("TMPDIR").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
    return Path.joining(parent, "credmgr-simulator-" + Hexadecimal.encode(random.bytes(8)))
  }

  private static func create(_ folder: String) throws(CommandError) {
    do throws(POSIXError) {
      let parent = Path.directory(of: folder) ?? "/"
      if !File.isDirectory(parent) { throw .folderNotFound(path: parent) }
      try PrivateFile.createDirectory(folder)
    } catch {
      throw .failed(error.message.with(hints: ["\(export: "TMPDIR", "/var/tmp") to use another directory"]))
    }
  }

  private static func unavailable(_ port: UInt16) -> CommandError {
    .usage("port \(port) is in use", hint: "omit \"--port\" to use a free port")
  }

  // MARK: Options

  static func settings(_ invocation: Invocation) throws(CommandError) -> SimulationSettings {
    var settings = SimulationSettings()
    for text in invocation.all("--set") {
      let pair = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard pair.count == 2, !pair[0].isEmpty else { throw invalid("--set", text) }
      settings.variables[pair[0]] = pair[1]
    }
    settings.lifetime = try value(of: "--lifetime", in: invocation) {
      duration($0).flatMap { $0 > .zero ? $0 : nil }
    }
    settings.grace = try value(of: "--grace", in: invocation, parse: duration) ?? .zero
    for name in invocation.all("--fault") {
      if let fault = Fault(rawValue: name) {
        settings.faults.append(fault)
      } else if name.hasPrefix("slow="), let delay = Int(name.dropFirst("slow=".count)), 0...600_000 ~= delay {
        settings.delay = .milliseconds(delay)
      } else {
        let names = Fault.allCases.map(\.rawValue) + ["slow=MS"]
        let near = nearMiss(name, among: names)
        throw .usage(
          "unknown fault \(quoted(name))" + didYouMean(near),
          hints: .correcting(name, to: near) + ["use one of \(names.joined(separator: ", "))"])
      }
    }
    settings.gitHosts = invocation.all("--git-host")
    for host in settings.gitHosts where host.isEmpty || host.contains("/") || host.contains("{") {
      throw invalid("--git-host", host)
    }
    settings.keepsRedirect = invocation.has("--keep-redirect")
    return settings
  }

  private static func value<Value>(
    of option: String, in invocation: Invocation, parse: (String) -> Value?
  ) throws(CommandError) -> Value? {
    guard let text = invocation.value(option) else { return nil }
    guard let value = parse(text) else { throw invalid(option, text) }
    return value
  }

  private static func invalid(_ option: String, _ value: String) -> CommandError {
    .usage("invalid value \(quoted(value)) for \(quoted(option))", hint: "\(credmgr: "help", "simulate")")
  }

  /// Parses a number of seconds, or a duration such as `90s` or `8h`.
  private static func duration(_ text: String) -> Duration? {
    (Int64(text).map { .seconds($0) } ?? Duration(text)).flatMap {
      (.zero ... .seconds(10_000_000_000)).contains($0) ? $0 : nil
    }
  }

  // MARK: The descriptor

  private static func descriptor(_ invocation: Invocation, _ context: Context) throws(CommandError) -> Descriptor {
    let source = invocation.operands[0]
    let directories = try context.descriptorFolders(invocation) + context.home.library.directories
    let library = DescriptorLibrary(directories: directories) { path throws(UnreadableDescriptor) in
      guard let bytes = try Home.descriptor(at: path) else { return nil }
      // Skip a descriptor that an earlier run added, because it would simulate itself. Its original comes later in the
      // path.
      return Simulation.isOurs(bytes) ? nil : bytes
    }
    let isIdentifier = DescriptorLibrary.isIdentifier(source)
    let isFile = Context.isDescriptorFile(source) || library.path(of: source) == nil && File.exists(source)
    let bytes = isFile ? try context.descriptor(source) : nil
    do throws(ProviderError) {
      let provider = if let bytes { try library.load(bytes, name: source) } else { try library.load(source) }
      StandardError.show(provider.warnings)
      return provider.descriptor
    } catch .unknown where isIdentifier {
      throw .failed(context.source.unknown(source).message)
    } catch {
      throw .failed(error.message)
    }
  }
}

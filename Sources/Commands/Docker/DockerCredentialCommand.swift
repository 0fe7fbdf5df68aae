import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages

extension Command {
  static let dockerCredential = dockerCommand { invocation, context throws(CommandError) in
    if invocation.operands.first == "setup" { return try setUpDocker(invocation, context) }
    for option in ["--all", "--remove", "--json"] where invocation.has(option) {
      throw .usage(
        "\"\(option)\" requires \"docker-credential setup\"", hint: "\(credmgr: "help", "docker-credential")")
    }
    // docker reads an error from standard output and expects status 1.
    do throws(CommandError) { try run(invocation.operands, context) } catch {
      guard let message = context.message(error) else { throw error }
      let words =
        if case .credential(.loginNeeded(_, _, .noCredential)) = error { DockerError.notFound.rawValue } else {
          message.text
        }
      try context.output(words + "\n")
      // docker passes standard error on to the user, and has words of its own for the errors that it recognizes.
      if case .docker = error { throw .ended(.unexpected) }
      StandardError.show(message)
      throw .ended(.unexpected)
    }
  }

  static func dockerCommand(
    _ run: @escaping @Sendable (Invocation, Context) throws(CommandError) -> Void
  ) -> Command {
    Command(
      name: "docker-credential", operands: "get|store|erase|list|version|setup", operandCount: 0...10_000,
      summary: "Answer docker as its credential helper, and set it up",
      options: [
        Option("--all", "setup: use credmgr for every registry without another helper"),
        Option("--remove", "setup: remove the entries of credmgr"),
        Option("--json", "setup: print JSON with stable field names"),
      ],
      notes: [
        "\"setup [REGISTRY]…\" adds credmgr to ~/.docker/config.json as the helper of these registries (default: the "
          + "registries of the added providers). It writes {\"credHelpers\": {\"ghcr.io\": \"credmgr\"}}, or with "
          + "\"--all\" {\"credsStore\": \"credmgr\"}. Everything else in the file stays the same.",
        "docker runs the program docker-credential-credmgr, which is a link to credmgr.",
      ],
      examples: [
        ("credmgr docker-credential setup", "Let docker use credmgr"),
        ("echo ghcr.io | credmgr docker-credential get", "Show the answer for docker"),
      ], run: run)
  }

  private static func run(_ operands: [String], _ context: Context) throws(CommandError) {
    if operands.count != 1 { throw .usage("Usage: docker-credential-credmgr <store|get|erase|list|version>") }
    switch operands[0] {
    case "get", "store", "erase":
      try context.withInput { input throws(CommandError) in try answer(input, to: operands[0], context) }
    case "list": try list(context)
    case "version": try context.output("docker-credential-credmgr (credmgr) \(Program.version)\n")
    default: throw .usage("Unknown credential action `\(operands[0])`")
    }
  }

  private static func answer(_ input: [UInt8], to operation: String, _ context: Context) throws(CommandError) {
    if operation == "store" {
      let (address, login) = try DockerHelper.login(input)
      return try HelperSession(helper: DockerHelper(address, context), context: context).store(login, isOnly: true)
    }
    let docker = try DockerHelper(RegistryAddress(input), context)
    if operation == "get" { return try docker.get(context) }
    try HelperSession(helper: docker, context: context).erase(nil)
    guard let claim = docker.claim, try context.username(of: claim) != nil else { return }
    let title = context.titled(claim.provider)
    let stopping: Remedy = "\(credmgr: "logout", claim.provider) to stop it"
    context.tell(note: "docker still gets the \(title) token for \"\(claim.host)\"; \(stopping)")
  }

  /// Prints every registry with its user name. During a build, docker requests each listed registry, and a registry
  /// without a valid account would end the build. So `list` omits such registries.
  private static func list(_ context: Context) throws(CommandError) {
    var names: [String: String] = [:]
    for claims in try Dictionary(grouping: context.dockerClaims(), by: \.host).values {
      guard let claim = try context.claim(among: claims) else { continue }
      names[claim.host] = try context.username(of: claim)
    }
    let stored = try manager(context.source.hostLogins())
    for (origin, login) in stored where origin.hasPrefix(RegistryAddress.prefix) {
      names[login.path ?? String(origin.dropFirst(RegistryAddress.prefix.count))] = login.username
    }
    try context.output(
      JSONValue.object(names.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }).encoded + "\n")
  }
}

extension Context {
  func dockerClaims() throws(CommandError) -> [HostClaim] {
    try manager(source.hostClaims().filter { $0.helper == .docker })
  }

  /// Returns the user name that `get` would print; `nil` if no account is logged in or the choice is ambiguous.
  fileprivate func username(of claim: HostClaim) throws(CommandError) -> String? {
    let name = try account(nil, of: claim.provider)
    do throws(CredentialError) {
      let account = try source.accountsIfAny()?.resolve(name, provider: claim.provider)
      return account.map { claim.username(of: $0) }
    } catch .loginNeeded, .unknownAccount, .ambiguousAccount {
      return nil
    } catch { throw CommandError(error) }
  }
}

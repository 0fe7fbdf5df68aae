import CredentialManager
import Cryptography
import HTTP
import JSON
import OAuth
import Platform
import Text

/// The address of a registry as docker writes it: `ghcr.io`, `registry.example:5000`, `https://index.docker.io/v1/`.
struct RegistryAddress: Equatable {
  /// What a login is stored under, and `list` shows: the host alone where nothing else is said.
  let text: String
  /// The host, in lower case, with a port where it is not the ordinary one.
  let host: String
  /// Whether what is sent there is sent over TLS, or stays on this machine.
  let isSafe: Bool

  /// - Throws: `CommandError.failed` when it is no address.
  init(_ text: String) throws(CommandError) {
    let hasScheme = text.firstPlace(of: "://") != nil
    let uri: URI
    do throws(HTTPError) {
      uri = try URI(parsing: hasScheme ? text : "https://" + text)
    } catch {
      // Its sentence leaves a password in the address out.
      throw .failed(error.message())
    }
    guard let host = HostPattern.authority(uri), ["http", "https"].contains(uri.scheme) else {
      throw .usage("a registry is not reached by \"\(uri.scheme)\"")
    }
    self.host = host
    isSafe = uri.isSecure || uri.isLoopback
    let isHost = uri.isSecure && ["", "/"].contains(uri.path) && uri.query == nil && uri.fragment == nil
    self.text = isHost ? host : hasScheme ? uri.text : String(uri.text.dropFirst("https://".count))
  }

  /// The origin of logins in the vault. git's are URLs, so that the two never meet.
  var origin: String { Self.prefix + text }

  static let prefix = "docker:"
}

extension Command {
  static let dockerCredential = Command(
    name: "docker-credential", operands: "get|store|erase|list|version|setup", operandCount: 0...10_000,
    summary: "The docker credential helper",
    options: [
      Option("--all", "setup: let docker ask credmgr for every registry for which it asks nobody else"),
      Option("--remove", "setup: take our entries out again"),
    ],
    notes: [
      "\"setup [REGISTRY]…\" enters credmgr into ~/.docker/config.json as the helper of these registries; without any, of those "
        + "of the providers that were added. All else in the file stays: {\"credHelpers\": {\"ghcr.io\": \"credmgr\"}}, or "
        + "with \"--all\" {\"credsStore\": \"credmgr\"}.",
      "docker looks for a program docker-credential-credmgr, which is a link to credmgr.",
    ],
    examples: [
      Example("credmgr docker-credential setup", "let docker ask credmgr"),
      Example("echo ghcr.io | credmgr docker-credential get", "what docker would get"),
    ]
  ) { invocation, context throws(CommandError) in
    if invocation.operands.first == "setup" { return try setUp(invocation, context) }
    for option in ["--all", "--remove"] where invocation.has(option) {
      throw .usage(
        "\"\(option)\" goes with \"docker-credential setup\"", hint: "run \"credmgr help docker-credential\"")
    }
    // docker reads an error from standard output, and the status is 1 whatever it is.
    do throws(CommandError) {
      try run(invocation.operands, context)
      return .done
    } catch .handOver(let input) {
      throw .handOver(input: input)
    } catch .brokenPipe {
      throw .brokenPipe
    } catch .noCredential(let provider, let account) {
      try context.output("\(DockerError.notFound)\n")
      return show(context.explained(provider, account))
    } catch .unknownAccount(let name, let provider, let known) {
      return try report(.failed(context.unknownAccount(name, provider, known, isNamed: false)), context)
    } catch {
      return try report(error, context)
    }
  }

  private static func report(_ error: CommandError, _ context: Context) throws(CommandError) -> ExitStatus {
    if let message = error.told?.message { try context.output(message.text + "\n") }
    return show(error)
  }

  private static func setUp(_ invocation: Invocation, _ context: Context) throws(CommandError) -> ExitStatus {
    guard let path = DockerConfiguration.path(context) else { throw CommandError(CredentialError.noHome) }
    var configuration = DockerConfiguration()
    if File.exists(path) {
      if File.isDirectory(path) {
        throw .failed(
          Message("\"\(path)\" is a folder", hint: SetUpFinding.settingAside(path), status: .usage))
      }
      let bytes = try system { () throws(POSIXError) in try File.read(path, limit: 1 << 20) }
      guard let read = DockerConfiguration(bytes) else { throw .failed(SetUpFinding.dockerUnreadable(path).message) }
      configuration = read
    }
    let before = configuration.text
    let what: String
    if invocation.has("--remove") {
      configuration.forget()
      what =
        configuration.text == before
        ? "docker's configuration has no entry of ours" : "docker does not ask credmgr any more"
    } else if invocation.has("--all") {
      configuration.askForAll()
      what = "docker asks credmgr for every registry for which it asks nobody else"
    } else {
      var registries: [String] = []
      for text in invocation.operands.dropFirst() {
        // The one of docker itself is named by its whole address.
        let host = try RegistryAddress(text).host
        registries.append(text.firstPlace(of: "://") == nil ? host : text)
      }
      if registries.isEmpty { registries = try Set(claims(context).map(\.host)).sorted() }
      guard !registries.isEmpty else {
        throw .usage(
          "no provider that was added has a registry",
          hint: "run \"credmgr docker-credential setup --all\", which stores what \"docker login\" is given")
      }
      configuration.ask(for: registries)
      what = "docker asks credmgr for " + some(registries)
    }
    if configuration.text != before {
      let text = configuration.text
      try system { () throws(POSIXError) in
        if let folder = Path.directory(of: path) { try File.createDirectory(folder) }
        // A link, such as into a folder of configurations, stays one.
        try PrivateFile.replace(Path.resolved(path) ?? path, Array(text.utf8))
      }
    }
    context.tell(what)
    if !invocation.has("--remove") {
      var doctor = Doctor(context)
      doctor.docker([])
      doctor.tellAll()
    }
    return .done
  }

  /// What a person has to know stands on standard error too, which docker hands on.
  private static func show(_ error: CommandError) -> ExitStatus {
    if let (findings, message) = error.told, !DockerError.all.contains(message.text) {
      StandardError.show(findings)
      StandardError.show(message)
    }
    return .unexpected
  }

  private static func run(_ operands: [String], _ context: Context) throws(CommandError) {
    guard operands.count == 1 else {
      throw .usage("Usage: docker-credential-credmgr <store|get|erase|list|version>")
    }
    switch operands[0] {
    case "get":
      let input = try standardInput()
      do throws(CommandError) {
        try get(input, context)
      } catch .handOver {
        throw .handOver(input: input)
      }
    case "store": try store(standardInput(), context)
    case "erase": try erase(standardInput(), context)
    case "list": try list(context)
    case "version": try context.output("docker-credential-credmgr (credmgr) \(Program.version)\n")
    default: throw .usage("Unknown credential action `\(operands[0])`")
    }
  }

  private static func standardInput() throws(CommandError) -> [UInt8] {
    try system { () throws(POSIXError) in try File.readStandardInput(limit: 1 << 20) }
  }

  /// What `get` and `erase` read: one address.
  private static func address(_ input: [UInt8]) throws(CommandError) -> RegistryAddress {
    guard let text = String(validating: input, as: UTF8.self) else { throw .usage("what docker wrote is not UTF-8") }
    let blank: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0.isNewline }
    let trimmed = String(text.drop(while: blank).reversed().drop(while: blank).reversed())
    if trimmed.isEmpty { throw .usage(DockerError.noServer) }
    return try RegistryAddress(trimmed)
  }

  /// The provider that a registry belongs to.
  private static func claim(
    _ address: RegistryAddress, _ context: Context
  ) throws(CommandError) -> HostClaim? {
    guard address.isSafe else { return nil }
    return try manager { () throws(CredentialError) in try context.source.claim(of: address.host, for: .docker) }
  }

  private static func claims(_ context: Context) throws(CommandError) -> [HostClaim] {
    try manager { () throws(CredentialError) in try context.source.hostClaims().filter { $0.helper == .docker } }
  }

  private static func get(_ input: [UInt8], _ context: Context) throws(CommandError) {
    let address = try address(input)
    // What a person stored for a registry goes before what its provider would give.
    let login = try manager { () throws(CredentialError) in
      try context.source.hostLogin(HostLoginPattern(origin: address.origin))
    }
    if let login {
      return try answer(address, login.username ?? "", login.password, context)
    }
    guard let claim = try claim(address, context) else { throw .usage(DockerError.notFound) }
    let name = try context.account(nil, of: claim.provider)
    let account = try manager { () throws(CredentialError) in
      try context.source.freshAccount(name, of: claim.provider)
    }
    context.source.noteHandOut(account, to: "docker " + address.host)
    try answer(address, claim.username(for: account.name), account.credential.accessToken, context)
  }

  private static func answer(
    _ address: RegistryAddress, _ username: String, _ password: Secret, _ context: Context
  ) throws(CommandError) {
    let answer: JSONValue = [
      "ServerURL": .string(address.text), "Username": .string(username), "Secret": .string(password.reveal()),
    ]
    try context.output(answer.encoded + "\n")
  }

  private static func store(_ input: [UInt8], _ context: Context) throws(CommandError) {
    guard let value = try? JSONValue.parse(input), let members = value.members else {
      throw .usage("what docker wrote is no JSON object")
    }
    // Docker's own helpers read the names without regard to case.
    func text(_ name: String) -> String { members.last { $0.name.lowercased() == name }?.value.text ?? "" }
    let (server, username) = (text("serverurl"), text("username"))
    if server.isEmpty { throw .usage(DockerError.noServer) }
    if username.isEmpty { throw .usage(DockerError.noUsername) }
    let address = try RegistryAddress(server)
    let secret = Secret(text("secret"))
    // docker stores what it was given, and a provider's token is in the vault already, with what refreshes it.
    if let claim = try claim(address, context), try isHandedOut(secret, by: claim, context) { return }
    try manager { () throws(CredentialError) in
      try context.source.store(only: HostLogin(username: username, password: secret), for: address.origin)
    }
  }

  private static func isHandedOut(
    _ secret: Secret, by claim: HostClaim, _ context: Context
  ) throws(CommandError) -> Bool {
    try manager { () throws(CredentialError) in
      try context.source.accountsIfAny()?.accounts(of: claim.provider).contains {
        $0.credential.accessToken == secret
      } ?? false
    }
  }

  private static func erase(_ input: [UInt8], _ context: Context) throws(CommandError) {
    let address = try address(input)
    try manager { () throws(CredentialError) in
      try context.source.eraseHostLogins(HostLoginPattern(origin: address.origin))
    }
    if let claim = try claim(address, context), try username(of: claim, context) != nil {
      context.tell(
        "\"\(address.host)\" still gets the token of \"\(claim.provider)\": "
          + "\"credmgr logout \(claim.provider)\" ends that")
    }
  }

  /// Every registry with its user name. docker asks for each of them when it builds, so that those without an account
  /// are left out: one that cannot be had would end the build.
  private static func list(_ context: Context) throws(CommandError) {
    var names: [String: String] = [:]
    for claim in try claims(context) {
      if let username = try username(of: claim, context) { names[claim.host] = username }
    }
    let stored = try manager { () throws(CredentialError) in try context.source.hostLogins() }
    for (origin, login) in stored where origin.hasPrefix(RegistryAddress.prefix) {
      names[String(origin.dropFirst(RegistryAddress.prefix.count))] = login.username
    }
    try context.output(
      JSONValue.object(names.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }).encoded + "\n")
  }

  /// The user name that `get` would answer with; `nil` where nobody is logged in, or it is not clear who is meant.
  private static func username(
    of claim: HostClaim, _ context: Context
  ) throws(CommandError) -> String? {
    let name = try context.account(nil, of: claim.provider)
    return try manager { () throws(CredentialError) in
      do throws(CredentialError) {
        return try context.source.accountsIfAny().map { accounts throws(CredentialError) in
          claim.username(for: try accounts.resolve(name, provider: claim.provider).name)
        }
      } catch .loginNeeded, .unknownAccount, .ambiguousAccount {
        return nil
      }
    }
  }
}

/// The sentences that docker knows (docker/docker-credential-helpers, credentials/error.go), as they are there.
private enum DockerError {
  static let notFound = "credentials not found in native keychain"
  static let noServer = "no credentials server URL"
  static let noUsername = "no credentials username"
  static let all = [notFound, noServer, noUsername]
}

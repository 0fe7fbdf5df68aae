import CredmgrCredentialManager
import CredmgrJSON
import CredmgrPlatform
import CredmgrText

/// The user's docker configuration, which names a credential helper for each registry (docker-login(1)).
struct DockerConfiguration {
  private var members: [JSONValue.Member] = []

  static let own = "credmgr"

  /// `nil` without a home directory.
  static func path(_ context: Context) -> String? {
    let folder = Environment.text("DOCKER_CONFIG", context.environment)
    return (folder ?? context.home.person.map { $0 + "/.docker" }).map { $0 + "/config.json" }
  }

  init() {}

  /// `nil` if docker cannot read it either.
  init?(_ bytes: [UInt8]) {
    guard let members = (try? JSONValue.parse(bytes))?.members else { return nil }
    self.members = members
  }

  var isEmpty: Bool { members.isEmpty }

  private var value: JSONValue { .object(members) }

  var text: String { value.formatted + "\n" }

  /// The helper for every registry without its own helper.
  var store: String? { value["credsStore"]?.text.flatMap { $0.isEmpty ? nil : $0 } }

  private var helpers: [JSONValue.Member] { value["credHelpers"]?.members ?? [] }

  func helper(of registry: String) -> String? {
    let name = (try? RegistryAddress(registry))?.configured ?? registry
    return helpers.last { $0.name == name }.map { $0.value.text ?? "" } ?? store
  }

  /// Whether docker asks credmgr especially for this registry.
  func names(_ registry: String) -> Bool {
    let name = (try? RegistryAddress(registry))?.configured ?? registry
    return helpers.contains { $0.name == name && $0.value.text == Self.own }
  }

  var asksUs: Bool { store == Self.own || helpers.contains { $0.value.text == Self.own } }

  /// The other helpers with their registries. The default helper has an empty list.
  var others: [(name: String, registries: [String])] {
    var found = store.map { [($0, [])] } ?? [] as [(name: String, registries: [String])]
    for name in Set(helpers.compactMap(\.value.text)).sorted() where !name.isEmpty && name != store {
      found.append((name, helpers.filter { $0.value.text == name }.map(\.name)))
    }
    return found.filter { $0.name != Self.own }
  }

  var readablePasswords: [String] {
    (value["auths"]?.members ?? []).filter { !($0.value["auth"]?.text ?? "").isEmpty }.map(\.name)
  }

  mutating func ask(for registries: [String]) {
    let rest = helpers.filter { !registries.contains($0.name) }
    set("credHelpers", .object(rest + registries.map { .init($0, .string(Self.own)) }))
  }

  mutating func askForAll() { set("credsStore", .string(Self.own)) }

  /// Removes our entries, or only those of some registries.
  mutating func forget(_ registries: [String]) {
    if store == Self.own, registries.isEmpty { set("credsStore", nil) }
    let rest = helpers.filter { helper in
      helper.value.text != Self.own || !registries.isEmpty && !registries.contains(helper.name)
    }
    if rest.count < helpers.count { set("credHelpers", rest.isEmpty ? nil : .object(rest)) }
  }

  private mutating func set(_ name: String, _ value: JSONValue?) {
    let place = members.firstIndex { $0.name == name } ?? members.endIndex
    members.removeAll { $0.name == name }
    if let value { members.insert(.init(name, value), at: min(place, members.endIndex)) }
  }
}

extension Command {
  /// Lets docker no longer ask credmgr for these registries.
  package static func removeDockerHelpers(of claims: [HostClaim], _ context: Context) {
    guard let path = DockerConfiguration.path(context), let bytes = try? File.read(path, limit: 1 << 20),
      let configuration = DockerConfiguration(bytes)
    else { return }
    let hosts = claims.map(\.host).filter(configuration.names)
    if hosts.isEmpty { return }
    try? setUpDocker(Invocation(.dockerCredential, ["setup", "--remove"] + hosts), context)
  }

  static func setUpDocker(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    guard let path = DockerConfiguration.path(context) else { throw CommandError(.noHome) }
    var configuration = DockerConfiguration()
    if File.exists(path) {
      if File.isDirectory(path) { throw .usage("\"\(path)\" is a directory", hint: .settingAside(path)) }
      let bytes = try system(File.read(path, limit: 1 << 20))
      guard let read = DockerConfiguration(bytes) else { throw .failed(DockerConfiguration.unreadable(path)) }
      configuration = read
    }
    let before = configuration.text
    var registries: [String] = []
    for text in invocation.operands.dropFirst() { registries.append(try RegistryAddress(text).configured) }
    let what: String
    if invocation.has("--remove") {
      configuration.forget(registries)
      let of = registries.isEmpty ? "" : " for " + some(registries)
      what =
        configuration.text == before
        ? "credmgr is not in docker's configuration" + of : "docker no longer asks credmgr" + of
    } else if invocation.has("--all") {
      if let other = configuration.store, other != DockerConfiguration.own,
        (try? Launcher.find("docker-credential-" + other)) != nil
      {
        throw .usage(
          "docker would no longer find the logins that \"\(other)\" stores for every registry",
          hint: "\(credmgr: "docker-credential", "setup", "ghcr.io") to set up a single registry")
      }
      configuration.askForAll()
      what = "docker now asks credmgr for every registry without another helper"
    } else {
      if registries.isEmpty {
        let hosts = try context.dockerClaims().map(\.host)
        registries = Set(hosts.map { (try? RegistryAddress($0))?.configured ?? $0 }).sorted()
      }
      guard !registries.isEmpty else {
        throw .usage(
          "none of the added providers has a registry",
          hint: "\(credmgr: "docker-credential", "setup", "--all") to store the logins of \"docker login\"")
      }
      configuration.ask(for: registries)
      what = "docker now asks credmgr for " + some(registries)
    }
    if configuration.text != before, configuration.isEmpty, !File.isLink(path) {
      // docker does without the file.
      _ = try system(File.remove(path))
      if let folder = Path.directory(of: path), folder.hasSuffix("/.docker") { File.removeDirectory(folder) }
    } else if configuration.text != before {
      if let folder = Path.directory(of: path) { try system(File.createDirectory(folder)) }
      // Write to the target of a symbolic link, for example in a dotfiles repository.
      try system(PrivateFile.replace(Path.resolved(path) ?? path, Array(configuration.text.utf8)))
    }
    if context.isJSON {
      try context.output([
        "file": .string(path), "changed": .boolean(configuration.text != before),
        "registries": .array(registries.map(JSONValue.string)),
      ])
    }
    context.tell(what)
    if !invocation.has("--remove") {
      var doctor = Doctor(context)
      doctor.checkDocker([])
      doctor.tellAll()
    }
  }
}

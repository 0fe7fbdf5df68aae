import JSON
import Platform
import Text

/// docker's configuration of a person: which program it asks for the credentials of which registry (docker-login(1)).
struct DockerConfiguration {
  private var members: [JSONValue.Member] = []

  static let own = "credmgr"

  /// `nil` where there is no home.
  static func path(_ context: Context) -> String? {
    let folder = Environment.text("DOCKER_CONFIG", context.environment)
    return (folder ?? context.home.person.map { $0 + "/.docker" }).map { $0 + "/config.json" }
  }

  init() {}

  /// `nil` where docker could not read it, either.
  init?(_ bytes: [UInt8]) {
    guard let members = (try? JSONValue.parse(bytes))?.members else { return nil }
    self.members = members
  }

  private var value: JSONValue { .object(members) }

  var text: String { value.formatted + "\n" }

  /// The helper that docker asks for every registry without one of its own.
  var store: String? { value["credsStore"]?.text.flatMap { $0.isEmpty ? nil : $0 } }

  private var helpers: [JSONValue.Member] { value["credHelpers"]?.members ?? [] }

  func helper(of registry: String) -> String? {
    helpers.last { $0.name == registry }.map { $0.value.text ?? "" } ?? store
  }

  var asksUs: Bool { store == Self.own || helpers.contains { $0.value.text == Self.own } }

  /// The helpers of others with their registries; without any for the one that is asked for all.
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

  /// Takes our entries out, or those of some registries alone.
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
  static func setUpDocker(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    guard let path = DockerConfiguration.path(context) else { throw CommandError(.noHome) }
    var configuration = DockerConfiguration()
    if File.exists(path) {
      if File.isDirectory(path) { throw .usage("\"\(path)\" is a folder", hint: .settingAside(path)) }
      let bytes = try system(File.read(path, limit: 1 << 20))
      guard let read = DockerConfiguration(bytes) else { throw .failed(DockerConfiguration.unreadable(path)) }
      configuration = read
    }
    let before = configuration.text
    var registries: [String] = []
    for text in invocation.operands.dropFirst() {
      // The one of docker itself is named by its whole address.
      let host = try RegistryAddress(text).host
      registries.append(text.firstPlace(of: "://") == nil ? host : text)
    }
    let what: String
    if invocation.has("--remove") {
      configuration.forget(registries)
      let of = registries.isEmpty ? "" : " for " + some(registries)
      what =
        configuration.text == before
        ? "docker's configuration has no entry of ours" + of : "docker does not ask credmgr any more" + of
    } else if invocation.has("--all") {
      if let other = configuration.store, other != DockerConfiguration.own,
        (try? Launcher.find("docker-credential-" + other)) != nil
      {
        throw .usage(
          "docker asks \"\(other)\" for every registry, and what is stored there would not be found any more",
          hint: "\(credmgr: "docker-credential", "setup", "ghcr.io") for one registry at a time")
      }
      configuration.askForAll()
      what = "docker asks credmgr for every registry for which it asks nobody else"
    } else {
      if registries.isEmpty { registries = try Set(context.dockerClaims().map(\.host)).sorted() }
      guard !registries.isEmpty else {
        throw .usage(
          "no provider that was added has a registry",
          hint: "\(credmgr: "docker-credential", "setup", "--all"), which stores what \"docker login\" is given")
      }
      configuration.ask(for: registries)
      what = "docker asks credmgr for " + some(registries)
    }
    if configuration.text != before {
      if let folder = Path.directory(of: path) { try system(File.createDirectory(folder)) }
      // A link, such as into a folder of configurations, stays one.
      try system(PrivateFile.replace(Path.resolved(path) ?? path, Array(configuration.text.utf8)))
    }
    context.tell(what)
    if !invocation.has("--remove") {
      var doctor = Doctor(context)
      doctor.checkDocker([])
      doctor.tellAll()
    }
  }
}

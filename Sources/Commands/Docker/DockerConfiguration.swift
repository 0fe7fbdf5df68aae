import JSON
import Platform

/// docker's configuration of a person: which program it asks for the credentials of which registry (docker-login(1)).
struct DockerConfiguration {
  private var members: [JSONValue.Member]

  /// The name by which docker knows us.
  static let own = "credmgr"

  /// Where docker looks for it; `nil` where there is no home.
  static func path(_ context: Context) -> String? {
    let folder = Environment.text("DOCKER_CONFIG", context.environment)
    return (folder ?? context.home.person.map { $0 + "/.docker" }).map { $0 + "/config.json" }
  }

  /// One that says nothing.
  init() { members = [] }

  /// Reads a file; `nil` where docker could not, either.
  init?(_ bytes: [UInt8]) {
    guard let members = (try? JSONValue.parse(bytes))?.members else { return nil }
    self.members = members
  }

  /// The text of the file.
  var text: String { JSONValue.object(members).formatted + "\n" }

  private var value: JSONValue { .object(members) }

  private var store: String? { value["credsStore"]?.text.flatMap { $0.isEmpty ? nil : $0 } }

  private var helpers: [JSONValue.Member] { value["credHelpers"]?.members ?? [] }

  /// The helper that is asked for a registry.
  func helper(of registry: String) -> String? {
    helpers.last { $0.name == registry }.map { $0.value.text ?? "" } ?? store
  }

  /// Whether we are asked for any registry.
  var asksUs: Bool { store == Self.own || helpers.contains { $0.value.text == Self.own } }

  /// The helpers of others with their registries; without any for the one that is asked for all.
  var others: [(name: String, registries: [String])] {
    var found = store.map { [($0, [])] } ?? [] as [(name: String, registries: [String])]
    for name in Set(helpers.compactMap(\.value.text)).sorted() where !name.isEmpty && name != store {
      found.append((name, helpers.filter { $0.value.text == name }.map(\.name)))
    }
    return found.filter { $0.name != Self.own }
  }

  /// The registries whose passwords stand in the file.
  var readablePasswords: [String] {
    (value["auths"]?.members ?? []).filter { !($0.value["auth"]?.text ?? "").isEmpty }.map(\.name)
  }

  /// Lets docker ask us for registries.
  mutating func ask(for registries: [String]) {
    let rest = helpers.filter { !registries.contains($0.name) }
    set("credHelpers", .object(rest + registries.map { .init($0, .string(Self.own)) }))
  }

  /// Lets docker ask us for every registry for which nobody else is.
  mutating func askForAll() { set("credsStore", .string(Self.own)) }

  /// Takes out what names us.
  mutating func forget() {
    if store == Self.own { set("credsStore", nil) }
    let rest = helpers.filter { $0.value.text != Self.own }
    if rest.count < helpers.count { set("credHelpers", rest.isEmpty ? nil : .object(rest)) }
  }

  private mutating func set(_ name: String, _ value: JSONValue?) {
    let place = members.firstIndex { $0.name == name } ?? members.endIndex
    members.removeAll { $0.name == name }
    if let value { members.insert(.init(name, value), at: min(place, members.endIndex)) }
  }
}

import CredmgrCryptography
import CredmgrPlatform
import CredmgrText
import CredmgrYAML

extension ImportSource {
  /// `hosts.yml` of gh, and the Secret Service for users without a token there (cli/cli, `internal/config`).
  static let gitHubCLI = ImportSource(
    name: "gh", title: "GitHub CLI", files: hostsFile,
    read: { text throws(ImportFault) in
      try users(in: text).compactMap { host, user, token, lines in
        guard let token else { return nil }
        // Another program may have written the token below its key.
        let isWhole = lines.allSatisfy { text.bytes[$0].firstPlace(of: token.utf8) != nil }
        var entry = ImportEntry(
          user.map { $0 + "@" + host } ?? host, host: host, user: user, kind: .token, use: .git,
          held: .value(Secret(token)),
          removal: isWhole ? .cut(lines) : .none)
        entry.hostedProvider = provider(hosting: host)
        return entry
      }
    },
    ask: { places throws(ImportFault) in
      guard SessionBus.address(environment: places.environment) != nil else { return [] }
      var found: [ImportEntry] = []
      for path in hostsFile(places) {
        guard let text = try ImportText.load(path) else { continue }
        for (host, user, token, _) in try users(in: text) {
          guard let user, token == nil else { continue }
          let item = ["service", "gh:" + host, "username", user]
          var search = ImportCommand(program: "secret-tool", arguments: ["search"] + item)
          search.readsErrors = true
          // Most machines lack the service or the tool for it.
          guard let output = try? places.run(search), !items(String(decoding: output, as: UTF8.self)).isEmpty else {
            continue
          }
          var entry = ImportEntry(
            user + "@" + host, host: host, user: user, kind: .token, use: .git,
            held: .command(ImportCommand(program: "secret-tool", arguments: ["lookup"] + item)),
            removal: .command(ImportCommand(program: "secret-tool", arguments: ["clear"] + item)))
          entry.place = "Secret Service"
          entry.hostedProvider = provider(hosting: host)
          found.append(entry)
        }
      }
      return found
    })

  /// The provider of a host that is not github.com.
  static func provider(hosting host: String) -> String {
    host.lowercased().hasSuffix(".ghe.com") ? "github" : "github-enterprise"
  }

  @Sendable private static func hostsFile(_ places: ImportPlaces) -> [String] {
    let folder = places.path("GH_CONFIG_DIR") ?? places.configuration.map { $0 + "/gh" }
    return folder.map { [$0 + "/hosts.yml"] } ?? []
  }

  private typealias User = (host: String, name: String?, token: String?, lines: [Range<Int>])

  private static func users(in text: ImportText) throws(ImportFault) -> [User] {
    guard let root = try? Node.parse(bytes: text.bytes, name: text.path) else { throw .malformed(path: text.path) }
    let lines = text.lines
    var users: [User] = []
    for host in root.entries ?? [] {
      let active = host.value["user"]?.text
      let known = host.value["users"]?.entries ?? []
      var names = known.map { Optional($0.key) }
      // Versions before 2.40 know one user for each host, and the oldest do not store the name.
      if names.isEmpty || active != nil && !names.contains(active) { names.append(active) }
      for name in names {
        let own = known.first { $0.key == name }?.value
        let nodes = [own, name == active ? host.value : nil].compactMap { $0 }
        let keys = nodes.compactMap { node in node.entries?.first { $0.key == "oauth_token" } }
        let token = keys.lazy.compactMap(\.value.text).first
        // The same token may be in both places.
        let same = keys.filter { token != nil && $0.value.text == token }.map { $0.keyPlace.line - 1 }
        users.append((host.key, name, token, same.filter(lines.indices.contains).map { lines[$0].range }))
      }
    }
    return users
  }
}

import CredmgrCryptography
import CredmgrJSON
import CredmgrPlatform

extension ImportSource {
  /// `config.json` of docker and `auth.json` of podman, which contain passwords in Base64 or name a helper.
  static let docker = ImportSource(
    name: "docker", title: "docker",
    files: { places in
      let folder = places.path("DOCKER_CONFIG") ?? places.inHome(".docker")
      let runtime = places.path("XDG_RUNTIME_DIR")
      let podman = places.path("REGISTRY_AUTH_FILE") ?? runtime.map { $0 + "/containers/auth.json" }
      return [folder.map { $0 + "/config.json" }, podman].compactMap { $0 }
    },
    read: { text throws(ImportFault) in
      guard let value = try? JSONValue.parse(text.bytes), value.members != nil else {
        throw .malformed(path: text.path)
      }
      let helpers = (value["credHelpers"]?.members ?? []).reduce(into: [:]) { $0[$1.name] = $1.value.text }
      let store = value["credsStore"]?.text ?? ""
      let repeated = value["auths"]?.repeatedNames ?? []
      return (value["auths"]?.members ?? []).compactMap { member in
        let host = importedHost(member.name)
        guard !host.isEmpty, !repeated.contains(member.name) else { return nil }
        if let token = member.value["identitytoken"]?.text, !token.isEmpty {
          return ImportEntry(host, unsupported: .identityToken, host: host)
        }
        let fields = ["auth", "username", "password"]
        if let pair = member.value["auth"]?.text.flatMap(importedPair), !pair.password.isEmpty {
          // docker itself removes the whole member.
          let isWhole = member.value.members?.allSatisfy { fields.contains($0.name) } ?? false
          let paths = isWhole ? [["auths", member.name]] : fields.map { ["auths", member.name, $0] }
          var entry = ImportEntry(
            pair.user + "@" + host, host: host, user: pair.user, kind: .password, use: .docker,
            held: .value(pair.password),
            removal: .json(paths))
          entry.address = member.name
          return entry
        }
        let helper = helpers[member.name] ?? store
        guard !helper.isEmpty, helper != "credmgr", helper.utf8.allSatisfy({ $0.isLetterOrDigit || $0 == 0x2D }) else {
          return nil
        }
        return asked("docker-credential-" + helper, address: member.name, host: host)
      }
    })

  /// The login that another helper stores (docker/docker-credential-helpers).
  private static func asked(_ helper: String, address: String, host: String) -> ImportEntry {
    var entry = ImportEntry(
      host, host: host, kind: .password, use: .docker,
      held: .command(ImportCommand(program: helper, arguments: ["get"], input: address, key: "Secret")),
      removal: .command(ImportCommand(program: helper, arguments: ["erase"], input: address)))
    (entry.address, entry.place) = (address, helper)
    return entry
  }
}

import CredmgrCryptography
import CredmgrPlatform
import CredmgrText

extension ImportSource {
  /// The Secret Service: git-credential-libsecret, Git Credential Manager, and docker-credential-secretservice. credmgr
  /// lists the unlocked items.
  static let secretService: ImportSource = {
    var source = ImportSource(name: "secret-service", title: "Secret Service")
    source.ask = { places throws(ImportFault) in
      guard SessionBus.address(environment: places.environment) != nil else { return [] }
      var found: [ImportEntry] = []
      for schema in ["org.git.Password", "com.microsoft.GitCredentialManager", "io.docker.Credentials"] {
        var search = ImportCommand(program: "secret-tool", arguments: ["search", "--all", "xdg:schema", schema])
        search.readsErrors = true
        let output: [UInt8]
        do throws(ImportFault) { output = try places.run(search) } catch {
          // Most machines lack the service or the tool for it.
          return []
        }
        for item in items(String(decoding: output, as: UTF8.self)) {
          if var entry = entry(schema, item) {
            entry.place = "Secret Service"
            found.append(entry)
          }
        }
      }
      return found
    }
    return source
  }()

  /// Reads the attributes of the items that `secret-tool search` prints. Their secrets are left out.
  static func items(_ output: String) -> [[(name: String, value: String)]] {
    var items: [[(name: String, value: String)]] = []
    for line in output.split(separator: "\n") {
      if line.hasPrefix("[/"), line.hasSuffix("]") {
        items.append([])
      } else if line.hasPrefix("attribute."), let sign = line.firstPlace(of: " = "), !items.isEmpty {
        let name = line[..<sign.lowerBound].dropFirst("attribute.".count)
        items[items.count - 1].append((String(name), String(line[sign.upperBound...])))
      }
    }
    return items
  }

  private static func entry(_ schema: String, _ item: [(name: String, value: String)]) -> ImportEntry? {
    func value(_ name: String) -> String? {
      item.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }
    var address: String?
    let user: String?
    var use = ImportEntry.Use.git
    switch schema {
    case "org.git.Password":
      let port = value("port").flatMap { $0 == "0" ? nil : ":" + $0 } ?? ""
      address = value("server").map { "\(value("protocol") ?? "https")://\($0)\(port)" }
      user = value("user")
    case "com.microsoft.GitCredentialManager":
      // The namespace comes first: `git:https://github.com`.
      address = value("service").flatMap { text in text.hasPrefix("git:") ? String(text.dropFirst(4)) : nil }
      user = value("account")
    default:
      (address, user, use) = (value("server"), value("username"), .docker)
    }
    guard let address, case let host = importedHost(address), !host.isEmpty else { return nil }
    let attributes = ["xdg:schema", schema] + item.flatMap { [$0.name, $0.value] }
    var entry = ImportEntry(
      user.map { $0 + "@" + host } ?? host, host: host, user: user, kind: .password, use: use,
      held: .command(ImportCommand(program: "secret-tool", arguments: ["lookup"] + attributes)),
      removal: .command(ImportCommand(program: "secret-tool", arguments: ["clear"] + attributes)))
    entry.address = address
    return entry
  }
}

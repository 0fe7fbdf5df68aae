import CredmgrCryptography
import CredmgrPlatform

extension ImportSource {
  /// `git credential-cache`, which keeps passwords in memory. It answers only for one host, so credmgr asks it about
  /// the hosts of the known providers, and only if the cache runs.
  static let gitCredentialCache: ImportSource = {
    var source = ImportSource(name: "git-cache", title: "git credential-cache")
    source.ask = { places throws(ImportFault) in
      let cache = places.path("XDG_CACHE_HOME") ?? places.inHome(".cache")
      let sockets = [places.inHome(".git-credential-cache/socket"), cache.map { $0 + "/git/credential/socket" }]
      guard sockets.contains(where: { $0.map(File.exists) ?? false }) else { return [] }
      var found: [ImportEntry] = []
      for host in places.gitHosts() where !host.contains(where: \.isNewline) {
        let question = "protocol=https\nhost=\(host)\n"
        func asking(_ operation: String, _ more: String = "", key: String? = nil) -> ImportCommand {
          ImportCommand(
            program: "git", arguments: ["credential-cache", operation], input: question + more + "\n", key: key)
        }
        let answer = String(decoding: try places.run(asking("get")), as: UTF8.self)
        let lines = answer.split(whereSeparator: \.isNewline)
        guard lines.contains(where: { $0.hasPrefix("password=") }) else { continue }
        let user = lines.first { $0.hasPrefix("username=") }.map { String($0.dropFirst("username=".count)) }
        let more = user.map { "username=\($0)\n" } ?? ""
        var entry = ImportEntry(
          user.map { $0 + "@" + host } ?? host, host: host, user: user, kind: .password, use: .git,
          held: .command(asking("get", more, key: "password")), removal: .command(asking("erase", more)))
        entry.place = "git credential-cache"
        found.append(entry)
      }
      return found
    }
    return source
  }()
}

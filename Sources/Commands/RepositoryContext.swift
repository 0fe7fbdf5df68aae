import CredmgrCredentialManager
import CredmgrHTTP
import CredmgrPlatform
import CredmgrText

/// The location of a command, as account rules see it (docs/git.md).
struct RepositoryContext {
  let environment: (String) -> String?

  /// Returns the remote `origin`, or all remotes without one. Asks git, because a URL can be in many places.
  func remotes() -> [RemoteAddress] {
    let question = ["config", "--get-regexp", #"^remote\..*\.url$"#]
    guard let listed = try? Launcher.run("git", question, errors: .silenced), listed.status == 0 else { return [] }
    let lines = String(decoding: listed.output, as: UTF8.self).split(separator: "\n")
    let origin = lines.filter { $0.hasPrefix("remote.origin.url ") }
    return (origin.isEmpty ? lines : origin).compactMap { line in
      line.firstIndex(of: " ").flatMap { RemoteAddress(String(line[line.index(after: $0)...])) }
    }
  }

  /// Returns the current directory, and the repository that git works on if it is elsewhere, as during a clone.
  func folders() -> [String] {
    let here = (try? Path.currentDirectory()).map { [$0] } ?? []
    guard let repository = environment("GIT_DIR"), repository.hasPrefix("/") else { return here }
    return here + [repository]
  }

  /// Returns the remote that git asks about. Without `credential.useHttpPath`, git omits the path, but its remote
  /// program has the URL as an argument, and the current repository knows its remotes.
  func remotes(_ uri: URI, path: String?) -> [RemoteAddress] {
    if let path { return [RemoteAddress(uri, path: path)] }
    let host = RemoteAddress(uri, path: nil)
    if let address = argument(of: host).flatMap({ RemoteAddress($0) }) { return [address] }
    let own = remotes().filter { $0.host == host.host }
    return own.isEmpty ? [host] : own
  }

  /// Returns the URL that git uses to look up its configuration, as far as it is known.
  func url(_ uri: URI, path: String?) -> String {
    if let path { return uri.origin + "/" + path }
    return argument(of: RemoteAddress(uri, path: nil)) ?? uri.origin
  }

  private func argument(of host: RemoteAddress) -> String? {
    for arguments in ParentProcess.argumentsOfAncestors() {
      let urls = arguments.filter { $0.firstPlace(of: "://") != nil }
      if let url = urls.last(where: { RemoteAddress($0)?.host == host.host }) { return url }
    }
    return nil
  }
}

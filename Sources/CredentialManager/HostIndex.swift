import OAuth
import POSIX
import Providers

/// The index from hosts of git, or of docker, to providers: one small file, so that a look-up does not grow with the number
/// of descriptors.
///
/// It remembers what it was made of: the folders of the path, and the files of each provider that was added. Who edits a
/// descriptor by hand changes one of these, and the index is made anew at the next question.
struct HostIndex {
  /// A file or a folder, and what it was like.
  struct Source: Equatable {
    /// The provider whose descriptor it is; empty for a folder of the path.
    var provider: String
    var path: String
    /// `File.stamp`; `-` where there was nothing.
    var stamp: String

    init(_ path: String, of provider: String = "") {
      self.provider = provider
      self.path = path
      stamp = Self.stamp(path)
    }

    fileprivate init(provider: String, path: String, stamp: String) {
      self.provider = provider
      self.path = path
      self.stamp = stamp
    }

    /// Whether it is what it was.
    var isUnchanged: Bool { Self.stamp(path) == stamp }

    private static func stamp(_ path: String) -> String { File.stamp(path) ?? "-" }
  }

  /// A host with its provider.
  struct Entry: Equatable {
    var host: String
    var provider: String
    var username: String
    /// Whether the user name in an address is none of an account.
    var ignoresUsername: Bool
  }

  var sources: [Source] = []
  var entries: [Entry] = []

  private static let mark = "credmgr hosts 2"

  /// No hosts.
  init() {}

  /// Reads the file; `nil` for one that was not written as this writes it.
  init?(_ bytes: [UInt8]) {
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    guard lines.first.map(String.init) == Self.mark else { return nil }
    for line in lines.dropFirst() {
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      switch (fields.first, fields.count) {
      case ("source", 4): sources.append(Source(provider: fields[1], path: fields[3], stamp: fields[2]))
      case ("host", 4), ("host", 5):
        let ignores = fields.dropFirst(4).contains(GitClaim.anyUsername)
        entries.append(Entry(host: fields[1], provider: fields[2], username: fields[3], ignoresUsername: ignores))
      default: return nil
      }
    }
  }

  /// The file's content; `nil` where a path or a user name would break a line.
  var bytes: [UInt8]? {
    var lines = [Self.mark]
    for source in sources { lines.append("source\t\(source.provider)\t\(source.stamp)\t\(source.path)") }
    for entry in entries {
      let more = entry.ignoresUsername ? "\t" + GitClaim.anyUsername : ""
      lines.append("host\t\(entry.host)\t\(entry.provider)\t\(entry.username)\(more)")
    }
    let texts = sources.map(\.path) + entries.map(\.username)
    guard !texts.contains(where: { $0.utf8.contains { $0 < 0x20 } }) else { return nil }
    return Array((lines.joined(separator: "\n") + "\n").utf8)
  }

  /// The first provider that claims a host.
  func provider(for host: String) -> Entry? {
    let host = host.lowercased()
    return entries.first { $0.host == host }
  }

  /// Whether the folders, and all files or those of one provider, are what they were.
  func isUnchanged(for provider: String?) -> Bool {
    sources.allSatisfy { source in
      let counts = provider == nil || source.provider.isEmpty || source.provider == provider
      return !counts || source.isUnchanged
    }
  }
}

extension CredentialSource {
  /// The provider of a git host; `nil` when no provider claims it.
  ///
  /// Of a host that is in the index only its own provider's files are looked at, so the question costs the same with one
  /// provider as with a hundred. Of one that is not, all are.
  ///
  /// - Throws: `CredentialError.vault` where the index has to be made anew, and the vault does not open.
  public func gitProvider(for host: String) throws(CredentialError) -> GitClaim? {
    let index = try hostIndex(home.gitHosts, Self.gitHosts) { index in
      index.isUnchanged(for: index.provider(for: host)?.provider)
    }
    return index.provider(for: host).map {
      GitClaim(provider: $0.provider, username: $0.username, ignoresUsername: $0.ignoresUsername)
    }
  }

  /// All container registries that providers claim, in the order of the providers.
  ///
  /// - Throws: as `gitProvider(for:)`.
  public func dockerHosts() throws(CredentialError) -> [DockerHost] {
    try hostIndex(home.dockerHosts, Self.dockerHosts) { $0.isUnchanged(for: nil) }.entries.map {
      DockerHost(host: $0.host, provider: $0.provider, username: $0.username)
    }
  }

  /// What a client's descriptor says of the hosts of git or of docker.
  typealias ClaimedHosts = (hosts: [String], username: String, ignoresUsername: Bool)

  private static func gitHosts(_ client: Client) -> ClaimedHosts? {
    client.gitHosts.map { ($0.hosts, $0.username, client.descriptor.git?.ignoresUsername ?? false) }
  }

  private static func dockerHosts(_ client: Client) -> ClaimedHosts? {
    client.dockerHosts.map { ($0.hosts, $0.username, false) }
  }

  /// The index as it is kept, or made anew where it is not there or not `isGood`.
  private func hostIndex(
    _ path: String, _ hosts: (Client) -> ClaimedHosts?, isGood: (HostIndex) -> Bool
  ) throws(CredentialError) -> HostIndex {
    if let bytes = try? File.read(path, limit: 1 << 20), let index = HostIndex(bytes), isGood(index) { return index }
    guard let accounts = try accountsIfAny() else { return HostIndex() }
    // The answer does not depend on whether it can be kept: another one may be at it, or the disk full.
    let index = try hostIndex(accounts, hosts)
    try? write(index, path)
    return index
  }

  /// Makes the indexes of git's and docker's hosts.
  func writeHostIndexes(_ accounts: Accounts) throws(CredentialError) {
    let git = try hostIndex(accounts, Self.gitHosts)
    let docker = try hostIndex(accounts, Self.dockerHosts)
    do {
      try write(git, home.gitHosts)
      try write(docker, home.dockerHosts)
    } catch {
      throw .system(error)
    }
  }

  private func write(_ index: HostIndex, _ path: String) throws(POSIXError) {
    try File.createDirectory(home.configuration)
    // One that cannot be written is none: it is made at each question.
    guard let bytes = index.bytes else { return _ = try File.remove(path) }
    try File.replace(path, bytes)
  }

  private func hostIndex(
    _ accounts: Accounts, _ hosts: (Client) -> ClaimedHosts?
  ) throws(CredentialError) -> HostIndex {
    var index = HostIndex()
    let library = home.library
    // Before the descriptors: what changes while they are read is noticed the next time.
    index.sources = library.directories.map { HostIndex.Source($0) }
    for provider in try accounts.addedProviders() {
      // A descriptor with errors may be mended; it is looked at again then.
      var files = library.path(of: provider).map { [HostIndex.Source($0, of: provider)] } ?? []
      if let loaded = try? library.load(provider) {
        files += loaded.bases.map { HostIndex.Source($0, of: provider) }
        if let registration = try accounts.registration(of: provider),
          let client = try? client(loaded.descriptor, registration), let claimed = hosts(client)
        {
          index.entries += claimed.hosts.map {
            HostIndex.Entry(
              host: $0.lowercased(), provider: provider, username: claimed.username,
              ignoresUsername: claimed.ignoresUsername)
          }
        }
      }
      index.sources += files
    }
    return index
  }
}

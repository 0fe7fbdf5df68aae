import OAuth
import Platform
import Descriptors

/// The index from hosts of git, or of docker, to providers: one small file, so that a look-up does not grow with the number
/// of descriptors.
///
/// It remembers what it was made of: the folders of the path, and the files of each provider that was added. Who edits a
/// descriptor by hand changes one of these, and the index is made anew at the next question.
struct HostIndex {
  /// A file or a folder, and what it was like.
  struct Source {
    /// The provider whose descriptor it is; empty for a folder of the path.
    var provider: String
    var path: String
    var stamp: FileStamp

    init(_ path: String, of provider: String = "") {
      self.provider = provider
      self.path = path
      stamp = FileStamp(path)
    }
  }

  /// A host with its provider.
  struct Entry: Equatable {
    var host: String
    var provider: String
    var username: String
    /// Whether the user name in an address is none of an account.
    var ignoresUsername: Bool
  }

  /// The folders first; those of one provider stand together.
  var sources: [Source] = []
  var entries: [Entry] = []
  /// Hosts that a person's own descriptor claims since it was edited, and to which nobody agreed.
  var heldBack: [Entry] = []

  /// The first provider that claims a host.
  func provider(for host: String) -> Entry? {
    let host = host.lowercased()
    return entries.first { $0.host == host }
  }

  /// The file's content; `nil` where a path or a user name would break a line.
  var bytes: [UInt8]? {
    // The hosts first: they are what is searched for, and a quarter of the file.
    var lines = [HostIndexFile.mark]
    for entry in entries {
      let more = entry.ignoresUsername ? "\t" + GitClaim.anyUsername : ""
      lines.append("host\t\(entry.host)\t\(entry.provider)\t\(entry.username)\(more)")
    }
    for entry in heldBack { lines.append("held\t\(entry.host)\t\(entry.provider)\t") }
    for source in sources {
      // Most lie in the first folder, under the provider's name, and then nothing is written.
      let isUsual = sources.first.map { source.path == HostIndexFile.usualPath($0.path, source.provider) } ?? false
      lines.append("source\t\(source.provider)\t\(source.stamp.text)\t\(isUsual ? "" : source.path)")
    }
    let texts = sources.map(\.path) + entries.map(\.username)
    guard !texts.contains(where: { $0.utf8.contains { $0 < 0x20 } }) else { return nil }
    return Array((lines.joined(separator: "\n") + "\n").utf8)
  }
}

/// The file of an index as it was read. It is searched as bytes, and texts are made of one line only: git asks at every
/// command, and with a thousand providers the texts of all lines would take ten times as long as all else.
struct HostIndexFile {
  private let bytes: [UInt8]
  /// Where the line behind the mark begins.
  private let start: Int

  static let mark = "credmgr hosts 4"

  static func usualPath(_ folder: String, _ provider: String) -> String { folder + "/" + provider + ".yaml" }

  private static let lineFeed = UInt8(ascii: "\n")
  private static let tab = UInt8(ascii: "\t")
  private static let source = Array("source\t".utf8)
  private static let host = Array("host\t".utf8)
  private static let heldBack = Array("held\t".utf8)

  /// `nil` for what does not begin and end as `HostIndex.bytes` does.
  init?(_ bytes: [UInt8]) {
    guard bytes.starts(with: Self.mark.utf8), bytes.last == Self.lineFeed, bytes[Self.mark.utf8.count] == Self.lineFeed
    else { return nil }
    self.bytes = bytes
    start = Self.mark.utf8.count + 1
  }

  /// The first provider that claims a host; `nil` if none does.
  func provider(for host: String) -> HostIndex.Entry? { line(Self.host, host).flatMap { entry($0) } }

  /// The first provider that would claim a host if somebody agreed to it.
  func heldBack(_ host: String) -> String? {
    line(Self.heldBack, host).map {
      String(decoding: $0.split(separator: Self.tab, omittingEmptySubsequences: false)[2], as: UTF8.self)
    }
  }

  /// The first line of a kind that is of a host.
  private func line(_ kind: [UInt8], _ host: String) -> ArraySlice<UInt8>? {
    let host = host.lowercased()
    // None has a control character, which would look for a part of a line, or for more than one.
    guard !host.isEmpty, !host.utf8.contains(where: { $0 < 0x20 }) else { return nil }
    let pattern = [Self.lineFeed] + kind + Array(host.utf8) + [Self.tab]
    return bytes.position(of: pattern, from: start - 1).map { line(at: $0 + 1) }
  }

  /// All hosts; `nil` if a line is not as `HostIndex.bytes` writes it.
  var entries: [HostIndex.Entry]? {
    var entries: [HostIndex.Entry] = []
    var next = start
    while next < bytes.count {
      let line = line(at: next)
      if !line.starts(with: Self.source), !line.starts(with: Self.heldBack) {
        guard let entry = entry(line) else { return nil }
        entries.append(entry)
      }
      next = line.endIndex + 1
    }
    return entries
  }

  /// Where the first line of a source begins, behind the hosts; `nil` where there is none.
  private var sources: Int? {
    bytes.position(of: [Self.lineFeed] + Self.source, from: start - 1).map { $0 + 1 }
  }

  /// Whether the folders and the files of one provider are what they were.
  func isUnchanged(for provider: String) -> Bool {
    let pattern = [Self.lineFeed] + Self.source + Array(provider.utf8) + [Self.tab]
    guard let sources, let first = bytes.position(of: pattern, from: sources - 1) else { return false }
    return areUnchanged(from: sources, of: "") && areUnchanged(from: first + 1, of: provider)
  }

  /// Whether the folders and all files are what they were, and the lines are as `HostIndex.bytes` writes them.
  var isUnchanged: Bool {
    var next = start
    while next < bytes.count {
      let line = line(at: next)
      let tabs = line.reduce(0) { $1 == Self.tab ? $0 + 1 : $0 }
      let kinds = [Self.source, Self.host, Self.heldBack]
      guard tabs == 3 || tabs == 4, kinds.contains(where: { line.starts(with: $0) }) else { return false }
      next = line.endIndex + 1
    }
    return areUnchanged(from: sources ?? bytes.count, of: nil)
  }

  /// Looks at what stands from a line on, as long as it is of one provider or, for `nil`, of any.
  private func areUnchanged(from start: Int, of provider: String?) -> Bool {
    let beginning = Self.source + (provider.map { Array($0.utf8) + [Self.tab] } ?? [])
    var next = start
    while next < bytes.count {
      let line = line(at: next)
      guard line.starts(with: beginning) else { return true }
      let fields = line.split(separator: Self.tab, maxSplits: 3, omittingEmptySubsequences: false)
      guard fields.count == 4, let stamp = FileStamp(parsing: fields[2]),
        stamp == FileStamp(path: fields[3].isEmpty ? usualPath(of: fields[1]) : fields[3])
      else { return false }
      next = line.endIndex + 1
    }
    return true
  }

  private func usualPath(of provider: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let folder = sources.map { line(at: $0).split(separator: Self.tab, omittingEmptySubsequences: false).last ?? [] }
    return ArraySlice(
      Self.usualPath(String(decoding: folder ?? [], as: UTF8.self), String(decoding: provider, as: UTF8.self)).utf8)
  }

  private func line(at start: Int) -> ArraySlice<UInt8> {
    bytes[start..<(bytes.position(of: [Self.lineFeed], from: start) ?? bytes.count)]
  }

  private func entry(_ line: ArraySlice<UInt8>) -> HostIndex.Entry? {
    guard line.starts(with: Self.host) else { return nil }
    let fields = line.split(separator: Self.tab, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard fields.count == 4 || fields.count == 5 else { return nil }
    return HostIndex.Entry(
      host: fields[1], provider: fields[2], username: fields[3],
      ignoresUsername: fields.dropFirst(4).contains(GitClaim.anyUsername))
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
    if let file = indexFile(home.gitHosts) {
      if let entry = file.provider(for: host) {
        if file.isUnchanged(for: entry.provider) { return GitClaim(entry) }
      } else if file.isUnchanged {
        return nil
      }
    }
    return try newIndex(home.gitHosts, Self.gitHosts).provider(for: host).map { GitClaim($0) }
  }

  /// Refuses a host that nobody has because it stands in a descriptor that was edited after it was added.
  ///
  /// - Throws: `CredentialError.descriptorChanged`; and as `gitProvider(for:)`.
  public func checkHeldBack(gitHost host: String) throws(CredentialError) {
    try checkHeldBack(host, home.gitHosts, Self.gitHosts)
  }

  /// As `checkHeldBack(gitHost:)`, for a container registry.
  public func checkHeldBack(dockerHost host: String) throws(CredentialError) {
    try checkHeldBack(host, home.dockerHosts, Self.dockerHosts)
  }

  private func checkHeldBack(
    _ host: String, _ path: String, _ hosts: @escaping (Client) -> ClaimedHosts?
  ) throws(CredentialError) {
    let kept =
      if let file = indexFile(path), file.isUnchanged { file } else {
        try newIndex(path, hosts).bytes.flatMap { HostIndexFile($0) }
      }
    guard let provider = kept?.heldBack(host) else { return }
    _ = try client(provider)
  }

  /// All container registries that providers claim, in the order of the providers.
  ///
  /// - Throws: as `gitProvider(for:)`.
  public func dockerHosts() throws(CredentialError) -> [DockerHost] {
    let entries: [HostIndex.Entry]
    if let file = indexFile(home.dockerHosts), file.isUnchanged, let kept = file.entries {
      entries = kept
    } else {
      entries = try newIndex(home.dockerHosts, Self.dockerHosts).entries
    }
    return entries.map {
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

  private func indexFile(_ path: String) -> HostIndexFile? {
    (try? File.read(path, limit: 1 << 20)).flatMap { HostIndexFile($0) }
  }

  /// The index, made anew and kept.
  private func newIndex(
    _ path: String, _ hosts: @escaping (Client) -> ClaimedHosts?
  ) throws(CredentialError) -> HostIndex {
    guard let accounts = try accountsIfAny() else { return HostIndex() }
    // The answer does not depend on whether it can be kept: another one may be at it, or the disk full.
    let index = try hostIndexes(accounts, [hosts])[0]
    try? write(index, path)
    return index
  }

  /// Makes the indexes of git's and docker's hosts.
  func writeHostIndexes(_ accounts: Accounts) throws(CredentialError) {
    let indexes = try hostIndexes(accounts, [Self.gitHosts, Self.dockerHosts])
    do {
      for (index, path) in zip(indexes, [home.gitHosts, home.dockerHosts]) { try write(index, path) }
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

  /// An index for each kind of hosts, all made of the same look at the descriptors.
  private func hostIndexes(
    _ accounts: Accounts, _ kinds: [(Client) -> ClaimedHosts?]
  ) throws(CredentialError) -> [HostIndex] {
    let library = home.library
    // Before the descriptors: what changes while they are read is noticed the next time.
    var sources = library.directories.map { HostIndex.Source($0) }
    var indexes = kinds.map { _ in HostIndex() }
    for provider in try accounts.addedProviders() {
      // A descriptor with errors may be mended; it is looked at again then.
      if let path = library.path(of: provider) { sources.append(HostIndex.Source(path, of: provider)) }
      guard let loaded = try? library.load(provider) else { continue }
      sources += loaded.bases.map { HostIndex.Source($0, of: provider) }
      guard let registration = try accounts.registration(of: provider),
        let client = try? client(loaded.descriptor, registration)
      else { continue }
      let approved = ownFile(of: loaded) != nil ? registration.destinations : nil
      for (number, hosts) in kinds.enumerated() {
        guard let claimed = hosts(client) else { continue }
        for host in claimed.hosts.map({ $0.lowercased() }) {
          let entry = HostIndex.Entry(
            host: host, provider: provider, username: claimed.username, ignoresUsername: claimed.ignoresUsername)
          if approved?.contains(host) ?? true {
            indexes[number].entries.append(entry)
          } else {
            indexes[number].heldBack.append(entry)
          }
        }
      }
    }
    for number in indexes.indices { indexes[number].sources = sources }
    return indexes
  }
}

extension GitClaim {
  fileprivate init(_ entry: HostIndex.Entry) {
    self.init(provider: entry.provider, username: entry.username, ignoresUsername: entry.ignoresUsername)
  }
}

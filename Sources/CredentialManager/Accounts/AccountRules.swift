import CredmgrDescriptors
import CredmgrHTTP
import CredmgrPlatform
import CredmgrText
import CredmgrYAML

package struct AccountRule: Sendable, Equatable {
  package let provider: String
  package let account: String
  package let remote: RemoteAddress?  // `nil` for any.
  package let folder: String?  // The directory, including all below it; `nil` for any.
  package let place: Place
  /// The conditions as `credmgr use` options: `["--for", "https://github.com/acme", "--in", "~/work"]`.
  package let options: [String]
  package let providerPlace: Place
  let accountPlace: Place

  package var condition: String {
    options.enumerated().map { $0.offset % 2 == 0 ? String($0.element.dropFirst(2)) : $0.element }
      .joined(separator: " ")
  }

  /// Whether this rule matches everything that a rule with the given remote and directory would match.
  func covers(_ remote: RemoteAddress?, _ folder: String?) -> Bool {
    (self.remote == nil || remote.map { self.remote?.contains($0) == true } == true)
      && (self.folder == nil || folder.map { Self.isFolder($0, within: self.folder ?? "/") } == true)
  }

  func matches(_ remotes: [RemoteAddress], _ folders: [String]) -> Bool {
    if let remote, !remotes.contains(where: remote.contains) { return false }
    guard let folder else { return true }
    if folders.contains(where: { Self.isFolder($0, within: folder) }) { return true }
    // The current directory has no symbolic links in its path, so resolve the rule's as well.
    guard let resolved = Path.resolved(folder), resolved != folder else { return false }
    return folders.contains { Self.isFolder($0, within: resolved) }
  }

  static func isFolder(_ path: String, within folder: String) -> Bool {
    path == folder || path.hasPrefix(folder == "/" ? "/" : folder + "/")
  }
}

/// The rules in `accounts.yaml` in the configuration directory (docs/git.md).
package struct AccountRules: Sendable {
  package let path: String
  package var rules: [AccountRule] = []  // In file order; the first match wins.

  static let limit = 1 << 18

  /// Reads the rules; empty if the file does not exist. `home` replaces `~`. `.malformedRules` lists every finding.
  package init(path: String, home: String?) throws(CredentialError) {
    self.path = path
    if let bytes = try Self.bytes(path) { rules = try Self.rules(in: bytes, path: path, home: home) }
  }

  static func bytes(_ path: String) throws(CredentialError) -> [UInt8]? {
    do throws(POSIXError) {
      let bytes = try File.read(path, limit: limit)
      try PrivateFile.checkOurs(path)
      return bytes
    } catch .notFound {
      return nil
    } catch {
      throw .system(error)
    }
  }

  static func rules(in bytes: [UInt8], path: String, home: String?) throws(CredentialError) -> [AccountRule] {
    var decoder = RuleDecoder(home: home)
    let rules: [AccountRule]
    do throws(YAMLError) {
      rules = decoder.rules(try Node.parse(bytes: bytes, name: path))
    } catch {
      // A file with only comments is valid.
      if error.reason == .empty { return [] }
      throw .malformedRules([Finding(.yaml(error.reason), at: error.place)])
    }
    if !decoder.findings.isEmpty { throw .malformedRules(decoder.findings) }
    return rules
  }

  /// Returns an earlier rule that hides this one completely; `nil` if none does.
  package func cover(of rule: AccountRule) -> AccountRule? {
    rules.first {
      $0.provider == rule.provider && $0.place.line < rule.place.line && $0.covers(rule.remote, rule.folder)
    }
  }

  /// Returns the first matching rule. Calls `remotes` and `folders` only if a rule needs them.
  package func first(
    for providers: [String], remotes: () -> [RemoteAddress], folders: () -> [String]
  ) -> AccountRule? {
    let own = rules.filter { providers.contains($0.provider) }
    let remotes = own.contains { $0.remote != nil } ? remotes() : []
    let folders = own.contains { $0.folder != nil } ? folders() : []
    return own.first { $0.matches(remotes, folders) }
  }
}

struct RuleDecoder {
  let home: String?
  var findings: [Finding] = []

  private mutating func find(_ problem: Finding.Problem, at place: Place) {
    findings.append(Finding(problem, at: place))
  }

  private mutating func findUnknownKeys(_ entries: [Node.Entry], known: [String]) {
    for entry in entries where !known.contains(entry.key) {
      find(.unknownKey(entry.key, suggestion: nearMiss(entry.key, among: known)), at: entry.keyPlace)
    }
  }

  mutating func rules(_ root: Node) -> [AccountRule] {
    guard let entries = root.entries else {
      find(.wrongType(expected: "a mapping with the key \"rules\""), at: root.place)
      return []
    }
    findUnknownKeys(entries, known: ["rules"])
    guard let list = root["rules"] else {
      find(.missingKey("rules"), at: root.place)
      return []
    }
    if list.isNull { return [] }
    guard let elements = list.elements else {
      find(.wrongType(expected: "a list of rules"), at: list.place)
      return []
    }
    return elements.compactMap { rule($0) }
  }

  private mutating func rule(_ node: Node) -> AccountRule? {
    guard let entries = node.entries else {
      find(.wrongType(expected: "a rule: \"provider\", \"account\", and \"for\" or \"in\""), at: node.place)
      return nil
    }
    let before = findings.count
    findUnknownKeys(entries, known: ["provider", "account", "for", "in"])
    let home = home
    let provider = value("provider", of: node, isRequired: true) { DescriptorLibrary.isIdentifier($0) ? $0 : nil }
    let account = value("account", of: node, isRequired: true, expected: "an account's name") {
      Accounts.isName($0) ? $0 : nil
    }
    let remote = value("for", of: node, expected: "the URL of a remote or its beginning, such as https://HOST/OWNER") {
      RemoteAddress($0)
    }
    let folder = value("in", of: node, expected: "the absolute path of a directory, or a path that begins with ~/") {
      Self.folder($0, home: home)
    }
    if node["for"] == nil, node["in"] == nil { find(.missingKey("for"), at: node.place) }
    guard findings.count == before, let provider, let account else { return nil }
    let options =
      (remote.map { ["--for", RemoteAddress.written($0.text)] } ?? []) + (folder.map { ["--in", $0.text] } ?? [])
    return AccountRule(
      provider: provider.value, account: account.value, remote: remote?.value, folder: folder?.value, place: node.place,
      options: options, providerPlace: provider.place, accountPlace: account.place)
  }

  /// Parses the text of a key; without `expected`, the text is a name.
  private mutating func value<Value>(
    _ key: String, of node: Node, isRequired: Bool = false, expected: String? = nil, _ parse: (String) -> Value?
  ) -> (value: Value, text: String, place: Place)? {
    guard let found = node[key] else {
      if isRequired { find(.missingKey(key), at: node.place) }
      return nil
    }
    let text = found.text ?? ""
    if !text.isEmpty, let value = parse(text) { return (value, text, found.place) }
    let expected = text.isEmpty ? "a string" : expected
    find(expected.map { .wrongType(expected: $0) } ?? .malformedName(text), at: found.place)
    return nil
  }

  static func folder(_ text: String, home: String?) -> String? {
    var path = text
    if path == "~" || path.hasPrefix("~/") {
      guard let home else { return nil }
      path = home + path.dropFirst()
    }
    guard path.hasPrefix("/") else { return nil }
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return path
  }
}

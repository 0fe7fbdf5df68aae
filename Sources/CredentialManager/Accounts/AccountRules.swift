import Descriptors
import HTTP
import Platform
import Text
import YAML

package struct AccountRule: Sendable, Equatable {
  package let provider: String
  package let account: String
  package let remote: RemoteAddress?  // `nil` for any.
  package let folder: String?  // The folder that it is for, with all below it; `nil` for any.
  package let place: Place
  package let condition: String  // What it is for, as it was written: `for https://github.com/acme`, `in ~/work`.
  package let providerPlace: Place
  let accountPlace: Place

  func matches(_ remotes: [RemoteAddress], _ folders: [String]) -> Bool {
    if let remote, !remotes.contains(where: remote.contains) { return false }
    guard let folder else { return true }
    if folders.contains(where: { Self.isFolder($0, within: folder) }) { return true }
    // The folder that we are in has no symbolic link in its name.
    guard let resolved = Path.resolved(folder), resolved != folder else { return false }
    return folders.contains { Self.isFolder($0, within: resolved) }
  }

  static func isFolder(_ path: String, within folder: String) -> Bool {
    path == folder || path.hasPrefix(folder == "/" ? "/" : folder + "/")
  }
}

/// The rules of the configuration: `accounts.yaml` in the configuration's folder (docs/git.md).
package struct AccountRules: Sendable {
  package let path: String
  package private(set) var rules: [AccountRule] = []  // In the order of the file: the first that matches counts.

  private static let limit = 1 << 18

  /// Reads the rules; none where there is no file. `home` is what `~` stands for. `.malformedRules` has every finding.
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

  private static func rules(in bytes: [UInt8], path: String, home: String?) throws(CredentialError) -> [AccountRule] {
    var decoder = RuleDecoder(home: home)
    let rules: [AccountRule]
    do throws(YAMLError) {
      rules = decoder.rules(try Node.parse(bytes: bytes, name: path))
    } catch {
      // Nothing but comments is nothing wrong.
      if error.reason == .empty { return [] }
      throw .malformedRules([Finding(.yaml(error.reason), at: error.place)])
    }
    if !decoder.findings.isEmpty { throw .malformedRules(decoder.findings) }
    return rules
  }

  /// Asks for `remotes` and `folders` only where a rule needs them.
  package func first(for provider: String, remotes: () -> [RemoteAddress], folders: () -> [String]) -> AccountRule? {
    let own = rules.filter { $0.provider == provider }
    let remotes = own.contains { $0.remote != nil } ? remotes() : []
    let folders = own.contains { $0.folder != nil } ? folders() : []
    return own.first { $0.matches(remotes, folders) }
  }
}

private struct RuleDecoder {
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
    let remote = value("for", of: node, expected: "a remote's URL or the beginning of one, such as https://HOST/OWNER")
    {
      RemoteAddress($0)
    }
    let folder = value("in", of: node, expected: "a folder's absolute path, or one that begins with ~/") {
      Self.folder($0, home: home)
    }
    if node["for"] == nil, node["in"] == nil { find(.missingKey("for"), at: node.place) }
    guard findings.count == before, let provider, let account else { return nil }
    let conditions = [remote.map { "for " + RemoteAddress.written($0.text) }, folder.map { "in " + $0.text }]
      .compactMap { $0 }
    return AccountRule(
      provider: provider.value, account: account.value, remote: remote?.value, folder: folder?.value, place: node.place,
      condition: conditions.joined(separator: " "), providerPlace: provider.place, accountPlace: account.place)
  }

  /// What the text of a key stands for; without `expected`, it is a name.
  private mutating func value<Value>(
    _ key: String, of node: Node, isRequired: Bool = false, expected: String? = nil, _ parse: (String) -> Value?
  ) -> (value: Value, text: String, place: Place)? {
    guard let found = node[key] else {
      if isRequired { find(.missingKey(key), at: node.place) }
      return nil
    }
    let text = found.text ?? ""
    if !text.isEmpty, let value = parse(text) { return (value, text, found.place) }
    let expected = text.isEmpty ? "a text" : expected
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

// MARK: Adding a rule

extension AccountRules {
  /// The file's text with one more rule, or with another account in a rule that is for the same. The new rule stands
  /// before wider ones, so that it counts. All else stays as it is; `.uneditableRules` if that cannot be.
  package func adding(
    provider: String, account: String, remote: String?, folder: String?, home: String?
  ) throws(CredentialError) -> String {
    var lines = ["provider: " + provider, "account: " + Scalar.written(account)]
    if let remote { lines.append("for: " + Scalar.written(remote)) }
    if let folder { lines.append("in: " + Scalar.written(folder)) }
    let address = remote.flatMap { RemoteAddress($0) }
    let place = folder.flatMap { RuleDecoder.folder($0, home: home) }
    guard let source = rules.first?.place.source else { return try starting(with: lines) }
    var text = source.text.linesByScalars
    let own = rules.filter { $0.provider == provider }
    if let same = own.first(where: { $0.remote == address && $0.folder == place }) {
      guard let changed = Self.replacing(same.account, with: Scalar.written(account), at: same.accountPlace, in: text)
      else { throw .uneditableRules(path) }
      text[same.accountPlace.line - 1] = changed
    } else {
      let wider = own.first { rule in
        (rule.remote == nil || address.map { rule.remote?.contains($0) == true } == true)
          && (rule.folder == nil || place.map { AccountRule.isFolder($0, within: rule.folder ?? "/") } == true)
      }
      let sample = wider ?? rules[rules.count - 1]
      let line = text[sample.place.line - 1]
      let indentation = String(line.prefix { $0 == " " })
      guard line.dropFirst(indentation.count).hasPrefix("- "), sample.place.column == indentation.count + 3 else {
        throw .uneditableRules(path)
      }
      let new = lines.enumerated().map { indentation + ($0.offset == 0 ? "- " : "  ") + $0.element }
      if let wider {
        text.insert(contentsOf: new, at: wider.place.line - 1)
      } else {
        while text.last == "" { text.removeLast() }
        text += new + [""]
      }
    }
    let edited = text.joined(separator: "\n")
    // What stands at the end may end the document, for one.
    guard let result = try? Self.rules(in: Array(edited.utf8), path: path, home: home),
      result.contains(where: {
        $0.provider == provider && $0.account == account && $0.remote == address && $0.folder == place
      })
    else { throw .uneditableRules(path) }
    return edited
  }

  private func starting(with lines: [String]) throws(CredentialError) -> String {
    let existing = (try? File.read(path, limit: Self.limit)).map { String(decoding: $0, as: UTF8.self) }
    var text = existing ?? "# Which account is used where: the first rule that matches counts.\n"
    // Comments stay; a key "rules" without any is too rare to be edited.
    guard !text.split(separator: "\n").contains(where: { $0.first.map { $0 != "#" } ?? false }) else {
      throw .uneditableRules(path)
    }
    if !text.isEmpty, !text.hasSuffix("\n") { text += "\n" }
    let new = lines.enumerated().map { "  " + ($0.offset == 0 ? "- " : "  ") + $0.element + "\n" }
    return text + "rules:\n" + new.joined()
  }

  private static func replacing(_ old: String, with new: String, at place: Place, in lines: [String]) -> String? {
    guard let start = place.index(in: lines) else { return nil }
    let line = lines[place.line - 1]
    for written in [Scalar.written(old), old, "\"" + old + "\"", "'" + old + "'"]
    where line[start...].hasPrefix(written) {
      return String(line[..<start]) + new + line[start...].dropFirst(written.count)
    }
    return nil
  }
}

extension String {
  /// By scalars: a carriage return and a line feed are one character, and would not be parted.
  var linesByScalars: [String] {
    unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
}

extension Place {
  func index(in lines: [String]) -> String.Index? {
    guard lines.indices.contains(line - 1) else { return nil }
    let scalars = lines[line - 1].unicodeScalars
    return scalars.index(scalars.startIndex, offsetBy: column - 1, limitedBy: scalars.endIndex)
  }
}

extension CredentialSource {
  package func addRule(provider: String, account: String, remote: String?, folder: String?) throws(CredentialError) {
    let lock = try wrapping(
      CredentialError.system, FileLock.acquire(home.rulesLock, timeout: .seconds(10), clock: clock))
    let text = try accountRules().adding(
      provider: provider, account: account, remote: remote, folder: folder, home: home.person)
    try wrapping(CredentialError.system, File.createDirectory(home.configuration))
    // A link, into a repository of such files, stays one.
    let file = Path.resolved(home.accountRules) ?? home.accountRules
    try wrapping(CredentialError.system, File.replace(file, Array(text.utf8)))
    _ = consume lock
  }
}

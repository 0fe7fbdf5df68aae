import CredmgrDescriptors
import CredmgrPlatform
import CredmgrText
import CredmgrYAML

// MARK: Adding a rule

extension AccountRules {
  /// Returns the file's text with a new rule, or with a new account in the rule for the same place. The new rule goes
  /// before wider rules, which would hide it. Throws `.uneditableRules` if nothing else can stay unchanged.
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
    // If several providers share a host, the first matching rule wins.
    let wider = rules.first { rule in
      (rule.provider != provider || rule.remote != address || rule.folder != place) && rule.covers(address, place)
    }
    let same = rules.first { $0.provider == provider && $0.remote == address && $0.folder == place }
    if let same, let wider, wider.place.line < same.place.line {
      var rest = self
      rest.rules = try Self.rules(in: Array(removing([same], home: home).utf8), path: path, home: home)
      return try rest.adding(provider: provider, account: account, remote: remote, folder: folder, home: home)
    }
    if let same {
      guard let changed = Self.replacing(same.account, with: Scalar.written(account), at: same.accountPlace, in: text)
      else { throw .uneditableRules(path) }
      text[same.accountPlace.line - 1] = changed
    } else {
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
    // The edit may fail, for example if the file ends with an end-of-document mark.
    guard let result = try? Self.rules(in: Array(edited.utf8), path: path, home: home),
      result.contains(where: {
        $0.provider == provider && $0.account == account && $0.remote == address && $0.folder == place
      })
    else { throw .uneditableRules(path) }
    return edited
  }

  /// Returns the file's text without the given rules. Keeps comments, except those inside a removed rule.
  func removing(_ removed: [AccountRule], home: String?) throws(CredentialError) -> String {
    guard let source = rules.first?.place.source else { return "" }
    var text = source.text.linesByScalars
    for rule in removed.reversed() {
      let start = rule.place.line - 1
      let indentation = text[start].prefix { $0 == " " }.count
      guard text[start].dropFirst(indentation).hasPrefix("- ") else { throw .uneditableRules(path) }
      var end = start + 1
      while end < text.count, text[end].prefix(while: { $0 == " " }).count > indentation { end += 1 }
      text.removeSubrange(start..<end)
    }
    // An empty `rules:` key could not be edited later.
    if removed.count == rules.count { text.removeAll { $0 == "rules:" } }
    let edited = text.joined(separator: "\n")
    let rest = rules.filter { !removed.contains($0) }.map(\.condition)
    guard (try? Self.rules(in: Array(edited.utf8), path: path, home: home))?.map(\.condition) == rest else {
      throw .uneditableRules(path)
    }
    return edited
  }

  private func starting(with lines: [String]) throws(CredentialError) -> String {
    let existing = (try? File.read(path, limit: Self.limit)).map { String(decoding: $0, as: UTF8.self) }
    var text = existing ?? "# Rules that choose an account. The first matching rule applies.\n"
    // Comments stay. A key without rules would be a second one.
    let empty: [Substring] = ["rules:", "rules: []", "rules: null", "rules: ~"]
    let kept = text.linesByScalars.filter { line in !empty.contains(Substring(line).trimmingBlanks) }
    text = kept.joined(separator: "\n")
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
  /// The lines, split by scalar: CR LF is one character, so splitting by character would miss it.
  package var linesByScalars: [String] {
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
    try editRules { rules throws(CredentialError) in
      try rules.adding(provider: provider, account: account, remote: remote, folder: folder, home: home.person)
    }
  }

  /// Returns rules of other providers that never apply to git, because this provider has the same host and its rule
  /// comes first.
  package func rulesHidden(
    by provider: String, remote: String?, folder: String?
  ) throws(CredentialError) -> [AccountRule] {
    let address = remote.flatMap { RemoteAddress($0) }
    let place = folder.flatMap { RuleDecoder.folder($0, home: home.person) }
    let rules = try accountRules().rules
    let own = rules.firstIndex { $0.provider == provider && $0.remote == address && $0.folder == place }
    guard let own else { return [] }
    var hidden: [AccountRule] = []
    for rule in rules[(own + 1)...] where rule.provider != provider && rules[own].covers(rule.remote, rule.folder) {
      let rivals =
        try rule.remote.map { remote throws(CredentialError) in try claims(of: remote.host, for: .git) } ?? []
      if Set([provider, rule.provider]).isSubset(of: rivals.map(\.provider)) { hidden.append(rule) }
    }
    return hidden
  }

  /// Removes a provider's rules that match every given option; returns how many.
  package func removeRules(
    of provider: String, account: String?, remote: String?, folder: String?
  ) throws(CredentialError) -> Int {
    let address = remote.flatMap { RemoteAddress($0) }
    let place = folder.flatMap { RuleDecoder.folder($0, home: home.person) }
    var count = 0
    try editRules { rules throws(CredentialError) in
      let removed = rules.rules.filter { rule in
        rule.provider == provider && account ?? rule.account == rule.account && address ?? rule.remote == rule.remote
          && place ?? rule.folder == rule.folder
      }
      count = removed.count
      return removed.isEmpty ? nil : try rules.removing(removed, home: home.person)
    }
    return count
  }

  /// Applies `edit`, which returns the file's new text, or `nil` to leave the file unchanged.
  private func editRules(
    _ edit: (AccountRules) throws(CredentialError) -> String?
  ) throws(CredentialError) {
    let lock = try wrapping(
      CredentialError.system, FileLock.acquire(home.rulesLock, timeout: .seconds(10), clock: clock))
    if let text = try edit(accountRules()) {
      try wrapping(CredentialError.system, File.createDirectory(home.configuration))
      // Write to the target of a symbolic link, for example in a dotfiles repository.
      let file = Path.resolved(home.accountRules) ?? home.accountRules
      try wrapping(CredentialError.system, File.replace(file, Array(text.utf8)))
    }
    _ = consume lock
  }
}

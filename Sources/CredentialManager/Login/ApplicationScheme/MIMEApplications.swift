/// The text of `mimeapps.list`, with the user's choice of applications (the Association between MIME types and
/// applications specification of freedesktop.org). Edits keep all other bytes unchanged.
struct MIMEApplications: Equatable {
  private static let group = "[Default Applications]"
  private(set) var text: String

  init(_ text: String) { self.text = text }

  /// Returns the desktop entries for `type` in all groups. Also reads a directory's `mimeinfo.cache`.
  func entries(for type: String) -> [String] {
    text.split(separator: "\n").map(String.init).filter { Self.key($0)?[...].trimmingBlanks == type[...] }
      .flatMap { Self.value($0).split(separator: ";").map { String($0.trimmingBlanks) } }
  }

  /// Puts a desktop entry first for `type`, because the first existing entry wins.
  mutating func prefer(_ entry: String, for type: String) {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard let start = lines.firstIndex(of: Self.group) else {
      let gap = text.isEmpty ? "" : text.hasSuffix("\n") ? "\n" : "\n\n"
      text += gap + Self.group + "\n\(type)=\(entry);\n"
      return
    }
    let end = lines[(start + 1)...].firstIndex { $0.hasPrefix("[") } ?? lines.endIndex
    if let index = lines[start..<end].firstIndex(where: { Self.key($0) == type }) {
      lines[index] = "\(type)=\(entry);" + Self.value(lines[index])
    } else {
      lines.insert("\(type)=\(entry);", at: start + 1)
    }
    text = lines.joined(separator: "\n")
  }

  mutating func forget(where isGone: (String) -> Bool) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    text = lines.compactMap { line -> String? in
      guard let key = Self.key(line) else { return line }
      let entries = Self.value(line).split(separator: ";", omittingEmptySubsequences: false).map(String.init)
      let rest = entries.filter { !isGone($0) }
      if rest.count == entries.count { return line }
      return rest.contains { !$0.isEmpty } ? "\(key)=" + rest.joined(separator: ";") : nil
    }.joined(separator: "\n")
  }

  private static func key(_ line: String) -> String? {
    guard let sign = line.firstIndex(of: "="), !line.hasPrefix("#"), !line.hasPrefix("[") else { return nil }
    return String(line[..<sign])
  }

  private static func value(_ line: String) -> String {
    line.firstIndex(of: "=").map { String(line[line.index(after: $0)...]) } ?? ""
  }
}

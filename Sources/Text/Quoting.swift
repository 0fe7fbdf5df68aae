/// A text in double quotes.
package func quoted(_ text: String) -> String { "\"" + text + "\"" }

/// Names in double quotes, with commas between them.
package func listed(_ names: some Sequence<String>) -> String { names.map(quoted).joined(separator: ", ") }

/// The first few of names of which there may be thousands, and how many more there are.
package func some(_ names: [String]) -> String {
  let shown = names.count > 6 ? 5 : names.count
  return listed(names.prefix(shown)) + (names.count > shown ? " and \(names.count - shown) more" : "")
}

/// A name as an argument in a shell.
package func argument(_ text: String) -> String {
  let isPlain = text.utf8.allSatisfy { $0.isLetterOrDigit || "@%+=:,./-_".utf8.contains($0) }
  return isPlain && !text.isEmpty
    ? text : "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
}

/// The text in double quotes.
package func quoted(_ text: String) -> String { "\"" + text + "\"" }

/// The names in double quotes, separated by commas.
package func listed(_ names: some Sequence<String>) -> String { names.map(quoted).joined(separator: ", ") }

/// The first few names and the number of the rest, for lists that may have thousands.
package func some(_ names: [String]) -> String {
  let shown = names.count > 6 ? 5 : names.count
  return listed(names.prefix(shown)) + (names.count > shown ? " and \(names.count - shown) more" : "")
}

/// The text as an argument for a shell.
package func argument(_ text: String) -> String {
  let isPlain = text.utf8.allSatisfy { $0.isLetterOrDigit || "@%+=:,./-_".utf8.contains($0) }
  return isPlain && !text.isEmpty
    ? text : "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
}

import CredmgrJSON

/// Writes texts that YAML reads back unchanged (YAML 1.2, 7.3).
package enum Scalar {
  /// The text without quotes if all versions of YAML read it as the same text, also inside a list. Otherwise, the text
  /// in double quotes with JSON's escapes (YAML 1.2, 7.3.1).
  package static func written(_ text: String) -> String { isPlain(text) ? text : JSONValue.string(text).encoded }

  private static func isPlain(_ text: String) -> Bool {
    for (beginning, more) in [("https://", "-._~/%=+&?"), ("~/", "-._~/@+")] where text.hasPrefix(beginning) {
      let rest = text.utf8.dropFirst(beginning.utf8.count)
      return !rest.isEmpty && rest.allSatisfy { $0.isLetterOrDigit || more.utf8.contains($0) }
    }
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
    return text.utf8.first.map { $0.isLetterOrDigit && !$0.isDigit } ?? false
      && text.utf8.allSatisfy { $0.isLetterOrDigit || "-._~/@+".utf8.contains($0) }
      && !words.contains(text.lowercased())
  }
}

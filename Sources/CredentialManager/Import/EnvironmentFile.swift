import CredmgrCryptography
import CredmgrPlatform

extension ImportSource {
  /// `.env` in the current directory: variables whose names say that they are secret.
  package static let environmentFile = ImportSource(
    name: "env", title: ".env",
    files: { places in [places.directory.map { Path.joining($0, ".env") }].compactMap { $0 } },
    read: { text throws(ImportFault) in
      var mark: Character?  // Of a quoted value that continues on further lines.
      var gitHubHost: String?
      var entries = text.lines.compactMap { line -> ImportEntry? in
        var content = line.trimmed
        if let open = mark {
          if content.contains(open) { mark = nil }
          return nil
        }
        if content.hasPrefix("export ") { content = content.dropFirst("export ".count).trimmed }
        guard let sign = content.firstIndex(of: "="), !content.hasPrefix("#") else { return nil }
        let name = String(content[..<sign].trimmed)
        mark = unclosedMark(content[content.index(after: sign)...].trimmed)
        if name == "GH_HOST" { gitHubHost = assigned(content[content.index(after: sign)...].trimmed)?.lowercased() }
        guard name.utf8.allSatisfy({ $0.isLetterOrDigit || $0 == UInt8(ascii: "_") }), isSecret(name),
          let value = assigned(content[content.index(after: sign)...].trimmed)
        else { return nil }
        var entry = ImportEntry(
          name, host: hosts[name] ?? "", kind: .token, use: .api, held: .value(Secret(value)),
          removal: .cut([line.range]))
        entry.variable = name
        return entry
      }
      // gh sends the token to this host instead.
      if let gitHubHost, gitHubHost != gitHub {
        for index in entries.indices where entries[index].host == gitHub {
          (entries[index].host, entries[index].hostedProvider) = (gitHubHost, provider(hosting: gitHubHost))
        }
      }
      return entries
    })

  private static let gitHub = "github.com"

  /// The hosts of variables for which the documentation of a tool names the server.
  private static let hosts = [
    "GH_TOKEN": gitHub, "GITHUB_TOKEN": gitHub, "HF_TOKEN": "huggingface.co",
    "NPM_TOKEN": "registry.npmjs.org",
    "CARGO_REGISTRY_TOKEN": "crates.io", "TWINE_PASSWORD": "upload.pypi.org",
  ]

  /// Returns the quotation mark that begins a value and does not end it; `nil` for any other value.
  private static func unclosedMark(_ text: Substring) -> Character? {
    guard let mark = text.first, mark == "'" || mark == "\"", !text.dropFirst().contains(mark) else { return nil }
    return mark
  }

  private static func isSecret(_ name: String) -> Bool {
    ["_TOKEN", "_KEY", "_PAT", "_PASSWORD", "_SECRET"].contains { name.hasSuffix($0) && name.count > $0.count }
  }

  /// Returns a variable's value; `nil` if it is empty, or contains a variable or a command.
  private static func assigned(_ text: Substring) -> String? {
    var value = text
    if let mark = text.first, mark == "'" || mark == "\"" {
      let rest = text.dropFirst()
      guard let end = rest.firstIndex(of: mark) else { return nil }
      let after = rest[rest.index(after: end)...].trimmed
      guard after.isEmpty || after.hasPrefix("#") else { return nil }
      value = rest[..<end]
      if mark == "'" { return value.isEmpty ? nil : String(value) }
    } else if let comment = text.firstPlace(of: " #") {
      value = text[..<comment.lowerBound].trimmed
    }
    return value.isEmpty || value.contains { "$`\\".contains($0) } ? nil : String(value)
  }
}

import CredmgrCryptography
import CredmgrJSON
import CredmgrPlatform
import CredmgrText

extension ImportSource {
  /// `credentials.toml` of cargo: a token for crates.io and for each other registry.
  static let cargo = ImportSource(
    name: "cargo", title: "cargo",
    files: { places in
      let folder = places.path("CARGO_HOME") ?? places.inHome(".cargo")
      return folder.map { [$0 + "/credentials.toml", $0 + "/credentials"] } ?? []
    },
    read: { text throws(ImportFault) in
      // A text over several lines could contain a line that looks like a token.
      guard ["\"\"\"", "'''"].allSatisfy({ text.bytes.firstPlace(of: $0.utf8) == nil }) else {
        throw .malformed(path: text.path)
      }
      // The address of another registry is in the configuration.
      let folder = Path.directory(of: text.path) ?? "/"
      let configuration = (try? ImportText.load(folder + "/config.toml")).flatMap { $0 }.map(ImportSettings.init)
      return ImportSettings(text).settings.compactMap { setting in
        guard setting.key == "token", let token = tomlText(setting.value), !token.isEmpty else { return nil }
        var name = setting.section
        if name == "registry" {
          return ImportEntry(
            "crates.io", host: "crates.io", kind: .token, use: .api, held: .value(Secret(token)),
            removal: .cut([setting.line]))
        }
        guard name.hasPrefix("registries.") else { return nil }
        name = String(name.dropFirst("registries.".count).drop { "\"'".contains($0) })
        while let last = name.last, "\"'".contains(last) { name.removeLast() }
        let index = configuration?.setting("index", in: setting.section).flatMap { tomlText($0.value) } ?? ""
        let host = importedHost(index.hasPrefix("sparse+") ? String(index.dropFirst("sparse+".count)) : index)
        return ImportEntry(
          name, host: host, kind: .token, use: .api, held: .value(Secret(token)), removal: .cut([setting.line]))
      }
    })

  /// Reads a text of TOML on one line, with a comment after it; `nil` if it is anything else.
  static func tomlText(_ value: String) -> String? {
    guard let mark = value.first, "\"'".contains(mark) else { return nil }
    var end = value.index(after: value.startIndex)
    while end < value.endIndex, value[end] != mark {
      if mark == "\"", value[end] == "\\" { end = value.index(after: end) }
      guard end < value.endIndex else { return nil }
      end = value.index(after: end)
    }
    guard end < value.endIndex else { return nil }
    let rest = value[value.index(after: end)...].trimmed
    guard rest.isEmpty || rest.hasPrefix("#") else { return nil }
    let content = value[value.index(after: value.startIndex)..<end]
    // The escapes of both formats agree, except `\U`, which no token needs.
    return mark == "'" ? String(content) : (try? JSONValue.parse(Array(value[...end].utf8)))?.text
  }
}

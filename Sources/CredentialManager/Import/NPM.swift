import CredmgrCryptography
import CredmgrJSON
import CredmgrPlatform

extension ImportSource {
  /// `.npmrc`: `//HOST/PATH/:_authToken=TOKEN` and the older `_auth`.
  static let npm = ImportSource(
    name: "npm", title: "npm",
    files: { places in
      [places.path("NPM_CONFIG_USERCONFIG") ?? places.path("npm_config_userconfig") ?? places.inHome(".npmrc")]
        .compactMap { $0 }
    },
    read: { text throws(ImportFault) in
      ImportSettings(text).settings.compactMap { setting in
        guard setting.section.isEmpty, setting.key.hasPrefix("//"), let mark = setting.key.firstPlace(of: ":_") else {
          return nil
        }
        // `npm` decodes a value in quotation marks as JSON, and fills in `${NAME}`.
        let quotedValue = (try? JSONValue.parse(Array(setting.value.utf8)))?.text
        let value = quotedValue ?? setting.value
        let host = importedHost(String(setting.key[..<mark.lowerBound].dropFirst(2)))
        guard !host.isEmpty, !value.isEmpty, value.firstPlace(of: "${") == nil else { return nil }
        switch setting.key[mark.upperBound...] {
        case "authToken":
          return ImportEntry(
            host, host: host, kind: .token, use: .api, held: .value(Secret(value)), removal: .cut([setting.line]))
        case "auth":
          guard let pair = importedPair(value) else { return nil }
          return ImportEntry(
            pair.user + "@" + host, host: host, user: pair.user, kind: .password, use: .api,
            held: .value(pair.password),
            removal: .cut([setting.line]))
        default: return nil
        }
      }
    })
}

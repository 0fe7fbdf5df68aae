import CredmgrCryptography
import CredmgrPlatform

extension ImportSource {
  /// The plain files of Git Credential Manager: one for each credential, with the password on the first line and the
  /// remote and the account on the lines after it. Its other stores are those of other sources.
  static let gitCredentialManager = ImportSource(
    name: "gcm", title: "Git Credential Manager",
    files: { places in
      guard let folder = places.path("GCM_PLAINTEXT_STORE_PATH") ?? places.inHome(".gcm/store") else { return [] }
      return files(in: folder, endingWith: ".credential").map { "\(folder)/\($0).credential" }
    },
    read: { text throws(ImportFault) in
      let lines = text.lines.map(\.text)
      func value(_ name: String) -> String? {
        lines.dropFirst().first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
      }
      guard let password = lines.first, !password.isEmpty, let service = value("service") else { return [] }
      let address = service.hasPrefix("git:") ? String(service.dropFirst(4)) : service
      let host = importedHost(address)
      if host.isEmpty { return [] }
      let user = value("account").flatMap { $0.isEmpty ? nil : $0 }
      // Git Credential Manager ignores an empty file.
      var entry = ImportEntry(
        user.map { $0 + "@" + host } ?? host, host: host, user: user, kind: .password, use: .git,
        held: .value(Secret(password)), removal: .cut([text.bytes.indices]))
      entry.address = address
      return [entry]
    })
}

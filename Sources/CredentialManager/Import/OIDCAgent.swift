import CredmgrCryptography
import CredmgrPlatform

extension ImportSource {
  /// oidc-agent: one encrypted file for each account, with its client and refresh token. `oidc-gen` decrypts it with
  /// the user's password, or with gpg. Its own `--delete` would revoke the token, so credmgr removes the file.
  static let oidcAgent: ImportSource = {
    var source = ImportSource(name: "oidc-agent", title: "oidc-agent")
    source.ask = { places throws(ImportFault) in
      let folders = [
        places.path("OIDC_CONFIG_DIR"), places.configuration.map { $0 + "/oidc-agent" }, places.inHome(".oidc-agent"),
      ]
      guard let folder = folders.compactMap({ $0 }).first(where: File.isDirectory) else { return [] }
      let names = ((try? File.names(in: folder)) ?? []).filter { !$0.contains(".") }.sorted()
      return try names.prefix(100).map { name throws(ImportFault) in
        let path = folder + "/" + name
        let isPGP = try ImportText.load(path)?.lines.first?.text.hasPrefix("-----BEGIN PGP") ?? false
        let password = isPGP ? [] : ["--pw-file=/dev/stdin"]
        var entry = ImportEntry(name, file: Secret(""), .client(provider: nil))
        entry.held = .command(ImportCommand(program: "oidc-gen", arguments: ["--print", path] + password))
        entry.passwordVariable = isPGP ? nil : "OIDC_ENCRYPTION_PW"
        entry.user = name
        entry.place = path
        return entry
      }
    }
    return source
  }()
}

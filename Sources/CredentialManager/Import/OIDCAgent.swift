import CredmgrPlatform

extension ImportSource {
  /// oidc-agent: one encrypted file for each account. Its name is all that other programs can read.
  static let oidcAgent: ImportSource = {
    var source = ImportSource(name: "oidc-agent", title: "oidc-agent")
    source.ask = { places throws(ImportFault) in
      let folders = [
        places.path("OIDC_CONFIG_DIR"), places.configuration.map { $0 + "/oidc-agent" }, places.inHome(".oidc-agent"),
      ]
      guard let folder = folders.compactMap({ $0 }).first(where: File.isDirectory) else { return [] }
      let names = ((try? File.names(in: folder)) ?? []).filter { !$0.contains(".") }
      return names.prefix(100).map { name in
        var entry = ImportEntry(name, unsupported: .encrypted)
        entry.place = folder + "/" + name
        return entry
      }
    }
    return source
  }()
}

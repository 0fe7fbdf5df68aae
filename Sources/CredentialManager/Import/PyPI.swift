import CredmgrCryptography
import CredmgrPlatform

extension ImportSource {
  /// `.pypirc` of twine and other uploaders (packaging.python.org/specifications/pypirc).
  static let pypi = ImportSource(
    name: "pypi", title: ".pypirc",
    files: { places in [places.inHome(".pypirc")].compactMap { $0 } },
    read: { text throws(ImportFault) in
      let settings = ImportSettings(text)
      return settings.sections.compactMap { section in
        guard section != "distutils", let password = settings.setting("password", in: section),
          !password.value.isEmpty
        else { return nil }
        let standard = ["pypi": "https://upload.pypi.org", "testpypi": "https://test.pypi.org"][section]
        let host = importedHost(settings.setting("repository", in: section)?.value ?? standard ?? "")
        let user = settings.setting("username", in: section)?.value
        let isToken = user == "__token__"
        return ImportEntry(
          section, host: host, user: isToken ? nil : user, kind: isToken ? .token : .password, use: .api,
          held: .value(Secret(password.value)), removal: .cut([password.line]))
      }
    })
}

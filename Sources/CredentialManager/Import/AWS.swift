import CredmgrCryptography
import CredmgrPlatform

extension ImportSource {
  /// `credentials` of the AWS tools. A profile without keys gets them from another program.
  static let aws = ImportSource(
    name: "aws", title: "AWS CLI",
    files: { places in
      [places.path("AWS_SHARED_CREDENTIALS_FILE") ?? places.inHome(".aws/credentials")].compactMap { $0 }
    },
    read: { text throws(ImportFault) in
      let settings = ImportSettings(text)
      return settings.sections.compactMap { section in
        let found = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"].compactMap { name in
          settings.setting(name, in: section).flatMap { $0.value.isEmpty ? nil : $0 }
        }
        guard found.count > 1, found[1].key == "aws_secret_access_key" else { return nil }
        var entry = ImportEntry(
          section, host: "", user: section, kind: .token, use: .api, held: .value(Secret(found[1].value)),
          removal: .cut(found.map(\.line)))
        for setting in found { entry.variables[setting.key.uppercased()] = Secret(setting.value) }
        return entry
      }
    })
}

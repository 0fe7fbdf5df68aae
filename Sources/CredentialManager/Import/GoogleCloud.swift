import CredmgrJSON
import CredmgrPlatform

extension ImportSource {
  /// The application default credentials of gcloud: a refresh token of gcloud's client, or a service account's key.
  static let gcloud = ImportSource(
    name: "gcloud", title: "gcloud",
    files: { places in
      let folder = places.path("CLOUDSDK_CONFIG") ?? places.inHome(".config/gcloud")
      let own = places.path("GOOGLE_APPLICATION_CREDENTIALS")
      return [own, folder.map { $0 + "/application_default_credentials.json" }].compactMap { $0 }
    },
    read: { text throws(ImportFault) in
      guard let value = try? JSONValue.parse(text.bytes), value.members != nil else {
        throw .malformed(path: text.path)
      }
      switch value["type"]?.text {
      case "authorized_user": return [ImportEntry("application-default", unsupported: .belongsToClient)]
      case "service_account":
        let user = value["client_email"]?.text
        return [ImportEntry(user ?? "service-account", unsupported: .serviceAccount(path: text.path), user: user)]
      default: return []
      }
    })
}

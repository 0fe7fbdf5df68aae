import CredmgrCryptography
import CredmgrJSON
import CredmgrPlatform

extension ImportSource {
  /// The application default credentials of gcloud: its client with a refresh token, or a service account's key
  /// (google.aip.dev/auth/4113).
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
      // Another universe has other servers.
      guard [nil, "googleapis.com"].contains(value["universe_domain"]?.text) else { return [] }
      let whole = Secret(bytes: text.bytes)
      switch value["type"]?.text {
      case "authorized_user" where ImportedClient(whole) != nil:
        return [ImportEntry("application-default", file: whole, .client(provider: "google"))]
      case "service_account":
        let user = value["client_email"]?.text
        return [ImportEntry(user ?? "service-account", file: whole, .keyFile(provider: "google-service"))]
      default: return []
      }
    })
}

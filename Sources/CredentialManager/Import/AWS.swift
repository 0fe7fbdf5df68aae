import CredmgrPlatform

extension ImportSource {
  /// `credentials` of the AWS tools. The keys sign requests and are never sent, so no provider can take them.
  static let aws = ImportSource(
    name: "aws", title: "AWS CLI",
    files: { places in
      [places.path("AWS_SHARED_CREDENTIALS_FILE") ?? places.inHome(".aws/credentials")].compactMap { $0 }
    },
    read: { text throws(ImportFault) in
      let settings = ImportSettings(text)
      return settings.sections.filter { settings.setting("aws_secret_access_key", in: $0) != nil }
        .map { ImportEntry($0, unsupported: .signsRequests) }
    })
}

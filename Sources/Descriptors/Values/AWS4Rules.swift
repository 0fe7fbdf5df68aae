/// Rules of AWS Signature Version 4, whose secret key is the token of the account.
package struct AWS4Rules: Sendable, Equatable {
  package var keyIdentifier = Template(literal: "")
  package var sessionToken: Template?
  package var region: Template?  // For hosts without one.
  package var service: Template?  // `nil` if the host names it.
  package var globalService: Template?  // For hosts without a region.

  package var templates: [Template] {
    [keyIdentifier] + [sessionToken, region, service, globalService].compactMap(\.self)
  }
  package var services: [String: String] = [:]  // By the end of a host's name, where they differ.
}

extension AWS4Rules {
  static let keys = Table("aws4", AWS4Rules()) {
    Key(
      "key_id", at: \.keyIdentifier, as: .template(), isRequired: true,
      means: "the identifier of the key, which each request names", for: "`aws`: `{access_key_id}`")
    Key(
      "session_token", at: \.sessionToken, as: .template(),
      means: "the token that belongs to a temporary key; without a value it is left out", for: "`aws`")
    Key(
      "region", at: \.region, as: .template(), means: "the region of hosts that name none", for: "`aws`: `{region}`")
    Key(
      "service", at: \.service, as: .template(), default: "the name in the host",
      means: "the service of all hosts; `region` then applies to all of them as well",
      for: "stores that are compatible with S3: `s3`")
    Key(
      "global_service", at: \.globalService, as: .template(), default: "the name in the host",
      means: "the service of hosts that name no region; without a value, the host names it", for: "`aws`: `{service}`")
    Key(
      "services", at: \.services, as: .texts(), type: "mapping of names",
      means: "the service for the end of a host's name before region and domain, if the two names differ",
      for: "`aws`: `email: ses`, `portal.sso: awsssoportal`")
  }
}

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
  package var services: [String: [String]] = [:]  // The ends of hosts' names, where they differ from the service.
  package var families: [String] = []  // Ends of hosts' names, as `*-NAME` or `NAME-*`, of the service `NAME`.

  /// Returns the service of a host's name: that of the longest end that has one, or else the last label.
  package func service(of labels: [String]) -> String {
    let ends = labels.indices.map { labels[$0...].joined(separator: ".") }
    return ends.lazy.compactMap(service).first ?? labels.last ?? ""
  }

  /// A whole name counts more than one with a `*`.
  private func service(of end: String) -> String? {
    if let service = services.first(where: { $0.value.contains(end) })?.key { return service }
    if let service = services.first(where: { $0.value.contains { Self.fits(end, $0) } })?.key { return service }
    guard let family = families.first(where: { Self.fits(end, $0) }) else { return nil }
    if family.hasPrefix("*-") { return String(family.dropFirst(2)) }
    return family.hasSuffix("-*") ? String(family.dropLast(2)) : end
  }

  /// Whether a name fits a pattern whose `*` means one or more characters of one label.
  private static func fits(_ name: String, _ pattern: String) -> Bool {
    guard let star = pattern.firstIndex(of: "*") else { return false }
    let (before, after) = (pattern[..<star], pattern[pattern.index(after: star)...])
    guard name.hasPrefix(before), name.hasSuffix(after), name.utf8.count >= pattern.utf8.count else { return false }
    return !name.dropFirst(before.count).dropLast(after.count).contains(".")
  }
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
      "services", at: \.services, as: .lists, type: "mapping to names or lists",
      means: "the ends of hosts' names, before region and domain, that differ from the service; a `*` means one or "
        + "more characters except dots",
      for: "`aws`: `ses: [email, mail-manager]`, `awsssoportal: portal.sso`")
    Key(
      "families", at: \.families, as: .texts, type: "list of `*-NAME` or `NAME-*`",
      means: "ends of hosts' names of which `NAME` is the service",
      for: "`aws`: `bedrock-*`, `*-chime`")
  }
}

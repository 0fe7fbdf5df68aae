import OAuth
import Text

extension MetadataError {
  /// Why an issuer cannot be added by its address.
  func message(issuer: String) -> Message {
    let name = quoted(issuer)
    switch self {
    case .absent(let attempts):
      let places = attempts.map { attempt in
        "\(attempt.url) (status \(attempt.status)" + (attempt.location.map { ", sends to \($0)" } ?? "") + ")"
      }
      return Message(
        "\(name) has no metadata that could be discovered; looked at \(places.joined(separator: ", "))",
        hint: "check the issuer in the provider's documentation, or write a descriptor: "
          + "\(run: "man", "credmgr-descriptor")",
        status: .refused)
    case .unavailable(let attempt):
      return Message(
        "\(name) cannot answer now at \(attempt.url) (status \(attempt.status))", hint: "try again later",
        status: .unreachable)
    case .notJSON: return Message("the metadata of \(name) is no JSON object", status: .refused)
    case .otherIssuer(let found):
      return Message(
        "the metadata at \(name) is that of the issuer \(quoted(found)), and both have to be the same to the letter",
        // Only where it is the same server: who is asked for one issuer does not choose another.
        hint: Self.isAlmost(found, issuer) ? "\(credmgr: "add-provider", found)" : nil, status: .refused)
    case .missing(let member): return Message("the metadata of \(name) has no \(quoted(member))", status: .refused)
    case .malformed(let member):
      return Message("the \(quoted(member)) in the metadata of \(name) cannot be read", status: .refused)
    case .invalidURL(let member, let text):
      return Message(
        "the \(quoted(member)) in the metadata of \(name) is \(quoted(text)), which is no URL of an endpoint",
        status: .refused)
    case .insecure("issuer", _):
      return Message("\(name) is not https; http is for this machine's own addresses only", status: .usage)
    case .insecure(let member, let text):
      return Message(
        "the \(quoted(member)) in the metadata of \(name) is \(quoted(text)), which is not https", status: .refused)
    case .inwardAddress(let member, let text):
      return Message(
        "the \(quoted(member)) in the metadata of \(name) is \(quoted(text)), an address of this machine or its "
          + "network",
        status: .refused)
    case .noGrant(let offered):
      return Message(
        "the metadata of \(name) has no grant that credmgr knows; it has \(listed(offered.prefix(8)))",
        status: .refused)
    case .noAuthentication(let offered):
      return Message(
        "a client shows \(name) who it is only in ways that credmgr does not know: \(listed(offered.prefix(8)))",
        status: .refused)
    }
  }

  /// Whether two issuers differ in a slash at the end, or in the case of letters alone.
  private static func isAlmost(_ one: String, _ other: String) -> Bool {
    func plain(_ text: String) -> String { (text.hasSuffix("/") ? String(text.dropLast()) : text).lowercased() }
    return plain(one) == plain(other)
  }
}

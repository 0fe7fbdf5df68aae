import CredmgrText
import CredmgrYAML

/// How and when the facts of a descriptor were last checked.
package enum Verification: Sendable, Equatable {
  case documentation(month: String)  // Against the provider's pages.
  case live(day: String)  // With an account at the provider.
  case unverified

  /// Reads the text in a descriptor; `nil` if the text is not valid.
  package init?(_ text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    switch (words.first, words.count) {
    case ("documentation", 2) where Self.isDate(words[1], parts: 2): self = .documentation(month: words[1])
    case ("live", 2) where Self.isDate(words[1], parts: 3): self = .live(day: words[1])
    case ("unverified", 1): self = .unverified
    default: return nil
    }
  }

  package var text: String {
    switch self {
    case .documentation(let month): "documentation " + month
    case .live(let day): "live " + day
    case .unverified: "unverified"
    }
  }

  private static func isDate(_ text: String, parts count: Int) -> Bool {
    let limits = [(4, 2000...9999), (2, 1...12), (2, 1...31)].prefix(count)
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    // Not every month has 31 days.
    return parts.count == count && (count < 3 || Moment(text + "T00:00:00Z") != nil)
      && zip(parts, limits).allSatisfy { part, limit in
        part.utf8.count == limit.0 && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
          && limit.1.contains(Int(part) ?? 0)
      }
  }
}

/// The purpose of a provider, so that users find it in a list.
package enum ProviderGroup: String, Sendable, CaseIterable {
  case ai, cloud, forge, packages, ci, observability, payment, mail, messaging, crm, storage, identity, data, research
  case other
}

extension Descriptor {
  /// The kinds of credentials, the preferred one first: `OAuth`, `OAuth 1.0a`, `API key`, `password`, `secrets`,
  /// `key file`.
  package var kinds: [String] {
    ordered(grants.map { $0.traits.asked ?? $0.traits.kind })
  }

  /// The things that the user brings to the first login: one of `client`, `API key`, `password`, `secrets` and
  /// `key file`, or `nothing` if the provider publishes a client or registers one.
  package var needs: [String] {
    let client = client.identifier != nil || endpoints[.registration] != nil ? "nothing" : "client"
    return ordered(grants.map { $0.traits.asked ?? client })
  }

  /// Adds the key that `login --with-token` takes.
  private func ordered(_ words: [String]) -> [String] {
    let all = words + (key == nil || grants.allSatisfy { $0.traits.asked != nil } ? [] : ["API key"])
    return all.indices.filter { !all[..<$0].contains(all[$0]) }.map { all[$0] }
  }
}

extension Notation<Verification> {
  static var verification: Self {
    Notation(
      .pattern(
        "^(documentation [0-9]{4}-[0-9]{2}|live [0-9]{4}-[0-9]{2}-[0-9]{2}|unverified)$",
        type: "`documentation YYYY-MM`, `live YYYY-MM-DD`, `unverified`"),
      read: { decoder, node in
        guard let text = decoder.text(node) else { return nil }
        if let verification = Verification(text) { return verification }
        let forms = ["\"documentation YYYY-MM\"", "\"live YYYY-MM-DD\"", "\"unverified\""]
        decoder.add(.unknownValue(text, allowed: forms, suggestion: nil), at: node.place)
        return nil
      }, write: { .text($0.text) })
  }
}

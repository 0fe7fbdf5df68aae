import CredmgrHTTP
import CredmgrText
import CredmgrYAML

/// The parameters that protect a login. A descriptor may rename most of them, but only the engine sets them.
package enum OwnedParameters {
  static let all: Set<String> = [
    "state", "code_challenge", "code_challenge_method", "code_verifier", "nonce", "oauth_signature", "oauth_nonce",
    "oauth_timestamp", "oauth_signature_method", "oauth_consumer_key", "oauth_token", "oauth_callback",
    "oauth_verifier", "redirect_uri", "redirect_uris", "response_type", "request", "request_uri", "client_id",
    "dpop_jkt",
  ]

  /// Parameters that a descriptor may drop, because the provider then uses its registered values.
  static let droppable: Set<String> = ["redirect_uri", "response_type", "client_id", "dpop_jkt"]

  /// Parameters without other names: a server ignores unknown names (RFC 6749, 3.1), and so would not check PKCE.
  static let fixed: Set<String> = ["code_challenge", "code_challenge_method"]

  private static let ofThePage: Set<String> = [
    "state", "nonce", "redirect_uri", "response_type", "request", "request_uri", "client_id",
  ]

  /// The parameters of an endpoint that only the engine may set. Those that direct a login's response are ordinary
  /// parameters elsewhere; `oauth_consumer_key` is ordinary in the page's address, which is not signed.
  static func names(at kind: EndpointKind) -> Set<String> {
    switch kind {
    case _ where kind.leg.asksForConsent: all.subtracting(["oauth_consumer_key", "redirect_uris"])
    case .registration: all.subtracting(ofThePage)
    default: all.subtracting(ofThePage).subtracting(["redirect_uris"])
    }
  }

  /// A name as the most lenient server reads it: decoded repeatedly, ignoring case, and like PHP, which ignores
  /// brackets and reads a dot, a space and an unpaired bracket as an underscore.
  static func canonical(_ name: String) -> String {
    var text = name
    for _ in 0..<5 {
      guard let decoded = PercentEncoding.decode(text, plusAsSpace: true), decoded != text else { break }
      text = decoded
    }
    let end: Unicode.Scalar = text.unicodeScalars.contains("]") ? "[" : "\0"
    let scalars = text.unicodeScalars.drop { $0.value <= 0x20 }.prefix { $0 != end && $0.value >= 0x20 }
    return String(scalars.map { ". [".unicodeScalars.contains($0) ? "_" : Character($0) }).lowercased()
  }

  /// The engine's names by the canonical forms of the owned names and of their names on the wire, if the endpoint
  /// renames them.
  private static func onTheWire(_ kind: EndpointKind, _ rename: [String: String]) -> [String: String] {
    var names: [String: String] = [:]
    for name in self.names(at: kind) {
      if let wire = rename[name] { names[canonical(wire)] = name }
    }
    for name in self.names(at: kind) { names[name] = name }
    return names
  }

  /// The owned parameter that this name would set at the endpoint, or `nil`.
  static func owned(_ name: String, at kind: EndpointKind, rename: [String: String]) -> String? {
    onTheWire(kind, rename)[canonical(name)]
  }

  /// The first owned parameter in the query of a URL or of its fragment, in any notation, or `nil`.
  package static func owned(in uri: URI, at kind: EndpointKind, rename: [String: String]) -> String? {
    let owned = onTheWire(kind, rename)
    return names(inQueriesOf: uri.text).lazy.compactMap { owned[canonical($0)] }.first
  }

  /// The names before each `=` in the queries, separated in every way that servers support.
  static func names(inQueriesOf text: String) -> [String] {
    guard let start = text.firstIndex(where: { "?#".contains($0) }) else { return [] }
    return text[start...].split(whereSeparator: { "?#&;".contains($0) }).map { String($0.prefix { $0 != "=" }) }
  }
}

extension DescriptorDecoder {
  /// Rejects owned parameters among an endpoint's parameters, new names and address.
  mutating func checkOwned(_ endpoint: Endpoint, of kind: EndpointKind, at node: Node) {
    let rename = endpoint.rename
    let added = ["parameters", "choose"].flatMap { node[$0]?.entries?.prefix(Self.entryLimit) ?? [] }
    for entry in added {
      if isItself(entry.value, entry.key) { continue }
      let isOwned =
        entry.value.isNull
        ? OwnedParameters.names(at: kind).subtracting(OwnedParameters.droppable).contains(entry.key)
        : [entry.key, rename[entry.key] ?? ""].contains { OwnedParameters.owned($0, at: kind, rename: rename) != nil }
      if isOwned { add(.ownedParameter(entry.key), at: entry.keyPlace) }
    }
    for entry in node["rename"]?.entries ?? [] {
      guard let text = entry.value.text, text != entry.key else { continue }
      if kind.leg.asksForConsent, OwnedParameters.fixed.contains(entry.key) {
        add(.fixedParameter(entry.key), at: entry.value.place)
      } else if let owned = OwnedParameters.owned(text, at: kind, rename: rename), owned != entry.key {
        add(.ownedParameter(text), at: entry.value.place)
      }
    }
    guard let url = node["url"] ?? (node.text == nil ? nil : node) else { return }
    for name in queryNames(endpoint.url.template) {
      guard let owned = OwnedParameters.owned(name, at: kind, rename: rename) else { continue }
      add(.ownedParameter(owned), at: url.place)
    }
  }

  /// Whether a parameter only restates the engine's value: `redirect_uri: "{redirect_uri}"`. A response type may add an
  /// ID token to the grant's own (OpenID Connect Core 1.0, 3.2.2.1).
  private func isItself(_ value: Node, _ name: String) -> Bool {
    if name == "response_type", let types = value.text?.split(separator: " ").map(String.init) {
      let grants = Self.elements(of: root["grant"]).compactMap { $0.text.flatMap(Grant.init(rawValue:)) }
      let own = Set(grants.compactMap(\.traits.responseType))
      return own.count == 1 && own.isSubset(of: types) && own.union(["id_token"]).isSuperset(of: types)
    }
    return ["redirect_uri", "redirect_uris"].contains(name) && value.text == "{redirect_uri}"
      || name == "client_id" && value.text == "{client_id}"
  }

  /// The names in the queries of a URL for all values of its placeholders.
  private mutating func queryNames(_ template: Template) -> [String] {
    var texts = [""]
    for (index, part) in template.parts.enumerated() {
      switch part {
      case .literal(let piece): texts = texts.map { $0 + piece }
      case .place(let terms) where index == 0: texts = terms.flatMap { pieces(of: $0, or: "https://sample.example") }
      case .place(let terms):
        let values = Set(terms.flatMap { pieces(of: $0, or: "sample") }).sorted().prefix(16)
        texts = Array(texts.flatMap { text in values.map { text + PercentEncoding.encode($0) } }.prefix(1024))
      }
    }
    return texts.flatMap { OwnedParameters.names(inQueriesOf: $0) }
  }

  /// The possible values of a term, without the effect of functions.
  private func pieces(of term: Template.Term, or sample: String) -> [String] {
    switch term {
    case .literal(let text): [text]
    case .name(let name): [samples[name] ?? sample]
    case .call(_, let terms): terms.flatMap { pieces(of: $0, or: sample) } + [sample]
    }
  }
}

import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth
import CredmgrText

/// Fills templates with the values that are constant for a registration.
///
/// Other names stay unfilled: answer fields, unset variables, and secrets.
struct AgreedPlaces {
  let values: (String) -> String?

  func texts(of template: Template) -> [String] { template.expansions(values) }

  func origins(of template: Template) -> [String] { texts(of: template.origin).flatMap(OriginPattern.texts) }
}

extension AgreedPlaces {
  init(_ client: Client, hiding hidden: Set<String>) {
    let all = client.values()
    values = { $0 == "client_secret" || hidden.contains($0) ? nil : all($0) }
  }

  /// With all values except secrets and fields of answers.
  init(of client: Client) {
    let descriptor = client.descriptor
    // The default of a variable is text of the descriptor, so it is never secret.
    let hidden = descriptor.variables.filter { $0.isSecret && client.variables[$0.name] != $0.defaultValue }
    let kept = descriptor.endpoints.values.flatMap(\.response.keep).map(\.name)
    self.init(client, hiding: Set(kept + hidden.map(\.name)))
  }
}

// MARK: At rest

extension Agreement {
  var value: JSONValue {
    func list(_ texts: some Sequence<String>) -> JSONValue { .array(texts.map(JSONValue.string)) }
    func object<Value>(_ values: [String: Value], _ value: (Value) -> JSONValue) -> JSONValue {
      .object(values.sorted { $0.key < $1.key }.map { .init($0.key, value($0.value)) })
    }
    let kinds = Kind.allCases.compactMap { kind in
      places[kind].map { JSONValue.Member(kind.rawValue, object($0, list)) }
    }
    return .object([
      .init("client_id", .optional(clientIdentifier)), .init("places", .object(kinds)),
      .init("settings", object(settings, list)),
      .init("written", written.map { object($0, JSONValue.string) } ?? .null), .init("own_files", .optional(ownFiles)),
      .init("files", .optional(files)),
      .init("secrets", list(secrets.sorted())),
      .init("shown_secrets", list(shownSecrets.sorted())),
      .init("claims", claims.map { .array($0.map(\.value)) } ?? .null),
      .init("bounds", object(bounds, JSONValue.string)),
      .init("is_of_earlier_version", .boolean(isOfEarlierVersion)),
    ])
  }

  init?(_ value: JSONValue) {
    self.init(endpoints: [])
    func list(_ value: JSONValue?) -> [String]? { value?.elements?.compactMap(\.text) }
    if let kinds = value["places"] {
      for kind in Kind.allCases {
        guard let members = kinds[kind.rawValue]?.members else { continue }
        places[kind] = members.reduce(into: [:]) { $0[$1.name] = list($1.value) }
      }
      settings = (value["settings"]?.members ?? []).reduce(into: [:]) { $0[$1.name] = list($1.value) }
      written = value["written"]?.members?.reduce(into: [:]) { $0[$1.name] = $1.value.text }
      ownFiles = value["own_files"]?.text
      files = value["files"]?.text
      if value["requires_issuer"] == .boolean(true) { settings["iss"] = ["required"] }
      secrets = Set(list(value["secrets"]) ?? [])
      shownSecrets = Set(list(value["shown_secrets"]) ?? [])
      isOfEarlierVersion = value["is_of_earlier_version"] == .boolean(true)
    } else if let origins = list(value["secret_origins"]) ?? list(value["secret_hosts"]) {
      self.init(destinations: origins)
      places[.helpers] = list(value["token_origins"] ?? value["token_hosts"]).map(Self.asWritten)
      places[.presented] = list(value["presented_origins"]).map(Self.asWritten)
      places[.clusters] = list(value["cluster_origins"]).map(Self.asWritten)
      places[.redirect] = value["redirect"]?.text.map { Self.asWritten([$0]) }
      places[.devicePage] = value["device_page"]?.text.map {
        Self.asWritten($0.pieces(separatedBy: " || ").map { String($0) })
      }
      places[.issuer] = value["issuer"]?.text.map { Self.asWritten([$0]) }
    } else {
      return nil
    }
    clientIdentifier = value["client_id"]?.text
    claims = value["claims"]?.elements?.compactMap { HostClaim($0) }
    for member in value["bounds"]?.members ?? [] { bounds[member.name] = member.value.text }
  }

  /// Reads the first versions' format: one list with hosts of all kinds.
  init(destinations: [String]) {
    self.init(endpoints: destinations)
    isOfEarlierVersion = true
  }

  /// Creates an agreement from origins alone, without templates.
  init(endpoints: [String]) { places[.endpoints] = Self.asWritten(endpoints) }

  private static func asWritten(_ texts: [String]) -> Places { texts.reduce(into: [:]) { $0[$1] = [$1] } }
}

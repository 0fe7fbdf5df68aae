import Descriptors
import HTTP
import JSON
import OAuth

/// What the templates of a descriptor can become with a client's values.
///
/// A value that is constant for a registration is filled in. What a provider's answer fills stands as it is written,
/// also where a variable of the same name has a value, and so does a secret.
struct AgreedPlaces {
  private let values: (String) -> String?
  private let isUnset: (String) -> Bool
  let bounds: OriginPattern.Bounds

  init(_ client: Client) {
    let descriptor = client.descriptor
    let fields = descriptor.endpoints.values.flatMap(\.response.keep)
    let kept = Set(fields.map(\.name))
    let secrets = Set(
      descriptor.variables.filter { $0.isSecret && client.variables[$0.name] != $0.defaultValue }.map(\.name))
    let all = client.values()
    values = { name in name == "client_secret" || kept.contains(name) || secrets.contains(name) ? nil : all(name) }
    isUnset = { name in !kept.contains(name) && descriptor.variable(name) != nil && client.variables[name] == nil }
    bounds = kept.reduce(into: [:]) { bounds, name in
      let patterns = descriptor.patterns(ofKept: name)
      if !patterns.isEmpty { bounds[name] = patterns.joined(separator: "\n") }
    }
  }

  func texts(of template: Template) -> [String] { template.expansions(values, isUnset: isUnset) }

  func origins(of templates: [Template]) -> [String] {
    Set(templates.flatMap(texts).flatMap(OriginPattern.texts)).sorted()
  }
}

// MARK: At rest

extension Agreement {
  var value: JSONValue {
    func list(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
    // What an earlier version noted stays that until it is compared with a descriptor.
    let names = isOfEarlierVersion ? ["secret_hosts", "token_hosts"] : ["secret_origins", "token_origins"]
    return .object([
      .init("client_id", .optional(clientIdentifier)), .init(names[0], list(secretOrigins)),
      .init(names[1], list(tokenOrigins)), .init("presented_origins", presentedOrigins.map(list) ?? .null),
      .init("cluster_origins", clusterOrigins.map(list) ?? .null),
      .init("redirect", .optional(redirect)), .init("device_page", .optional(devicePage)),
      .init("issuer", .optional(issuer)), .init("claims", claims.map { .array($0.map(\.value)) } ?? .null),
      .init("bounds", .object(bounds.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })),
    ])
  }

  init?(_ value: JSONValue) {
    func list(_ name: String) -> [String]? { value[name]?.elements?.compactMap(\.text) }
    if let secrets = list("secret_origins"), let tokens = list("token_origins") {
      (secretOrigins, tokenOrigins) = (secrets, tokens)
    } else if let secrets = list("secret_hosts"), let tokens = list("token_hosts") {
      (secretOrigins, tokenOrigins, isOfEarlierVersion) = (secrets, tokens, true)
    } else {
      return nil
    }
    presentedOrigins = list("presented_origins")
    clusterOrigins = list("cluster_origins")
    clientIdentifier = value["client_id"]?.text
    redirect = value["redirect"]?.text
    devicePage = value["device_page"]?.text
    issuer = value["issuer"]?.text
    claims = value["claims"]?.elements?.compactMap { HostClaim($0) }
    for member in value["bounds"]?.members ?? [] { bounds[member.name] = member.value.text }
  }

  /// What the first versions kept: the hosts of all kinds in one list.
  init(destinations: [String]) {
    (secretOrigins, tokenOrigins, isOfEarlierVersion) = (destinations, destinations, true)
  }
}

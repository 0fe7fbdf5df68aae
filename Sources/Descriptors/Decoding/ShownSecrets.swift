import CredmgrYAML

/// Keeps secrets out of kept fields, which are shown and may become an account's name, and out of fields that are
/// always shown.
extension DescriptorDecoder {
  /// Checks all shown parts of one response. `fields` may give a secret a harmless name.
  mutating func checkShown(_ rules: ResponseRules, _ node: Node) {
    let paths = ResponseField.secrets.flatMap { rules.fields[$0]?.paths ?? [] }
    let secrets = paths + paths.compactMap { path in rules.within.map { FieldPath($0.text + "." + path.text) } }
    let kept = rules.keep.filter { !$0.isSecret }.map { field in
      let place = node["keep"].flatMap { keep in
        keep[field.name] ?? Self.elements(of: keep).first { $0.text == field.name }
      }
      return (paths: field.paths, node: place)
    }
    let fields = ResponseField.shown.map { field in
      (paths: rules.fields[field]?.paths ?? [], node: node["fields"]?[field.rawValue])
    }
    let errors = [(rules.errors.code, "code"), (rules.errors.description, "description")].map { paths, key in
      (paths: paths, node: node["errors"]?[key])
    }
    for (paths, place) in kept + fields + errors {
      for path in paths {
        if secrets.contains(path) {
          add(.shownSecret(path.text), at: (place ?? node).place)
        } else {
          check(path, isShownAt: place ?? node)
        }
      }
    }
  }

  mutating func check(_ path: FieldPath, isShownAt node: Node) {
    if path.isSecret { add(.shownSecret(path.text), at: node.place) }
  }
}

extension Descriptor {
  /// The engine's values that only the provider's endpoints may see.
  package static var secretNamesOfEngine: Set<String> { DescriptorDecoder.secretNames }

  /// The names of secrets in answers, in lower case without underscores.
  package var secretNames: Set<String> {
    let kept = keptSecrets.flatMap { field in field.paths.map { FieldPath.plain($0.text) } }
    return ResponseField.secretNames.union(names(of: ResponseField.secrets)).union(kept)
  }

  /// The further tokens that a login keeps.
  package var keptSecrets: [KeptField] { endpoints.values.flatMap(\.response.keep).filter(\.isSecret) }

  /// The names of secrets in the addresses of pages and in redirects: the code, and the values that protect it.
  package var secretNamesOfPages: Set<String> {
    let page = endpoints[.authorization]
    let own = ["state", "nonce", "code_challenge"]
    let all = own + own.compactMap { page?.rename[$0] } + ["code", "oauth_verifier"]
    return Set(all.map { FieldPath.plain($0) }).union(names(of: [.code, .state, .oauthVerifier]))
  }

  private func names(of fields: [ResponseField]) -> [String] {
    endpoints.values.flatMap { endpoint in
      fields.flatMap { endpoint.response.fields[$0]?.paths ?? [] }.flatMap { [$0.name, FieldPath.plain($0.text)] }
    }
  }
}

extension ResponseField {
  fileprivate static let secrets: [ResponseField] = [
    .accessToken, .refreshToken, .idToken, .deviceCode, .authReqID, .oauthToken, .oauthTokenSecret, .oauthVerifier,
    .oauthSessionHandle, .clientSecret, .registrationAccessToken,
  ]

  fileprivate static let shown: [ResponseField] = [
    .userCode, .verificationURI, .verificationURIComplete, .tokenType, .scope, .authorizationDetails, .clientID,
    .issuer,
    .tokenEndpointAuthMethod,
  ]

  /// The names of secrets in lower case without underscores.
  fileprivate static let secretNames = Set(
    ResponseField.secrets.map { FieldPath.plain($0.rawValue) } + ["tokensecret", "sessionhandle"])
}

extension FieldPath {
  fileprivate var isSecret: Bool { ResponseField.secretNames.contains(name) }

  /// The name of the value, without the objects around it.
  fileprivate var name: String { Self.plain(header ?? components.last { Int($0) == nil } ?? "") }

  package static func plain(_ name: some StringProtocol) -> String {
    name.lowercased().filter { $0 != "_" && $0 != "-" }
  }
}

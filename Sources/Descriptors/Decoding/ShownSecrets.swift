import YAML

/// What is kept of an answer is shown, and may be an account's name, so that no secret is kept.
extension DescriptorDecoder {
  /// Looks at all that is kept of one answer. `fields` may say that a secret stands under a harmless name.
  mutating func checkKept(_ rules: ResponseRules, _ node: Node) {
    let paths = ResponseField.secrets.flatMap { rules.fields[$0]?.paths ?? [] }
    let secrets = paths + paths.compactMap { path in rules.within.map { FieldPath($0.text + "." + path.text) } }
    for field in rules.keep {
      let place = node["keep"].flatMap { keep in
        keep[field.name] ?? Self.elements(of: keep).first { $0.text == field.name }
      }
      for path in field.paths {
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

extension ResponseField {
  fileprivate static let secrets: [ResponseField] = [
    .accessToken, .refreshToken, .idToken, .deviceCode, .oauthToken, .oauthTokenSecret, .oauthVerifier,
    .oauthSessionHandle, .clientSecret, .registrationAccessToken,
  ]

  /// The names of secrets without case and underscores.
  fileprivate static let secretNames = Set(
    ResponseField.secrets.map { FieldPath.plain($0.rawValue) } + ["tokensecret", "sessionhandle"])
}

extension FieldPath {
  fileprivate var isSecret: Bool {
    let name = header ?? components.last { Int($0) == nil } ?? ""
    return ResponseField.secretNames.contains(Self.plain(name))
  }

  fileprivate static func plain(_ name: some StringProtocol) -> String {
    name.lowercased().filter { $0 != "_" && $0 != "-" }
  }
}

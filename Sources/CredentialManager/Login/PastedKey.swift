import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

extension CredentialSource {
  /// Throws if a key clearly belongs to another shipped provider. Other descriptors may be for servers that accept
  /// the keys of another provider.
  func requireOwnKey(_ text: String, of loaded: DescriptorLibrary.Loaded) throws(CredentialError) {
    guard ownFiles(of: loaded).isEmpty else { return }
    let key = text.filter { !$0.isWhitespace }
    let provider = loaded.descriptor.identifier
    let own = loaded.descriptor.key?.certainty(of: key) ?? 0
    for identifier in knownProviders() where identifier != provider {
      // Most descriptors have no pattern, so decode only those with one.
      guard let path = home.library.path(of: identifier), let bytes = try? Home.descriptor(at: path),
        bytes.firstPlace(of: "\nkey:".utf8) != nil, let other = try? home.library.load(identifier),
        ownFiles(of: other).isEmpty, let certainty = other.descriptor.key?.certainty(of: key)
      else { continue }
      if certainty > max(own, Self.leastCertainty) { throw .foreignKey(provider: provider, owner: identifier) }
    }
  }

  /// Several providers use the beginning `sk-`.
  private static let leastCertainty = 3
}

extension TypedKeyRules {
  /// Returns how many characters at the beginning of a key its pattern fixes; `nil` if no pattern matches.
  func certainty(of key: String) -> Int? {
    guard let pattern, Variable.value(key, matches: pattern) else { return nil }
    let ways = pattern.split(separator: "|").filter { Variable.value(key, matches: String($0)) }
    return ways.map { way in
      let fixed = way.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "_-".contains($0)) }
      let isOptional = way.dropFirst(fixed.count).first.map { "*+?{".contains($0) } ?? false
      return max(fixed.count - (isOptional ? 1 : 0), 0)
    }.max() ?? 0
  }
}

extension Descriptor {
  /// The parts of a token that the user brings: with OAuth 1.0a, the token and the secret that signs with it.
  package var fieldsOfToken: [Step.Prompt.Field] {
    let token = Step.Prompt.Field(typed: key == nil ? "token" : "access token", as: .key, pattern: key?.pattern)
    guard key == nil, tokenGrant.traits.tokenSecretField != nil else { return [token] }
    return [token, Step.Prompt.Field(name: "token_secret", label: "token secret", content: .key)]
  }

  /// The grant of a token that the user brings.
  var tokenGrant: Grant {
    key != nil ? .apiKey : grants.first(where: \.traits.needsPerson) ?? .authorizationCode
  }
}

extension CredentialError {
  /// Whether the provider said that the token is not valid.
  var refusesToken: Bool {
    switch self {
    case .oauth(.refused(_, let refusal), _): refusal.status == 401 || refusal.code == "invalid_token"
    case .tokenRefused: true
    default: false
    }
  }

  /// Whether the provider may know the token but does not let it ask who owns it. Some providers also answer so to an
  /// unknown token.
  var concernsRights: Bool {
    if case .oauth(.refused(_, let refusal), _) = self { refusal.status == 403 } else { false }
  }

  /// Whether the refusal itself says that the token is valid (RFC 6750, 3.1).
  var confirmsToken: Bool {
    if case .oauth(.refused(_, let refusal), _) = self { refusal.code == "insufficient_scope" } else { false }
  }

  /// The provider's text about a refusal; `nil` if the provider gave none.
  var refusalWords: String? {
    if case .oauth(.refused(_, let refusal), _) = self { refusal.words } else { nil }
  }
}

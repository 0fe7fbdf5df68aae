import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

extension CredentialSource {
  /// Throws if a key clearly belongs to other shipped providers. A user's own descriptor may be for a server that
  /// accepts the keys of another provider, so it gets them if the user `agrees`. A provider without a pattern, and a
  /// user's own descriptor, accept the keys of another descriptor for their hosts.
  func requireOwnKey(
    _ text: String, of loaded: DescriptorLibrary.Loaded, agrees: Bool = false
  ) throws(CredentialError) {
    let isOwn = !ownFiles(of: loaded).isEmpty
    if isOwn, agrees { return }
    let own = loaded.descriptor
    let others = knownProviders().compactMap(describedKey)
    let accepted =
      own.key != nil && !isOwn
      ? [] : others.filter { $0.hosts.contains(where: own.hosts.contains) }.map(\.identifier)
    let words = text.split(whereSeparator: \.isWhitespace)
    // A key in several pieces, or after the scheme of a header.
    for key in [words.joined()] + words.dropFirst().suffix(1).map(String.init) {
      let owners = own.owners(of: key, among: others)
      if !owners.isEmpty, !owners.contains(where: accepted.contains) {
        throw .foreignKey(provider: own.identifier, owners: owners, canAgree: isOwn)
      }
    }
  }

  /// Returns the descriptor of a shipped provider that has a pattern for keys.
  func describedKey(of identifier: String) -> Descriptor? {
    // Decode only what may have one.
    guard let path = home.library.path(of: identifier), let bytes = try? Home.descriptor(at: path),
      bytes.firstPlace(of: "\nkey:".utf8) != nil, bytes.firstPlace(of: "pattern:".utf8) != nil,
      let loaded = try? home.library.load(identifier), ownFiles(of: loaded).isEmpty
    else { return nil }
    return loaded.descriptor
  }
}

extension Substring {
  fileprivate func drop(upTo end: Character) -> Substring { drop { $0 != end }.dropFirst() }
}

extension Descriptor {
  /// Returns the other providers whose patterns make it more certain that a key is theirs.
  func owners(of key: String, among others: some Sequence<Descriptor>) -> [String] {
    // Several providers use a beginning of three characters such as `sk-`.
    var highest = max(certainty(of: key), 3)
    var owners: [String] = []
    for other in others where other.identifier != identifier {
      let certainty = other.certainty(of: key)
      if certainty > highest { owners = [] }
      if certainty > highest || certainty == highest && !owners.isEmpty { owners.append(other.identifier) }
      highest = max(highest, certainty)
    }
    return owners
  }

  /// Returns how sure the patterns make it that a text is a key of this provider: the number of fixed characters in a
  /// row, such as `ghp_` or `-us`, and one more if the pattern also fixes the length.
  func certainty(of text: String) -> Int {
    let typed = grants.first?.traits.typed == nil ? [] : variables.filter(\.isAtLogin).compactMap(\.pattern)
    let ways = (typed + [key?.pattern].compactMap(\.self)).flatMap { $0.split(separator: "|") }
    return ways.filter { Variable.value(text, matches: String($0)) }.map(Self.certainty).max() ?? 0
  }

  private static func certainty(of way: Substring) -> Int {
    var (longest, fixed, rest) = (0, 0, way)
    while let first = rest.first {
      let isEscaped = first == "\\"
      let isFixed = isEscaped || first.isASCII && (first.isLetter || first.isNumber || "_-".contains(first))
      let end: Character? = first == "[" ? "]" : first == "{" ? "}" : nil
      rest = end.map { rest.drop(upTo: $0) } ?? rest.dropFirst(isEscaped ? 2 : 1)
      fixed = isFixed && !(rest.first.map("*+?{".contains) ?? false) ? fixed + 1 : 0
      longest = max(longest, fixed)
    }
    let isOpen = way.contains("*") || way.contains("+") || String(way).firstPlace(of: ",}") != nil
    return longest == 0 ? 0 : longest + (isOpen ? 0 : 1)
  }
}

extension Descriptor {
  /// The parts of a token that the user brings: with OAuth 1.0a, the token and the secret that signs with it.
  package var fieldsOfToken: [Step.Prompt.Field] {
    let token = Step.Prompt.Field(typed: key == nil ? "token" : "access token", as: .key, of: self)
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
    case .oauth(.refused(_, let refusal), _):
      // An introspection endpoint may answer 401 to an unknown client, which says nothing about the token.
      refusal.code == "invalid_token"
        || refusal.status == 401 && refusal.code != "invalid_client" && !refusal.concernsRights
    case .tokenRefused: true
    default: false
    }
  }

  /// Whether the provider may know the token but does not let it ask who owns it. Some providers also answer so to an
  /// unknown token.
  var concernsRights: Bool {
    guard case .oauth(.refused(_, let refusal), _) = self else { return false }
    return refusal.status == 403 || refusal.concernsRights
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

import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText
import CredmgrYAML

extension CredentialSource {
  /// Throws if a text clearly is a key of other shipped providers. A user's own descriptor may be for a server that
  /// accepts the keys of another provider, so it gets them if the user `agrees`. It also gets them if it sends them
  /// only to the servers of a shipped descriptor for these keys. A shipped provider without a pattern accepts the keys
  /// of another descriptor for its hosts. A user name or password that the user chose may begin like a key, so
  /// only long ones count, and the user can agree as well.
  func requireOwnKey(
    _ texts: [String], of loaded: DescriptorLibrary.Loaded, _ client: Client? = nil, agrees: Bool = false
  ) throws(CredentialError) {
    let isOwn = !ownFiles(of: loaded).isEmpty
    let own = loaded.descriptor
    let isChosen = own.grants.first.map { $0.traits.asked != nil && !$0.traits.isKey } ?? false
    if isOwn || isChosen, agrees { return }
    let keys = texts.filter { !Step.Prompt.Field.isTooLong($0) }.flatMap(Self.keys)
      .filter { !isChosen || Self.isGenerated($0) }
    let others = describedKeys(like: keys)
    func accepts(_ other: Descriptor) -> Bool {
      // A key that only signs is never sent.
      if !own.signatureTemplates.isEmpty, !other.signatureTemplates.isEmpty { return true }
      if isOwn { return (client ?? Client(unregistered: own)).isWithin(Client(unregistered: other)) }
      return own.key == nil && other.hosts.contains(where: own.hosts.contains)
    }
    func require(_ key: String) throws(CredentialError) {
      // The patterns of a user's own file prove nothing.
      let owners = own.owners(of: key, among: others, isOwn: isOwn)
      if owners.isEmpty { return }
      let holders = others.filter { owners.contains($0.identifier) }
      let certainty = holders.map { $0.certainty(of: key) }.max() ?? 0
      let known = holders + shippedBases(of: loaded)
      if !known.contains(where: { $0.certainty(of: key) >= certainty && accepts($0) }) {
        throw .foreignKey(provider: own.identifier, owners: owners, canAgree: isOwn || isChosen)
      }
    }
    for key in keys {
      try require(key)
      // A whole key of any provider contains no other key.
      if others.contains(where: { $0.certainty(of: key) > 0 }) || !isOwn && own.certainty(of: key) > 0 { continue }
      for inner in Set(others.flatMap { $0.keys(inside: key) }).sorted() { try require(inner) }
    }
  }

  /// Returns the shipped providers whose key a name contains. Every command shows a name, so it must not be a key.
  package func ownersOfKey(in name: String) -> [String] {
    let keys = Self.keys(in: name).filter(Self.isGenerated)
    let known = keys.isEmpty ? [] : describedKeys(like: keys)
    for key in keys {
      for key in [key] + known.flatMap({ $0.keys(inside: key) }) {
        let owners = Descriptor().owners(of: key, among: known)
        if !owners.isEmpty { return owners }
      }
    }
    return []
  }

  /// Whether a text is long and varied enough for a generated key.
  fileprivate static func isGenerated(_ text: String) -> Bool {
    text.utf8.count >= 20 && text.utf8.contains { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  /// Returns the keys that a text may contain: a key in several pieces, or with more around it, such as the scheme of a
  /// header, the name of a variable, or JSON.
  private static func keys(in text: String) -> [String] {
    let whole = text.split(whereSeparator: \.isWhitespace).joined()
    let pieces = text.utf8.split { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        false
      default: true
      }
    }
    return [whole] + pieces.prefix(100).map { String(decoding: $0, as: UTF8.self) }.filter { $0 != whole }
  }

  /// Returns the shipped descriptors that a descriptor extends.
  private func shippedBases(of loaded: DescriptorLibrary.Loaded) -> [Descriptor] {
    let library = home.shippedLibrary
    return loaded.bases.compactMap { base in
      guard let folder = library.directories.lazy.map({ $0 + "/" }).first(where: base.hasPrefix) else { return nil }
      return try? library.load(String(base.dropFirst(folder.count).dropLast(".yaml".count))).descriptor
    }
  }

  /// Returns the shipped descriptors that have a pattern for keys, even if the user or the administrator has another
  /// file of the same name. With `keys`, returns at least those with a pattern that matches one of them: decoding all
  /// would take longer than the rest of a login.
  func describedKeys(like keys: [String]? = nil) -> [Descriptor] {
    let library = home.shippedLibrary
    let names = library.directories.flatMap { (try? File.names(in: $0)) ?? [] }.filter { $0.hasSuffix(".yaml") }
    return names.sorted().compactMap { name in
      let identifier = String(name.dropLast(".yaml".count))
      // Decode only what may have one.
      guard let path = library.path(of: identifier), let bytes = try? Home.descriptor(at: path),
        bytes.firstPlace(of: "\nkey:".utf8) != nil, bytes.firstPlace(of: "pattern:".utf8) != nil
      else { return nil }
      if let keys, let root = try? Node.parse(bytes: bytes, name: path), root["extends"] == nil {
        let ways = root.values(of: "pattern").flatMap { $0.split(separator: "|").map(String.init) }
        guard
          ways.contains(where: { way in
            keys.contains { Variable.value($0, matches: way) || Descriptor.key(inside: $0, like: way[...]) != nil }
          })
        else { return nil }
      }
      return try? library.load(identifier).descriptor
    }
  }
}

extension Node {
  /// Returns the texts of a key everywhere in the tree.
  fileprivate func values(of key: String) -> [String] {
    let entries = entries ?? []
    let own = entries.filter { $0.key == key }.compactMap(\.value.text)
    return own + (entries.map(\.value) + (elements ?? [])).flatMap { $0.values(of: key) }
  }
}

extension Client {
  /// Whether this client's credentials go to the servers of another provider only, or to hosts that the user chose for
  /// the same templates.
  fileprivate func isWithin(_ other: Client) -> Bool {
    let (own, known) = (Agreement(self), Agreement(other))
    let kinds = Agreement.Kind.ofOrigins
    let places = kinds.flatMap { own.places[$0] ?? [:] }
    return !places.isEmpty
      && places.allSatisfy { written, origins in
        given(written) != nil && kinds.contains { known.places[$0]?[written] != nil }
          || origins.allSatisfy { known.includes($0, of: own, as: kinds) }
      }
  }
}

extension Substring {
  fileprivate func drop(upTo end: Character) -> Substring { drop { $0 != end }.dropFirst() }
}

extension Descriptor {
  /// Returns the shipped providers whose patterns make it more certain that a key is theirs than this descriptor's
  /// patterns do. A user's own descriptor may have the identifier of one.
  func owners(of key: String, among others: some Sequence<Descriptor>, isOwn: Bool = false) -> [String] {
    var highest = isOwn ? 0 : certainty(of: key)
    var owners: [String] = []
    for other in others where isOwn || other.identifier != identifier {
      let certainty = other.certainty(of: key)
      if certainty > highest { owners = [] }
      if certainty > highest || certainty == highest && !owners.isEmpty { owners.append(other.identifier) }
      highest = max(highest, certainty)
    }
    return owners
  }

  /// Returns how sure the patterns make it that a text is a key of this provider: the number of fixed characters in a
  /// row, such as `ghp_` or `-us`, and one more if the pattern also fixes the length. Returns 0 for less than 4.
  package func certainty(of text: String) -> Int {
    let ways = ways.filter { text.utf8.starts(with: Self.beginning(of: $0).utf8) }
      .map { (pattern: $0, certainty: Self.certainty(of: $0)) }
      .filter { $0.certainty > Self.commonBeginning }.sorted { $0.certainty > $1.certainty }
    return ways.first { Variable.value(text, matches: String($0.pattern)) }?.certainty ?? 0
  }

  /// The patterns of keys, or of what a login prompts for.
  private var ways: [Substring] {
    let typed = grants.first?.traits.typed == nil ? [] : variables.filter(\.isAtLogin).compactMap(\.pattern)
    return (typed + [key?.pattern].compactMap(\.self)).flatMap { $0.split(separator: "|") }
  }

  /// Returns the ends of a text that are keys of this provider: a text with a key may have a few characters before it.
  fileprivate func keys(inside text: String) -> [String] { ways.compactMap { Self.key(inside: text, like: $0) } }

  /// A shorter beginning may occur in random characters, so it must be near the start, and only letters and digits may
  /// follow.
  fileprivate static func key(inside text: String, like way: Substring) -> String? {
    guard CredentialSource.isGenerated(text) else { return nil }
    let beginning = beginning(of: way)
    guard beginning.utf8.count > commonBeginning, let place = text.dropFirst().firstPlace(of: beginning) else {
      return nil
    }
    let (before, key) = (text[..<place.lowerBound], String(text[place.lowerBound...]))
    let isLong = beginning.utf8.count > commonBeginning + 1
    let isPlain = text[place.upperBound...].allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
    guard isLong ? before.utf8.count <= 32 : before.utf8.count <= 8 && isPlain else { return nil }
    return CredentialSource.isGenerated(key) && Variable.value(key, matches: String(way)) ? key : nil
  }

  /// Returns the fixed characters with which each text that matches begins; comparing them is faster than a pattern.
  private static func beginning(of way: Substring) -> String {
    var (fixed, rest) = ("", way)
    while let first = rest.first {
      let character = first == "\\" ? rest.dropFirst().first : first
      guard let character, first == "\\" ? "._-".contains(character) : isFixed(character) else { break }
      fixed.append(character)
      rest = rest.dropFirst(first == "\\" ? 2 : 1)
    }
    return rest.first.map { "*+?{".contains($0) } == true ? String(fixed.dropLast()) : fixed
  }

  private static func isFixed(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || "_-".contains(character))
  }

  /// Several providers use a beginning of three characters such as `sk-`.
  private static let commonBeginning = 3

  private static func certainty(of way: Substring) -> Int {
    var (longest, fixed, rest) = (0, 0, way)
    while let first = rest.first {
      let isEscaped = first == "\\"
      let isFixed = isEscaped || Self.isFixed(first)
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

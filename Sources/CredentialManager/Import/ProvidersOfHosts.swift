import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// Finds the provider of a credential that another tool stores: an added provider, or else a provider whose
/// descriptor's defaults name the host.
package final class ProvidersOfHosts {
  package enum Match: Sendable, Equatable {
    /// `servers` lists the other servers that would get the credential, if only the user's own descriptor or a
    /// variable's name says that it belongs to this provider.
    case one(String, isAdded: Bool, servers: [String])
    case several([String])  // The credential belongs to one of them, and its tool does not say to which.
    /// A shipped provider whose defaults name the host, but which was added for another one. `host` is the default.
    case another(String, host: String)
  }

  private struct Candidate {
    let provider: String
    let isAdded: Bool
    let isShipped: Bool  // Whether no file of the user or the administrator is part of the descriptor.
    var isPlain = false  // Whether credmgr wrote that file for a further host of a shipped provider.
    let agreement: Agreement
  }

  private let source: CredentialSource
  private let added: [Candidate]
  private lazy var files = readFiles()
  private var found: [String: Match?] = [:]

  package init(_ source: CredentialSource) throws(CredentialError) {
    self.source = source
    var added: [Candidate] = []
    let accounts = try source.accountsIfAny()
    for provider in try accounts?.addedProviders() ?? [] {
      // A damaged registration must not hide the others.
      guard let agreement = (try? accounts?.registration(of: provider))?.agreement else { continue }
      added.append(
        Candidate(
          provider: provider, isAdded: true, isShipped: agreement.ownFiles == "",
          isPlain: Self.isPlain(provider, source), agreement: agreement))
    }
    self.added = added.sorted { $0.provider < $1.provider }
  }

  package func provider(of entry: ImportEntry) -> Match? {
    switch entry.form {
    case .client(let provider?), .keyFile(let provider): return self.provider(named: provider)
    case .client(nil): return nil
    case .secret: break
    }
    if !entry.variables.isEmpty { return provider(ofVariables: entry.variables.keys.sorted()) }
    if entry.host.isEmpty { return entry.variable.flatMap(provider(ofVariable:)) }
    let match = found[entry.host] ?? provider(ofHost: entry.host)
    found[entry.host] = .some(match)
    // Programs also read the variable for other hosts of the provider, and a file names its host without the user.
    if entry.variable != nil, case .one(let name, let isAdded, servers: [])? = match,
      entry.hostedProvider != nil || hasRelative(name, without: entry.host)
    {
      let owner = added.first { $0.provider == name } ?? candidate(name)
      return .one(name, isAdded: isAdded, servers: owner?.agreement.servers(otherThan: nil) ?? [entry.host])
    }
    return match
  }

  /// Whether a provider was added that has a descriptor in common with this one, but not the host, or whether this one
  /// has an account with another host.
  private func hasRelative(_ name: String, without host: String) -> Bool {
    let own = descriptors(of: name)
    let variables = (try? source.home.library.load(name))?.descriptor.variables.filter { $0.format == .hostname } ?? []
    let accounts = (try? source.accountsIfAny()?.accounts(of: name)) ?? []
    let values = accounts.flatMap { account in variables.compactMap { account.credential.variables[$0.name] } }
    if values.contains(where: { value in value != host && !variables.contains { $0.defaultValue == value } }) {
      return true
    }
    return added.contains { other in
      other.provider != name && !other.agreement.names(host) && !own.isDisjoint(with: descriptors(of: other.provider))
    }
  }

  private func descriptors(of provider: String) -> Set<String> {
    let bases = (try? source.home.library.load(provider))?.bases ?? []
    return Set(bases + [source.home.library.path(of: provider)].compactMap(\.self))
  }

  package func isAdded(_ provider: String) -> Bool { added.contains { $0.provider == provider } }

  /// Returns a provider by its name, with its servers if a file of the user or the administrator describes it.
  package func provider(named name: String) -> Match? {
    let known = added.first { $0.provider == name }
    guard let found = known ?? (try? source.home.library.load(name)).map(candidate) else { return nil }
    let servers = found.isShipped ? [] : found.agreement.servers(otherThan: nil)
    return .one(name, isAdded: found.isAdded, servers: servers)
  }

  /// Returns the providers whose descriptors name an issuer, the added ones first.
  package func providers(ofIssuer issuer: String) -> [String] {
    func trimmed(_ text: String) -> Substring { text.hasSuffix("/") ? text.dropLast() : text[...] }
    let name = trimmed(issuer)
    let named = files.filter { $0.text.mentions(String(name)) }.map(\.identifier).filter { provider in
      let literal = (try? source.home.library.load(provider))?.descriptor.issuer?.literal
      return literal.map(trimmed) == name
    }
    return named.filter(isAdded) + named.filter { !isAdded($0) }
  }

  /// Returns the values with which a shipped provider takes the entry's host; `nil` if no shipped provider does.
  package func variables(hosting entry: ImportEntry) -> [String: String]? {
    guard let provider = entry.hostedProvider,
      let loaded = try? source.home.library.load(provider), source.isShipped(loaded),
      let variable = loaded.descriptor.variable("host"), variable.accepts(entry.host)
    else { return nil }
    return [variable.name: entry.host]
  }

  /// The hosts for which git gets the tokens of an added or a shipped provider.
  package var gitHosts: [String] {
    let own = added.flatMap { $0.agreement.claims ?? [] }
    let shipped = files.filter { $0.text.mentions("git:") }.compactMap { candidate($0.identifier) }
    return Set((own + shipped.flatMap { $0.agreement.claims ?? [] }).filter { $0.helper == .git }.map(\.host)).sorted()
  }

  /// `HUGGING_FACE_TOKEN` belongs to `hugging-face`. A variable's name does not name a server.
  private func provider(ofVariable variable: String) -> Match? {
    let names = Set(added.map(\.provider)).union(source.knownProviders()).filter { provider in
      let start = String(provider.map { $0.isLetter || $0.isNumber ? $0 : "_" }).uppercased() + "_"
      return variable.hasPrefix(start) && Self.endings.contains(String(variable.dropFirst(start.count)))
    }
    guard let name = names.first, names.count == 1 else { return names.isEmpty ? nil : .several(names.sorted()) }
    guard let candidate = added.first(where: { $0.provider == name }) ?? candidate(name) else { return nil }
    return .one(name, isAdded: candidate.isAdded, servers: candidate.agreement.servers(otherThan: nil))
  }

  /// Returns the provider whose programs read all of these variables: an added one, or else a shipped one.
  private func provider(ofVariables names: [String]) -> Match? {
    let candidates = files.filter { $0.text.mentions(names[0]) }.compactMap { file -> Candidate? in
      let variables = (try? source.home.library.load(file.identifier))?.descriptor.environment.values.flatMap(\.self)
      guard let variables, names.allSatisfy(variables.contains) else { return nil }
      return added.first { $0.provider == file.identifier } ?? candidate(file.identifier)
    }
    let known = candidates.filter(\.isAdded)
    let rest = known.isEmpty ? candidates : known
    guard let only = rest.first, rest.count == 1 else { return rest.isEmpty ? nil : .several(rest.map(\.provider)) }
    let servers = only.isShipped ? [] : only.agreement.servers(otherThan: nil)
    return .one(only.provider, isAdded: only.isAdded, servers: servers)
  }

  private static let endings: Set = [
    "TOKEN", "KEY", "PAT", "PASSWORD", "SECRET", "API_KEY", "API_TOKEN", "ACCESS_TOKEN", "SECRET_KEY",
  ]

  private func provider(ofHost host: String) -> Match? {
    let domain = host.split(separator: ".").suffix(2).joined(separator: ".")
    let named = files.filter { $0.text.mentions(domain) && !isLeftOver($0.identifier) }
      .compactMap { candidate($0.identifier) }.filter { $0.agreement.names(host) }
    // An added provider has the variables that the user gave, so its defaults do not count.
    let others = named.filter { other in !added.contains { $0.provider == other.provider } }
    let candidates = added.filter { $0.agreement.names(host) } + others
    let shipped = named.filter(\.isShipped) + hidden.filter { $0.agreement.names(host) }
    let known = shipped.flatMap { $0.agreement.servers(otherThan: host) }
    func isCertain(_ candidate: Candidate) -> Bool {
      guard candidate.isShipped || candidate.isPlain else {
        // The user's own descriptor could publish the token of a shipped provider at that provider's own server.
        return shipped.isEmpty && candidate.agreement.servers(otherThan: host).isEmpty
      }
      // With other variables, a login may use other servers than the defaults name beside the host.
      return !candidate.isAdded || candidate.agreement.servers(otherThan: host, [.endpoints]).allSatisfy(known.contains)
    }
    let certain = candidates.first { $0.isShipped && isCertain($0) } ?? candidates.first(where: isCertain)
    if let certain { return .one(certain.provider, isAdded: certain.isAdded, servers: []) }
    guard let only = candidates.first, candidates.count == 1 else {
      return candidates.isEmpty ? another(among: named) : .several(candidates.map(\.provider))
    }
    // Behind the server of a shipped provider, the own descriptor can name any address there.
    let isOwn = !only.isShipped && !shipped.isEmpty
    return .one(only.provider, isAdded: only.isAdded, servers: only.agreement.servers(otherThan: isOwn ? nil : host))
  }

  /// Returns the only provider of the host's defaults, if it is a shipped one that was added for another host.
  private func another(among named: [Candidate]) -> Match? {
    guard let base = named.first, named.count == 1, base.isShipped,
      let registration = try? source.accountsIfAny()?.registration(of: base.provider),
      let variables = (try? source.home.library.load(base.provider))?.descriptor.variables
    else { return nil }
    let moved = variables.first { variable in
      variable.format == .hostname && variable.defaultValue != nil
        && ![nil, variable.defaultValue].contains(registration.variables[variable.name])
    }
    return moved?.defaultValue.map { .another(base.provider, host: $0) }
  }

  /// The shipped descriptors behind files of the user or the administrator with the same name.
  private lazy var hidden = source.knownProviders().compactMap { provider in
    let shipped = source.home.shippedLibrary
    guard let path = shipped.path(of: provider), path != source.home.library.path(of: provider) else {
      return nil as Candidate?
    }
    return candidate(provider, in: shipped)
  }

  /// Whether a descriptor is only what credmgr writes for a further host, without its provider.
  private func isLeftOver(_ provider: String) -> Bool { !isAdded(provider) && Self.isPlain(provider, source) }

  /// Whether a descriptor is word for word what credmgr writes for a further host of a shipped provider.
  private static func isPlain(_ provider: String, _ source: CredentialSource) -> Bool {
    guard let loaded = try? source.home.library.load(provider), loaded.bases.count == 1,
      let base = loaded.bases.first?.split(separator: "/").last?.dropLast(".yaml".count),
      let shipped = try? source.home.library.load(String(base)), source.isShipped(shipped),
      let addition = try? source.addition(shipped: String(base), as: provider), addition.file != nil
    else { return false }
    return !source.hasOtherDescriptor(than: addition)
  }

  private func candidate(_ provider: String, in library: DescriptorLibrary? = nil) -> Candidate? {
    guard let loaded = try? (library ?? source.home.library).load(provider) else { return nil }
    // Logins with a key file or a password get their tokens themselves.
    let grants = loaded.descriptor.grants
    guard grants.isEmpty || grants.contains(where: { $0.traits.brought == nil }) else { return nil }
    return candidate(loaded)
  }

  private func candidate(_ loaded: DescriptorLibrary.Loaded) -> Candidate {
    Candidate(
      provider: loaded.descriptor.identifier, isAdded: false, isShipped: source.ownFiles(of: loaded).isEmpty,
      agreement: Agreement(Client(unregistered: loaded.descriptor)))
  }

  private func readFiles() -> [(identifier: String, text: FileText)] {
    source.knownProviders().compactMap { identifier in
      guard let path = source.home.library.path(of: identifier), let bytes = try? Home.descriptor(at: path) else {
        return nil
      }
      return (identifier, FileText(bytes))
    }
  }
}

extension Agreement {
  /// Whether helpers return tokens for the host, or tokens may be sent to it.
  fileprivate func names(_ host: String) -> Bool {
    claims?.contains { $0.host == host } == true
      || [.presented, .endpoints].contains { texts($0).contains("https://" + host) }
      || host.hasPrefix("127.0.0.1:") && texts(.presented).contains("http://" + host)
  }

  /// The servers that may get a token, without the host and its subdomains.
  fileprivate func servers(otherThan host: String?, _ kinds: [Kind] = Kind.ofOrigins) -> [String] {
    let own = host.flatMap { try? URI(parsing: "https://" + $0) }
    let origins = Set(kinds.flatMap(texts)).filter { own?.isRelated(toPattern: $0) != true }
    return Set(origins.map(Self.withoutScheme)).subtracting([host ?? ""]).sorted()
  }
}

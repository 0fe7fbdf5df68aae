import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// Finds the provider of a host that another tool names: an added one, or else a descriptor whose defaults name it.
package final class ProvidersOfHosts {
  package struct Match: Sendable, Equatable {
    package let provider: String
    package let isAdded: Bool
  }

  private let source: CredentialSource
  private let added: [(provider: String, agreement: Agreement)]
  private lazy var files = readFiles()
  private var found: [String: Match?] = [:]

  package init(_ source: CredentialSource) throws(CredentialError) {
    self.source = source
    var added: [(provider: String, agreement: Agreement)] = []
    let accounts = try source.accountsIfAny()
    for provider in try accounts?.addedProviders() ?? [] {
      // A damaged registration must not hide the others.
      guard let agreement = (try? accounts?.registration(of: provider))?.agreement else { continue }
      added.append((provider, agreement))
    }
    self.added = added.sorted { $0.provider < $1.provider }
  }

  package func provider(of entry: ImportEntry) -> Match? {
    if !entry.host.isEmpty { return provider(ofHost: entry.host) }
    guard let variable = entry.variable else { return nil }
    // `HUGGING_FACE_TOKEN` belongs to `hugging-face`.
    let names = Set(added.map(\.provider)).union(source.knownProviders()).filter { provider in
      let start = String(provider.map { $0.isLetter || $0.isNumber ? $0 : "_" }).uppercased() + "_"
      return variable.hasPrefix(start)
    }
    return names.max { $0.count < $1.count }.map(match)
  }

  /// The hosts for which git gets the tokens of an added or a shipped provider.
  package var gitHosts: [String] {
    let own = added.flatMap { $0.agreement.claims ?? [] }
    let shipped = files.filter { $0.text.mentions("git:") }.compactMap { client($0.identifier) }
    return Set((own + shipped.flatMap { Agreement($0).claims ?? [] }).filter { $0.helper == .git }.map(\.host)).sorted()
  }

  private func match(_ provider: String) -> Match {
    Match(provider: provider, isAdded: added.contains { $0.provider == provider })
  }

  private func provider(ofHost host: String) -> Match? {
    if let known = found[host] { return known }
    let result = search(host)
    found[host] = .some(result)
    return result
  }

  private func search(_ host: String) -> Match? {
    let isNamed = { (agreement: Agreement) in
      agreement.claims?.contains { $0.host == host } == true
        || [.presented, .endpoints].contains { agreement.texts($0).contains("https://" + host) }
        || host.hasPrefix("127.0.0.1:") && agreement.texts(.presented).contains("http://" + host)
    }
    if let own = added.first(where: { isNamed($0.agreement) }) { return match(own.provider) }
    let domain = host.split(separator: ".").suffix(2).joined(separator: ".")
    return files.first { identifier, text in
      text.mentions(domain) && client(identifier).map { isNamed(Agreement($0)) } == true
    }.map { match($0.identifier) }
  }

  private func client(_ provider: String) -> Client? {
    (try? source.home.library.load(provider)).map { Client(unregistered: $0.descriptor) }
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

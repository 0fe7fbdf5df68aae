import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform

/// The descriptors shipped with the program, and the administrator's. Decoding all of them would take longer than the
/// rest of a login, so it decodes only those whose text contains the host.
final class ShippedDescriptors {
  private let library: DescriptorLibrary?
  private let shippedLibrary: DescriptorLibrary?
  private let own: String
  private lazy var files = readFiles()
  private var decoded: [String: OtherProviders.Provider?] = [:]

  init(_ home: Home?, than own: String) {
    (library, shippedLibrary, self.own) = (home?.installedLibrary, home?.shippedLibrary, own)
  }

  /// The administrator's file for this provider must not count as another provider.
  private func library(with identifier: String) -> DescriptorLibrary? {
    identifier == own ? shippedLibrary : library
  }

  private func readFiles() -> [(identifier: String, text: FileText)] {
    let names = (library?.directories ?? []).flatMap { (try? File.names(in: $0)) ?? [] }
    return Set(names).sorted().filter { $0.hasSuffix(".yaml") }.compactMap { name in
      let identifier = String(name.dropLast(".yaml".count))
      guard let path = library(with: identifier)?.path(of: identifier), let bytes = try? Home.descriptor(at: path)
      else { return nil }
      return (identifier, FileText(bytes))
    }
  }

  func providers(near uris: [URI?]) -> [OtherProviders.Provider] {
    let domains = Set(uris.flatMap { $0?.domains ?? [] })
    if domains.isEmpty { return [] }
    return files.compactMap { identifier, text in
      // A base descriptor may contain the host.
      guard text.mentions("extends:") || domains.contains(where: text.mentions) else { return nil }
      if let known = decoded[identifier] { return known }
      let descriptor = try? library(with: identifier)?.load(identifier).descriptor
      let provider = descriptor.map { OtherProviders.Provider($0.identifier, Client(unregistered: $0)) }
      decoded[identifier] = .some(provider)
      return provider
    }
  }
}

extension Client {
  var issuer: String? { descriptor.issuer.flatMap { try? $0.filled(values()) } }

  var deviceHosts: [String] { descriptor.device.hosts.compactMap { try? $0.filled(values()) } }

  /// The page at which the user makes a key.
  var keyPage: URI? { descriptor.key?.page.flatMap { try? URI(parsing: $0) } }

  /// The page at which the user registers a client.
  var registerPage: URI? {
    descriptor.client.register.flatMap { try? URI(parsing: $0) }.flatMap {
      ["https", "http"].contains($0.scheme) ? $0 : nil
    }
  }

  func server(_ kind: EndpointKind) -> URI? { try? descriptor.endpoints[kind]?.url.filled(values()) }

  /// Returns the variables in an origin if the user, not the descriptor, set their values; otherwise `nil`.
  func given(_ written: String) -> [String]? {
    let names = (try? Template(parsing: written))?.names ?? []
    let areGiven = names.allSatisfy { variables[$0] != nil && variables[$0] != descriptor.variable($0)?.defaultValue }
    return names.isEmpty || !areGiven ? nil : names
  }
}

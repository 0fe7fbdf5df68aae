import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// The source of a descriptor that was made from metadata, as its installed file says.
package struct KnownMetadata: Sendable {
  package let address: String  // The address that the user gave: an issuer's or a resource's.
  package let issuer: String?
  package let text: String

  private static let beginnings = [
    "# Made from the metadata of the resource ", "# Made for the resource ", "# Made from the metadata of ",
  ]

  /// Reads an installed file; `nil` if it was not made from metadata.
  init?(installed bytes: [UInt8], issuer: String?) {
    text = String(decoding: bytes, as: UTF8.self)
    guard let line = text.linesByScalars.first,
      let place = Self.beginnings.firstIndex(where: { line.hasPrefix($0) })
    else { return nil }
    let rest = line.dropFirst(Self.beginnings[place].count)
    var named = String(rest.prefix { $0 != " " })
    if named.hasSuffix(",") { named.removeLast() }
    self.issuer = issuer
    address = place < 2 ? named : issuer ?? named
  }
}

extension CredentialSource {
  /// The source of a provider's descriptor in the user's directory; `nil` if it was not made from metadata.
  package func knownMetadata(of provider: String) -> KnownMetadata? {
    let path = home.userProviders + "/" + provider + ".yaml"
    let issuer = (try? home.library.load(provider))?.descriptor.issuer?.literal
    return (try? home.readDescriptor(path))?.flatMap { KnownMetadata(installed: $0, issuer: issuer) }
  }

  /// Reads the metadata again, and refuses it if it no longer announces PKCE (RFC 9700, 2.1.1).
  package func discoverAgain(_ known: KnownMetadata, as provider: String) throws(CredentialError) -> Discovery {
    let found = try discoverAnew(known, as: provider)
    let announced = DiscoveredDescriptor.announcedProofKey
    let isLost = known.text.linesByScalars.contains(announced) && !found.text.linesByScalars.contains(announced)
    if isLost, found.addition.descriptor.grants.contains(where: \.traits.redirects) {
      throw .discovery(.lostProofKey(provider: provider, offered: found.otherProofKeys), issuer: known.address)
    }
    return found
  }

  /// If a resource has several authorization servers, keeps the user's choice.
  private func discoverAnew(_ known: KnownMetadata, as provider: String) throws(CredentialError) -> Discovery {
    do throws(CredentialError) { return try discover(known.address, as: provider) } catch {
      guard case .discovery(.severalServers(let servers), _) = error, let issuer = known.issuer,
        servers.contains(issuer)
      else { throw error }
      return try discover(known.address, as: provider, from: issuer)
    }
  }
}

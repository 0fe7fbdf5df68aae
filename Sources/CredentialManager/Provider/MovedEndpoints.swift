import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

// Endpoints that a server moved. Its metadata says where they are now (RFC 8414, 1).
extension CredentialSource {
  /// Runs an exchange. If its endpoint no longer exists, reads the metadata from which the descriptor was made,
  /// and repeats the exchange once at the new address. Reads old metadata again after the exchange, which must not wait
  /// for it.
  func followingMetadata<Result>(
    of provider: String, _ exchange: () throws(CredentialError) -> Result
  ) throws(CredentialError) -> Result {
    do throws(CredentialError) {
      let result = try exchange()
      renewMetadata(of: provider)
      return result
    } catch {
      guard error.saysEndpointIsGone, takesMovedEndpoints(of: provider) else { throw error }
      return try exchange()
    }
  }

  private static let metadataLifetime = Duration.days(7)

  private func renewMetadata(of provider: String) {
    let path = home.userProviders + "/" + provider + ".yaml"
    let now = clock.now()
    guard hasNetwork, let modified = File.modified(path), now - modified > Self.metadataLifetime,
      knownMetadata(of: provider) != nil
    else { return }
    // A server that does not answer must not delay each refresh, so this try counts in any case.
    try? File.setModified(path, now)
    if takesMovedEndpoints(of: provider) { try? File.setModified(path, now) }
  }

  /// Writes new addresses of the endpoints into the installed file, and keeps the rest, which the user may have
  /// changed. Returns `false` if the metadata has none, or if they need consent.
  private func takesMovedEndpoints(of provider: String) -> Bool {
    guard let known = knownMetadata(of: provider), let old = try? descriptor(provider).descriptor,
      let new = try? discoverAgain(known, as: provider).addition.descriptor, new.issuer == old.issuer
    else { return false }
    var text = known.text
    // A registration belongs to its endpoint.
    for (kind, endpoint) in new.endpoints where kind != .registration {
      let (before, after) = (old.endpoints[kind]?.url.template.text ?? "", endpoint.url.template.text)
      if !before.isEmpty, before != after { text = text.exchangingAddress(before, for: after) }
    }
    guard text != known.text,
      let addition = try? addition(Array(text.utf8), named: provider + ".yaml", as: nil)
    else { return false }
    do throws(CredentialError) {
      try add(
        addition, clientIdentifier: nil, clientSecret: nil, variables: [:], replaces: true,
        confirms: { _, _, _ in false })
      return true
    } catch { return false }
  }
}

extension CredentialError {
  /// Whether nothing answers at the address of an endpoint, so that it may have another one now.
  fileprivate var saysEndpointIsGone: Bool {
    switch self {
    case .oauth(.redirected, _): true
    case .oauth(.refused(_, let response), _): [404, 405, 410].contains(response.status ?? 0)
    default: false
    }
  }
}

extension String {
  /// Exchanges an address outside of comments, but not one that only begins with it.
  fileprivate func exchangingAddress(_ before: String, for after: String) -> String {
    linesByScalars.map { line in
      guard let place = line.firstPlace(of: before), !line[..<place.lowerBound].contains("#") else { return line }
      let rest = line[place.upperBound...]
      guard rest.first.map({ " \"',}".contains($0) }) ?? true else { return line }
      return line[..<place.lowerBound] + after + rest
    }.joined(separator: "\n")
  }
}

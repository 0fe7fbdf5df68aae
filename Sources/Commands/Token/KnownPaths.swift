import CredentialManager
import Descriptors

/// What may be shown of a URL's path: the pieces that a descriptor or the person wrote. A token that a descriptor puts
/// into a path is none of them.
struct KnownPaths {
  // RFC 8414, 3 and 5; OpenID Connect Discovery 1.0, 4.
  private var pieces: Set<Substring> = [".well-known", "openid-configuration", "oauth-authorization-server"]

  /// - Parameter typed: what the person typed, URLs among it.
  init(_ source: CredentialSource, typed: [String]) {
    for text in typed { add(text) }
    for provider in source.knownProviders() {
      guard let descriptor = (try? source.home.library.load(provider))?.descriptor else { continue }
      for endpoint in descriptor.endpoints.values { add(endpoint.url.text) }
      // A variable may stand for a whole URL, or for an institution in it.
      let variables = (try? source.accountsIfAny()?.registration(of: provider)?.variables) ?? [:]
      for variable in descriptor.variables where !variable.isSecret {
        if let value = variables[variable.name] { add(value) }
      }
    }
  }

  /// Takes the pieces of a URL, or of a path.
  mutating func add(_ text: String) {
    pieces.formUnion(text.prefix { $0 != "?" }.split(separator: "/").filter { !$0.contains("{") })
  }

  /// The path with a mark in the place of what is not known.
  func masked(_ path: String) -> String {
    path.split(separator: "/", omittingEmptySubsequences: false)
      .map { $0.isEmpty || pieces.contains($0) ? String($0) : "…" }.joined(separator: "/")
  }
}

import CredmgrHTTP
import CredmgrYAML

extension DescriptorDecoder {
  /// Reads a redirect. Users register the redirect and agree to it as one text. So a placeholder in a redirect stands
  /// for one variable or for the client identifier.
  mutating func redirect(_ node: Node) -> URLTemplate? {
    if node.text == "oob" { return URLTemplate(Template(literal: "oob")) }
    guard let url = url(node, names: [], anyScheme: true, isShown: true) else { return nil }
    for case .place(let terms) in url.template.parts {
      guard terms.count == 1, case .name(let name) = terms[0] else {
        add(.computedRedirect, at: node.place)
        continue
      }
      // Elsewhere `redirect_uri` stands for the redirect, and responses supply kept fields.
      let isKnown = ["scope", "redirect_uri"].contains(name) || definedNames.contains(name)
      if isKnown, !variables.contains(where: { $0.name == name }) {
        add(.unknownTemplateName(name, suggestion: nil), at: node.place)
      }
    }
    if let uri = standardURI(of: url), uri.scheme == "http", !uri.isLoopback {
      add(.insecureURL(uri.text), at: node.place)
    }
    return url
  }

  /// The redirect with the defaults of its variables, or `nil` if one has no default.
  private func standardURI(of url: URLTemplate) -> URI? {
    try? url.anyScheme { name in variables.first { $0.name == name }?.defaultValue }
  }

  /// Checks logins that accept responses without `state`: only PKCE protects them (RFC 9700, 2.1). They are
  /// rejected if a response may come from another application (RFC 8252, 7.1).
  mutating func checkProtection(_ root: Node, _ descriptor: Descriptor) {
    guard let page = descriptor.endpoints[.authorization] else { return }
    let hidesState = page.response.fields[.state]?.paths.isEmpty == true
    guard descriptor.state == .optional || hidesState else { return }
    let place = root["state"]?.place ?? root["endpoints"]?["authorization"]?.place ?? root.place
    let uri = standardURI(of: descriptor.redirect)
    let isWeb = uri.map { ["https", "http", "urn"].contains($0.scheme) } ?? true
    if !isWeb, descriptor.grants.contains(where: { $0.traits.responseType != nil }) {
      add(.unprotectedState(.scheme), at: place)
      return
    }
    // A malicious page could send the browser back with its own response; the receiver rejects all others.
    if descriptor.grants.contains(.authorizationCode), descriptor.pkce == .none {
      add(.unprotectedState(.noProofKey), at: place, severity: .warning)
    }
    if descriptor.grants.contains(.implicit), uri?.isLoopback == true {
      add(.unprotectedState(.implicit), at: place, severity: .warning)
    }
  }
}

import CredmgrHTTP
import CredmgrYAML

/// A name under a `keep`, before decoding.
struct KeptName {
  let name: String
  let place: Place
  var isSecret = false

  static func all(in root: Node) -> [KeptName] {
    let endpoints = root["endpoints"]?.entries?.map(\.value) ?? []
    return ([root] + endpoints).compactMap { $0["response"]?["keep"] }.flatMap { keep -> [KeptName] in
      if let entries = keep.entries {
        return entries.filter { !$0.value.isNull }.map {
          KeptName(name: $0.key, place: $0.keyPlace, isSecret: $0.value["secret"]?.boolean == true)
        }
      }
      return DescriptorDecoder.elements(of: keep).compactMap { element in
        element.text.map { KeptName(name: $0, place: element.place) }
      }
    }
  }
}

// Keeps secrets out of a browser's address bar, a terminal and a list of hosts.
extension DescriptorDecoder {
  /// The engine's values that only the provider's endpoints may see.
  static let secretNames = Set(endpointNames).subtracting(pageNames)
  /// The engine's values for the page on which a user enters a device's code.
  static let pageNames = ["user_code", "verification_uri"]

  mutating func refuseSecrets(_ names: [String], at place: Place) {
    for name in names where isSecret(name) { add(.secretInAddress(name), at: place) }
  }

  /// With `request_object`, the browser's address contains the header of the client's JWT (RFC 9101, 5).
  mutating func checkRequestObject(_ descriptor: Descriptor) {
    guard descriptor.signsRequests, let place = root["assertion"]?["header"]?.place else { return }
    for rule in descriptor.assertion?.header ?? [] { refuseSecrets(rule.value?.names ?? [], at: place) }
  }

  private func isSecret(_ name: String) -> Bool {
    if Self.secretNames.contains(name) { return true }
    return variables.contains { $0.name == name && $0.isSecret } || kept.contains { $0.name == name && $0.isSecret }
  }

  /// Rejects kept fields with a variable's name: a response would choose a host that only the user may choose.
  mutating func refuseKeptVariables(_ names: [String]) {
    for field in kept where names.contains(field.name) && variables.contains(where: { $0.name == field.name }) {
      add(.keptVariable(field.name), at: field.place)
    }
  }

  /// Warns about a field that may supply a whole host, or a host except for one label, unless a pattern limits the
  /// field to related hosts.
  mutating func checkBounds(_ descriptor: Descriptor) {
    let hosts = [descriptor.hosts, descriptor.git?.hosts, descriptor.docker?.hosts, descriptor.kubectl?.hosts]
    let endpoints = descriptor.endpoints.values.map(\.url.template)
    for template in endpoints + hosts.flatMap({ $0 ?? [] }) {
      let parts = template.origin.parts
      for (index, part) in parts.enumerated() {
        guard case .place(let terms) = part else { continue }
        let rest = parts[(index + 1)...].map { if case .literal(let text) = $0 { text } else { "" } }.joined()
        let isFixed = rest.prefix { $0 != ":" }.split(separator: ".").count > 1
        for field in kept where !isFixed && terms.contains(where: { $0.names.contains(field.name) }) {
          let patterns = descriptor.patterns(ofKept: field.name).compactMap(Pattern.init)
          let isAny = Self.strangers.contains { host in patterns.allSatisfy { $0.matches(host) } }
          guard isAny, descriptor.variable(field.name) == nil else { continue }
          add(.unboundedHost(field.name), at: field.place, severity: .warning)
        }
      }
    }
  }

  private static let strangers: [String] = {
    let names = ["", ".example", "-7.example", ".com", ".net", ".org", ".io"].map { "unrelated\($0)" }
    return (names + ["203.0.113.7"]).flatMap { [$0, "https://\($0)", "https://\($0)/", "https://\($0)/x"] }
  }()

  /// Checks that a device's page belongs to the provider: it must be at one of its endpoints or come from its response.
  mutating func checkDevicePage(_ descriptor: Descriptor) {
    guard let node = root["device"]?["verification_uri_complete"],
      let page = descriptor.device.verificationURIComplete, let uri = try? filled(page)
    else { return }
    // Values that are still open are checked when they are filled in.
    let urls = descriptor.endpoints.filter { !$0.key.leg.isPublic }.values.map(\.url)
    guard page.hostPlaces.isEmpty,
      urls.allSatisfy({ url in url.hostPlaces.allSatisfy { $0.names.allSatisfy(isFixed) } })
    else { return }
    if !urls.contains(where: { (try? filled($0))?.origin == uri.origin }) {
      add(.foreignPage(uri.origin), at: node.place)
    }
  }

  private func isFixed(_ name: String) -> Bool { variables.contains { $0.name == name && $0.defaultValue != nil } }
}

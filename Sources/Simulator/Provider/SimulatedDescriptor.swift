import CredmgrCommands
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrMessages
import CredmgrText

extension Descriptor {
  /// Returns the same provider on this machine: each endpoint is below `origin`, on a path that starts with its own
  /// host. Only `recipient` gets the token, and every variable has a value.
  func simulated(
    at origin: URI, tokensTo recipient: URI, _ settings: SimulationSettings
  ) throws(CommandError) -> Descriptor {
    var simulated = self
    simulated.variables = try variables(with: settings.variables)
    let filled = simulated
    func moved(_ template: Template, to server: URI = origin) -> Template {
      Self.moved(template, to: server.origin) { filled.variable($0)?.defaultValue }
    }
    for (kind, endpoint) in endpoints {
      var template = moved(endpoint.url.template)
      // A server never receives a fragment; the page's script would send a query instead.
      if endpoint.send == .fragment {
        template = (try? Template(parsing: String(template.text.prefix { $0 != "#" }))) ?? template
        simulated.endpoints[kind]?.send = .query
      }
      simulated.endpoints[kind]?.url = URLTemplate(template)
      // The simulator invents values for kept fields.
      for index in endpoint.response.keep.indices { simulated.endpoints[kind]?.response.keep[index].pattern = nil }
    }
    // The simulator signs ID tokens with its own key.
    if simulated.endpoints[.keySet] == nil, scope.requested.contains("openid"), idTokenAlgorithm?.isSymmetric != true {
      simulated.endpoints[.keySet] = Endpoint(.keySet, URLTemplate(Template(literal: origin.origin + "/jwks")))
    }
    // Without an issuer, nothing would verify them.
    if simulated.endpoints[.keySet] != nil, issuer == nil { simulated.issuer = Template(literal: origin.origin) }
    // The simulator also invents the keys and the client.
    simulated.key?.pattern = nil
    (simulated.client.identifierPattern, simulated.client.secretPattern) = (nil, nil)
    simulated.client.otherShapes = []
    simulated.key?.page = nil
    // The issuer, and the audience of assertions, must be on the server that receives assertions.
    simulated.issuer = issuer.map { moved($0, to: recipient) } ?? simulated.issuer
    for index in (assertion?.claims ?? []).indices where assertion?.claims[index].name == "aud" {
      simulated.assertion?.claims[index].value = assertion?.claims[index].value.map { moved($0, to: recipient) }
    }
    let authority = String(recipient.origin.dropFirst(recipient.scheme.count + "://".count))
    simulated.hosts = [Template(literal: authority)]
    // The provider's other hosts do not exist at `origin`.
    simulated.device.hosts = []
    if case .literal? = device.verificationURIComplete?.template.parts.first {
      simulated.device.verificationURIComplete = nil
    }
    let gitHosts = settings.gitHosts.isEmpty ? [authority] : settings.gitHosts
    simulated.git?.hosts = gitHosts.map { Template(literal: $0) }
    simulated.docker?.hosts = [Template(literal: authority)]
    let isGiven = redirect.template.names.contains { settings.variables[$0] != nil }
    if !settings.keepsRedirect, !isGiven, !simulated.redirectReachesThisMachine {
      simulated.ownRedirect = URLTemplate(Template(literal: Self.standardRedirect))
    }
    // A redirect to this machine does return the state, which ties an unrequested token to its login.
    if simulated.grants.contains(.implicit) { simulated.state = .required }
    // Remove unused parts, such as the host of an API, because adding the descriptor would warn about them.
    let library = DescriptorLibrary(directories: []) { _ in nil }
    for problem in library.check(Array(simulated.yaml.utf8), name: "").findings.map(\.problem) {
      switch problem {
      case .unusedVariable(let name): simulated.variables.removeAll { $0.name == name }
      case .unusedAssertion: simulated.assertion = nil
      default: continue
      }
    }
    return simulated
  }

  private static let standardRedirect = "http://127.0.0.1/callback"

  private func variables(with given: [String: String]) throws(CommandError) -> [Variable] {
    for (name, value) in given.sorted(by: { $0.key < $1.key }) {
      guard let variable = variable(name) else {
        throw .failed(ProviderError.unknownVariable(name, known: variables.map(\.name)).message)
      }
      guard variable.accepts(value) else {
        throw .failed(ProviderError.invalidVariable(variable, value: value).message)
      }
    }
    // A URL requires all its variables, even optional ones.
    let needed = Set(endpoints.values.flatMap(\.url.template.names))
    var filled: [Variable] = []
    for var variable in variables {
      if variable.isAtLogin {
        // The login prompts for this variable, whose value belongs to the invented key.
        variable.pattern = nil
        // The key file of the practice provider is enough for a login.
        if key?.file.isEmpty == false, !variable.isSecret, !variable.isAtExchange, !isInKeyFile(variable),
          variable.defaultValue == nil
        {
          let sample = variable.format == .integer ? "1" : "ada"
          variable.defaultValue = given[variable.name] ?? variable.choices.first ?? sample
        }
      } else if let value = given[variable.name] {
        variable.defaultValue = value
      } else if variable.defaultValue ?? "" == "", !variable.isOptional || needed.contains(variable.name) {
        guard let value = Self.samples(for: variable).first(where: variable.accepts) else {
          throw .usage(
            "the variable \(quoted(variable.name)) has no value" + (variable.help.map { ": " + $0 } ?? ""),
            hint: "\(add: "--set", "\(variable.name)=VALUE")")
        }
        variable.defaultValue = value
      }
      filled.append(variable)
    }
    return filled
  }

  private static func samples(for variable: Variable) -> [String] {
    let byFormat =
      switch variable.format {
      case .text: "sample"
      case .hostname: "sample.example"
      // Different addresses must stay different.
      case .url: "https://sample.example/" + variable.name
      case .redirect: standardRedirect
      case .integer: "1"
      }
    return variable.choices + [byFormat, "sample", "sample.example", "1", "12345", "123456", "SAMPLE", "a"]
  }

  /// Whether a redirect returns to this machine or shows a code.
  private var redirectReachesThisMachine: Bool {
    let values = { (name: String) in self.variable(name)?.defaultValue }
    let text = (try? redirect.template.filled(values)) ?? ""
    if Self.isOutOfBand(text) { return true }
    guard let uri = try? URI(parsing: text) else { return false }
    return uri.scheme == "http" && uri.isLoopback
  }

  static func isOutOfBand(_ redirect: String) -> Bool { redirect == "oob" || redirect == "urn:ietf:wg:oauth:2.0:oob" }

  /// Moves a URL template's host to the start of the path, so that endpoints of different hosts stay separate. Fills a
  /// variable at the start, which is a complete address.
  private static func moved(_ template: Template, to origin: String, _ value: (String) -> String?) -> Template {
    var parts = template.parts
    if case .place(let terms)? = parts.first {
      let address = terms.compactMap { if case .name(let name) = $0 { value(name) } else { nil } }.first
      if let address { parts[0] = .literal(address.hasSuffix("/") ? String(address.dropLast()) : address) }
    }
    if case .literal(let text)? = parts.first, let slashes = text.firstPlace(of: "://") {
      let rest = text[slashes.upperBound...].exchanging("[", for: "%5B").exchanging("]", for: "%5D")
      parts[0] = .literal(String(rest))
    }
    // Parse again, to join adjacent texts.
    let moved = Template([.literal(origin + "/")] + parts)
    return (try? Template(parsing: moved.text)) ?? template
  }
}

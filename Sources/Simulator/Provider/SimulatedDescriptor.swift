import Descriptors
import HTTP
import Text

extension Descriptor {
  /// The same provider on this machine: every endpoint below `origin`, on a path that begins with its own host; the
  /// token presented to nobody else; every variable with a value.
  ///
  /// - Throws: `SimulatorError.provider` for a value that its variable does not take, `.variableNeeded` where a value
  ///   is needed that nobody can guess.
  func simulated(at origin: URI, _ settings: SimulationSettings) throws(SimulatorError) -> Descriptor {
    var simulated = self
    simulated.variables = try variables(with: settings.variables)
    let filled = simulated
    for (kind, endpoint) in endpoints {
      let template = Self.moved(endpoint.url.template, to: origin.origin) {
        filled.variable($0)?.defaultValue
      }
      simulated.endpoints[kind]?.url = URLTemplate(template)
      // What stands in a fragment does not reach a server: the script of the page would ask with a query.
      if endpoint.send == .fragment {
        let text = template.text
        let route = text.firstIndex(of: "#").flatMap { try? Template(parsing: String(text[..<$0])) }
        simulated.endpoints[kind]?.url = URLTemplate(route ?? template)
        simulated.endpoints[kind]?.send = .query
      }
    }
    let authority = String(origin.origin.dropFirst(origin.scheme.count + "://".count))
    simulated.hosts = [Template(literal: authority)]
    let gitHosts = settings.gitHosts.isEmpty ? [authority] : settings.gitHosts
    simulated.git?.hosts = gitHosts.map { Template(literal: $0) }
    simulated.docker?.hosts = [Template(literal: authority)]
    let isGiven = redirect.template.names.contains { settings.variables[$0] != nil }
    if !settings.keepsRedirect, !isGiven, !simulated.redirectReachesThisMachine {
      simulated.redirect = URLTemplate(Template(literal: Self.standardRedirect))
    }
    // What nothing uses any more, such as the host of an API, would only be a warning to whoever adds the descriptor.
    let used = simulated.usedNames
    simulated.variables.removeAll { !used.contains($0.name) }
    return simulated
  }

  /// The names in all templates.
  private var usedNames: Set<String> {
    var templates = [redirect.template, oauth1.signatureMethod, oauth1.transport]
    templates += [oauth1.realm, device.verificationURIComplete, git?.username, docker?.username].compactMap { $0 }
    templates += (headerStyle.parameters + extraHeaders).map(\.value) + hosts + (git?.hosts ?? [])
    templates += docker?.hosts ?? []
    templates += [issuer, assertion?.key].compactMap { $0 }
    templates += ((assertion?.header ?? []) + (assertion?.claims ?? [])).compactMap(\.value)
    for endpoint in endpoints.values {
      templates.append(endpoint.url.template)
      templates += endpoint.parameters.compactMap(\.value) + endpoint.headers.map(\.value)
    }
    return Set(templates.flatMap(\.names))
  }

  private static let standardRedirect = "http://127.0.0.1/callback"

  private func variables(with given: [String: String]) throws(SimulatorError) -> [Variable] {
    for (name, value) in given.sorted(by: { $0.key < $1.key }) {
      guard let variable = variable(name) else {
        throw .provider(.unknownVariable(name, known: variables.map(\.name)))
      }
      guard variable.accepts(value) else { throw .provider(.invalidVariable(variable, value: value)) }
    }
    // An address does not come about without its values, also where they may stay empty.
    let needed = Set(endpoints.values.flatMap(\.url.template.names))
    var filled: [Variable] = []
    for var variable in variables {
      if let value = given[variable.name] {
        variable.defaultValue = value
      } else if variable.defaultValue ?? "" == "", !variable.isOptional || needed.contains(variable.name) {
        guard let value = Self.samples(for: variable).first(where: variable.accepts) else {
          throw .variableNeeded(variable)
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
      // Several addresses have to stay several.
      case .url: "https://sample.example/" + variable.name
      case .redirect: standardRedirect
      case .integer: "1"
      }
    return variable.choices + [byFormat, "sample", "sample.example", "1", "12345", "123456", "SAMPLE", "a"]
  }

  /// Whether a redirect comes back to this machine, or shows a code.
  private var redirectReachesThisMachine: Bool {
    let values = { (name: String) in self.variable(name)?.defaultValue }
    let text = (try? redirect.template.filled(values)) ?? ""
    if Self.isOutOfBand(text) { return true }
    guard let uri = try? URI(parsing: text) else { return false }
    return uri.scheme == "http" && uri.isLoopback
  }

  /// Whether a redirect means that the provider shows a code.
  static func isOutOfBand(_ redirect: String) -> Bool {
    redirect == "oob" || redirect == "urn:ietf:wg:oauth:2.0:oob"
  }

  /// A URL template with its host turned into the first part of the path, so that the endpoints of two hosts stay two.
  ///
  /// - Parameter value: what a place at the very beginning, which stands for a whole address, is filled with.
  private static func moved(_ template: Template, to origin: String, _ value: (String) -> String?) -> Template {
    var parts = template.parts
    if case .place(let terms)? = parts.first, let address = terms.compactMap({ $0.variable(value) }).first {
      parts[0] = .literal(address.hasSuffix("/") ? String(address.dropLast()) : address)
    }
    if case .literal(let text)? = parts.first, let slashes = text.firstPlace(of: "://") {
      let rest = text[slashes.upperBound...].exchanging("[", for: "%5B").exchanging("]", for: "%5D")
      parts[0] = .literal(String(rest))
    }
    // What a template is written as is a template again; the parts themselves cannot be put together from outside.
    let text = Template.text([.literal(origin + "/")] + parts)
    return (try? Template(parsing: text)) ?? template
  }
}

extension Template.Term {
  /// What a term that is a variable yields.
  fileprivate func variable(_ values: (String) -> String?) -> String? {
    if case .name(let name) = self { values(name) } else { nil }
  }
}

extension Template {
  /// The template as it is written in a descriptor.
  var text: String { Self.text(parts) }

  static func text(_ parts: [Part]) -> String {
    parts.map { part in
      switch part {
      case .literal(let text): Self.escaped(text)
      case .place(let terms): "{" + terms.map(Self.text).joined(separator: " || ") + "}"
      }
    }.joined()
  }

  private static func escaped(_ text: String) -> String {
    text.exchanging("{", for: "{{").exchanging("}", for: "}}")
  }

  private static func text(_ term: Term) -> String {
    switch term {
    case .name(let name): name
    case .literal(let text): "\"" + text.exchanging("\n", for: "\\n") + "\""
    case .call(let function, let terms):
      function.rawValue + "(" + terms.map(text).joined(separator: ", ") + ")"
    }
  }
}

import Commands
import Descriptors
import HTTP
import Text

extension Descriptor {
  /// The same provider on this machine: every endpoint below `origin`, on a path that begins with its own host; the
  /// token presented to nobody else; every variable with a value.
  func simulated(at origin: URI, _ settings: SimulationSettings) throws(CommandError) -> Descriptor {
    var simulated = self
    simulated.variables = try variables(with: settings.variables)
    let filled = simulated
    func moved(_ template: Template) -> Template {
      Self.moved(template, to: origin.origin) { filled.variable($0)?.defaultValue }
    }
    for (kind, endpoint) in endpoints {
      var template = moved(endpoint.url.template)
      // What stands in a fragment does not reach a server: the script of the page would ask with a query.
      if endpoint.send == .fragment {
        template = (try? Template(parsing: String(template.text.prefix { $0 != "#" }))) ?? template
        simulated.endpoints[kind]?.send = .query
      }
      simulated.endpoints[kind]?.url = URLTemplate(template)
      // What is kept is made up.
      for index in endpoint.response.keep.indices { simulated.endpoints[kind]?.response.keep[index].pattern = nil }
    }
    // Whom answers are from, and assertions are for, moves along.
    simulated.issuer = issuer.map(moved)
    for index in (assertion?.claims ?? []).indices where assertion?.claims[index].name == "aud" {
      simulated.assertion?.claims[index].value = assertion?.claims[index].value.map(moved)
    }
    let authority = String(origin.origin.dropFirst(origin.scheme.count + "://".count))
    simulated.hosts = [Template(literal: authority)]
    // A page at a host of the provider's is not at this one.
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
    // Here it does come back, and a token that arrives by itself is tied to the login.
    if simulated.grants.contains(.implicit) { simulated.state = .required }
    // What nothing uses any more, such as the host of an API, would only be a warning to whoever adds the descriptor.
    let library = DescriptorLibrary(directories: []) { _ in nil }
    for case .unusedVariable(let name) in library.check(Array(simulated.yaml.utf8), name: "").findings.map(\.problem) {
      simulated.variables.removeAll { $0.name == name }
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
    // An address does not come about without its values, also where they may stay empty.
    let needed = Set(endpoints.values.flatMap(\.url.template.names))
    var filled: [Variable] = []
    for var variable in variables {
      if let value = given[variable.name] {
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

  static func isOutOfBand(_ redirect: String) -> Bool { redirect == "oob" || redirect == "urn:ietf:wg:oauth:2.0:oob" }

  /// A URL template with its host turned into the first part of the path, so that the endpoints of two hosts stay two.
  /// A place at the very beginning stands for a whole address, and is filled.
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
    // Read again, so that texts side by side are one.
    let moved = Template([.literal(origin + "/")] + parts)
    return (try? Template(parsing: moved.text)) ?? template
  }
}

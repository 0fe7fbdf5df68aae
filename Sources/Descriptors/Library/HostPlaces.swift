import Text
import YAML

extension DescriptorLibrary.Loaded {
  /// Where the descriptor names a host that tokens or the client's secret may go to: the place of the template, or of
  /// the default of the variable that makes this host of it.
  package func place(ofHost host: String, _ hosts: (Template) -> [String]) -> Place? {
    for node in hostNodes {
      guard let text = node.text, let template = try? Template(parsing: text), hosts(template).contains(host) else {
        continue
      }
      if text.lowercased().firstPlace(of: host) != nil { return node.place }
      let defaults = template.names.compactMap { root["variables"]?[$0]?["default"] }
      let named = defaults.first { value in
        value.text.map { !$0.isEmpty && host.firstPlace(of: $0.lowercased()) != nil } ?? false
      }
      return named?.place ?? node.place
    }
    return nil
  }

  /// The endpoints first: those get the secret, too.
  private var hostNodes: [Node] {
    func list(_ node: Node?) -> [Node] { node.map { $0.elements ?? [$0] } ?? [] }
    let endpoints = root["endpoints"]?.entries?.compactMap { $0.value["url"] } ?? []
    return endpoints + list(root["hosts"]) + list(root["git"]?["hosts"]) + list(root["docker"]?["hosts"])
  }
}

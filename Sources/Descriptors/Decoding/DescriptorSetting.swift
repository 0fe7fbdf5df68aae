import CredmgrText
import CredmgrYAML

/// An effective value of a descriptor with its origin.
package struct DescriptorSetting: Sendable, Equatable {
  package enum Origin: Sendable, Equatable {
    case file(String, line: Int)
    case standard(specification: String)
  }

  package let key: String  // The keys from the outside in, joined by dots: `endpoints.token.url`.
  package let value: String  // The value as written; lists with commas.
  package let origin: Origin

  /// The defaults of the specifications for OAuth 2 logins, where no file sets a value.
  private static func standards(
    _ table: TableDescription, below path: String = ""
  ) -> [(key: String, value: String, specification: String)] {
    table.keys.flatMap { row in
      let key = path + row.name
      let own = row.specification.map { [(key, row.standard?.exchanging("`", for: "") ?? "", $0)] } ?? []
      return own + (row.shape.table.map { standards($0, below: key + ".") } ?? [])
    }
  }

  static func all(in root: Node) -> [DescriptorSetting] {
    var settings = written(root, at: [])
    let grant = root["grant"]?.text.flatMap(Grant.init(rawValue:))
    guard grant?.traits.hasOAuth2Defaults != false else { return settings }
    let identifier = root["provider"]?.text ?? "ID"
    for standard in standards(Descriptor.keys.description)
    where !settings.contains(where: { isAt(standard.key, $0.key) }) {
      settings.append(
        DescriptorSetting(
          key: standard.key, value: standard.value.exchanging("/ID", for: "/" + identifier),
          origin: .standard(specification: standard.specification)))
    }
    return settings
  }

  /// Whether a key has this standard value. A header style without a scheme has none.
  private static func isAt(_ standard: String, _ key: String) -> Bool {
    key == standard || (standard == "header_style.scheme" && key.hasPrefix("header_style."))
  }

  private static func written(_ node: Node, at path: [String]) -> [DescriptorSetting] {
    let value: String
    switch node.content {
    case .mapping(let entries):
      return entries.flatMap { path.isEmpty && $0.key == "extends" ? [] : written($0.value, at: path + [$0.key]) }
    case .sequence(let elements): value = elements.map { $0.text ?? "" }.joined(separator: ", ")
    case .scalar(let text, _): value = node.isNull ? "null" : text
    }
    let origin = Origin.file(node.place.source.name, line: node.place.line)
    return [DescriptorSetting(key: path.joined(separator: "."), value: value, origin: origin)]
  }
}

extension DescriptorLibrary {
  /// Every value with its file and line.
  package func settings(of identifier: String) throws(ProviderError) -> [DescriptorSetting] {
    DescriptorSetting.all(in: try tree(of: identifier))
  }
}

import Text
import YAML

/// A value that a descriptor has in the end, and where it is from.
package struct DescriptorSetting: Sendable, Equatable {
  package enum Origin: Sendable, Equatable {
    case file(String, line: Int)
    case standard(specification: String)
  }

  package let key: String  // From the outside in, joined by dots: `endpoints.token.url`.
  package let value: String  // As it is written; a list with commas.
  package let origin: Origin

  /// What a specification says for logins of OAuth 2 where no file says anything.
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
    guard root["grant"]?.text.flatMap(Grant.init(rawValue:))?.traits.binding != .signature else { return settings }
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

  /// A header style that is none of a scheme has no scheme.
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
  /// Every value with the file and the line that it is from.
  package func settings(of identifier: String) throws(ProviderError) -> [DescriptorSetting] {
    DescriptorSetting.all(in: try tree(of: identifier))
  }
}

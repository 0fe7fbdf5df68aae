import CredmgrText
import CredmgrYAML

extension Descriptor {
  /// The descriptor as YAML that credmgr can read again, without a base and without default values.
  package var yaml: String {
    let entries = Self.keys.write(self).entries ?? []
    return entries.flatMap { entry in entry.lines(indentation: "") }.joined(separator: "\n") + "\n"
  }
}

/// Nodes for writing only; they have no place.
extension Node {
  private static let nowhere = Place(source: Source(name: "", text: ""), line: 0, column: 0)

  static let null = Node.plain("null")

  static func text(_ text: String) -> Node { Node(.scalar(text, plain: false), at: nowhere) }

  static func plain(_ text: String) -> Node { Node(.scalar(text, plain: true), at: nowhere) }

  static func list(_ elements: [Node]) -> Node { Node(.sequence(elements), at: nowhere) }

  static func mapping(_ entries: [(key: String, value: Node)]) -> Node {
    Node(.mapping(entries.map { Entry(key: $0.key, keyPlace: nowhere, value: $0.value) }), at: nowhere)
  }

  /// The node to write so that merging it over `base` results in this node; keys that only `base` has are removed.
  func replacing(_ base: Node) -> Node {
    guard let below = base.entries, let above = entries else { return self }
    let changed = above.filter { base[$0.key] != $0.value }
      .map { ($0.key, base[$0.key].map($0.value.replacing) ?? $0.value) }
    return .mapping(changed + below.filter { self[$0.key] == nil }.map { ($0.key, .null) })
  }

  var inline: String {
    switch content {
    case .scalar(let text, let plain): plain ? text : Scalar.written(text)
    case .sequence(let elements): "[" + elements.map(\.inline).joined(separator: ", ") + "]"
    case .mapping(let entries):
      "{ " + entries.map { Scalar.written($0.key) + ": " + $0.value.inline }.joined(separator: ", ") + " }"
    }
  }
}

extension Node.Entry {
  fileprivate func lines(indentation: String) -> [String] {
    let start = indentation + Scalar.written(key) + ":"
    guard let entries = value.entries else { return [start + " " + value.inline] }
    if entries.isEmpty { return [start + " {}"] }
    return [start] + entries.flatMap { $0.lines(indentation: indentation + "  ") }
  }
}

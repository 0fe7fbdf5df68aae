import CredmgrYAML

extension Descriptor {
  /// The values of all keys that need consent when they change, by their path: the keys from the outside in, joined by
  /// dots. Leaves out values that equal the default.
  package var agreedValues: [String: String] {
    var values: [String: String] = [:]
    Self.keys.write(self).note(in: &values, at: "", Self.keys.notation.shape)
    // A leg that does not exist.
    for kind in EndpointKind.allCases where values["endpoints." + kind.rawValue] == "null" {
      values["endpoints." + kind.rawValue] = nil
    }
    return values
  }
}

extension Node {
  fileprivate func note(in values: inout [String: String], at path: String, _ shape: Shape?) {
    let table = shape?.table
    let node = table?.short.map { DescriptorTree.wrapped(self, as: $0) } ?? self
    guard let entries = node.entries else {
      values[path] = node.text.flatMap { $0 == "null" ? nil : $0 } ?? node.inline
      return
    }
    let keys = table?.keys ?? []
    for entry in entries {
      let key = keys.first { $0.name == entry.key }
      guard key?.change ?? .needsConsent == .needsConsent else { continue }
      entry.value.note(
        in: &values, at: path.isEmpty ? entry.key : path + "." + entry.key, key?.shape ?? shape?.element)
    }
  }
}

extension Shape {
  /// The form of each value of a mapping whose names are free.
  fileprivate var element: Shape? {
    switch self {
    case .mapping(let element, _), .either(_, .mapping(let element, _)): element
    default: nil
    }
  }
}

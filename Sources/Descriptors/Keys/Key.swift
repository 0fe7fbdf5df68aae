import CredmgrYAML

/// One key of the descriptor language: its property, its notation, and its text in the reference.
struct Key<Whole: Sendable>: Sendable {
  let description: KeyDescription
  /// Stores the value of a node that is not null; a faulty value leaves the default.
  let read: @Sendable (_ decoder: inout DescriptorDecoder, _ node: Node, _ whole: inout Whole) -> Void
  let write: @Sendable (Whole) -> Node?

  /// Creates key paths only when needed: creating all of them takes the runtime longer than reading a descriptor.
  init<Value>(
    _ name: String, at property: @autoclosure @escaping @Sendable () -> WritableKeyPath<Whole, Value> & Sendable,
    as notation: Notation<Value>,
    type: String? = nil, default standard: String? = nil, from specification: String? = nil, isRequired: Bool = false,
    isAlwaysWritten: Bool = false, change: ChangeRule = .needsConsent, means meaning: String, for neededBy: String
  ) {
    description = KeyDescription(
      name: name, shape: notation.shape, ownType: type, ownStandard: standard, specification: specification,
      change: change, meaning: meaning, neededBy: neededBy, isRequired: isRequired, isAlwaysWritten: isAlwaysWritten)
    read = { decoder, node, whole in if let value = notation.read(&decoder, node) { whole[keyPath: property()] = value }
    }
    write = { notation.write($0[keyPath: property()]) }
  }

  init<Value>(
    _ name: String, at property: @autoclosure @escaping @Sendable () -> WritableKeyPath<Whole, Value?> & Sendable,
    as notation: Notation<Value>,
    type: String? = nil, default standard: String? = nil, from specification: String? = nil,
    change: ChangeRule = .needsConsent, means meaning: String, for neededBy: String
  ) {
    description = KeyDescription(
      name: name, shape: notation.shape, ownType: type, ownStandard: standard, specification: specification,
      change: change, meaning: meaning, neededBy: neededBy)
    read = { decoder, node, whole in if let value = notation.read(&decoder, node) { whole[keyPath: property()] = value }
    }
    write = { $0[keyPath: property()].map(notation.write) }
  }

  /// Creates a key that is only checked here, because other keys read and write its value.
  init<Value>(
    checked name: String, as notation: Notation<Value>, type: String? = nil, default standard: String? = nil,
    from specification: String? = nil, means meaning: String, for neededBy: String
  ) {
    description = KeyDescription(
      name: name, shape: notation.shape, ownType: type, ownStandard: standard, specification: specification,
      meaning: meaning, neededBy: neededBy)
    read = { decoder, node, _ in _ = notation.read(&decoder, node) }
    write = { _ in nil }
  }
}

/// Whether a new value of a key needs consent after the user added the provider.
enum ChangeRule: Sendable {
  case needsConsent  // Every changed value needs consent: the rule of a key that does not name another rule.
  case compared  // The agreement has its own rule, which allows stronger values and known places.
  case harmless  // A text for the user, a time, a scope, an answer's format, or a limit on what the user types.
}

struct KeyDescription: Sendable {
  let name: String
  let shape: Shape
  var ownType: String?  // The type for the reference, in Markdown, if it differs from the shape's.
  var ownStandard: String?  // The default for the reference, in Markdown, if it differs from `initial`.
  var specification: String?  // The source of that default; `nil` for credmgr's own.
  var change = ChangeRule.needsConsent
  var meaning = ""
  var neededBy = ""
  var isRequired = false
  var isAlwaysWritten = false
  var initial: @Sendable () -> String? = { nil }  // The value without the key.

  var type: String { ownType ?? shape.type }

  var standard: String? { ownStandard ?? initial().flatMap { $0.isEmpty ? nil : "`\($0)`" } }
}

struct Table<Whole: Sendable>: Sendable {
  let name: String
  let initial: Whole
  let short: String?  // The key whose value may replace the whole mapping.
  let keys: [Key<Whole>]
  private let places: KeyPlaces
  private let finish: @Sendable (_ decoder: inout DescriptorDecoder, _ node: Node, _ whole: inout Whole) -> Void

  /// Creates a table; `finish` checks several keys together.
  init(
    _ name: String, _ initial: Whole, short: String? = nil, @Rows<Whole> keys: () -> [Key<Whole>],
    finish: @escaping @Sendable (_ decoder: inout DescriptorDecoder, _ node: Node, _ whole: inout Whole) -> Void = {
      _, _, _ in
    }
  ) {
    self.name = name
    self.initial = initial
    self.short = short
    let keys = keys()
    self.keys = keys
    places = KeyPlaces(keys.map(\.description.name))
    self.finish = finish
  }

  /// Reads a mapping, or returns `nil` if the node is not one.
  func read(_ decoder: inout DescriptorDecoder, _ node: Node) -> Whole? {
    var node = node
    if let short { node = DescriptorTree.wrapped(node, as: short) }
    guard let values = places.values(in: node, &decoder) else { return nil }
    var whole = initial
    for (key, value) in zip(keys, values) {
      if let value, !value.isNull {
        key.read(&decoder, value, &whole)
      } else if key.description.isRequired {
        decoder.add(.missingKey(key.description.name), at: node.place)
      }
    }
    finish(&decoder, node, &whole)
    return whole
  }

  func write(_ whole: Whole) -> Node {
    .mapping(
      keys.compactMap { key in
        guard let value = key.write(whole), key.description.isAlwaysWritten || value != key.write(initial) else {
          return nil
        }
        return (key.description.name, value)
      })
  }

  var description: TableDescription {
    let shape = { @Sendable key in places[key].map { keys[$0].description.shape } }
    return TableDescription(name: name, short: short, shape: shape) {
      keys.map { key in
        var row = key.description
        row.initial = { key.write(initial)?.text }
        return row
      }
    }
  }

  var notation: Notation<Whole> {
    let table = Shape.table { description }
    let instead = short.flatMap(description.shape)
    let shape = if let instead { Shape.either(instead, table) } else { table }
    return Notation(shape, read: { read(&$0, $1) }, write: { write($0) })
  }
}

/// The places of a table's keys by their names. Not generic, because the code for each table would take 17 KB.
private struct KeyPlaces: Sendable {
  private let names: [String]
  private let places: [String: Int]

  init(_ names: [String]) {
    self.names = names
    places = Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1, $0) })
  }

  subscript(key: String) -> Int? { places[key] }

  /// Returns the values of a mapping in the order of the keys, or `nil` if the node is not a mapping.
  func values(in node: Node, _ decoder: inout DescriptorDecoder) -> [Node?]? {
    guard decoder.entries(of: node) != nil, let entries = node.entries else { return nil }
    var values: [Node?] = Array(repeating: nil, count: names.count)
    var hasUnknown = false
    for entry in entries {
      if let place = places[entry.key] { values[place] = entry.value } else { hasUnknown = true }
    }
    if hasUnknown { decoder.checkKeys(node, names) }
    return values
  }
}

struct TableDescription: Sendable {
  let name: String
  let short: String?
  /// Returns the form of a key's value, or `nil` for an unknown key.
  let shape: @Sendable (_ key: String) -> Shape?
  /// Returns all keys. Decoding does not need their descriptions, which take longer to make than a descriptor to read.
  let rows: @Sendable () -> [KeyDescription]

  var keys: [KeyDescription] { rows() }
}

@resultBuilder enum Rows<Whole: Sendable> {
  static func buildExpression(_ row: Key<Whole>) -> Key<Whole> { row }
  static func buildBlock(_ rows: Key<Whole>...) -> [Key<Whole>] { rows }
}

/// The form of a value, for the schema.
indirect enum Shape: Sendable {
  case text, texts, boolean, identifier, headerName, headerValue
  case pattern(String, type: String)
  case choice([String])
  case template(of: [String])
  case choices([String])
  case url(except: Set<String>)
  case name(except: Set<String>)
  case mapping(of: Shape, names: Shape?)
  case either(Shape, Shape)
  case table(@Sendable () -> TableDescription)

  /// The table, if the value is a mapping with known keys or a short form of one.
  var table: TableDescription? {
    switch self {
    case .table(let table), .either(_, .table(let table)): table()
    default: nil
    }
  }

  var type: String {
    func quoted(_ words: [String]) -> String { words.map { "`\($0)`" }.joined(separator: ", ") }
    return switch self {
    case .text, .url, .headerValue, .either: "text"
    case .texts: "list"
    case .boolean: "`true`, `false`"
    case .identifier: "identifier"
    case .headerName, .name: "name"
    case .pattern(_, let type): type
    case .choice(let words): quoted(words)
    case .template(let words): quoted(words) + ", or a template"
    case .choices(let words): "list of " + quoted(words)
    case .mapping, .table: "mapping"
    }
  }
}

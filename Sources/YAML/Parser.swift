import CredmgrCYAML

/// Limits of the input, because strangers exchange descriptors. Larger files are not descriptors.
package enum Limits {
  package static let bytes = 256 * 1024
  static let depth = 32
  static let nodes = 20_000  // Counts the target of an alias each time, which stops "billion laughs".
}

/// The characters that end a line for libyaml, but not for editors or YAML 1.2 (5.4). A key could hide behind one, and
/// behind a carriage return that no line feed follows.
private let hiddenBreaks: [Unicode.Scalar] = ["\u{85}", "\u{2028}", "\u{2029}"]

extension Node {
  /// Parses a document and throws its first fault, but adds repeated keys to `duplicates` and uses their first value.
  package static func parse(
    bytes: [UInt8], name: String, duplicates: inout [YAMLError]
  ) throws(YAMLError) -> Node {
    // Some editors begin a file with U+FEFF, which is not part of the text (YAML 1.2, 5.2).
    let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    let text = String(validating: bytes, as: UTF8.self)
    let source = Source(name: name, text: text ?? "")
    let start = Place(source: source, line: 1, column: 1)
    guard bytes.count <= Limits.bytes else { throw YAMLError(.tooLarge(bytes: Limits.bytes), at: start) }
    guard text != nil else { throw YAMLError(.notUTF8, at: start) }
    // Almost no file contains a first byte of one.
    if bytes.contains(where: { [0x0D, 0xC2, 0xE2].contains($0) }) { try refuseHiddenBreaks(in: source) }
    var found: [YAMLError] = []
    // libyaml keeps the pointer passed to `yaml_parser_set_input_string`, so all its use is in this closure.
    let node = try unsafe bytes.withUnsafeBufferPointer { buffer throws(YAMLError) -> Node in
      var builder = unsafe TreeBuilder(events: EventStream(reading: buffer, of: source))
      let node = try builder.document()
      found = builder.duplicates
      return node
    }
    duplicates += found
    return node
  }

  private static func refuseHiddenBreaks(in source: Source) throws(YAMLError) {
    let scalars = source.text.unicodeScalars
    let hidden = scalars.indices.first { index in
      hiddenBreaks.contains(scalars[index])
        || scalars[index] == "\r" && scalars[index...].dropFirst().first != "\n"
    }
    if let index = hidden {
      throw YAMLError(.hiddenBreak(scalars[index]), at: Place(source: source, after: scalars[..<index]))
    }
  }

  /// Parses a document; a repeated key is an error like any other.
  package static func parse(bytes: [UInt8], name: String) throws(YAMLError) -> Node {
    var duplicates: [YAMLError] = []
    let node = try parse(bytes: bytes, name: name, duplicates: &duplicates)
    if let first = duplicates.first { throw first }
    return node
  }
}

/// One event of libyaml's parser, copied out of its memory.
private enum Event {
  case streamStart, streamEnd, documentStart, documentEnd
  case alias(String)
  case scalar(String, plain: Bool, anchor: String?)
  case sequenceStart(anchor: String?), sequenceEnd
  case mappingStart(anchor: String?), mappingEnd
}

/// The owner of a libyaml parser, whose C structure points into itself and so needs a fixed address.
@safe private struct EventStream: ~Copyable {
  private let parser: UnsafeMutablePointer<yaml_parser_t>
  private let source: Source

  init(reading buffer: UnsafeBufferPointer<UInt8>, of source: Source) {
    self.source = source
    unsafe parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
    unsafe parser.initialize(to: yaml_parser_t())
    _ = unsafe yaml_parser_initialize(parser)
    unsafe yaml_parser_set_input_string(parser, buffer.baseAddress, buffer.count)
    unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
  }

  deinit {
    unsafe yaml_parser_delete(parser)
    unsafe parser.deallocate()
  }

  mutating func next() throws(YAMLError) -> (event: Event, place: Place) {
    var event = unsafe yaml_event_t()
    // A failure returns no event that would have to be deleted.
    guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw failure }
    defer { unsafe yaml_event_delete(&event) }
    return (unsafe Self.copy(event), unsafe place(event.start_mark))
  }

  private func place(_ mark: yaml_mark_t) -> Place {
    Place(source: source, line: Int(mark.line) + 1, column: Int(mark.column) + 1)
  }

  private var failure: YAMLError {
    let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "out of memory"
    guard unsafe parser.pointee.error == YAML_READER_ERROR else {
      let place = place(unsafe parser.pointee.problem_mark)
      let beginning = source.line(place.line).unicodeScalars.prefix(place.column)
      let isTab = beginning.last == "\t" || beginning.first == "\t"
      return YAMLError(.syntax(isTab ? "a tab cannot indent a line; use spaces" : problem), at: place)
    }
    // libyaml gives no line for a forbidden character, but the number of bytes before it.
    let bytes = source.text.utf8.prefix(unsafe Int(parser.pointee.problem_offset))
    let before = String(decoding: bytes, as: UTF8.self).unicodeScalars
    return YAMLError(.syntax(problem), at: Place(source: source, after: before[...]))
  }

  private static func copy(_ event: yaml_event_t) -> Event {
    func text(_ pointer: UnsafeMutablePointer<yaml_char_t>?, _ length: Int? = nil) -> String? {
      guard let pointer = unsafe pointer else { return nil }
      guard let length else { return unsafe String(cString: pointer) }
      return unsafe String(decoding: UnsafeBufferPointer(start: pointer, count: length), as: UTF8.self)
    }
    switch unsafe event.type {
    case YAML_STREAM_START_EVENT: return .streamStart
    case YAML_DOCUMENT_START_EVENT: return .documentStart
    case YAML_DOCUMENT_END_EVENT: return .documentEnd
    case YAML_ALIAS_EVENT: return unsafe .alias(text(event.data.alias.anchor) ?? "")
    case YAML_SCALAR_EVENT:
      let scalar = unsafe event.data.scalar
      return unsafe .scalar(
        text(scalar.value, scalar.length) ?? "", plain: scalar.style == YAML_PLAIN_SCALAR_STYLE,
        anchor: text(scalar.anchor))
    case YAML_SEQUENCE_START_EVENT:
      return unsafe .sequenceStart(anchor: text(event.data.sequence_start.anchor))
    case YAML_SEQUENCE_END_EVENT: return .sequenceEnd
    case YAML_MAPPING_START_EVENT:
      return unsafe .mappingStart(anchor: text(event.data.mapping_start.anchor))
    case YAML_MAPPING_END_EVENT: return .mappingEnd
    default: return .streamEnd
    }
  }
}

/// Builds the tree from the events, within the limits.
private struct TreeBuilder: ~Copyable {
  private var events: EventStream
  private var anchors: [String: (node: Node, count: Int)] = [:]
  private var count = 0
  private(set) var duplicates: [YAMLError] = []

  init(events: consuming EventStream) { self.events = events }

  mutating func document() throws(YAMLError) -> Node {
    _ = try events.next()
    let (first, start) = try events.next()
    guard case .documentStart = first else { throw YAMLError(.empty, at: start) }
    let (event, place) = try events.next()
    let root = try node(event, place, depth: 0)
    _ = try events.next()
    let (last, end) = try events.next()
    guard case .streamEnd = last else { throw YAMLError(.severalDocuments, at: end) }
    return root
  }

  private mutating func node(_ event: Event, _ place: Place, depth: Int) throws(YAMLError) -> Node {
    guard depth <= Limits.depth else { throw YAMLError(.tooDeep(Limits.depth), at: place) }
    let before = count
    count += 1
    let node: Node
    let anchor: String?
    switch event {
    case .alias(let name):
      guard let target = anchors[name] else { throw YAMLError(.unknownAlias(name), at: place) }
      count += target.count
      try checkCount(place)
      // The copy keeps the place of its target, which is where a fault has to be fixed.
      return target.node
    case .scalar(let text, let plain, let name):
      node = Node(.scalar(text, plain: plain), at: place)
      anchor = name
    case .sequenceStart(let name):
      node = Node(.sequence(try elements(depth: depth)), at: place)
      anchor = name
    case .mappingStart(let name):
      node = Node(.mapping(try entries(depth: depth)), at: place)
      anchor = name
    default: throw YAMLError(.empty, at: place)
    }
    try checkCount(place)
    if let anchor { anchors[anchor] = (node, count - before) }
    return node
  }

  private func checkCount(_ place: Place) throws(YAMLError) {
    guard count <= Limits.nodes else { throw YAMLError(.tooManyNodes(Limits.nodes), at: place) }
  }

  private mutating func elements(depth: Int) throws(YAMLError) -> [Node] {
    var elements: [Node] = []
    while true {
      let (event, place) = try events.next()
      if case .sequenceEnd = event { return elements }
      elements.append(try node(event, place, depth: depth + 1))
    }
  }

  private mutating func entries(depth: Int) throws(YAMLError) -> [Node.Entry] {
    var entries: [Node.Entry] = []
    var lines: [String: Int] = [:]
    while true {
      let (event, place) = try events.next()
      if case .mappingEnd = event { return entries }
      let keyNode = try node(event, place, depth: depth + 1)
      guard case .scalar(let key, _) = keyNode.content else { throw YAMLError(.keyNotScalar, at: place) }
      let (valueEvent, valuePlace) = try events.next()
      let value = try node(valueEvent, valuePlace, depth: depth + 1)
      if let firstLine = lines[key] {
        duplicates.append(YAMLError(.duplicateKey(key, firstLine: firstLine), at: place))
      } else {
        lines[key] = place.line
        entries.append(Node.Entry(key: key, keyPlace: place, value: value))
      }
    }
  }
}

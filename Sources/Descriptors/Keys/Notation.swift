import CredmgrHTTP
import CredmgrText
import CredmgrYAML

struct Notation<Value: Sendable>: Sendable {
  let shape: Shape
  let read: @Sendable (inout DescriptorDecoder, Node) -> Value?  // Returns `nil` with a finding.
  let write: @Sendable (Value) -> Node

  init(
    _ shape: Shape, read: @escaping @Sendable (inout DescriptorDecoder, Node) -> Value?,
    write: @escaping @Sendable (Value) -> Node
  ) {
    self.shape = shape
    self.read = read
    self.write = write
  }
}

// MARK: Texts and numbers

extension Notation<String> {
  static func text(as shape: Shape, unless problem: @escaping @Sendable (String) -> Finding.Problem?) -> Self {
    Notation(
      shape,
      read: { decoder, node in
        guard let text = decoder.text(node) else { return nil }
        guard let problem = problem(text) else { return text }
        decoder.add(problem, at: node.place)
        return nil
      }, write: Node.text)
  }

  static var text: Self { text(as: .text) { _ in nil } }

  /// A text for users, which is shown on terminals and comes from files that strangers exchange.
  static var shownText: Self {
    text(as: .text) { $0.unicodeScalars.contains(where: \.actsOnTerminals) ? .controlCharacter : nil }
  }

  /// A web page for users.
  static var page: Self { page(isCompared: false) }

  /// A page that is compared with the pages of other providers, so credmgr must be able to read its address.
  static var comparedPage: Self { page(isCompared: true) }

  private static func page(isCompared: Bool) -> Self {
    Notation(
      .text,
      read: { decoder, node in
        let text = decoder.text(node)
        if let text, case let uri = try? URI(parsing: text), uri?.isSecure != true {
          decoder.add(.invalidURL(text), at: node.place, severity: isCompared && uri == nil ? .error : .warning)
        }
        return text
      }, write: Node.text)
  }

  static var identifier: Self {
    text(as: .identifier) { DescriptorLibrary.isIdentifier($0) ? nil : .malformedName($0) }
  }

  /// The base, which is read when the files are merged.
  static var base: Self { Notation(.identifier, read: { _, _ in nil }, write: Node.text) }

  static var pattern: Self { text(as: .text) { Pattern($0) == nil ? .invalidPattern($0) : nil } }

  static func word(among words: [String]) -> Self {
    text(as: .choice(words)) { words.contains($0) ? nil : .unknownValue($0, among: words) }
  }

  static var headerName: Self { text(as: .headerName) { DescriptorDecoder.isHeader($0) ? nil : .forbiddenHeader($0) } }

  /// The word before a token in a header (RFC 9110, 11.1), or nothing.
  static var scheme: Self {
    text(as: .headerValue) { text in
      if !HTTPFields.isValid(value: text) { return .forbiddenHeader(text) }
      return text.isEmpty || HTTPFields.isValid(name: text) ? nil : .headerInScheme(text)
    }
  }

  static var headerValue: Self { text(as: .headerValue) { HTTPFields.isValid(value: $0) ? nil : .forbiddenHeader($0) } }
}

extension Notation<[String]> {
  static var texts: Self { Notation(.texts, read: { $0.texts($1)?.map(\.value) }, write: { .list($0.map(Node.text)) }) }
}

extension Notation<Bool> {
  static var boolean: Self {
    Notation(
      .boolean,
      read: { decoder, node in
        if node.boolean == nil { decoder.add(.wrongType(expected: "true or false"), at: node.place) }
        return node.boolean
      }, write: { .plain("\($0)") })
  }

  static var requirement: Self {
    let rule = Notation<StateRule>.choice()
    return Notation(
      rule.shape, read: { decoder, node in rule.read(&decoder, node).map { $0 == .required } },
      write: { rule.write($0 ? .required : .optional) })
  }
}

extension Notation<Duration> {
  static var duration: Self {
    Notation(
      .pattern("^[0-9]+[smhd]$", type: "duration"),
      read: { decoder, node in
        guard let text = decoder.text(node) else { return nil }
        if let duration = Duration(text) { return duration }
        decoder.add(.invalidDuration(text), at: node.place)
        return nil
      }, write: { .text("\($0.wholeSeconds)s") })
  }
}

extension Notation where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  static func choice(among allowed: [Value] = Array(Value.allCases)) -> Self {
    let words = allowed.map(\.rawValue)
    return Notation(
      .choice(words),
      read: { decoder, node in
        guard let text = decoder.text(node) else { return nil }
        if let choice = allowed.first(where: { $0.rawValue == text }) { return choice }
        decoder.add(.unknownValue(text, among: words), at: node.place)
        return nil
      }, write: { .text($0.rawValue) })
  }
}

extension Notation {
  static func choices<Choice: RawRepresentable & CaseIterable & Sendable>(
    among allowed: [Choice] = Array(Choice.allCases)
  ) -> Self where Value == [Choice], Choice.RawValue == String {
    let one = Notation<Choice>.choice(among: allowed)
    return Notation(
      .choices(allowed.map(\.rawValue)),
      read: { decoder, node in
        guard let texts = decoder.texts(node) else { return nil }
        return texts.compactMap { text in one.read(&decoder, Node(.scalar(text.value, plain: false), at: text.place)) }
      }, write: { .list($0.map { .text($0.rawValue) }) })
  }
}

extension Notation<DeviceRules.SlowDown> {
  static var slowDown: Self {
    Notation(
      .pattern("^([0-9]+[smhd]|x[0-9.]+)$", type: "duration, or `x` and a factor"),
      read: { decoder, node in
        guard let text = decoder.text(node) else { return nil }
        if let pause = Duration(text) { return .add(pause) }
        if text.hasPrefix("x"), let factor = Double(text.dropFirst()), factor > 1, factor <= 10 {
          return .multiply(Int64((factor * 100).rounded()))
        }
        decoder.add(.invalidDuration(text), at: node.place)
        return nil
      },
      write: { rule in
        switch rule {
        case .add(let pause): .text("\(pause.wholeSeconds)s")
        case .multiply(let hundredths): .text("x\(Double(hundredths) / 100)")
        }
      })
  }
}

extension Notation<FieldPath> {
  static var path: Self { Notation(.text, read: { $0.text($1).map { FieldPath($0) } }, write: { .text($0.text) }) }
}

extension Notation<[ScopeSet]> {
  static var scopeSets: Self {
    Notation(
      .mapping(of: .texts, names: .pattern("^[a-z0-9-]+$", type: "name")),
      read: { decoder, node in
        decoder.entries(of: node)?.compactMap { entry in
          let isName = entry.key.utf8.allSatisfy { byte in
            byte == UInt8(ascii: "-") || byte.isLetterOrDigit && !(0x41...0x5A).contains(byte)
          }
          if !isName { decoder.add(.malformedName(entry.key), at: entry.keyPlace) }
          return decoder.texts(entry.value).map { ScopeSet(name: entry.key, scopes: $0.map(\.value)) }
        }
      }, write: { .mapping($0.map { ($0.name, .list($0.scopes.map(Node.text))) }) })
  }
}

extension Notation<[OtherShape]> {
  static var otherShapes: Self {
    Notation(
      .mapping(of: .text, names: nil),
      read: { decoder, node in
        decoder.entries(of: node)?.compactMap { entry in
          if Pattern(entry.key) == nil { decoder.add(.invalidPattern(entry.key), at: entry.keyPlace) }
          let meaning = Notation<String>.shownText.read(&decoder, entry.value)
          return meaning.map { OtherShape(pattern: entry.key, meaning: $0) }
        }
      }, write: { .mapping($0.map { ($0.pattern, .text($0.meaning)) }) })
  }
}

extension Notation<[FieldPath]> {
  static var paths: Self {
    Notation(.texts, read: { $0.texts($1)?.map { FieldPath($0.value) } }, write: { .list($0.map { .text($0.text) }) })
  }
}

// MARK: Templates

extension Notation<Template> {
  /// A template; `isShown` means that it is visible outside the provider's endpoints, also to programs that read lines.
  static func template(_ names: [String] = [], isShown: Bool = false) -> Self {
    Notation(
      .pattern("", type: "template"),
      read: { decoder, node in
        let template = decoder.template(node, names: names, isShown: isShown)
        let isLine = template?.literals.allSatisfy { !$0.unicodeScalars.contains(where: \.actsOnTerminals) } ?? true
        if isShown, !isLine { decoder.add(.controlCharacter, at: node.place) }
        return template
      }, write: { .text($0.text) })
  }

  static func template<Choice: RawRepresentable & CaseIterable>(of _: Choice.Type) -> Self
  where Choice.RawValue == String {
    let words = Choice.allCases.map(\.rawValue)
    return Notation(
      .template(of: words),
      read: { decoder, node in
        let template = decoder.template(node)
        if let literal = template?.literal, !words.contains(literal) {
          decoder.add(.unknownValue(literal, among: words), at: node.place)
        }
        return template
      }, write: { .text($0.text) })
  }
}

extension Notation<[Template]> {
  static func hosts(areWhole: Bool = false) -> Self {
    Notation(.texts, read: { $0.hosts($1, areWhole: areWhole) }, write: { .list($0.map { .text($0.text) }) })
  }
}

extension Notation<URLTemplate> {
  static func url(except owned: Set<String>, isShown: Bool) -> Self {
    Notation(
      .url(except: owned), read: { $0.url($1, names: DescriptorDecoder.endpointNames, isShown: isShown) },
      write: { .text($0.template.text) })
  }

  static var devicePage: Self {
    Notation(
      .text, read: { $0.url($1, names: DescriptorDecoder.pageNames, isShown: true) }, write: { .text($0.template.text) }
    )
  }

  static var redirect: Self { Notation(.text, read: { $0.redirect($1) }, write: { .text($0.template.text) }) }
}

extension Notation<[HeaderTemplate]> {
  static func headers(_ names: [String] = [], isShown: Bool = false) -> Self {
    Notation(
      .mapping(of: .headerValue, names: .headerName), read: { $0.headers($1, names: names, isShown: isShown) },
      write: { .mapping($0.map { ($0.name, .text($0.value.text)) }) })
  }
}

extension Notation<[ParameterRule]> {
  static func parameters(except owned: Set<String> = [], isShown: Bool = false, names: [String] = []) -> Self {
    Notation(
      .mapping(of: .text, names: owned.isEmpty ? nil : .name(except: owned)),
      read: { $0.parameters($1, isShown: isShown, names: names) },
      write: { .mapping($0.map { ($0.name, $0.value.map { .text($0.text) } ?? .plain("null")) }) })
  }
}

extension Notation<[String: [String]]> {
  /// Names of environment variables, by field. A text alone is the variable of the token.
  static var environment: Self {
    Notation(
      .either(.text, .mapping(of: .texts, names: nil)),
      read: { decoder, node in
        guard node.elements == nil else {
          decoder.add(.wrongType(expected: "a string"), at: node.place)
          return nil
        }
        let node = DescriptorTree.wrapped(node, as: "access_token")
        var names: [String: [String]] = [:]
        for entry in decoder.entries(of: node) ?? [] {
          for (name, place) in decoder.texts(entry.value) ?? [] {
            if Descriptor.isVariable(name) {
              names[entry.key, default: []].append(name)
            } else {
              decoder.add(.malformedName(name), at: place)
            }
          }
          let isKnown = entry.key == "access_token" || decoder.definedNames.contains(entry.key)
          decoder.usedNames.insert(entry.key)
          if !isKnown { decoder.add(.unknownTemplateName(entry.key, suggestion: nil), at: entry.keyPlace) }
        }
        return names
      },
      write: node)
  }

  /// A mapping of texts to a text or a list of texts.
  static var lists: Self {
    Notation(
      .mapping(of: .texts, names: nil),
      read: { decoder, node in
        guard let entries = decoder.entries(of: node) else { return nil }
        var lists: [String: [String]] = [:]
        for entry in entries { lists[entry.key] = decoder.texts(entry.value)?.map(\.value) }
        return lists
      }, write: node)
  }

  private static func node(_ lists: [String: [String]]) -> Node {
    .mapping(
      lists.sorted { $0.key < $1.key }.map { key, texts in
        (key, texts.count == 1 ? .text(texts[0]) : .list(texts.map(Node.text)))
      })
  }
}

extension Notation<[String: String]> {
  static func texts(valuesExcept owned: Set<String> = []) -> Self {
    Notation(
      .mapping(of: owned.isEmpty ? .text : .name(except: owned), names: nil),
      read: { decoder, node in
        guard let entries = decoder.entries(of: node) else { return nil }
        var texts: [String: String] = [:]
        for entry in entries { texts[entry.key] = decoder.text(entry.value) }
        return texts
      }, write: { .mapping($0.sorted { $0.key < $1.key }.map { ($0.key, .text($0.value)) }) })
  }
}

extension Descriptor {
  /// Whether programs read a variable of this name for credentials. Other names would change how they run.
  package static func isVariable(_ name: String) -> Bool {
    let isName = name.utf8.allSatisfy { ($0.isLetterOrDigit && !($0 >= 0x61)) || $0 == UInt8(ascii: "_") }
    let words = [
      "TOKEN", "KEY", "SECRET", "PASSWORD", "USERNAME", "USER", "ID", "REGION", "SID", "EMAIL", "PAT", "PASS",
    ]
    return isName && name.first?.isLetter == true && words.contains { name.hasSuffix("_" + $0) }
  }
}

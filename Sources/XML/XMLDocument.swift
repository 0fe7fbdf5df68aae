import CredmgrCXML
import CredmgrJSON
import CredmgrText

/// Why credmgr does not read a text as XML. Contains no part of the text, which may hold a secret.
package enum XMLError: Error, Sendable, Equatable {
  case syntax  // Not XML, not UTF-8, or a reference to an entity.
  case documentType
  case tooLong(bytes: Int)
  case tooDeep(levels: Int)
  case tooManyAttributes(Int)
}

/// Reads XML 1.0 with libxml2, which is loaded at its first use.
///
/// A document has at most 1 MiB of UTF-8 and 64 levels, and an element and those around it have at most 256
/// attributes. A document type is refused before libxml2 sees it, so the document declares no entities. libxml2 opens
/// no file and no connection.
package enum XMLDocument {
  package static let library = "libxml2.so.2"
  private static let longest = 1 << 20
  private static let deepest = 64
  private static let mostAttributes = 256

  private static let loaded: credmgr_xml? = {
    for name in [library, "libxml2.so.16"] {
      var xml = credmgr_xml()
      if unsafe credmgr_xml_load(name, &xml) != 0 { return xml }
    }
    return nil
  }()

  /// Whether the library is not installed. A static program cannot load it, and reads no answers.
  package static var isMissing: Bool { credmgr_xml_can_load() != 0 && loaded == nil }

  /// Returns a document as an object with the root element as its only member.
  ///
  /// An element with elements is an object, and elements of the same name are a list. An element with a text is that
  /// text, and its attributes are left out. In any other element, attributes are members like elements. Names have no
  /// prefixes.
  package static func parse(_ bytes: [UInt8]) throws(XMLError) -> JSONValue {
    if bytes.count > longest { throw .tooLong(bytes: longest) }
    guard let xml = loaded, String(validating: bytes, as: UTF8.self) != nil, !bytes.contains(0) else { throw .syntax }
    for declaration in ["<!DOCTYPE", "<!ENTITY"] where bytes.firstPlace(of: declaration.utf8) != nil {
      throw .documentType
    }
    if hasManyAttributes(bytes) { throw .tooManyAttributes(mostAttributes) }
    let root = unsafe bytes.withUnsafeBytes { unsafe read($0, with: xml) }
    return try root.get()
  }

  /// Whether an element and the elements around it have too many quoted values. libxml2 compares each attribute with
  /// the others of its element, and each name with the namespaces in scope, so it could take minutes. It stops at the
  /// first fault, so this need not look for faults.
  private static func hasManyAttributes(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    var counts = [0]  // For each open element, with those around it.
    func skip(past end: String) { rest = rest.firstPlace(of: end.utf8).map { rest[$0.upperBound...] } ?? [] }
    while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
      rest = rest[(open + 1)...]
      if rest.starts(with: "!--".utf8) {
        skip(past: "-->")
      } else if rest.starts(with: "![CDATA[".utf8) {
        skip(past: "]]>")
      } else if rest.first == UInt8(ascii: "?") {
        skip(past: "?>")
      } else if rest.first == UInt8(ascii: "/") {
        if counts.count > 1 { counts.removeLast() }
      } else {
        var count = counts[counts.count - 1]
        while let mark = rest.firstIndex(where: { "'\">".utf8.contains($0) }) {
          if rest[mark] == UInt8(ascii: ">") {
            if rest[..<mark].last != UInt8(ascii: "/") { counts.append(count) }
            break
          }
          count += 1
          if count > mostAttributes { return true }
          let value = rest[(mark + 1)...]
          guard let end = value.firstIndex(of: rest[mark]) else { return false }
          rest = value[(end + 1)...]
        }
      }
    }
    return false
  }

  // libxml2, `xmlParserOption`: no messages on standard error, no network, and no other encoding than ours.
  private static let options: Int32 = 1 << 5 | 1 << 6 | 1 << 11 | 1 << 21

  private static func read(_ bytes: UnsafeRawBufferPointer, with xml: credmgr_xml) -> Result<JSONValue, XMLError> {
    guard let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
      let reader = unsafe xml.open(start, Int32(bytes.count), nil, "UTF-8", options)
    else { return .failure(.syntax) }
    defer { unsafe xml.close(reader) }
    func text(_ bytes: UnsafePointer<UInt8>?) -> String { unsafe bytes.map { unsafe String(cString: $0) } ?? "" }
    var open = [Element(name: "")]
    func close() {
      let element = open.removeLast()
      open[open.count - 1].add(element.value, as: element.name)
    }
    while true {
      let result = unsafe xml.read(reader)
      if result == 0 { return .success(open[0].value) }
      guard result == 1 else { return .failure(.syntax) }
      switch unsafe NodeKind(rawValue: xml.kind(reader)) {
      case .element:
        guard open.count <= deepest else { return .failure(.tooDeep(levels: deepest)) }
        var element = unsafe Element(name: text(xml.name(reader)))
        let isEmpty = unsafe xml.is_empty(reader) == 1
        while unsafe xml.next_attribute(reader) == 1 {
          if unsafe xml.is_namespace(reader) == 1 { continue }
          unsafe element.attributes.append(.init(text(xml.name(reader)), .string(text(xml.value(reader)))))
        }
        open.append(element)
        if isEmpty { close() }
      case .end: close()
      case .text, .characterData: unsafe open[open.count - 1].text += text(xml.value(reader))
      case .instruction, .comment, .blank, .significantBlank, .declaration: break
      // Among others a document type, and a reference to an entity of the document.
      case nil: return .failure(.syntax)
      }
    }
  }

  /// The kinds of nodes that a document may have (libxml2, `xmlReaderTypes`).
  private enum NodeKind: Int32 {
    case element = 1
    case text = 3
    case characterData = 4
    case instruction = 7
    case comment = 8
    case blank = 13
    case significantBlank = 14
    case end = 15
    case declaration = 17
  }

  private struct Element {
    let name: String
    var attributes: [JSONValue.Member] = []
    var children: [JSONValue.Member] = []
    var text = ""

    mutating func add(_ value: JSONValue, as name: String) { children.append(.init(name, value)) }

    var value: JSONValue {
      let text = Substring(self.text).trimmed
      guard !children.isEmpty || (text.isEmpty && !attributes.isEmpty) else { return .string(text) }
      var names: [String] = []
      var values: [String: [JSONValue]] = [:]
      for member in attributes + children {
        if values[member.name] == nil { names.append(member.name) }
        values[member.name, default: []].append(member.value)
      }
      return .object(
        names.map { name in
          let values = values[name] ?? []
          return .init(name, values.count == 1 ? values[0] : .array(values))
        })
    }
  }
}

extension Substring {
  /// The text without the white space of XML around it.
  fileprivate var trimmed: String {
    var text = drop { $0.isWhitespace }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }
}

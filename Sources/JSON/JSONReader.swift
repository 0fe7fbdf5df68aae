/// The reason why a text is not JSON, without the text itself, which may hold a secret.
package struct JSONError: Error, Sendable, Equatable {
  package let offset: Int  // The number of bytes before the fault.
}

extension JSONValue {
  /// Parses RFC 8259 strictly, up to 64 levels deep; skips a byte order mark (section 8.1).
  package static func parse(_ bytes: [UInt8]) throws(JSONError) -> JSONValue {
    var reader = JSONReader(bytes)
    return try reader.document()
  }
}

private struct JSONReader {
  private static let deepest = 64
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  private var here: JSONError { JSONError(offset: position) }
  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  mutating func document() throws(JSONError) -> JSONValue {
    skipSpace()
    let value = try self.value(depth: 0)
    skipSpace()
    guard next == nil else { throw here }
    return value
  }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
  }

  private mutating func take(_ text: StaticString) throws(JSONError) {
    for scalar in text.description.utf8 {
      guard next == scalar else { throw here }
      position += 1
    }
  }

  private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
    guard depth < Self.deepest else { throw here }
    switch next {
    case UInt8(ascii: "{"): return try object(depth: depth)
    case UInt8(ascii: "["): return try array(depth: depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"):
      try take("true")
      return .boolean(true)
    case UInt8(ascii: "f"):
      try take("false")
      return .boolean(false)
    case UInt8(ascii: "n"):
      try take("null")
      return .null
    default: return .number(try number())
    }
  }

  private mutating func object(depth: Int) throws(JSONError) -> JSONValue {
    var members: [JSONValue.Member] = []
    try list(between: ("{", "}")) { reader throws(JSONError) in
      let name = try reader.string()
      reader.skipSpace()
      try reader.take(":")
      reader.skipSpace()
      members.append(JSONValue.Member(name, try reader.value(depth: depth + 1)))
    }
    return .object(members)
  }

  private mutating func array(depth: Int) throws(JSONError) -> JSONValue {
    var elements: [JSONValue] = []
    try list(between: ("[", "]")) { reader throws(JSONError) in elements.append(try reader.value(depth: depth + 1)) }
    return .array(elements)
  }

  private mutating func list(
    between marks: (begin: StaticString, end: StaticString), _ item: (inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    try take(marks.begin)
    skipSpace()
    if next == marks.end.description.utf8.first { return try take(marks.end) }
    while true {
      skipSpace()
      try item(&self)
      skipSpace()
      guard next == UInt8(ascii: ",") else { return try take(marks.end) }
      position += 1
    }
  }

  private mutating func digits() throws(JSONError) {
    let start = position
    while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
    guard position > start else { throw here }
  }

  private mutating func number() throws(JSONError) -> String {
    let start = position
    if next == UInt8(ascii: "-") { position += 1 }
    if next == UInt8(ascii: "0") { position += 1 } else { try digits() }
    if next == UInt8(ascii: ".") {
      position += 1
      try digits()
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      position += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
      try digits()
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func string() throws(JSONError) -> String {
    let start = position
    try take("\"")
    // Most texts have no escapes and can be created from one piece.
    var isASCII = true
    while let byte = next, byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
      isASCII = isASCII && byte < 0x80
      position += 1
    }
    let piece = bytes[(start + 1)..<position]
    if isASCII, next == UInt8(ascii: "\"") {
      position += 1
      return String(decoding: piece, as: UTF8.self)
    }
    var text = Array(piece)
    while true {
      guard let byte = next else { throw here }
      switch byte {
      case UInt8(ascii: "\""):
        position += 1
        guard let string = String(validating: text, as: UTF8.self) else { throw JSONError(offset: start) }
        return string
      case UInt8(ascii: "\\"):
        position += 1
        text += try escape()
      case 0..<0x20: throw here
      default:
        text.append(byte)
        position += 1
      }
    }
  }

  private mutating func escape() throws(JSONError) -> [UInt8] {
    guard let byte = next else { throw here }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "u"): return Array(try unicode().utf8)
    default:
      position -= 1
      throw here
    }
  }

  private mutating func unicode() throws(JSONError) -> String {
    let first = try codeUnit()
    // A surrogate pair is one character (section 7); a lone surrogate is an error.
    guard (0xDC00...0xDFFF).contains(first) || (0xD800...0xDBFF).contains(first) else {
      guard let scalar = Unicode.Scalar(first) else { throw here }
      return String(Character(scalar))
    }
    guard first < 0xDC00 else { throw here }
    try take("\\u")
    let second = try codeUnit()
    guard (0xDC00...0xDFFF).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    else { throw here }
    return String(Character(scalar))
  }

  private mutating func codeUnit() throws(JSONError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
        throw here
      }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}

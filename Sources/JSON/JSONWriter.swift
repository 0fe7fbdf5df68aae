extension JSONValue {
  package var encoded: String {
    var text = ""
    write(to: &text, indentation: nil)
    return text
  }

  /// The value as indented text with one member or element per line.
  package var formatted: String {
    var text = ""
    write(to: &text, indentation: 0)
    return text
  }

  private func write(to text: inout String, indentation: Int?) {
    switch self {
    case .null: text += "null"
    case .boolean(let value): text += value ? "true" : "false"
    case .number(let number): text += number
    case .string(let string): Self.write(string, to: &text)
    case .array(let elements):
      Self.write(elements, between: ("[", "]"), to: &text, indentation: indentation) { element, text, inner in
        element.write(to: &text, indentation: inner)
      }
    case .object(let members):
      Self.write(members, between: ("{", "}"), to: &text, indentation: indentation) { member, text, inner in
        Self.write(member.name, to: &text)
        text += inner == nil ? ":" : ": "
        member.value.write(to: &text, indentation: inner)
      }
    }
  }

  private static func write<Item>(
    _ items: [Item], between marks: (String, String), to text: inout String, indentation: Int?,
    item: (_ item: Item, _ text: inout String, _ indentation: Int?) -> Void
  ) {
    text += marks.0
    let inner = indentation.map { $0 + 2 }
    for (index, element) in items.enumerated() {
      if index > 0 { text += "," }
      if let inner { text += "\n" + String(repeating: " ", count: inner) }
      item(element, &text, inner)
    }
    if let indentation, !items.isEmpty { text += "\n" + String(repeating: " ", count: indentation) }
    text += marks.1
  }

  private static func write(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where scalar.actsOnTerminals:
        for unit in String(scalar).utf16 {
          let digits = String(unit, radix: 16)
          text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }
}

import HTTP
import Text
/// A text with places that are filled in: `{host}`, `{a || b}` (the first that is there and not empty),
/// `{lowercase(a)}`. Two braces stand for one.
package struct Template: Sendable, Equatable {
  /// What computes the functions that need more than their arguments' letters: a hash, a clock, randomness. `nil` where
  /// there is no value.
  package typealias Calculator = (Function, [[UInt8]]) -> [UInt8]?

  /// One way to fill a place.
  package enum Term: Sendable, Equatable {
    /// The value with this name.
    case name(String)
    /// This text.
    case literal(String)
    /// A function of other terms.
    indirect case call(Function, [Term])
  }

  /// A stretch of a template.
  package enum Part: Sendable, Equatable {
    /// Text that stays as it is.
    case literal(String)
    /// A place to fill: the first term that yields something.
    case place([Term])
  }

  /// The stretches, in order.
  package let parts: [Part]

  /// A template that is only text.
  package init(literal text: String) { parts = text.isEmpty ? [] : [.literal(text)] }

  /// Reads a template.
  ///
  /// - Throws: `TemplateError` where a brace is not closed, a place is empty or a function is not known.
  package init(parsing text: String) throws(TemplateError) {
    var parser = TemplateParser(text)
    parts = try parser.parts()
  }

  /// The names that the template uses, in order.
  package var names: [String] {
    parts.flatMap { part -> [String] in
      if case .place(let terms) = part { terms.flatMap(\.names) } else { [] }
    }
  }

  /// The template as text, when it has no places.
  package var literal: String? {
    var text = ""
    for part in parts {
      guard case .literal(let piece) = part else { return nil }
      text += piece
    }
    return text
  }

  /// The text with every place filled.
  ///
  /// - Parameters:
  ///   - values: what a name stands for; `nil` and the empty text count as absent.
  ///   - encode: what is done to a value before it stands in the text, such as percent-encoding.
  ///   - calculate: what computes functions; without it, there is none but those that change letters.
  /// - Throws: `TemplateError.missing` when no term of a place yields anything.
  package func filled(
    _ values: (String) -> String?, encode: (String) -> String = { $0 },
    calculate: Calculator = { _, _ in nil }
  ) throws(TemplateError) -> String {
    var text = ""
    for part in parts {
      switch part {
      case .literal(let piece): text += piece
      case .place(let terms): text += encode(try Self.value(of: terms, values, calculate))
      }
    }
    return text
  }

  static func value(
    of terms: [Term], _ values: (String) -> String?, _ calculate: Calculator = { _, _ in nil }
  ) throws(TemplateError) -> String {
    for term in terms {
      if let value = term.value(values, calculate), !value.isEmpty { return String(decoding: value, as: UTF8.self) }
    }
    throw .missing(terms.lazy.flatMap(\.names).first ?? "")
  }
}

extension Template.Term {
  var names: [String] {
    switch self {
    case .name(let name): [name]
    case .literal: []
    case .call(_, let terms): terms.flatMap(\.names)
    }
  }

  /// The bytes that the term stands for; `nil` where anything that it needs is missing.
  package func value(_ values: (String) -> String?, _ calculate: Template.Calculator) -> [UInt8]? {
    switch self {
    case .name(let name): return values(name).map { Array($0.utf8) }
    case .literal(let text): return Array(text.utf8)
    case .call(let function, let terms):
      var arguments: [[UInt8]] = []
      for term in terms {
        guard let value = term.value(values, calculate) else { return nil }
        arguments.append(value)
      }
      switch function {
      case .lowercase: return Array(String(decoding: arguments.joined(), as: UTF8.self).lowercased().utf8)
      case .uppercase: return Array(String(decoding: arguments.joined(), as: UTF8.self).uppercased().utf8)
      default: return calculate(function, arguments)
      }
    }
  }
}

/// What is wrong with a template, or with filling it.
package enum TemplateError: Error, Sendable, Equatable {
  /// A `{` without its `}`, or a `}` without its `{`; the offset in Unicode scalars.
  case unbalancedBrace(offset: Int)
  /// What stands between the braces is neither a name, a quoted text nor a function of such.
  case malformedPlace(String)
  /// A function that is not known.
  case unknownFunction(String)
  /// Functions within functions beyond a bound.
  case tooDeep(Int)
  /// Nothing is there for this name.
  case missing(String)
}

extension Template {
  /// The template as it is written.
  package var text: String {
    parts.map { part in
      switch part {
      case .literal(let text): text.map { $0 == "{" || $0 == "}" ? "\($0)\($0)" : "\($0)" }.joined()
      case .place(let terms): "{" + terms.map(\.text).joined(separator: " || ") + "}"
      }
    }.joined()
  }
}

extension Template.Term {
  fileprivate var text: String {
    switch self {
    case .name(let name): name
    case .literal(let text): "\"\(text.exchanging("\n", for: "\\n"))\""
    case .call(let function, let terms): function.rawValue + "(" + terms.map(\.text).joined(separator: ", ") + ")"
    }
  }
}

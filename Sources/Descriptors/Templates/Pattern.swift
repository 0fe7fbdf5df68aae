/// A regular expression that must match a whole value.
///
/// Descriptors come from strangers, so the time is limited: the number of steps is at most the product of the lengths
/// of the value and the expression. This excludes back-references and lookahead. Supported are: characters, `.`,
/// `[…]` and `[^…]` with ranges, `\d` `\w` `\s` and their opposites `\D` `\W` `\S`, `\` before any punctuation,
/// groups `(…)` and `(?:…)`, `|`, and `*` `+` `?` `{n}` `{n,}` `{n,m}`. `^` at the beginning and `$` at the end are
/// allowed without effect.
struct Pattern {
  private enum Step {
    case scalar(ScalarSet)
    case either(Int, Int)
  }

  private let steps: [Step]

  private static let limit = 10_000  // The steps of an expression with its repetitions written out.

  init?(_ text: String) {
    var scalars = Array(text.unicodeScalars)[...]
    if scalars.first == "^" { scalars.removeFirst() }
    var parser = PatternParser(scalars)
    guard let tree = parser.alternatives(depth: 0), parser.isAtEnd else { return nil }
    var steps: [Step] = []
    guard Self.append(tree, to: &steps) else { return nil }
    self.steps = steps
  }

  /// Appends the steps of an expression; reaching their end means a match.
  private static func append(_ tree: PatternTree, to steps: inout [Step]) -> Bool {
    guard steps.count < limit else { return false }
    switch tree {
    case .scalar(let set): steps.append(.scalar(set))
    case .sequence(let parts):
      for part in parts { guard append(part, to: &steps) else { return false } }
    case .alternatives(let parts):
      var jumps: [Int] = []
      for (index, part) in parts.enumerated() {
        let isLast = index == parts.count - 1
        let fork = steps.count
        if !isLast { steps.append(.either(fork + 1, 0)) }
        guard append(part, to: &steps) else { return false }
        if !isLast {
          jumps.append(steps.count)
          steps.append(.either(0, 0))
          steps[fork] = .either(fork + 1, steps.count)
        }
      }
      for jump in jumps { steps[jump] = .either(steps.count, steps.count) }
    case .repetition(let part, let least, let most):
      for _ in 0..<least { guard append(part, to: &steps) else { return false } }
      guard let most else {
        let fork = steps.count
        steps.append(.either(0, 0))
        guard append(part, to: &steps) else { return false }
        steps.append(.either(fork, fork))
        steps[fork] = .either(fork + 1, steps.count)
        return true
      }
      var forks: [Int] = []
      for _ in least..<most {
        forks.append(steps.count)
        steps.append(.either(0, 0))
        guard append(part, to: &steps) else { return false }
      }
      for fork in forks { steps[fork] = .either(fork + 1, steps.count) }
    }
    return true
  }

  func matches(_ text: String) -> Bool { places(behind: text).contains(steps.count) }

  /// Whether the expression matches the text, or the text followed by `next` and anything else.
  func matches(_ text: String, orBefore next: String) -> Bool {
    matches(text) || !places(behind: text + next).isEmpty
  }

  /// All positions in the expression after reading a text.
  private func places(behind text: String) -> [Int] {
    var places = reached(from: [0])
    var starts: [Int] = []
    for scalar in text.unicodeScalars {
      var next: [Int] = []
      for place in places where place < steps.count {
        if case .scalar(let set) = steps[place], set.contains(scalar) { next.append(place + 1) }
      }
      if next.isEmpty { return [] }
      // A repetition begins each round at the same steps.
      if next != starts { places = reached(from: next) }
      starts = next
    }
    return places
  }

  private func reached(from starts: [Int]) -> [Int] {
    var isReached = [Bool](repeating: false, count: steps.count + 1)
    var open = starts
    var places: [Int] = []
    while let place = open.popLast() {
      if isReached[place] { continue }
      isReached[place] = true
      if place < steps.count, case .either(let first, let second) = steps[place] {
        open += [first, second]
      } else {
        places.append(place)
      }
    }
    return places
  }
}

private struct ScalarSet {
  var ranges: [ClosedRange<UInt32>] = []
  var isInverted = false

  static let digits = ScalarSet(ranges: [48...57])
  static let wordScalars = ScalarSet(ranges: [48...57, 65...90, 95...95, 97...122])
  static let spaces = ScalarSet(ranges: [9...13, 32...32])
  static let any = ScalarSet(ranges: [10...10, 13...13], isInverted: true)  // Everything except line ends.

  func contains(_ scalar: Unicode.Scalar) -> Bool { ranges.contains { $0.contains(scalar.value) } != isInverted }
}

private indirect enum PatternTree {
  case scalar(ScalarSet)
  case sequence([PatternTree])
  case alternatives([PatternTree])
  case repetition(PatternTree, least: Int, most: Int?)
}

private struct PatternParser {
  private var rest: ArraySlice<Unicode.Scalar>

  private static let depthLimit = 50  // The depth of nested groups.
  private static let repetitionLimit = 1000

  init(_ rest: ArraySlice<Unicode.Scalar>) { self.rest = rest }

  /// Whether the expression ends here, except for a final `$`.
  var isAtEnd: Bool { rest.isEmpty || rest.elementsEqual("$".unicodeScalars) }

  mutating func alternatives(depth: Int) -> PatternTree? {
    guard depth <= Self.depthLimit else { return nil }
    var parts: [PatternTree] = []
    repeat {
      var sequence: [PatternTree] = []
      while let next = rest.first, next != "|", next != ")", !isAtEnd {
        guard let atom = atom(depth), let repeated = repeated(atom) else { return nil }
        sequence.append(repeated)
      }
      parts.append(.sequence(sequence))
    } while take("|")
    return parts.count == 1 ? parts[0] : .alternatives(parts)
  }

  private mutating func atom(_ depth: Int) -> PatternTree? {
    switch rest.popFirst() {
    case "(":
      if take("?"), !take(":") { return nil }
      guard let tree = alternatives(depth: depth + 1), take(")") else { return nil }
      return tree
    case "[": return set().map { .scalar($0) }
    case ".": return .scalar(.any)
    case "\\": return escaped().map { .scalar($0) }
    case let scalar? where !"*+?{}]^$".unicodeScalars.contains(scalar):
      return .scalar(ScalarSet(ranges: [scalar.value...scalar.value]))
    default: return nil
    }
  }

  private mutating func repeated(_ tree: PatternTree) -> PatternTree? {
    var (least, most): (Int, Int?) = (1, 1)
    if take("*") {
      (least, most) = (0, nil)
    } else if take("+") {
      (least, most) = (1, nil)
    } else if take("?") {
      (least, most) = (0, 1)
    } else if take("{") {
      guard let number = number() else { return nil }
      (least, most) = (number, number)
      if take(",") { most = self.number() }
      guard take("}"), most.map({ $0 >= least }) ?? true else { return nil }
    } else {
      return tree
    }
    // Other languages give different meanings to a second sign.
    if let next = rest.first, "*+?{".unicodeScalars.contains(next) { return nil }
    return .repetition(tree, least: least, most: most)
  }

  private mutating func number() -> Int? {
    var digits = ""
    while let next = rest.first, ("0"..."9").contains(next) {
      digits.unicodeScalars.append(next)
      rest.removeFirst()
    }
    return Int(digits).flatMap { $0 <= Self.repetitionLimit ? $0 : nil }
  }

  /// Reads a set whose opening bracket has been read.
  private mutating func set() -> ScalarSet? {
    var set = ScalarSet(isInverted: take("^"))
    while let scalar = rest.popFirst() {
      if scalar == "]" { return set.ranges.isEmpty ? nil : set }
      if scalar == "[" { return nil }
      var low = scalar.value
      if scalar == "\\" {
        guard let escaped = escaped(), !escaped.isInverted else { return nil }
        guard escaped.ranges.count == 1, escaped.ranges[0].count == 1 else {
          set.ranges += escaped.ranges
          continue
        }
        low = escaped.ranges[0].lowerBound
      }
      var high = low
      // A hyphen at the end stands for itself.
      if rest.first == "-", let end = rest.dropFirst().first, end != "]" {
        rest.removeFirst(2)
        high = end.value
        if end == "\\" {
          guard let escaped = escaped(), escaped.ranges.count == 1, escaped.ranges[0].count == 1 else { return nil }
          high = escaped.ranges[0].lowerBound
        }
      }
      guard low <= high else { return nil }
      set.ranges.append(low...high)
    }
    return nil
  }

  private mutating func escaped() -> ScalarSet? {
    guard let scalar = rest.popFirst() else { return nil }
    var set: ScalarSet
    switch scalar {
    case "d", "D": set = .digits
    case "w", "W": set = .wordScalars
    case "s", "S": set = .spaces
    case "t": return ScalarSet(ranges: [9...9])
    default:
      // Other languages give different meanings to other letters and digits.
      guard scalar.isASCII, !ScalarSet.wordScalars.contains(scalar) || scalar == "_" else { return nil }
      return ScalarSet(ranges: [scalar.value...scalar.value])
    }
    set.isInverted = "DWS".unicodeScalars.contains(scalar)
    return set
  }

  private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
    guard rest.first == scalar else { return false }
    rest.removeFirst()
    return true
  }
}

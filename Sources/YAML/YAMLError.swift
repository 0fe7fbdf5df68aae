package struct YAMLError: Error, Sendable, Equatable {
  package enum Reason: Sendable, Equatable {
    case syntax(String)  // The text is not YAML; the parser's own words.
    case notUTF8
    case empty
    case severalDocuments
    /// The same key twice in one mapping, which YAML forbids; the first one stands at this line.
    case duplicateKey(String, firstLine: Int)
    case keyNotScalar
    case unknownAlias(String)  // An alias without an anchor of this name before it, or within the anchor itself.
    case tooLarge(bytes: Int)
    case tooDeep(Int)
    case tooManyNodes(Int)  // More nodes than this, aliases counted as often as they are used.
  }

  package let reason: Reason
  package let place: Place

  package init(_ reason: Reason, at place: Place) {
    self.reason = reason
    self.place = place
  }
}

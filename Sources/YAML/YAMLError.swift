package struct YAMLError: Error, Sendable, Equatable {
  package enum Reason: Sendable, Equatable {
    case syntax(String)  // The text is not YAML; the parser's own words.
    case notUTF8
    case hiddenBreak(Unicode.Scalar)  // A line break that editors do not show.
    case empty
    case severalDocuments
    /// A mapping contains a key twice, which YAML forbids; `firstLine` is the line of the first one.
    case duplicateKey(String, firstLine: Int)
    case keyNotScalar
    case unknownAlias(String)  // No anchor of this name precedes the alias, or the alias is inside its anchor.
    case tooLarge(bytes: Int)
    case tooDeep(Int)
    case tooManyNodes(Int)  // More nodes than this limit, where each use of an alias counts.
  }

  package let reason: Reason
  package let place: Place

  package init(_ reason: Reason, at place: Place) {
    self.reason = reason
    self.place = place
  }
}

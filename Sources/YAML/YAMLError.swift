/// Why a text is not a YAML document that we read.
package struct YAMLError: Error, Sendable, Equatable {
  package enum Reason: Sendable, Equatable {
    /// The text is not YAML; the parser's own words.
    case syntax(String)
    case notUTF8
    case empty
    case severalDocuments
    /// The same key twice in one mapping, which YAML forbids; the first one stands at this line.
    case duplicateKey(String, firstLine: Int)
    case keyNotScalar
    /// An alias without an anchor of this name before it, or within the anchor itself.
    case unknownAlias(String)
    case tooLarge(bytes: Int)
    case tooDeep(Int)
    /// More nodes than this, aliases counted as often as they are used.
    case tooManyNodes(Int)
  }

  package let reason: Reason
  package let place: Place

  package init(_ reason: Reason, at place: Place) {
    self.reason = reason
    self.place = place
  }
}

/// Why a text is not a YAML document that we read.
package struct YAMLError: Error, Sendable, Equatable {
  /// What is wrong.
  package enum Reason: Sendable, Equatable {
    /// The text is not YAML; the parser's own words.
    case syntax(String)
    /// The text is not UTF-8.
    case notUTF8
    /// There is no document in the text.
    case empty
    /// There is more than one document.
    case severalDocuments
    /// The same key twice in one mapping, which YAML forbids; the first one stands at this line.
    case duplicateKey(String, firstLine: Int)
    /// A key that is not a scalar.
    case keyNotScalar
    /// An alias without an anchor of this name before it, or within the anchor itself.
    case unknownAlias(String)
    /// More bytes than are read; the bound.
    case tooLarge(bytes: Int)
    /// Collections within collections deeper than this.
    case tooDeep(Int)
    /// More nodes than this, aliases counted as often as they are used.
    case tooManyNodes(Int)
  }

  /// What is wrong.
  package let reason: Reason
  /// Where.
  package let place: Place

  /// An error of this kind at a place.
  package init(_ reason: Reason, at place: Place) {
    self.reason = reason
    self.place = place
  }
}

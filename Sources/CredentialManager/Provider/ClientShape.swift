import CredmgrCryptography
import CredmgrDescriptors
import CredmgrOAuth

/// A value of a client that the user pastes from the provider's page.
package enum ClientPart: Sendable {
  case identifier, secret

  /// Reads the text of one of `other_shapes`; `nil` if it means neither part.
  init?(meaning: String) {
    switch meaning {
    case "the client ID": self = .identifier
    case "the client secret": self = .secret
    default: return nil
    }
  }
}

/// A reason to doubt a pasted value. Contains no part of it, because it may be a secret in the wrong place.
package enum ClientDoubt: Sendable, Equatable {
  case otherForm
  case other(ClientPart)
  case named(String)  // A text of the descriptor.
  case location(isAccepted: Bool)  // A URL, which the provider does not accept, or not in this form.
}

extension ClientRules {
  /// Returns why a text is probably not the client's secret; the identifier is a likely wrong paste.
  package func doubt(_ secret: Secret, of identifier: String?) -> ClientDoubt? {
    if let identifier, secret == Secret(identifier) { return .other(.identifier) }
    return doubt(secret.reveal(), as: .secret)
  }

  /// Returns why a text is probably not this part of a client; `nil` if no pattern of the descriptor says so.
  package func doubt(_ text: String, as asked: ClientPart) -> ClientDoubt? {
    func isOther(_ pattern: String?) -> Bool { pattern.map { Variable.value(text, matches: $0) } ?? false }
    let (own, other) = asked == .identifier ? (identifierPattern, secretPattern) : (secretPattern, identifierPattern)
    if isOther(own) { return nil }
    if asked == .identifier, text.hasPrefix("https://") {
      return takesDocument && ClientDocument.isLocation(text) ? nil : .location(isAccepted: takesDocument)
    }
    for shape in otherShapes where isOther(shape.pattern) {
      guard let part = ClientPart(meaning: shape.meaning) else { return .named(shape.meaning) }
      // A shape of one part says nothing against that part.
      if part != asked { return .other(part) }
    }
    if isOther(other) { return .other(asked == .identifier ? .secret : .identifier) }
    return own == nil ? nil : .otherForm
  }
}

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrOAuth

/// A value of a client that the user pastes from the provider's page.
package enum ClientPart: Sendable { case identifier, secret }

/// A reason to doubt a pasted value. Contains no part of it, because it may be a secret in the wrong place.
package enum ClientDoubt: Sendable, Equatable {
  case otherForm
  case other(ClientPart)
  case named(String)  // A text of the descriptor.
  case location(isAccepted: Bool)  // A URL, which the provider does not accept, or not in this form.
}

extension ClientRules {
  package func doubt(_ secret: Secret) -> ClientDoubt? { doubt(secret.reveal(), as: .secret) }

  /// Returns why a text is probably not this part of a client; `nil` if no pattern of the descriptor says so.
  package func doubt(_ text: String, as part: ClientPart) -> ClientDoubt? {
    func isOther(_ pattern: String?) -> Bool { pattern.map { Variable.value(text, matches: $0) } ?? false }
    let (own, other) = part == .identifier ? (identifierPattern, secretPattern) : (secretPattern, identifierPattern)
    if isOther(own) { return nil }
    if part == .identifier, text.hasPrefix("https://") {
      return takesDocument && ClientDocument.isLocation(text) ? nil : .location(isAccepted: takesDocument)
    }
    if let shape = otherShapes.first(where: { isOther($0.pattern) }) { return .named(shape.meaning) }
    if isOther(other) { return .other(part == .identifier ? .secret : .identifier) }
    return own == nil ? nil : .otherForm
  }
}

import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON

/// The elements of a list in an answer that fulfil the conditions of the descriptor.
package struct ElementList: Sendable {
  package fileprivate(set) var labels: [String]
  package let isNamed: Bool  // Whether the value of a variable is a condition, so the user named the element.
  fileprivate let elements: [JSONValue]
  private let names: [String]  // The fields that an account keeps of its element.
  private let fields: [[String: String]]

  fileprivate init(_ elements: [JSONValue], isNamed: Bool, label: [FieldPath], in answer: Answer) {
    (self.elements, self.isNamed) = (elements, isNamed)
    names = answer.rules.keep.filter(\.isOfElement).map(\.name)
    let names = names
    fields = elements.map { element in
      var answer = answer
      answer.element = element
      return answer.kept.filter { names.contains($0.key) }
    }
    labels = elements.enumerated().map { place, element in
      label.lazy.compactMap { answer.value(at: $0, in: element).flatMap(Answer.text) }.first { !$0.isEmpty }
        ?? "\(place + 1)"
    }
  }

  /// Whether the fields of an account are, in part, those of an element.
  package func isKnown(_ fields: [String: String]) -> Bool { names.contains { fields[$0] != nil } }

  /// Returns the first element with the fields of an account; `nil` if none has all of them.
  package func place(of fields: [String: String]) -> Int? { places(of: fields).first }

  fileprivate func places(of account: [String: String]) -> [Int] {
    guard isKnown(account) else { return [] }
    return fields.indices.filter { place in names.allSatisfy { fields[place][$0] == account[$0] } }
  }

  fileprivate func isUnique(_ place: Int) -> Bool { places(of: fields[place]) == [place] }
}

extension Answer {
  /// Returns the elements of the list that the descriptor names; `nil` without a list, or if it is empty.
  fileprivate func elements(_ values: (String) -> String?) throws(OAuthError) -> ElementList? {
    guard let rules = rules.element else { return nil }
    let found = rules.isAnswer ? root : value(at: rules.list, in: root)
    // A list of one element is not recognizable as a list in XML.
    let list = found?.elements ?? (self.rules.format == .xml ? [found].compactMap(\.self) : [])
    let conditions = rules.conditions.compactMap { rule in
      (try? rule.value?.filled(values)).map { (path: FieldPath(rule.name), text: $0, template: rule.value) }
    }
    let fitting = list.filter { element in
      conditions.allSatisfy { path, text, _ in
        guard let found = value(at: path, in: element) else { return false }
        return (found.elements ?? [found]).contains { Self.text($0) == text }
      }
    }
    if list.isEmpty { return nil }
    if fitting.isEmpty { throw .elementMissing(kind) }
    let isNamed = conditions.contains { $0.template?.names.isEmpty == false }
    return ElementList(fitting, isNamed: isNamed, label: rules.label, in: self)
  }

  /// Chooses the element for a login. If a token is of the element, a refresh must be able to find it again.
  fileprivate mutating func choose(_ place: Int, _ values: (String) -> String?) throws(OAuthError) {
    guard let list = try elements(values) else { return }
    let place = list.elements.indices.contains(place) ? place : 0
    if kind.leg.issuesToken, rules.hasTokenOfElement, !list.isUnique(place) { throw .elementUnknown(kind) }
    element = list.elements[place]
  }

  /// Chooses the element whose fields the account has. If the list no longer has it, these fields stay as they are.
  fileprivate mutating func choose(
    like account: [String: String], _ values: (String) -> String?
  ) throws(OAuthError) {
    guard let list = try elements(values) else {
      isElementGone = true
      return
    }
    let places = list.places(of: account)
    if kind.leg.issuesToken, rules.hasTokenOfElement, places.count != 1 { throw .elementUnknown(kind) }
    // The account may be older than the key in the descriptor.
    let isOnly = !list.isKnown(account) && list.elements.count == 1
    element = (places.first ?? (isOnly ? 0 : nil)).map { list.elements[$0] }
    isElementGone = element == nil
  }
}

extension Client {
  /// Returns the elements of an answer among which a login chooses; `nil` if the descriptor or the answer has no list.
  package func elements(
    in response: HTTPResponse, _ kind: EndpointKind, for credential: Credential
  ) throws(OAuthError) -> ElementList? {
    guard descriptor.endpoints[kind]?.response.element != nil else { return nil }
    let answer = try Answer(response, of: kind, by: endpoint(kind).response, allowsRepeated: true)
    var list = try answer.elements(values(for: credential))
    // A label is shown, so it is the place instead of a secret.
    for (place, label) in (list?.labels ?? []).enumerated() where credential.holds(label) {
      list?.labels[place] = "\(place + 1)"
    }
    return list
  }

  /// Chooses the element at a place of the list that the descriptor names; without a place, that of the account.
  func choose(_ place: Int?, in answer: inout Answer, for credential: Credential?) throws(OAuthError) {
    let values = values(for: credential)
    if let place { return try answer.choose(place, values) }
    try answer.choose(like: credential?.kept ?? [:], values)
  }
}

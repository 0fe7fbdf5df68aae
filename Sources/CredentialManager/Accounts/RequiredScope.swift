import CredmgrDescriptors
import CredmgrHTTP

/// The scopes that a server requires for a request that it refused.
package struct RequiredScope: Sendable, Equatable {
  package let scopes: [String]
  package let isChoice: Bool  // Whether one of them is enough.

  /// Reads the challenges of an answer (RFC 6750, 3.1); `nil` if none says that the scope is insufficient.
  package init?(challenges: [String]) {
    let challenges = Challenge.all(in: challenges)
    guard let found = challenges.first(where: { $0["error"] == "insufficient_scope" }) else { return nil }
    scopes = Self.tokens(found["scope"] ?? "")
    isChoice = false
  }

  /// Reads a refusal; `nil` if it does not concern scopes. GitHub hides a resource with status 404.
  package init?(_ head: HTTPResponse, of descriptor: Descriptor, granted: [String]) {
    if let challenged = Self(challenges: head.fields.values("WWW-Authenticate")) {
      self = challenged
      return
    }
    guard [403, 404].contains(head.status), let name = descriptor.scope.requiredHeader, let text = head.fields[name]
    else { return nil }
    scopes = Self.tokens(text)
    isChoice = true
    // The header is also in refusals for other reasons.
    if scopes.isEmpty || !Set(scopes).isDisjoint(with: granted) { return nil }
  }

  /// Returns the scopes in a text from a server (RFC 6749, 3.3), without those that look like an option. A command with
  /// long ones, or with more than the first ones, would fill the terminal.
  static func tokens(_ text: String) -> [String] {
    let words = text.split { " ,".contains($0) }.lazy.map(String.init).filter { word in
      word.utf8.count <= 256 && word.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
        && !word.hasPrefix("-")
    }
    return Array(words.prefix(32))
  }
}

extension Descriptor {
  /// Returns the options of a login for the required scopes and for those that the account has; empty if it is not
  /// known which scopes are required.
  package func loginOptions(for required: RequiredScope) -> [String] {
    if required.scopes.isEmpty { return [] }
    let fitting = scopeSets.filter { set in
      required.isChoice
        ? !Set(set.scopes).isDisjoint(with: required.scopes) : Set(set.scopes).isSuperset(of: required.scopes)
    }
    if let best = fitting.min(by: { $0.scopes.count < $1.scopes.count }) { return ["--step-up", "--for", best.name] }
    let needed = required.isChoice ? Array(required.scopes.prefix(1)) : required.scopes
    return ["--step-up"] + needed.flatMap { ["--scope", $0] }
  }
}

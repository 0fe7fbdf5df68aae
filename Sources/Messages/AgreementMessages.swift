import CredmgrCredentialManager
import CredmgrText

extension [NewPlace] {
  /// Returns a sentence for each place: `it would send tokens to "evil.example" (file:1:1)`. `accounts` are those with
  /// stored tokens; `nil` if unknown.
  package func sentences(_ accounts: [String]? = nil) -> [String] {
    let tokens = accounts.map { $0.isEmpty ? "the client secret" : "the tokens of \(some($0))" } ?? "tokens"
    let (shown, settings) = withoutManySettings
    return shown.map { place in
      switch place.kind {
      case .secrets, .tokens: "it would send \(tokens) to \(place.named)"
      case .anyIssuer: "it would use answers from any issuer" + place.source
      case .setting(let key), .value(let key): "it would set \(quoted(key)) to \(place.named)"
      case .shownSecret: "it would show the secret \(place.named)"
      default: "it would use the \(place.noun) \(place.named)"
      }
    } + (settings.isEmpty ? [] : ["it would change \(some(settings))"])
  }

  /// The reasons to ask the user, with one sentence for all places with the same reason.
  package var peculiarities: [String] {
    var reasons: [(key: [String], values: [String])] = []
    let (shown, settings) = withoutManySettings
    for place in shown { reasons.note(place.named, of: place.reason) }
    return reasons.map { $0.key[0] + $0.values.joined(separator: ", ") + $0.key[1] }
      + (settings.isEmpty ? [] : ["its settings \(some(settings)) differ from what you agreed to"])
  }

  /// The places, and the keys of settings that would hide the others because there are many. None of these settings
  /// gives a credential away.
  private var withoutManySettings: (shown: [NewPlace], settings: [String]) {
    let settings = compactMap { place in if case .value(let key) = place.kind { key } else { nil } }
    if settings.count <= 5 { return (self, []) }
    return (filter { if case .value = $0.kind { false } else { true } }, settings)
  }
}

extension Array {
  /// Adds a value to a key's list unless it is already there.
  package mutating func note<Key: Equatable, Value: Equatable>(_ value: Value, of key: Key)
  where Element == (key: Key, values: [Value]) {
    guard let index = firstIndex(where: { $0.key == key }) else { return append((key, [value])) }
    if !self[index].values.contains(value) { self[index].values.append(value) }
  }
}

extension NewPlace {
  fileprivate var named: String { quoted(name) + source }

  fileprivate var source: String { place.map { " (\($0.source.name):\($0.line):\($0.column))" } ?? "" }

  fileprivate var noun: String {
    switch kind {
    case .secrets, .tokens, .borrower: "origin"
    case .redirect, .scheme: "redirect"
    case .devicePage, .othersDevicePage: "device page"
    case .issuer, .anyIssuer: "issuer"
    case .keys: "origin of keys"
    case .audience: "audience of assertions"
    case .shownSecret: "variable"
    case .setting(let key), .value(let key): key
    }
  }

  private var gets: String {
    switch kind {
    case .secrets: "gets the client secret and tokens"
    case .tokens: "gets tokens"
    case .redirect: "receives the answers to logins"
    case .scheme(let owner): "is opened by \(quoted(owner))"
    case .devicePage, .othersDevicePage: "is opened for entering a device code"
    case .borrower: "gets tokens of another provider"
    case .issuer: "may issue answers"
    case .anyIssuer: "allows answers from any issuer"
    case .keys: "has the keys that verify ID tokens"
    case .audience: "receives assertions that the client signs"
    case .shownSecret: "is shown and no longer secret"
    case .setting(let key):
      key.hasPrefix("response.") ? "supplies that secret" : "protects less"
    case .value: "differs from what you agreed to"
    }
  }

  /// The texts before and after the name.
  fileprivate var reason: [String] {
    switch kind {
    case .audience: ["its signed JWTs are for ", ", where another server could use them"]
    case .issuer: ["its issuer ", " is on a different server than its endpoints"]
    case .devicePage: ["its page for device codes ", " is on a different server than its endpoints"]
    case .othersDevicePage(let owner): ["its page for device codes ", " belongs to \(quoted(owner))"]
    case .borrower(let owner, let page):
      ["logins use \(quoted(page)), which belongs to \(quoted(owner)), and their tokens go to ", ""]
    default: ["its \(noun) ", " \(gets)"]
    }
  }

  /// One line with the old place, the new one, and what the new one gets.
  package var difference: String {
    let old = before.isEmpty ? "(nothing)" : before.map(quoted).joined(separator: ", ")
    return "\(noun): \(old) -> \(named), which \(gets)"
  }
}

extension MixUp {
  func sentence(_ provider: String, _ other: String) -> String {
    switch self {
    case .issuer(let issuer):
      "\(quoted(provider)) names the issuer \(quoted(issuer)), which belongs to \(quoted(other))"
    case .page(let page, let token):
      "the login page of \(quoted(provider)) is on \(quoted(page)), which belongs to \(quoted(other)), but its codes "
        + "would go to \(quoted(token))"
    case .redirect(let redirect): "\(quoted(provider)) and \(quoted(other)) use the same redirect: \(quoted(redirect))"
    case .devicePage(let host):
      "the page for the code of \(quoted(provider)) is on \(quoted(host)), which belongs to \(quoted(other))"
    case .answer(let issuer):
      "the redirect comes from \(quoted(issuer)), which belongs to \(quoted(other)), instead of \(quoted(provider))"
    }
  }

  var isInAnswer: Bool {
    switch self {
    case .answer, .devicePage: true
    case .issuer, .page, .redirect: false
    }
  }
}

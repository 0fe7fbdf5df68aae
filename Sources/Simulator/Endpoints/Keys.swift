import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP

extension Simulation {
  /// Makes a key for the start page, if the provider takes keys that users make. It does not expire.
  mutating func makeKey() {
    guard let grant = descriptor.grants.first(where: { $0.traits.asked != nil }) else { return }
    var key = IssuedKey(token: randomText("key-"), variables: [:], lines: [])
    let asked = descriptor.variables.filter(\.isAtLogin)
    let secret = grant.traits.isInVariables ? asked.first(where: \.isSecret)?.name : nil
    let inFile = descriptor.key?.file.map(\.variable) ?? []
    for variable in asked {
      let text = variable.format == .integer ? "1" : variable.isSecret ? randomText("secret-") : "ada"
      let sample =
        variable.isAtExchange
        ? subjectToken : inFile.contains(variable.name) && variable.isSecret ? practiceKey.reveal() + "\n" : text
      let given = settings.variables[variable.name] ?? variable.choices.first
      let value = variable.name == secret ? key.token : given ?? sample
      key.variables[variable.name] = value
      if !inFile.contains(variable.name), !variable.isAtExchange {
        key.lines.append((variable.help ?? variable.name, value))
      }
    }
    if !inFile.isEmpty { key.lines.insert((grant.traits.asked ?? "", keyFile(key.variables)), at: 0) }
    if let typed = grant.traits.typed, !grant.traits.isInVariables { key.lines.append((typed, key.token)) }
    if grant.traits.typed != nil {
      state.tokens[key.token] = IssuedToken(consent: addConsent(account: "ada", scope: []), expiresAt: nil)
    }
    state.key = key
  }

  /// Returns the token in a user name and a password (RFC 7617); `nil` if the other half is wrong.
  func token(inPair value: String, _ style: HeaderStyle) -> String? {
    guard let bytes = Base64.decode(value), let text = String(validating: bytes, as: UTF8.self) else { return nil }
    let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard halves.count == 2 else { return nil }
    let isName = style.username != nil
    guard let template = isName ? style.username : style.password else { return nil }
    let other = isName ? halves[0] : halves[1]
    let isRight = template.literal == other || TemplatePattern(template, knowledge()).captures(in: other) != nil
    return isRight ? isName ? halves[1] : halves[0] : nil
  }
}

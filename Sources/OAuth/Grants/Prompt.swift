import CredmgrCryptography
import CredmgrDescriptors
import CredmgrText

extension Step {
  /// Values that the user types or pastes.
  package struct Prompt {
    package let fields: [Field]
    package let page: String?  // Where to make a key.
    let read: (_ values: [String: String], _ now: Moment) -> Step

    /// Returns the next step. Throws the first fault of a value; `texts` has one text for each field.
    package func read(_ texts: [String], _ now: Moment) throws(PasteFault) -> Step {
      var values: [String: String] = [:]
      for (field, text) in zip(fields, texts) { values[field.name] = try field.value(of: text) }
      return read(values, now)
    }

    /// Returns the next step of a dry run.
    func read(placeholders value: (String) -> String) -> Step {
      read(Dictionary(uniqueKeysWithValues: fields.map { ($0.name, value($0.name)) }), 0)
    }
  }
}

extension Step.Prompt {
  /// One line that the user types.
  package struct Field: Sendable, Equatable {
    package enum Content: Sendable { case text, key, password }

    package let name: String
    package let label: String
    package let content: Content
    package var isSecret = true
    package var isOptional = false
    var pattern: String?
    var choices: [String] = []

    package init(
      name: String, label: String, content: Content, isSecret: Bool = true, isOptional: Bool = false,
      pattern: String? = nil, choices: [String] = []
    ) {
      (self.name, self.label, self.content, self.isSecret) = (name, label, content, isSecret)
      (self.isOptional, self.pattern, self.choices) = (isOptional, pattern, choices)
    }

    /// Creates the field for the credential itself: a key, an access token or a password.
    package init(typed label: String, as content: Content, pattern: String?) {
      self.init(name: "access_token", label: label, content: content, pattern: pattern)
    }

    /// Returns the value of a typed or pasted text. Blanks and line ends around it are no part of a value, except those
    /// of a password.
    package func value(of text: String) throws(PasteFault) -> String {
      guard text.utf8.count <= Self.longest else { throw .tooLong(label, bytes: Self.longest) }
      var scalars = Substring(text).unicodeScalars
      // Some editors write U+FEFF at the beginning of a file.
      if scalars.first == "\u{FEFF}" { scalars.removeFirst() }
      while let last = scalars.last, isRemovable(last) { scalars.removeLast() }
      if content != .password { scalars = scalars.drop { isRemovable($0) } }
      let value = String(scalars)
      if value.isEmpty {
        if isOptional { return "" }
        throw .empty(label)
      }
      for scalar in value.unicodeScalars {
        switch scalar.value {
        case 0x0A, 0x0D: throw .lines(label)
        case 0x20 where content == .key: throw .blank(label)
        case 0..<0x20, 0x7F: throw .character(label)
        case 0x80... where content == .key: throw .character(label)
        default: continue
        }
      }
      if let pattern, !Variable.value(value, matches: pattern) { throw .pattern(label) }
      if !choices.isEmpty, !choices.contains(value) { throw .pattern(label) }
      return value
    }

    private func isRemovable(_ scalar: Unicode.Scalar) -> Bool {
      scalar == "\n" || scalar == "\r" || content != .password && (scalar == " " || scalar == "\t")
    }

    /// A JSON Web Token with many groups has tens of KiB.
    private static let longest = 65_536
  }
}

/// Why a typed or pasted text is not the value of a field. Contains no part of the text.
package enum PasteFault: Error, Sendable, Equatable {
  case empty(String)
  case lines(String)
  case blank(String)
  case character(String)
  case tooLong(String, bytes: Int)
  case pattern(String)
  case count(expected: [String])  // The number of lines differs from the number of fields.
}

extension Client {
  /// The field for the credential itself: a key, an access token or a password.
  func field(typed label: String, as content: Step.Prompt.Field.Content) -> Step.Prompt.Field {
    Step.Prompt.Field(typed: label, as: content, pattern: descriptor.key?.pattern)
  }

  /// The fields for the variables that each login needs and that have no value yet.
  fileprivate var fieldsOfLogin: [Step.Prompt.Field] {
    descriptor.variables.filter { $0.isAtLogin && variables[$0.name] == nil }.map { variable in
      Step.Prompt.Field(
        name: variable.name, label: variable.help ?? variable.name, content: .text, isSecret: variable.isSecret,
        isOptional: variable.isOptional, pattern: variable.pattern, choices: variable.choices)
    }
  }
}

extension LoginContext {
  /// Prompts for the variables of the login and then for `typed`; `nil` if a secret variable is the credential.
  func prompt(for typed: Step.Prompt.Field?) -> Step {
    let fields = client.fieldsOfLogin + (typed.map { [$0] } ?? [])
    let secret = client.descriptor.variables.first { $0.isAtLogin && $0.isSecret }?.name
    func done(_ values: [String: String], _ now: Moment) -> Step {
      let token = values[typed?.name ?? secret ?? ""] ?? secret.flatMap { client.variables[$0] } ?? ""
      var credential = Credential(
        grant: grant, accessToken: Secret(token), obtainedAt: now, margin: client.descriptor.expiry.margin)
      credential.variables = values.filter { $0.key != typed?.name && !$0.value.isEmpty }
      credential.expiresAt = client.descriptor.key?.lifetime.map { now + $0 }
      return .done(credential, unreadable: [])
    }
    return .prompt(Step.Prompt(fields: fields, page: client.descriptor.key?.page, read: done))
  }
}

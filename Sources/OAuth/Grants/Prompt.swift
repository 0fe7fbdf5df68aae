import CredmgrCryptography
import CredmgrDescriptors
import CredmgrText

extension Step {
  /// Values that the user types or pastes.
  package struct Prompt {
    package let fields: [Field]
    package let page: String?  // Where to make a key.
    /// Returns the next step.
    package let read: (_ values: [String: String], _ now: Moment) throws(OAuthError) -> Step

    /// Returns the values by name. Throws the first fault of a value; `texts` has one text for each field.
    package func values(of texts: [String]) throws(PasteFault) -> [String: String] {
      var values: [String: String] = [:]
      for (field, text) in zip(fields, texts) {
        if field.content == .keyFile {
          values.merge(try KeyFile.values(in: text, field.file)) { $1 }
        } else {
          values[field.name] = try field.value(of: text)
        }
      }
      return values
    }

    /// Whether the texts of the first fields have the right form.
    package func accepts(_ texts: [String]) -> Bool { (try? values(of: texts)) != nil }

    /// Returns the next step of a dry run.
    func read(placeholders value: (String) -> String) throws(OAuthError) -> Step {
      let names = fields.flatMap { $0.content == .keyFile ? $0.file.map(\.variable.name) : [$0.name] }
      return try read(Dictionary(uniqueKeysWithValues: names.map { ($0, value($0)) }), 0)
    }
  }
}

extension Step.Prompt {
  /// One line that the user types.
  package struct Field: Sendable, Equatable {
    package enum Content: Sendable { case text, key, password, keyFile }

    package let name: String
    package let label: String
    package let content: Content
    package var isSecret = true
    package var isOptional = false
    var pattern: String?
    var choices: [String] = []
    var format = Variable.Format.text
    var isUserName = false  // Whether requests send the value as the user name of a pair.
    var schemes: [String] = []  // The words before a credential in a header, in lower case.
    package var file: [KeyFile.Member] = []  // The content of a key file.

    package init(
      name: String, label: String, content: Content, isSecret: Bool = true, isOptional: Bool = false,
      pattern: String? = nil, choices: [String] = [], format: Variable.Format = .text
    ) {
      (self.name, self.label, self.content, self.isSecret) = (name, label, content, isSecret)
      (self.isOptional, self.pattern, self.choices, self.format) = (isOptional, pattern, choices, format)
    }

    /// Creates the field for the credential itself: a key, an access token or a password.
    package init(typed label: String, as content: Content, of descriptor: Descriptor) {
      self.init(name: "access_token", label: label, content: content, pattern: descriptor.key?.pattern)
      isUserName = descriptor.headerStyle.password != nil
      schemes = ["bearer", "token"] + descriptor.headerStyle.tokenTypes.map { $0.lowercased() }
      if case .header(_, let scheme) = descriptor.headerStyle.location { schemes.append(scheme.lowercased()) }
    }

    /// Returns the value of a typed or pasted text. Blanks and line ends around it are no part of a value, except those
    /// of a password. A key may be copied from a header, with the scheme before it.
    package func value(of text: String) throws(PasteFault) -> String {
      if Self.isTooLong(text) { throw .tooLong(label, bytes: Self.longest) }
      var scalars = Substring(text).unicodeScalars
      // Some editors write U+FEFF at the beginning of a file, and browsers copy invisible blanks.
      if scalars.first == "\u{FEFF}" { scalars.removeFirst() }
      while let last = scalars.last, isRemovable(last) { scalars.removeLast() }
      if content != .password { scalars = scalars.drop { isRemovable($0) } }
      let value = String(scalars)
      if value.isEmpty {
        if isOptional { return "" }
        throw .empty(label)
      }
      if content == .key, let blank = value.firstIndex(of: " "), schemes.contains(value[..<blank].lowercased()) {
        var bare = self
        bare.schemes = []
        return try bare.value(of: String(value[blank...]))
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
      // The key is the user name of a pair, which ends at the first colon (RFC 7617, 2).
      if isUserName, value.contains(":") { throw .colon(label) }
      if content == .key, ["https://", "http://"].contains(where: value.hasPrefix) { throw .address(label) }
      if let pattern, !Variable.value(value, matches: pattern) { throw .pattern(label) }
      if !choices.isEmpty, !choices.contains(value) { throw .choice(label, choices) }
      guard Variable.value(value, has: format) else { throw .format(label, format) }
      return value
    }

    private func isRemovable(_ scalar: Unicode.Scalar) -> Bool {
      scalar == "\n" || scalar == "\r"
        || content != .password && (scalar.properties.isWhitespace || scalar == "\u{200B}" || scalar == "\u{FEFF}")
    }

    /// A JSON Web Token with many groups has tens of KiB.
    private static let longest = 65_536

    /// Whether a text is too long for any value.
    package static func isTooLong(_ text: String) -> Bool { text.utf8.count > longest }
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
  case choice(String, [String])
  case format(String, Variable.Format)
  case colon(String)
  case address(String)  // The address of a page.
  case count(expected: [String])  // The number of lines differs from the number of fields.
  case keyFile(KeyFile.Fault)
}

extension Client {
  /// The field for the credential itself: a key, an access token or a password.
  func field(typed label: String, as content: Step.Prompt.Field.Content) -> Step.Prompt.Field {
    Step.Prompt.Field(typed: label, as: content, of: descriptor)
  }

  /// The fields for the variables that each login needs and that have no value yet.
  fileprivate var fieldsOfLogin: [Step.Prompt.Field] {
    let missing = descriptor.variables.filter { $0.isAtLogin && variables[$0.name] == nil }
    let file = (descriptor.key?.file ?? []).compactMap { field in
      missing.first { $0.name == field.variable }.map { variable in
        let isSigning = descriptor.assertion?.key.names.contains(variable.name) ?? false
        return KeyFile.Member(
          variable: variable, path: field.path, signs: isSigning ? descriptor.assertion?.algorithm ?? .rs256 : nil)
      }
    }
    // A user name with a help of the descriptor is still a user name.
    let own = descriptor.grants.flatMap(\.traits.variables)
    var fields = missing.filter { variable in !file.contains { $0.variable == variable } }.map { variable in
      Step.Prompt.Field(
        name: variable.name, label: variable.help ?? variable.name, content: .text, isSecret: variable.isSecret,
        isOptional: variable.isOptional,
        pattern: variable.pattern ?? own.first { $0.name == variable.name }?.pattern, choices: variable.choices,
        format: variable.format)
    }
    if !file.isEmpty {
      var field = Step.Prompt.Field(name: KeyFile.name, label: "key file", content: .keyFile)
      field.file = file
      fields.insert(field, at: 0)
    }
    return fields
  }
}

extension LoginContext {
  /// Prompts for the variables of the login and then for `typed`; `nil` if a secret variable is the credential.
  func prompt(for typed: Step.Prompt.Field?) -> Step {
    let secret = client.descriptor.variables.first { $0.isAtLogin && $0.isSecret && !$0.isAtExchange }?.name
    return prompt(typed.map { [$0] } ?? []) { values, now in
      let token = values[typed?.name ?? secret ?? ""] ?? secret.flatMap { client.variables[$0] } ?? ""
      var credential = credential(with: values, now)
      credential.accessToken = Secret(token)
      credential.variables[typed?.name ?? ""] = nil
      credential.expiresAt = client.descriptor.key?.lifetime.map { now + $0 }
      return .done(credential, unreadable: [])
    }
  }

  /// Prompts for the variables of the login, which `next` uses to get a token.
  func promptToGetToken(_ next: @escaping (_ typed: Credential) throws(OAuthError) -> Step) -> Step {
    prompt([]) { values, now throws(OAuthError) in
      var credential = credential(with: values, now)
      credential.requestedScope = scope
      credential.requestedDetails = client.descriptor.authorizationDetails.requested
      return try next(credential)
    }
  }

  private func prompt(
    _ more: [Step.Prompt.Field], read: @escaping (_ values: [String: String], _ now: Moment) throws(OAuthError) -> Step
  ) -> Step {
    .prompt(Step.Prompt(fields: client.fieldsOfLogin + more, page: client.descriptor.key?.page, read: read))
  }

  /// Returns a credential that has the typed values and no token.
  private func credential(with values: [String: String], _ now: Moment) -> Credential {
    var credential = Credential(
      grant: grant, accessToken: Secret(""), obtainedAt: now, margin: client.descriptor.expiry.margin)
    credential.variables = values.filter { !$0.value.isEmpty }
    return credential
  }

  /// Exchanges the typed values for a token. A refresh sends the same request.
  func exchange(_ typed: Credential) -> Step {
    .send(
      Step.Exchange(kind: .token) { nonce throws(OAuthError) in
        try client.refreshRequest(typed, nonce: nonce)
      } read: { answer, now throws(OAuthError) in
        let outcome = client.outcome(answer, .token, grant: grant, scope: scope, now: now) { credential, _ in
          credential.variables = typed.variables
        }
        return try client.end(outcome)
      })
  }
}

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText
import CredmgrXML

/// A provider's answer in any format, as one tree for the descriptor's paths.
struct Answer: Sendable {
  let kind: EndpointKind
  let rules: ResponseRules
  let status: Int?
  private let headers: HTTPFields
  let date: Moment?  // The time on the provider's clock.
  let root: JSONValue
  private let problem: JSONValue  // The parameters of an OAuth 1.0a challenge.
  var element: JSONValue?  // The chosen element of the list that `rules` name.
  var isElementGone = false  // The list no longer has the element of the account, whose fields stay.

  /// Pass `allowsRepeated` if the caller checks for repeated names itself.
  init(
    _ response: HTTPResponse, of kind: EndpointKind, by rules: ResponseRules, allowsRepeated: Bool = false
  ) throws(OAuthError) {
    self.kind = kind
    self.rules = rules
    status = response.status
    headers = response.fields
    date = response.fields["Date"].flatMap(Moment.init(httpDate:))
    if (300..<400).contains(response.status) { throw .redirected(kind, status: response.status) }
    let isUnavailable = response.status == 429 || response.status >= 500
    let retryAfter = response.retryAfter
    let isSuccess = (200..<300).contains(response.status)
    let isInHeaders = rules.fields.values.contains { $0.paths.contains { $0.header != nil } }
    let format = rules.format ?? .json
    problem = isSuccess ? .null : Self.problem(in: response)
    let isElsewhere = isSuccess ? isInHeaders : problem != .null
    var content: JSONValue?
    var fault = XMLError.syntax
    do throws(XMLError) { content = try Self.root(of: response, format, kind) } catch { fault = error }
    guard let root = content ?? (isElsewhere ? .object([]) : nil) else {
      if isSuccess, fault != .syntax { throw .unreadableXML(kind, fault) }
      if isSuccess { throw .unreadable(kind, expected: format, mediaType: response.mediaType) }
      if isUnavailable { throw .unavailable(kind, status: response.status, words: nil, retryAfter: retryAfter) }
      throw Self.refusal(kind, in: response, rules)
    }
    self.root = root
    if !isUnavailable, !allowsRepeated { try requireSingle() }
    if let error {
      let isTransient = Self.transientCodes.contains(error.code)
      if isTransient || (isUnavailable && !isStated(error)) {
        throw .unavailable(
          kind, status: response.status, words: error.words ?? (isTransient ? nil : error.code), retryAfter: retryAfter)
      }
      throw .refused(kind, error)
    }
    if isUnavailable { throw .unavailable(kind, status: response.status, words: nil, retryAfter: retryAfter) }
    if !isSuccess { throw Self.refusal(kind, in: response, rules) }
  }

  /// The error codes that invite another try (RFC 6749, 4.1.2.1).
  private static let transientCodes: Set<String> = ["server_error", "temporarily_unavailable"]

  /// Whether an error code counts although the status says that the server is unavailable: a code for a polling device
  /// (RFC 8628, 3.5), or one that the descriptor translates.
  private func isStated(_ error: ErrorResponse) -> Bool {
    if kind.leg.isPolled {
      return ["authorization_pending", "slow_down", "expired_token", "access_denied"].contains(error.code)
    }
    return firstText(of: rules.errors.code).map(rules.errors.isTranslated) ?? false
  }

  func failure(_ error: ErrorResponse) -> OAuthError {
    guard Self.transientCodes.contains(error.code) else { return .refused(kind, error) }
    return .unavailable(kind, status: nil, words: error.words ?? error.code, retryAfter: nil)
  }

  /// The caller checks a redirect for errors after it has checked the `state`.
  init(redirect parameters: FormParameters, _ rules: ResponseRules) {
    kind = .authorization
    self.rules = rules
    status = nil
    headers = HTTPFields()
    date = nil
    root = Self.object(parameters)
    problem = .null
  }

  /// Without an error code in the body, the status is one, which the descriptor may translate (Trakt). A server that
  /// takes tokens has its code in the header (RFC 6750, 3.1).
  private static func refusal(_ kind: EndpointKind, in response: HTTPResponse, _ rules: ResponseRules) -> OAuthError {
    let status = "http_\(response.status)"
    let challenge = kind == .identity ? response.challenges.first { tokenCodes.contains($0["error"] ?? "") } : nil
    let code = rules.errors.isTranslated(status) ? nil : challenge?["error"]
    return .refused(
      kind,
      ErrorResponse(
        code: code ?? rules.errors.canonical(status) ?? status, words: challenge?["error_description"],
        status: response.status))
  }

  private static let tokenCodes: Set<String> = ["invalid_token", "insufficient_scope"]

  /// Whether the body has no members and no elements.
  var isEmpty: Bool { root.members?.isEmpty ?? root.elements?.isEmpty ?? false }

  // MARK: Repeated names

  func requireSingle(_ more: [FieldPath] = []) throws(OAuthError) {
    if let name = repeatedName(more) { throw .repeated(kind, name: name) }
  }

  /// Returns the first repeated name; the provider and credmgr could each use a different value of it.
  func repeatedName(_ more: [FieldPath] = []) -> String? {
    var outer = rules.errors.code + more + rules.keep.flatMap(\.paths)
    if let within = rules.within { outer.append(within) }
    if kind == .introspection, case .field(let path, _) = rules.active { outer.append(path) }
    let fields = [.introspection, .revocation, .identity].contains(kind) ? [] : ResponseField.allCases
    let inner = fields.flatMap { rules.source(of: $0).paths } + rules.keep.flatMap(\.paths)
    return (outer.first { isRepeated($0, in: root) } ?? inner.first { isRepeated($0, in: scoped) })?.text
  }

  func repeats(_ field: ResponseField) -> Bool { rules.source(of: field).paths.contains { isRepeated($0, in: scoped) } }

  private func isRepeated(_ path: FieldPath, in root: JSONValue) -> Bool {
    if let element, let inner = path.inElement { return isRepeated(inner, in: element) }
    if let name = path.header { return headers.values(name).count > 1 }
    if root[path.text] != nil { return root.repeats(path.text) }
    var value = root
    for component in path.components {
      value = Self.opened(value)
      if value.repeats(component) { return true }
      guard let next = Self.child(component, of: value) else { return false }
      value = next
    }
    return false
  }

  private static func child(_ component: String, of value: JSONValue) -> JSONValue? {
    if let elements = value.elements, let index = Int(component), elements.indices.contains(index) {
      return elements[index]
    }
    return opened(value)[component]
  }

  /// Returns the claims of a JWT (RFC 7519, 4), and every other value unchanged. Their signature is not verified,
  /// because the answer comes over TLS from the provider itself.
  private static func opened(_ value: JSONValue) -> JSONValue {
    if case .string(let text) = value, text.utf8.count <= longestText { JWTClaims.parse(text) ?? value } else { value }
  }

  static let longestText = 65_536

  static func object(_ parameters: FormParameters) -> JSONValue {
    .object(parameters.pairs.map { .init($0.name, .string($0.value)) })
  }

  var error: ErrorResponse? {
    guard let code = firstText(of: rules.errors.code), let canonical = rules.errors.canonical(code) else { return nil }
    let words = firstText(of: rules.errors.description)
    // Without a description, the provider's own code explains more; the names of OAuth 1.0a problems always do.
    let isProblem = firstText(of: [FieldPath("oauth_problem")]) == code
    let own = canonical == code || words != nil && !isProblem ? [] : [code]
    let told = (own + [words].compactMap(\.self)).joined(separator: ": ")
    return ErrorResponse(code: canonical, words: told.isEmpty ? nil : told, status: status)
  }

  /// Returns the first nonempty text, because some providers leave unused fields empty.
  private func firstText(of paths: [FieldPath]) -> String? {
    [root, problem].lazy.flatMap { tree in paths.lazy.compactMap { value(at: $0, in: tree).flatMap(Self.text) } }
      .first { !$0.isEmpty }
  }

  /// Returns the text of a field; `nil` if it is absent, null or empty.
  func text(_ field: ResponseField) -> String? { value(field).flatMap(Self.text).flatMap { $0.isEmpty ? nil : $0 } }

  /// Returns a string; `nil` if it is absent or null. Throws for any other type.
  func string(_ field: ResponseField) throws(OAuthError) -> String? {
    switch value(field) {
    case .string(let text)?: return text
    case nil: return nil
    default: throw .malformedField(kind, field)
    }
  }

  /// Returns a secret. It must be printable ASCII (RFC 6749, appendix A), to fit in a header or a URL.
  func secret(_ field: ResponseField) throws(OAuthError) -> Secret? {
    guard let value = value(field), value != .string("") else { return nil }
    guard case .string(let text) = value, text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
      throw .malformedField(kind, field)
    }
    return Secret(text)
  }

  /// Returns the granted details (RFC 9396, 7), which are a text with JSON in a form; `nil` if absent or malformed.
  var authorizationDetails: AuthorizationDetails? {
    guard let value = value(.authorizationDetails) else { return nil }
    if case .string(let text) = value { return AuthorizationDetails(text) }
    return AuthorizationDetails(value)
  }

  func integer(_ field: ResponseField) -> Int64? { text(field).flatMap { Int64($0) } }

  /// Treats an unreadable field as absent: rejecting the answer could lose the only copy of the tokens.
  func secretIfReadable(_ field: ResponseField) -> Secret? {
    do { return try secret(field) } catch { return nil }
  }

  /// The optional fields of a token answer that are present but unreadable.
  var unreadable: [ResponseField] {
    Self.optionalFields.filter { field in
      guard let value = value(field), value != .string("") else { return false }
      let time = rules.source(of: field).time
      switch field {
      case .refreshToken, .oauthSessionHandle: return secretIfReadable(field) == nil
      case .idToken: return secretIfReadable(field).flatMap { IDToken($0) } == nil
      case .expiresIn, .refreshTokenExpiresIn:
        return Self.text(value).flatMap { Duration(lifetime: $0, time) }.map { $0 < .zero } ?? true
      case .expiresAt, .refreshTokenExpiresAt: return Self.text(value).flatMap { Moment($0, time) } == nil
      case .authorizationDetails: return authorizationDetails == nil && value.elements?.isEmpty != true
      case .scope: return value.elements.map { $0.contains { Self.text($0) == nil } } ?? (Self.text(value) == nil)
      default: return Self.text(value) == nil
      }
    }
  }

  private static let optionalFields: [ResponseField] = [
    .tokenType, .expiresIn, .expiresAt, .refreshToken, .refreshTokenExpiresIn, .refreshTokenExpiresAt, .scope, .idToken,
    .oauthSessionHandle, .authorizationDetails,
  ]

  func text(_ path: FieldPath) -> String? { value(at: path, in: root).flatMap(Self.text) }

  func texts(_ field: ResponseField, separator: String) -> [String]? {
    guard let value = value(field) else { return nil }
    if let elements = value.elements { return elements.compactMap(Self.text) }
    guard let text = Self.text(value) else { return nil }
    return text.pieces(separatedBy: separator).map { String($0.drop { $0 == " " }) }.filter { !$0.isEmpty }
  }

  var kept: [String: String] { kept(areSecret: false) }

  /// Returns further tokens. They must be printable ASCII, as every token.
  func keptSecrets() throws(OAuthError) -> [String: Secret] {
    let kept = kept(areSecret: true)
    for (name, value) in kept.sorted(by: { $0.key < $1.key })
    where !value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
      throw .valueOutOfBounds(kind, name: name)
    }
    return kept.mapValues { Secret($0) }
  }

  private func kept(areSecret: Bool) -> [String: String] {
    var kept: [String: String] = [:]
    for field in rules.keep where field.isSecret == areSecret && !(isElementGone && field.isOfElement) {
      kept[field.name] =
        field.paths.lazy.compactMap { first(of: [$0], in: scoped).flatMap(Self.text) ?? text($0) }
        .compactMap(field.piece).first { !$0.isEmpty }
    }
    return kept
  }

  private func value(_ field: ResponseField) -> JSONValue? { first(of: rules.source(of: field).paths, in: scoped) }

  private var scoped: JSONValue {
    guard let within = rules.within else { return root }
    return value(at: within, in: root) ?? .null
  }

  private func first(of paths: [FieldPath], in value: JSONValue) -> JSONValue? {
    paths.lazy.compactMap { self.value(at: $0, in: value) }.first { $0 != .null }
  }

  func value(at path: FieldPath, in root: JSONValue) -> JSONValue? {
    if let name = path.header { return headers[name].map(JSONValue.string) }
    // Some providers' names contain dots, so try the whole path as one name first.
    if let whole = root[path.text] { return whole }
    if rules.element != nil, let inner = path.inElement { return element.flatMap { self.value(at: inner, in: $0) } }
    var value = root
    for component in path.components {
      guard let next = Self.child(component, of: value) else { return nil }
      value = next
    }
    return value
  }

  static func text(_ value: JSONValue) -> String? {
    switch value {
    case .string(let text): text
    case .number(let text): text
    case .boolean(let value): value ? "true" : "false"
    case .null, .array, .object: nil
    }
  }
}

extension HTTPResponse {
  /// How long to wait (RFC 9110, 10.2.3). A date counts relative to the same answer's own date.
  package var retryAfter: Duration? {
    guard let text = fields["Retry-After"] else { return nil }
    if let seconds = Int64(text) { return seconds >= 0 ? .seconds(min(seconds, Moment.farthest)) : nil }
    guard let moment = Moment(httpDate: text), let date = fields["Date"].flatMap(Moment.init(httpDate:)) else {
      return nil
    }
    return max(moment - date, .zero)
  }
}

extension Duration {
  /// A lifetime over ten years cannot be meant as a number of seconds; treat it as unreadable.
  init?(lifetime text: String, _ form: TimeForm?) {
    guard let number = Double(text), !number.isNaN else { return nil }
    let bound = Double(Duration.days(3650).wholeSeconds)
    self = .seconds(Int64(min(max(form == .milliseconds ? number / 1000 : number, -bound), bound)))
  }

  /// Fractions of a second are dropped.
  init?(_ text: String, _ form: TimeForm?) {
    guard let number = Double(text), number.magnitude < Double(Moment.farthest) else { return nil }
    self = .seconds(Int64(form == .milliseconds ? number / 1000 : number))
  }
}

extension Moment {
  /// Reads a time in an answer or a token (RFC 7519, 4.1.4).
  init?(_ text: String, _ form: TimeForm?) {
    let moment: Moment? =
      switch form {
      case .jwt: JWTClaims.parse(text)?["exp"]?.moment
      case .seconds, .milliseconds: Duration(text, form).map { 0 + $0 }
      case .date: Moment(text)
      case nil: Duration(text, .seconds).map { 0 + $0 } ?? Moment(text)
      }
    guard let moment else { return nil }
    self = moment
  }
}

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText
import CredmgrXML

/// The secrets that this process has seen, because providers quote requests in their error messages. Any value counts
/// as a secret unless its name is known to be harmless. Not thread-safe.
package final class KnownSecrets {
  private var secrets: [Secret] = []
  private var certain: [Secret] = []  // Values that are secret whatever their names are.
  private var tokens: [Secret] = []

  package init() {}

  /// The usual names of parameters and fields whose values are not secret.
  package static let harmlessNames: Set<String> = [
    "grant_type", "response_type", "scope", "scopes", "token_type", "token_type_hint", "expires_in", "expires_at",
    "refresh_token_expires_in", "refresh_token_expires_at", "interval", "error", "error_description", "error_uri",
    "oauth_problem", "oauth_problem_advice", "code_challenge_method", "oauth_signature_method", "oauth_version",
    "oauth_timestamp", "oauth_callback_confirmed",
    "status", "active", "ok", "verification_uri", "verification_url", "redirect_uri", "response_mode", "prompt",
    "access_type",
  ]

  /// Whether the name belongs to public metadata of servers and clients (RFC 8414, 2; OpenID Connect Discovery 1.0, 3;
  /// RFC 7591, 2 and 3.2.1). Excludes the values that manage a client (RFC 7592).
  package static func isMetadata(_ name: String) -> Bool {
    name.hasSuffix("_supported") || metadataNames.contains(name)
  }

  private static let metadataNames = Set(EndpointKind.allCases.compactMap(\.leg.metadataName)).union([
    "issuer", "check_session_iframe", "service_documentation", "op_policy_uri", "op_tos_uri", "client_name",
    "application_type", "redirect_uris", "grant_types", "response_types", "token_endpoint_auth_method",
    "client_id_issued_at", "client_secret_expires_at",
  ])

  package static let harmlessFields: Set<String> = [
    "accept", "content-type", "content-length", "date", "server", "user-agent", "cache-control", "retry-after",
    "x-github-api-version", "connection", "vary",
  ]

  /// Error messages may show these values to the user, although a trace hides them.
  private static let identifiers: Set<String> = [
    "client_id", "oauth_consumer_key", "oauth_nonce", "audience", "resource", "tenant", "login_hint", "realm",
    // This address is useless without its token (RFC 7592, 3), and starts like all addresses of the provider.
    "registration_client_uri",
  ]

  private static let least = 4
  private static let leastInJWT = 16  // Bytes of a part of a JWT.
  private static let leastInAnswer = 8  // Bytes of a value with an unknown name in an answer.
  /// Bytes of the start of a token. A shorter prefix shows only the kind of token, which is harmless.
  private static let leastOfBeginning = 12

  package func learn(_ secret: Secret?) {
    guard let secret, secret.count >= Self.least else { return }
    if !certain.contains(secret) { certain.append(secret) }
    suspect(secret)
  }

  private func suspect(_ secret: Secret?) {
    guard let secret, secret.count >= Self.least, !secrets.contains(secret) else { return }
    secrets.append(secret)
    // A provider may quote one part of a JWT (RFC 7515, 3.1).
    let parts = secret.reveal().split(separator: ".", omittingEmptySubsequences: false)
    if parts.count == 3, parts.allSatisfy({ $0.utf8.count >= Self.leastInJWT }) {
      for part in parts { suspect(Secret(String(part))) }
    }
  }

  package func learn(_ credential: Credential) {
    for secret in credential.secrets {
      learn(secret)
      if secret.count > Self.leastOfBeginning, !tokens.contains(secret) { tokens.append(secret) }
    }
  }

  package func learn(_ request: HTTPRequest) {
    learn(request.uri.queryParameters)
    for field in request.fields where !Self.harmlessFields.contains(field.name.lowercased()) {
      learn(field: field.value)
    }
    if let value = try? JSONValue.parse(request.body) {
      learn(value, least: Self.least)
    } else if request.hasForm {
      learn(FormParameters(decoding: String(decoding: request.body, as: UTF8.self)))
    }
  }

  /// Remembers the secrets in a successful answer.
  package func learn(_ response: HTTPResponse) {
    guard (200..<300).contains(response.status) else { return }
    if let value = try? JSONValue.parse(response.body) {
      learn(value, least: Self.leastInAnswer)
    } else if let text = String(validating: response.body, as: UTF8.self), text.contains("=") {
      learn(FormParameters(decoding: text))
    }
  }

  /// Learns the secrets in an answer, even in an error, whose message may quote them.
  package func learn(_ answer: HTTPResponse, of descriptor: Descriptor) {
    let names = descriptor.secretNames
    for field in answer.fields where names.contains(FieldPath.plain(field.name)) { learn(Secret(field.value)) }
    let formats = descriptor.endpoints.values.map(\.response.format)
    if let value = try? JSONValue.parse(answer.body) {
      learn(value, named: names)
    } else if formats.contains(.xml), let value = try? XMLDocument.parse(answer.body) {
      learn(value, named: names)
    } else if let text = String(validating: answer.body, as: UTF8.self), text.contains("=") {
      learn(FormParameters(decoding: String(text.filter { !$0.isNewline })), named: names)
    }
    // The whole body may be a token.
    if formats.contains(.text), (200..<300).contains(answer.status), answer.body.count <= Template.longest {
      learn(Secret(String(decoding: answer.body, as: UTF8.self).filter { !$0.isNewline }))
    }
  }

  /// Learns the secrets in the address of a page, or in its redirect.
  package func learn(_ parameters: FormParameters, of descriptor: Descriptor) {
    learn(parameters, named: descriptor.secretNames.union(descriptor.secretNamesOfPages))
  }

  private func learn(_ parameters: FormParameters, named names: Set<String>) {
    for pair in parameters.pairs where names.contains(FieldPath.plain(pair.name)) { learn(Secret(pair.value)) }
  }

  private func learn(_ value: JSONValue, named names: Set<String>) {
    for element in value.elements ?? [] { learn(element, named: names) }
    for member in value.members ?? [] {
      for text in [member.value] + (member.value.elements ?? []) where names.contains(FieldPath.plain(member.name)) {
        learn(text.text.map { Secret($0) })
      }
      learn(member.value, named: names)
    }
  }

  private func learn(_ parameters: FormParameters) {
    for pair in parameters.pairs where !Self.isHarmless(pair.name) { suspect(Secret(pair.value)) }
  }

  private func learn(_ value: JSONValue, least: Int) {
    switch value {
    case .object(let members):
      for member in members where !Self.isHarmless(member.name) {
        learn(member.value, least: Self.namesASecret(member.name) ? Self.least : least)
      }
    case .array(let elements): elements.forEach { learn($0, least: least) }
    // A number may be a code. Short numbers occur in too many other texts.
    case .string(let text), .number(let text): if text.utf8.count >= least { suspect(Secret(text)) }
    case .boolean, .null: break
    }
  }

  /// Whether the name marks its value as a secret, even a short one.
  private static func namesASecret(_ name: String) -> Bool {
    let name = name.lowercased()
    return ["token", "secret", "password", "code", "key", "assertion", "signature", "session"].contains {
      name.firstPlace(of: $0) != nil
    }
  }

  /// Whether the text has the form of a parameter or field name; a token may appear where a name is expected.
  package static func isName(_ name: String) -> Bool {
    name.utf8.count <= 48 && name.utf8.allSatisfy { $0.isLetterOrDigit || "_-.:[]$@".utf8.contains($0) }
  }

  /// Whether the text names an authentication scheme (RFC 9110, 11.1) and is not itself a credential.
  package static func isScheme(_ text: some StringProtocol) -> Bool {
    text.utf8.count <= 20 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0 == "-") }
  }

  /// Learns a whole field, the part after its scheme, and the values in that part (RFC 7617, RFC 5849).
  private func learn(field value: String) {
    suspect(Secret(value))
    let words = value.split(separator: " ", maxSplits: 1)
    guard words.count == 2 else { return }
    suspect(Secret(String(words[1])))
    // A bare token followed by parameters (OCLC).
    if !Self.isScheme(words[0]) { suspect(Secret(String(words[0].filter { $0 != "," && $0 != ";" }))) }
    switch words[0].lowercased() {
    case "basic":
      guard let pair = Base64.decode(String(words[1])) else { return }
      let password = String(decoding: pair, as: UTF8.self).split(separator: ":", maxSplits: 1).last ?? ""
      suspect(Secret(String(password)))
      suspect(PercentEncoding.decode(password, plusAsSpace: true).map { Secret($0) })
    case "oauth":
      for parameter in words[1].split(separator: ",") {
        let parts = parameter.split(separator: "=", maxSplits: 1)
        guard parts.count == 2, !Self.isHarmless(parts[0].filter { $0 != " " }) else { continue }
        let text = parts[1].filter { $0 != "\"" }
        suspect(PercentEncoding.decode(text, plusAsSpace: false).map { Secret($0) })
      }
    default: break
    }
  }

  private static func isHarmless(_ name: some StringProtocol) -> Bool {
    harmlessNames.contains(String(name)) || identifiers.contains(String(name)) || isMetadata(String(name))
  }

  // MARK: Masking

  /// Returns the text with an ellipsis for each secret, including encoded secrets.
  package func masked(_ text: String) -> String {
    var bytes = Array(text.utf8)
    let before = bytes
    // Mask longer secrets first, because a secret may be part of another.
    for secret in secrets.sorted(by: { $0.count > $1.count }) where secret.count <= bytes.count {
      for form in Self.forms(of: secret) { bytes = Self.replacing(form, least: form.count, in: bytes) }
    }
    for token in tokens { bytes = Self.replacing(token.revealBytes(), least: Self.leastOfBeginning, in: bytes) }
    bytes = maskedInEscapes(bytes)
    // The provider may have cut its message off inside a secret.
    for secret in secrets {
      let form = secret.revealBytes()
      for count in stride(from: min(form.count - 1, bytes.count), through: Self.leastInAnswer, by: -1)
      where bytes.suffix(count).elementsEqual(form.prefix(count)) {
        bytes.replaceSubrange((bytes.count - count)..., with: Array("…".utf8))
        break
      }
    }
    return bytes == before ? text : String(decoding: bytes, as: UTF8.self)
  }

  /// Whether a text that credmgr would show or store is a secret, or contains one in any form. A text may contain a
  /// short secret by chance.
  package func reveals(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    let levels = EscapedText.levels(of: bytes)
    return certain.contains { secret in
      secret == Secret(text)
        || secret.count >= Self.leastInAnswer
          && (Self.forms(of: secret).contains { bytes.firstPlace(of: $0) != nil }
            || levels.contains { !$0.ranges(of: secret.revealBytes()).isEmpty })
    }
  }

  /// Returns the text with an ellipsis for each secret that JSON escapes hide.
  private func maskedInEscapes(_ bytes: [UInt8]) -> [UInt8] {
    let levels = EscapedText.levels(of: bytes)
    if levels.isEmpty { return bytes }
    let ranges = secrets.map { $0.revealBytes() }.flatMap { form in levels.flatMap { $0.ranges(of: form) } }
    var result = bytes
    // From the end, so that earlier places stay the same.
    for range in Self.joined(ranges).reversed() { result.replaceSubrange(range, with: Array("…".utf8)) }
    return result
  }

  private static func joined(_ ranges: [Range<Int>]) -> [Range<Int>] {
    var joined: [Range<Int>] = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = joined.last, range.lowerBound < last.upperBound {
        joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
      } else {
        joined.append(range)
      }
    }
    return joined
  }

  private static func forms(of secret: Secret) -> [[UInt8]] {
    let bytes = secret.revealBytes()
    let text = String(decoding: bytes, as: UTF8.self)
    let percent = PercentEncoding.encode(text)
    let lowerCase = percent.split(separator: "%", omittingEmptySubsequences: false).enumerated().map { index, piece in
      index == 0 ? String(piece) : piece.prefix(2).lowercased() + piece.dropFirst(2)
    }.joined(separator: "%")
    let hexadecimal = Hexadecimal.encode(bytes)
    var forms: Set<String> = [
      text, percent, percent.exchanging("%20", for: "+"), lowerCase, hexadecimal, hexadecimal.uppercased(),
      // Encoded twice; in other case; in HTML; in JSON.
      percent.exchanging("%", for: "%25"), text.uppercased(), text.lowercased(), Self.html(text),
      String(JSONValue.string(text).encoded.dropFirst().dropLast()), text.exchanging("/", for: "\\/"),
    ]
    // A text has three Base64 forms, which depend on its offset. The bytes next to the text affect the ends of each
    // form.
    for padding in 0..<3 {
      for encoded in [
        Base64.encode([UInt8](repeating: 0, count: padding) + bytes),
        Base64.encodeURL([UInt8](repeating: 0, count: padding) + bytes),
      ] {
        let inner = encoded.filter { $0 != "=" }.dropFirst([0, 2, 3][padding]).dropLast()
        if inner.utf8.count >= leastInAnswer { forms.insert(String(inner)) }
      }
    }
    return forms.map { Array($0.utf8) }.sorted { $0.count > $1.count }
  }

  private static func html(_ text: String) -> String {
    text.exchanging("&", for: "&amp;").exchanging("<", for: "&lt;").exchanging(">", for: "&gt;")
      .exchanging("\"", for: "&quot;")
  }

  /// Replaces each occurrence of the form's beginning of at least `least` bytes.
  private static func replacing(_ form: [UInt8], least: Int, in bytes: [UInt8]) -> [UInt8] {
    let beginning = form.prefix(least)
    guard let first = form.first, bytes.count >= beginning.count else { return bytes }
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == first, bytes[index...].starts(with: beginning) {
        result += Array("…".utf8)
        index += zip(bytes[index...], form).prefix { $0 == $1 }.count
      } else {
        result.append(bytes[index])
        index += 1
      }
    }
    return result
  }
}

extension ErrorResponse {
  fileprivate func masked(by secrets: KnownSecrets) -> ErrorResponse {
    var masked = ErrorResponse(code: secrets.masked(code), words: words.map(secrets.masked), status: status)
    masked.clockDifference = clockDifference
    return masked
  }
}

extension OAuthError {
  package func masked(by secrets: KnownSecrets) -> OAuthError {
    switch self {
    case .refused(let kind, let refusal): .refused(kind, refusal.masked(by: secrets))
    case .unavailable(let kind, let status, let words, let retryAfter):
      .unavailable(kind, status: status, words: words.map(secrets.masked), retryAfter: retryAfter)
    case .unreadable(let kind, let expected, let mediaType):
      .unreadable(kind, expected: expected, mediaType: mediaType.map(secrets.masked))
    case .issuerMismatch(let expected, let found):
      .issuerMismatch(expected: expected, found: secrets.masked(found))
    case .foreignIssuer(let found, let host): .foreignIssuer(found: secrets.masked(found), host: host)
    case .foreignPage(let origin): .foreignPage(origin: secrets.masked(origin))
    case .unknownAuthentication(let method): .unknownAuthentication(secrets.masked(method))
    case .tokenType(let kind, let type): .tokenType(kind, secrets.masked(type))
    case .idToken(let kind, .issuer(let expected, let found)):
      .idToken(kind, .issuer(expected: expected, found: secrets.masked(found)))
    default: self
    }
  }
}

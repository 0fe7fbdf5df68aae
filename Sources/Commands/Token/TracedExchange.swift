import CredmgrCredentialManager
import CredmgrHTTP
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth

/// Shows each exchange. All names appear, but only values with harmless names: masking only known secrets would show
/// unexpected ones. Harmless values are still searched for known secrets, because providers may repeat a secret
/// anywhere.
final class TracedExchange: HTTPExchange {
  private let exchange: any HTTPExchange
  private let secrets: KnownSecrets
  private let write: (String) -> Void
  private let known: () -> KnownPaths
  private lazy var paths = known()

  init(
    _ exchange: any HTTPExchange, _ secrets: KnownSecrets, known: @escaping () -> KnownPaths,
    write: @escaping (String) -> Void
  ) {
    self.exchange = exchange
    self.secrets = secrets
    self.known = known
    self.write = write
  }

  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
    show(request)
    let response = try traced(exchange.send(request, limits: limits))
    secrets.learn(response)
    learnPlaces(response)
    show(response, body: response.body)
    return response
  }

  func stream(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: @escaping (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    show(request)
    if let body { show("> (\(body.length) bytes)") }
    let head = try traced(exchange.stream(request, body: body, limits: limits, receive: receive))
    show(head, body: nil)
    return head
  }

  private func traced(_ exchange: @autoclosure () throws(HTTPError) -> HTTPResponse) throws(HTTPError) -> HTTPResponse {
    do { return try exchange() } catch {
      write("< " + error.message().text + "\n")
      throw error
    }
  }

  /// The addresses in public metadata are public.
  private func learnPlaces(_ response: HTTPResponse) {
    for member in (try? JSONValue.parse(response.body))?.members ?? [] where KnownSecrets.isMetadata(member.name) {
      if let text = member.value.text { paths.add(text) }
    }
  }

  private func show(_ request: HTTPRequest) {
    secrets.learn(request)
    var line = request.uri.origin + paths.masked(request.uri.path)
    if request.uri.query != nil { line += "?" + masked(request.uri.queryParameters) }
    show("> \(request.method) \(line)")
    show(request.fields, "> ")
    show(request.body, type: request.fields["Content-Type"], "> ")
  }

  private func show(_ response: HTTPResponse, body: [UInt8]?) {
    show("< \(response.status)")
    show(response.fields, "< ")
    if let body { show(body, type: response.mediaType, "< ") }
  }

  private func show(_ fields: HTTPFields, _ mark: String) {
    for field in fields {
      var value = "…"
      if KnownSecrets.harmlessFields.contains(field.name.lowercased()) { value = shown(field.value) }
      if ["authorization", "www-authenticate"].contains(field.name.lowercased()) {
        // The scheme is not secret and shows how the credential is presented. A bare token has no scheme.
        let words = field.value.split(separator: " ", maxSplits: 1)
        value = (words.count == 2 && KnownSecrets.isScheme(words[0]) ? words[0] + " " : "") + "…"
        // A challenge says what is wrong.
        if field.name.lowercased() == "www-authenticate" {
          let pairs = Challenge.all(in: [field.value]).flatMap(\.parameters.pairs)
          for pair in pairs where isHarmless(pair.name) {
            value += ", \(pair.name)=\"\(shown(pair.value))\""
          }
        }
      }
      show("\(mark)\(field.name): \(value)")
    }
  }

  private func show(_ body: [UInt8], type: String?, _ mark: String) {
    guard !body.isEmpty else { return }
    var text = "(\(body.count) bytes)"
    if let value = try? JSONValue.parse(body) {
      text = masked(value).encoded
    } else {
      let form = FormParameters(decoding: String(decoding: body, as: UTF8.self).filter { !$0.isNewline })
      // Without "=", the body may be a token and nothing else.
      let isLabelled = type?.lowercased().hasPrefix(MediaType.form) == true && body.contains(UInt8(ascii: "="))
      // OAuth 1.0a servers use these names to explain errors. Under any other name, the text may be a token.
      if isLabelled || form.pairs.allSatisfy({ isHarmless($0.name) }) { text = masked(form) }
    }
    show(mark + text)
  }

  private func show(_ line: String) { write(Message.visible(secrets.masked(line)) + "\n") }

  private func masked(_ parameters: FormParameters) -> String {
    parameters.pairs.map { pair in shown(name: pair.name) + "=" + (isHarmless(pair.name) ? shown(pair.value) : "…") }
      .joined(separator: "&")
  }

  private func masked(_ value: JSONValue) -> JSONValue {
    switch value {
    case .object(let members): .object(members.map(masked))
    case .array(let elements): .array(elements.map(masked))
    case .null, .boolean: value
    case .number, .string: "…"
    }
  }

  private func masked(_ member: JSONValue.Member) -> JSONValue.Member {
    func isPlain(_ value: JSONValue) -> Bool { value.members == nil && value.elements == nil }
    if isHarmless(member.name), isPlain(member.value) { return .init(member.name, shown(member.value)) }
    if KnownSecrets.isMetadata(member.name), let elements = member.value.elements {
      return .init(member.name, .array(elements.map { isPlain($0) ? shown($0) : masked($0) }))
    }
    return .init(shown(name: member.name), masked(member.value))
  }

  private func isHarmless(_ name: String) -> Bool {
    KnownSecrets.harmlessNames.contains(name) || KnownSecrets.isMetadata(name)
  }

  /// Mask before encoding, because JSON escapes some characters of secrets.
  private func shown(_ value: JSONValue) -> JSONValue {
    if case .string(let text) = value { .string(secrets.masked(shown(text))) } else { value }
  }

  /// A text with a harmless name may itself be JSON with other names.
  private func shown(_ text: String) -> String {
    guard let value = try? JSONValue.parse(Array(text.utf8)) else { return text }
    return value.members == nil && value.elements == nil ? text : masked(value).encoded
  }

  private func shown(name: String) -> String { KnownSecrets.isName(name) ? name : "…" }
}

/// The parts of URL paths that may be shown: those in a descriptor or from the user, but no token that a descriptor
/// puts into a path.
struct KnownPaths {
  // RFC 8414, 3 and 5; OpenID Connect Discovery 1.0, 4.
  private var pieces: Set<Substring> = [".well-known", "openid-configuration", "oauth-authorization-server"]

  init(_ source: CredentialSource, typed: [String]) {
    for text in typed { add(text) }
    for provider in source.knownProviders() {
      guard let descriptor = (try? source.home.library.load(provider))?.descriptor else { continue }
      for endpoint in descriptor.endpoints.values { add(endpoint.url.text) }
      // A variable may be a whole URL, or an institution's name within one.
      guard let registration = try? source.accountsIfAny()?.registration(of: provider) else { continue }
      for variable in registration.applied(to: descriptor).variables where !variable.isSecret {
        if let value = registration.variables[variable.name] { add(value) }
      }
    }
  }

  mutating func add(_ text: String) {
    pieces.formUnion(text.prefix { $0 != "?" }.split(separator: "/").filter { !$0.contains("{") })
  }

  func masked(_ path: String) -> String {
    path.split(separator: "/", omittingEmptySubsequences: false)
      .map { $0.isEmpty || pieces.contains($0) ? String($0) : "…" }.joined(separator: "/")
  }
}

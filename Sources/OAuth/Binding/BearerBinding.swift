import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// Puts the token itself in a header, the query, the path or the body (RFC 6750, or the provider's own way).
struct BearerBinding: TokenBinding {
  let client: Client
  let style: HeaderStyle

  var authenticatesClient: Bool { false }

  var fieldNames: Set<String> {
    guard case .header(let name, _) = style.location else { return [] }
    return [name.lowercased()]
  }

  func signsBody(of request: HTTPRequest) -> Bool {
    if case .body = style.location { return true }
    return style.parameters.contains { $0.value.readsBody }
  }

  func sign(
    _ request: HTTPRequest, with credential: Credential, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    var request = request
    switch style.location {
    case .header(let name, _):
      guard request.fields[name] == nil else { break }
      request.fields.set(name, try header(credential, of: request, nonce: nonce) ?? "")
    case .query(let name):
      var query: FormParameters = [(name, credential.accessToken.reveal())]
      let given = request.uri.queryParameters
      for (name, text) in parameters(credential, of: request, nonce: nonce) where !given.contains(name) {
        query.append(name, text)
      }
      request.uri = request.uri.adding(query: query)
    case .path(let template):
      let values = client.values(for: credential, of: request)
      request.uri = try request.uri.beginning(with: template, values, client.calculator(nonce))
    case .body(let name): try request.addToBody(name, credential.accessToken.reveal())
    case .none: break
    }
    return request
  }

  func fields(presenting credential: Credential, nonce: RequestNonce) throws(OAuthError) -> HTTPFields? {
    guard case .header(let name, _) = style.location else { return HTTPFields() }
    var fields = HTTPFields()
    fields.set(name, try header(credential, of: nil, nonce: nonce) ?? "")
    return fields
  }

  private func header(_ credential: Credential, of request: HTTPRequest?, nonce: RequestNonce) throws(OAuthError)
    -> String?
  {
    guard case .header(let name, let scheme) = style.location else { return nil }
    var value = (scheme.isEmpty ? "" : scheme + " ") + (try token(credential, of: request, nonce: nonce))
    for (name, text) in parameters(credential, of: request, nonce: nonce) {
      guard !text.contains("\""), !text.contains("\\") else { throw .malformedHeader(name: name) }
      value += ", " + name + "=\"" + text + "\""
    }
    guard HTTPFields.isValid(value: value) else { throw .malformedHeader(name: name) }
    return value
  }

  /// Returns the token, or the pair of user name and password that contains it (RFC 7617, 2).
  private func token(
    _ credential: Credential, of request: HTTPRequest?, nonce: RequestNonce
  ) throws(OAuthError) -> String {
    guard style.isPair else { return credential.accessToken.reveal() }
    let pair = try client.pair(of: credential, style, for: request, nonce: nonce)
    return Base64.encode(Array((pair.name + ":" + pair.password).utf8))
  }

  private func parameters(
    _ credential: Credential, of request: HTTPRequest?, nonce: RequestNonce
  ) -> [(name: String, text: String)] {
    let values = client.values(for: credential, of: request)
    return style.parameters.compactMap { parameter in
      (try? parameter.value.filled(values, calculate: client.calculator(nonce))).map { (parameter.name, $0) }
    }
  }
}

extension Client {
  /// Returns the user name and the password, one of which is the token (RFC 7617, 2; RFC 7616, 3.4).
  func pair(
    of credential: Credential, _ style: HeaderStyle, for request: HTTPRequest?, nonce: RequestNonce
  ) throws(OAuthError) -> (name: String, password: String) {
    let values = values(for: credential, of: request)
    func half(_ template: Template?) -> String? {
      template.flatMap { try? $0.filled(values, calculate: calculator(nonce)) }
    }
    let token = credential.accessToken.reveal()
    let name = style.username == nil ? token : half(style.username)
    let password = style.username == nil ? half(style.password) : token
    guard let name, let password, !name.utf8.contains(UInt8(ascii: ":")) else {
      throw .malformedHeader(name: "Authorization")
    }
    return (name, password)
  }
}

extension URI {
  /// Returns the URI with a filled template before its path, unless the path begins with it.
  fileprivate func beginning(
    with template: Template, _ values: (String) -> String?, _ calculate: Template.Calculator
  ) throws(OAuthError) -> URI {
    let slash = template.text.hasPrefix("/") ? "" : "/"
    do {
      let start = try URLTemplate(Template(parsing: origin + slash + template.text)).filled(
        values, calculate: calculate)
      // Servers need not decode a colon, which is valid in a path (RFC 3986, 3.3).
      let path = start.path.exchanging("%3A", for: ":")
      if [path, start.path].contains(where: { self.path.hasPrefix($0 + "/") }) { return self }
      let rest = text.dropFirst(withoutQueryAndFragment.text.count)
      return try URI(parsing: origin + path + self.path + rest)
    } catch {
      throw .malformedPath
    }
  }
}

extension HTTPRequest {
  /// Adds a member to a JSON body or a parameter to a form, unless the body has one of this name. An empty body
  /// becomes JSON, unless its type is a form.
  fileprivate mutating func addToBody(_ name: String, _ value: String) throws(OAuthError) {
    guard !["GET", "HEAD"].contains(method) else { throw .bodyNeeded }
    if hasForm {
      var form = FormParameters(decoding: String(decoding: body, as: UTF8.self))
      if form.contains(name) { return }
      form.append(name, value)
      body = Array(form.encoded.utf8)
      return
    }
    let isEmpty = body.isEmpty
    guard let members = isEmpty ? [] : (try? JSONValue.parse(body))?.members else { throw .bodyNeeded }
    if members.contains(where: { $0.name == name }) { return }
    body = Array(JSONValue.object([.init(name, .string(value))] + members).encoded.utf8)
    if isEmpty { fields.set("Content-Type", MediaType.json) }
  }
}

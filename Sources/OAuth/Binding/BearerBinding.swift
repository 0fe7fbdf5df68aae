import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP

/// Puts the token itself in a header or in the query (RFC 6750, or the provider's own way).
struct BearerBinding: TokenBinding {
  let client: Client
  let style: HeaderStyle

  var isUsableAlone: Bool { true }
  var authenticatesClient: Bool { false }

  var fieldNames: Set<String> {
    guard case .header(let name, _) = style.location else { return [] }
    return [name.lowercased()]
  }

  func signsBody(of request: HTTPRequest) -> Bool {
    style.parameters.contains { $0.value.names.contains("request_body") }
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
    case .none: break
    }
    return request
  }

  func header(_ credential: Credential, of request: HTTPRequest?, nonce: RequestNonce) throws(OAuthError) -> String? {
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
    let token = credential.accessToken.reveal()
    guard style.isPair else { return token }
    let values = client.values(for: credential, of: request)
    func half(_ template: Template?) -> String? {
      template.flatMap { try? $0.filled(values, calculate: client.calculator(nonce)) }
    }
    let name = style.username == nil ? token : half(style.username)
    let password = style.username == nil ? half(style.password) : token
    guard let name, let password, !name.utf8.contains(UInt8(ascii: ":")) else {
      throw .malformedHeader(name: "Authorization")
    }
    return Base64.encode(Array((name + ":" + password).utf8))
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

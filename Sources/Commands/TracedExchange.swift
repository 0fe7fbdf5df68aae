import HTTP
import JSON
import Messages

/// Shows every exchange, and nothing that is secret.
///
/// What is shown is what is known to be harmless: names always, values only of the names below. Masking what is known to be
/// secret would show what nobody thought of.
final class TracedExchange: HTTPExchange {
  private let exchange: any HTTPExchange
  private let write: (String) -> Void

  init(_ exchange: any HTTPExchange, write: @escaping (String) -> Void) {
    self.exchange = exchange
    self.write = write
  }

  private static let harmlessParameters: Set<String> = [
    "grant_type", "response_type", "scope", "scopes", "token_type", "token_type_hint", "expires_in", "expires_at",
    "refresh_token_expires_in", "refresh_token_expires_at", "interval", "error", "error_description", "error_uri",
    "code_challenge_method", "oauth_signature_method", "oauth_version", "oauth_timestamp", "oauth_callback_confirmed",
    "status", "active", "ok", "verification_uri", "verification_url", "redirect_uri", "response_mode", "prompt",
    "access_type",
  ]

  private static let harmlessFields: Set<String> = [
    "accept", "content-type", "content-length", "date", "server", "user-agent", "cache-control", "retry-after",
    "x-github-api-version", "connection", "vary",
  ]

  func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
    show(request)
    do {
      let response = try exchange.send(request, limits: limits)
      show(response, body: response.body)
      return response
    } catch {
      write("< " + error.message().text + "\n")
      throw error
    }
  }

  func stream(
    _ request: HTTPRequest, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    show(request)
    do {
      let head = try exchange.stream(request, limits: limits, receive: receive)
      show(head, body: nil)
      return head
    } catch {
      write("< " + error.message().text + "\n")
      throw error
    }
  }

  private func show(_ request: HTTPRequest) {
    var line = request.uri.withoutQueryAndFragment.text
    if request.uri.query != nil { line += "?" + Self.masked(request.uri.queryParameters) }
    write("> \(request.method) \(Message.visible(line))\n")
    show(request.fields, "> ")
    show(request.body, request.fields["Content-Type"], "> ")
  }

  private func show(_ response: HTTPResponse, body: [UInt8]?) {
    write("< \(response.status)\n")
    show(response.fields, "< ")
    if let body { show(body, response.mediaType, "< ") }
  }

  private func show(_ fields: HTTPFields, _ mark: String) {
    for field in fields {
      var value = "…"
      if Self.harmlessFields.contains(field.name.lowercased()) { value = field.value }
      if ["authorization", "www-authenticate"].contains(field.name.lowercased()) {
        // The scheme tells how the credential is presented, and is no secret; of a bare token there is none.
        let words = field.value.split(separator: " ", maxSplits: 1)
        value = (words.count == 2 && words[0].count <= 12 ? words[0] + " " : "") + "…"
      }
      write("\(mark)\(Message.visible(field.name + ": " + value))\n")
    }
  }

  private func show(_ body: [UInt8], _ type: String?, _ mark: String) {
    guard !body.isEmpty else { return }
    var text = "(\(body.count) bytes)"
    if let value = try? JSONValue.parse(body) {
      text = Self.masked(value).encoded
    } else if type?.lowercased().hasPrefix("application/x-www-form-urlencoded") == true {
      text = Self.masked(FormParameters(decoding: String(decoding: body, as: UTF8.self)))
    }
    write(mark + Message.visible(text) + "\n")
  }

  private static func masked(_ parameters: FormParameters) -> String {
    parameters.pairs.map { $0.name + "=" + (harmlessParameters.contains($0.name) ? $0.value : "…") }
      .joined(separator: "&")
  }

  private static func masked(_ value: JSONValue) -> JSONValue {
    switch value {
    case .object(let members):
      .object(
        members.map { member in
          harmlessParameters.contains(member.name) && member.value.members == nil && member.value.elements == nil
            ? member : JSONValue.Member(member.name, masked(member.value))
        })
    case .array(let elements): .array(elements.map(masked))
    case .null, .boolean: value
    case .number, .string: "…"
    }
  }
}

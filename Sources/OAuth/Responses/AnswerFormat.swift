import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText
import CredmgrXML

/// The body of an answer in each format.
extension Answer {
  /// Parses the body in the declared format. If that fails, or the body is a form, the media type decides.
  static func root(
    of response: HTTPResponse, _ format: ResponseFormat, _ kind: EndpointKind
  ) throws(XMLError) -> JSONValue? {
    if format == .text, (200..<300).contains(response.status) { return bareText(of: response) }
    let isLabelledJSON = response.mediaType.map { $0 == MediaType.json || $0.hasSuffix("+json") } ?? false
    if format == .xml, !isLabelledJSON {
      let root = try XMLDocument.parse(response.body)
      return root["html"] == nil ? root : nil
    }
    if format == .json || isLabelledJSON {
      let value = try? JSONValue.parse(response.body)
      // An identity endpoint may return a list, for example of tenants or workspaces.
      let mayBeList = kind == .identity || kind == .tokenExchange
      if value?.members != nil || (mayBeList && value?.elements != nil) { return value }
      if response.mediaType != MediaType.form { return nil }
    }
    // A web page also parses as a form.
    guard let text = String(validating: response.body, as: UTF8.self), text.contains("="), !isPage(response.body)
    else { return nil }
    return object(FormParameters(decoding: String(text.filter { !$0.isNewline })))
  }

  /// Whether a body that should not be XML is a web page: nothing else begins with an angle bracket.
  static func isPage(_ body: [UInt8]) -> Bool {
    let text = body.starts(with: [0xEF, 0xBB, 0xBF]) ? body.dropFirst(3) : body[...]
    return text.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "<")
  }

  /// Returns the body as the member `text`; `nil` if it is empty, a page or JSON, longer than 64 KiB, or not one line.
  private static func bareText(of response: HTTPResponse) -> JSONValue? {
    guard response.body.count <= longestText, let text = String(validating: response.body, as: UTF8.self),
      !isPage(response.body)
    else { return nil }
    let lines = text.split { $0.isNewline }.map(\.trimmingBlanks).filter { !$0.isEmpty }
    let json = try? JSONValue.parse(response.body)
    guard lines.count == 1, json?.members == nil, json?.elements == nil else { return nil }
    return .object([.init(ResponseFormat.text.rawValue, .string(String(lines[0])))])
  }

  /// Returns the parameters of an `OAuth` challenge, which carries the error in problem reporting of OAuth 1.0a; `null`
  /// without such a challenge.
  static func problem(in response: HTTPResponse) -> JSONValue {
    guard let challenge = response.challenges.first(where: { $0.scheme == "oauth" }) else { return .null }
    return .object(
      challenge.parameters.pairs.map { pair in
        .init(pair.name, .string(PercentEncoding.decode(pair.value, plusAsSpace: true) ?? pair.value))
      })
  }
}

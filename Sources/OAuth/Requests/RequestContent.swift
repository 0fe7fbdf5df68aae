import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors

/// The parameters of a request, in its URL or its body, and the body's media type.
struct RequestContent {
  private(set) var uri: URI
  private(set) var body: [UInt8] = []
  private(set) var mediaType: String?  // `nil` if the request has no body and no declared type.

  init(
    _ parameters: FormParameters, for endpoint: Endpoint, kind: EndpointKind, at uri: URI, lists: Set<String>
  ) throws(OAuthError) {
    self.uri = uri
    func wireNames(_ names: [String]) -> Set<String> { Set(names.map { endpoint.rename[$0] ?? $0 }) }
    let namesInQuery = wireNames(endpoint.inQuery)
    let verbatim = wireNames(endpoint.verbatim)
    let lists = wireNames(Array(lists))
    let isInQuery = { (pair: FormParameters.Pair) in endpoint.send == .query || namesInQuery.contains(pair.name) }
    let query = FormParameters(parameters.pairs.filter(isInQuery))
    let others = FormParameters(parameters.pairs.filter { !isInQuery($0) })
    self.uri = uri.adding(query: FormParameters(query.pairs.filter { !verbatim.contains($0.name) }))
    for pair in query.pairs where verbatim.contains(pair.name) {
      do {
        self.uri = try self.uri.adding(
          encodedQuery: PercentEncoding.encode(pair.name) + "=" + Self.verbatim(pair.value))
      } catch {
        throw .missingValue(kind, name: pair.name)
      }
    }
    switch endpoint.send {
    case .query: break
    case .fragment:
      let fragment = self.uri.fragment ?? ""
      if !others.isEmpty {
        self.uri = self.uri.with(fragment: fragment + (fragment.contains("?") ? "&" : "?") + others.encoded)
      }
    case .form where others.isEmpty && ["GET", "DELETE"].contains(endpoint.method): break
    case .form:
      mediaType = MediaType.form
      body = Array(others.encoded.utf8)
    case .json:
      mediaType = MediaType.json
      var members: [JSONValue.Member] = []
      for pair in others.pairs {
        var value = JSONValue.string(pair.value)
        if lists.contains(pair.name) {
          let list = try? JSONValue.parse(Array(pair.value.utf8))
          // In the descriptor's own text, spaces are between the elements.
          let words = JSONValue.array(pair.value.split(separator: " ").map { .string(String($0)) })
          value = if let list, list.elements != nil { list } else { words }
        }
        if verbatim.contains(pair.name) {
          guard let parsed = try? JSONValue.parse(Array(pair.value.utf8)) else {
            throw .missingValue(kind, name: pair.name)
          }
          value = parsed
        }
        members.append(.init(pair.name, value))
      }
      body = Array(JSONValue.object(members).encoded.utf8)
    }
  }

  /// Escapes only the characters that would end the value or are invalid in a URL.
  private static func verbatim(_ value: String) -> String {
    value.unicodeScalars.map { scalar in
      let stands =
        scalar.isASCII
        && (scalar.properties.isAlphabetic || "0123456789-._~!$'()*+,;:@/?".unicodeScalars.contains(scalar))
      return stands ? String(scalar) : PercentEncoding.encode(String(scalar))
    }.joined()
  }
}

extension HTTPRequest {
  func value(named name: String) -> String? {
    switch name {
    case "request_method": method
    case "request_host": uri.host
    case "request_path": uri.path.isEmpty ? "/" : uri.path
    case "request_query":
      // One sorted parameter per line, which is the form that signing schemes of providers share.
      uri.query.map { query in query.split(separator: "&").map(String.init).sorted().map { $0 + "\n" }.joined() } ?? ""
    case "request_parameters":
      (hasForm ? String(decoding: body, as: UTF8.self) : uri.query ?? "").split(separator: "&").map(String.init)
        .sorted()
        .joined(separator: "&")
    case "request_body": String(decoding: body, as: UTF8.self)
    default: nil
    }
  }

  /// The names whose value depends on the body.
  fileprivate static let namesOfBody = ["request_parameters", "request_body"]

  var hasForm: Bool { fields.mediaType == MediaType.form }
}

extension Template {
  /// Whether its value depends on the body of the request.
  var readsBody: Bool { names.contains(where: HTTPRequest.namesOfBody.contains) }
}

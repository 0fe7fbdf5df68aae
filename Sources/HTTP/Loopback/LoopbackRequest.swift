import CredmgrText

/// A request to the loopback receiver. Parses strictly (RFC 9112), because only browsers send valid requests here.
struct LoopbackRequest: Equatable {
  var method: String
  var target: String
  var fields: HTTPFields
  var body: [UInt8]

  static let limit = 64 * 1024

  enum Progress: Equatable {
    case incomplete
    case complete(LoopbackRequest)
    case refused(Int)  // The bytes are not a request; the value is the status of the answer.
  }

  static func parse(_ bytes: [UInt8], limit: Int = limit) -> Progress {
    guard let end = bytes.firstPlace(of: "\r\n\r\n".utf8)?.lowerBound else {
      return bytes.count > limit ? .refused(431) : .incomplete
    }
    if end > limit { return .refused(431) }
    // A line end other than CR LF stays in its line, which is refused later.
    var lines = bytes[..<end].ranges(between: "\r\n".utf8).map { bytes[$0] }
    let words = lines.removeFirst().split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard words.count == 3, words[0].allSatisfy(Octet.isTokenCharacter), !words[0].isEmpty,
      words[1].allSatisfy({ (0x21...0x7E).contains($0) }), !words[1].isEmpty,
      words[2].elementsEqual("HTTP/1.1".utf8) || words[2].elementsEqual("HTTP/1.0".utf8)
    else { return .refused(400) }
    guard let fields = fields(lines) else { return .refused(400) }
    if fields["Transfer-Encoding"] != nil { return .refused(411) }
    guard let length = length(fields) else { return .refused(400) }
    if length > limit - end { return .refused(413) }
    let body = bytes[(end + 4)...]
    if body.count < length { return .incomplete }
    return .complete(
      LoopbackRequest(
        method: string(words[0]), target: string(words[1]), fields: fields, body: Array(body.prefix(length))))
  }

  private static func fields(_ lines: [ArraySlice<UInt8>]) -> HTTPFields? {
    var fields = HTTPFields()
    for line in lines {
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
      let name = string(line[..<colon])
      let text = string(line[(colon + 1)...].trimmingBlanks)
      guard HTTPFields.isValid(name: name), HTTPFields.isValid(value: text) else { return nil }
      fields.append(name, text)
    }
    return fields
  }

  private static func length(_ fields: HTTPFields) -> Int? {
    let values = fields.values("Content-Length")
    guard let value = values.first else { return 0 }
    guard values.count == 1, (1...9).contains(value.utf8.count), value.utf8.allSatisfy(\.isDigit) else {
      return nil
    }
    return Int(value)
  }

  private static func string(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

  /// Whether the field has one of the values, or is missing. Old browsers do not send the field.
  fileprivate func sends(_ name: String, only values: [String]) -> Bool {
    fields.values(name).allSatisfy(values.contains)
  }
}

struct LoopbackEndpoint {
  /// The allowed values of the `Host` field, such as `127.0.0.1:8080`, which prevent DNS rebinding. Browsers use the
  /// first one.
  let authorities: [String]
  let path: String
  let own: FormParameters
  /// The value that the relay page posts with the fragment; `nil` if the answer comes in a query or a form.
  let relay: String?
  /// The origin of the provider's login page. A form from another origin is refused.
  var provider: String?
  var needsOrigin = false  // Whether a form needs an `Origin` field, because nothing else in it belongs to the login.
  var start: String?  // The local path that redirects the browser to the provider's page.

  init(host: String, port: UInt16, path: String, relay: String? = nil, provider: String? = nil) {
    authorities = (port == 80 ? [host] : []) + ["\(host):\(port)"]
    let parts = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    self.path = parts[0].isEmpty ? "/" : String(parts[0])
    own = FormParameters(decoding: parts.count > 1 ? String(parts[1]) : "")
    (self.relay, self.provider) = (relay, provider)
  }

  enum Answer: Equatable {
    case relay(String)
    case start
    case refusal(Int)
    case parameters(FormParameters)
    /// Parameters in the query of a login that answers in the fragment, which can only be an error.
    case besideFragment(FormParameters)
  }

  func answer(_ request: LoopbackRequest) -> Answer {
    let hosts = request.fields.values("Host").map(Octet.lowerCase)
    guard hosts.count == 1, authorities.contains(hosts[0]) else { return .refusal(421) }
    let parts = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    if let start, request.target == start {
      return request.method != "GET" ? .refusal(405) : isNavigation(request) ? .start : .refusal(403)
    }
    guard parts[0] == path else { return .refusal(404) }
    let query = FormParameters(decoding: parts.count > 1 ? String(parts[1]) : "")
    switch request.method {
    case "GET":
      // A request that a page makes has the page's origin. A redirect has none.
      let isOurs = provider == nil || request.fields.values("Origin").allSatisfy { $0 == provider }
      return isOurs && isNavigation(request) ? answer(query: query) : .refusal(403)
    case "POST": return relay.map { answer(relayed: request, $0) } ?? answer(posted: request, query)
    default: return .refusal(405)
    }
  }

  private func answer(query: FormParameters) -> Answer {
    guard let rest = query.removing(own) else { return .refusal(404) }
    guard let relay else { return rest.isEmpty ? .refusal(400) : .parameters(rest) }
    return rest.isEmpty ? .relay(relay) : .besideFragment(rest)
  }

  /// A form that the provider's page sends (OAuth 2.0 Form Post Response Mode).
  private func answer(posted request: LoopbackRequest, _ query: FormParameters) -> Answer {
    guard isNavigation(request) else { return .refusal(403) }
    // A page can hide its origin and send `null`, so `null` proves nothing.
    let origins = request.fields.values("Origin").filter { needsOrigin || $0 != "null" }
    if let provider, !origins.allSatisfy({ $0 == provider }) || (needsOrigin && origins.isEmpty) {
      return .refusal(403)
    }
    return query.removing(own) == nil ? .refusal(404) : answer(form: request)
  }

  /// Reads the post of the relay page. Accepts a program that sends `Origin` but no Fetch Metadata.
  private func answer(relayed request: LoopbackRequest, _ relay: String) -> Answer {
    guard request.fields.values("Origin") == ["http://\(authorities[0])"],
      request.sends("Sec-Fetch-Site", only: ["same-origin"]),
      request.sends("Sec-Fetch-Mode", only: ["cors", "same-origin"]), request.sends("Sec-Fetch-Dest", only: ["empty"])
    else { return .refusal(403) }
    let values = request.fields.values(PageDocument.relayField)
    guard values == [relay] || (values.isEmpty && request.fields["Sec-Fetch-Site"] == nil) else { return .refusal(403) }
    return answer(form: request)
  }

  private func answer(form request: LoopbackRequest) -> Answer {
    guard request.fields.mediaType == MediaType.form else { return .refusal(415) }
    let body = FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
    return body.isEmpty ? .refusal(400) : .parameters(body)
  }

  /// Whether the user opened the address in a browser, as opposed to a page loading an image, frame or script.
  private func isNavigation(_ request: LoopbackRequest) -> Bool {
    request.sends("Sec-Fetch-Mode", only: ["navigate"]) && request.sends("Sec-Fetch-Dest", only: ["document"])
  }
}

import CredmgrHTTP

/// Writes header fields in the form of CURLOPT_HTTPHEADER(3).
enum CurlFields {
  /// The fields that libcurl writes itself. A second value would change the end of a message or its recipient.
  private static let owned: Set<String> = [
    "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
  ]

  static func lines(of request: HTTPRequest) throws(HTTPError) -> [String] {
    guard HTTPFields.isValid(name: request.method) else { throw .invalidMethod(request.method) }
    var lines: [String] = []
    for field in request.fields {
      guard HTTPFields.isValid(name: field.name), HTTPFields.isValid(value: field.value),
        !owned.contains(field.name.lowercased())
      else { throw .invalidField(name: field.name) }
      // libcurl removes the field for `Name:` and sends it empty for `Name;`.
      lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }
    // Otherwise libcurl waits for the server's permission before a long body, and adds a content type to every body.
    lines.append("Expect:")
    if request.fields["Content-Type"] == nil { lines.append("Content-Type:") }
    return lines
  }
}

import HTTP

/// The header fields in the form of CURLOPT_HTTPHEADER(3).
enum CurlFields {
  /// What libcurl makes itself: a second value would change where a message ends or whom it is for.
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
      // `Name:` would remove the field, and `Name;` sends it empty.
      lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }
    // Otherwise libcurl waits for a server's leave before a long body, and names a type of its own for any body.
    lines.append("Expect:")
    if request.fields["Content-Type"] == nil { lines.append("Content-Type:") }
    return lines
  }
}

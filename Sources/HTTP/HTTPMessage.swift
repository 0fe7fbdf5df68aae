/// A request as a value (RFC 9110, section 3.4). The description never shows the query, a field's value or the body.
package struct HTTPRequest: Sendable, Equatable {
  package var method: String
  package var uri: URI
  /// The header fields, without those that the client owns (`Host`, `Content-Length`, …).
  package var fields: HTTPFields
  /// The body; an empty one is none, except that a `POST`, `PUT` or `PATCH` then has length 0.
  package var body: [UInt8]

  package init(method: String, uri: URI, fields: HTTPFields = HTTPFields(), body: [UInt8] = []) {
    self.method = method
    self.uri = uri
    self.fields = fields
    self.body = body
  }
}

/// The description shows the status, and never a field's value or the body.
package struct HTTPResponse: Sendable, Equatable {
  package var status: Int
  package var fields: HTTPFields
  /// The body, decoded from its transfer and content codings.
  package var body: [UInt8]

  package init(status: Int, fields: HTTPFields = HTTPFields(), body: [UInt8] = []) {
    self.status = status
    self.fields = fields
    self.body = body
  }

  /// In lower case and without parameters, as `application/json` (RFC 9110, section 8.3.1).
  package var mediaType: String? {
    fields["Content-Type"].map(MediaType.essence)
  }
}

enum MediaType {
  static func essence(_ value: String) -> String {
    let type = value.utf8.prefix { $0 != UInt8(ascii: ";") }
    let blank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    let trimmed = type.drop(while: blank).reversed().drop(while: blank).reversed()
    return Octet.lowerCase(String(decoding: Array(trimmed), as: UTF8.self))
  }
}

extension HTTPRequest: CustomStringConvertible, CustomReflectable {
  package var description: String { "\(method) \(uri)" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension HTTPResponse: CustomStringConvertible, CustomReflectable {
  package var description: String { "\(status), \(body.count) bytes" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

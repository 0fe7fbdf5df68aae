import CredmgrText

/// A value that may contain secrets, whose description and dump show none of its content.
package protocol Redacted: CustomStringConvertible, CustomReflectable {}

extension Redacted {
  package var description: String { "\(Self.self)" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A request (RFC 9110, section 3.4). Its description never shows the query, a field's value or the body.
package struct HTTPRequest: Sendable, Equatable, Redacted {
  package var method: String
  package var uri: URI
  package var fields: HTTPFields  // Excludes the fields that the client sets (`Host`, `Content-Length`, …).
  package var body: [UInt8]  // Empty for no body, except that `POST`, `PUT` and `PATCH` then send length 0.
  /// The certificate of the client with its chain and its private key, as PEM; `nil` for none. The key is not sent.
  package var clientCertificate: [UInt8]?

  package init(method: String, uri: URI, fields: HTTPFields = HTTPFields(), body: [UInt8] = []) {
    self.method = method
    self.uri = uri
    self.fields = fields
    self.body = body
  }

  package var description: String { "\(method) \(uri)" }
}

/// A response. Its description shows the status, but never a field's value or the body.
package struct HTTPResponse: Sendable, Equatable, Redacted {
  package var status: Int
  package var fields: HTTPFields
  package var body: [UInt8]  // Decoded from its transfer and content codings.

  package init(status: Int, fields: HTTPFields = HTTPFields(), body: [UInt8] = []) {
    self.status = status
    self.fields = fields
    self.body = body
  }

  package var mediaType: String? { fields.mediaType }

  package var description: String { "\(status), \(body.count) bytes" }
}

/// The media types of requests and responses.
package enum MediaType {
  package static let form = "application/x-www-form-urlencoded"
  package static let json = "application/json"
}

extension HTTPFields {
  /// The type of the body in lower case without parameters, such as `application/json` (RFC 9110, section 8.3.1).
  package var mediaType: String? {
    self["Content-Type"].map { Octet.lowerCase($0.prefix { $0 != ";" }.trimmingBlanks) }
  }
}

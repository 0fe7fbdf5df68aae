/// An HTTP server on 127.0.0.1 with one thread (RFC 9112). Each connection carries one request and one answer. A second
/// port may be for encrypted connections.
package struct LoopbackServer: ~Copyable {
  package let port: UInt16
  package let encryptedPort: UInt16?
  private var clients: LoopbackClients

  package struct Answer: Sendable, Equatable {
    package var response: HTTPResponse
    package var delay = Duration.zero  // The time before the answer is sent. Other clients do not wait.
    package var isDropped = false

    package init(_ response: HTTPResponse) { self.response = response }
  }

  /// Listens immediately. Earlier requests wait for ``serve(isCancelled:answer:)``.
  ///
  /// - Parameter encryption: returns the encryption of a new connection to any other free port; `nil` for no such port.
  package init(port: UInt16?, encryption: (() -> (any LoopbackEncryption)?)? = nil) throws(HTTPError) {
    guard let (listener, port) = try LoopbackSocket.listen(.ipv4, port: port ?? 0) else {
      throw .portUnavailable(port: port ?? 0)
    }
    let other = encryption == nil ? nil : try LoopbackSocket.listen(.ipv4, port: 0)
    self.port = port
    encryptedPort = other?.port
    var encrypted: (listener: Int32, session: () -> (any LoopbackEncryption)?)?
    if let other, let encryption { encrypted = (other.socket, encryption) }
    clients = LoopbackClients(
      listeners: [listener] + (other.map { [$0.socket] } ?? []), limit: 256, requestLimit: 16 << 20,
      encrypted: encrypted)
  }

  /// Serves requests until cancelled. A malformed request, or one without a host, gets a 4xx status. `answer` also gets
  /// the certificate that the client presented, as DER.
  package mutating func serve(
    isCancelled: () -> Bool, answer: (HTTPRequest, _ certificate: [UInt8]?) -> Answer
  ) throws(HTTPError) {
    while !isCancelled() {
      _ = try clients.wait(atMost: .milliseconds(200)) { received, peer in
        guard received.target.hasPrefix("/"), let host = received.fields["Host"],
          let uri = try? URI(parsing: (peer.encryption == nil ? "http://" : "https://") + host + received.target)
        else { return LoopbackClients.Reply(bytes: PageDocument.refusal(status: 400)) }
        let request = HTTPRequest(method: received.method, uri: uri, fields: received.fields, body: received.body)
        let answer = answer(request, peer.encryption?.clientCertificate)
        let bytes = answer.response.bytes(withBody: received.method != "HEAD")
        return LoopbackClients.Reply(bytes: answer.isDropped ? nil : bytes, delay: answer.delay)
      }
    }
  }
}

extension HTTPResponse {
  /// Returns the bytes of the response (RFC 9112), which is the last one of its connection.
  func bytes(withBody: Bool = true) -> [UInt8] {
    var lines = "HTTP/1.1 \(status) \(Self.phrase(status))\r\n"
    for field in fields { lines += "\(field.name): \(field.value)\r\n" }
    lines += "Content-Length: \(body.count)\r\nConnection: close\r\n\r\n"
    return Array(lines.utf8) + (withBody ? body : [])
  }

  static func phrase(_ status: Int) -> String { phrases[status] ?? "" }

  private static let phrases = [
    200: "OK", 201: "Created", 302: "Found", 307: "Temporary Redirect", 400: "Bad Request", 401: "Unauthorized",
    403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 410: "Gone",
    411: "Length Required", 413: "Content Too Large", 415: "Unsupported Media Type", 421: "Misdirected Request",
    431: "Request Header Fields Too Large", 500: "Internal Server Error",
  ]
}

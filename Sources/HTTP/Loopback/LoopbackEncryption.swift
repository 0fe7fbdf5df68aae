/// The encryption of one connection, such as TLS. It uses no socket.
package protocol LoopbackEncryption: AnyObject {
  /// Returns the content of the client's bytes, and the bytes to send back immediately, as in a handshake. The content
  /// is `nil` if the connection has ended or is broken.
  func receive(_ bytes: [UInt8]) -> (content: [UInt8]?, reply: [UInt8])

  /// Returns the encrypted form of the last bytes for the client.
  func seal(_ bytes: [UInt8]) -> [UInt8]

  /// The client's certificate as DER; `nil` if it presented none. The client has proved that it has the key, but no
  /// authority or time is checked.
  var clientCertificate: [UInt8]? { get }
}

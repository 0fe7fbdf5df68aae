import CredmgrDescriptors
import CredmgrJSON
import CredmgrText

/// A file with a private key: a PEM file (RFC 7468), or a JSON file that also names the account.
package enum KeyFile {
  static let name = "key_file"

  package struct Member: Sendable, Equatable {
    let variable: Variable
    let path: FieldPath?  // `nil` for the key of a PEM file.
    var signs: AssertionAlgorithm?  // The algorithm of the private key's signatures; `nil` for other values.
  }

  package enum Fault: Sendable, Equatable {
    case notJSON
    case notPEM
    case missing(String)  // A JSON file without this member.
    case repeated(String)  // A JSON file with two values for this member.
    case other(String)  // A JSON file whose member has a value that the descriptor does not allow.
    case noPrivateKey  // A certificate, for example.
    case encrypted
    case otherKey(AssertionAlgorithm.KeyKind)  // A private key of another kind than this one, or a short RSA key.
    case escaped  // A PEM text whose line ends are written as `\n`, as in JSON.
    case openSSH  // The form of OpenSSH, which only its own programs read.
  }

  /// Returns the values of the variables in a key file.
  static func values(in text: String, _ members: [Member]) throws(PasteFault) -> [String: String] {
    guard text.utf8.count <= longest else { throw .tooLong("key file", bytes: longest) }
    let text = String(text.unicodeScalars.drop { $0 == "\u{FEFF}" || $0.properties.isWhitespace })
    if text.isEmpty { throw .empty("key file") }
    let json = members.contains { $0.path != nil } ? try? JSONValue.parse(Array(text.utf8)) : nil
    var values: [String: String] = [:]
    for member in members {
      guard let path = member.path else {
        values[member.variable.name] = try privateKey(in: text, of: member)
        continue
      }
      guard let json, json.members != nil else { throw .keyFile(.notJSON) }
      if json.repeats(path) { throw .keyFile(.repeated(path.text)) }
      guard let found = json.value(at: path)?.text, !found.isEmpty else {
        if member.variable.isOptional { continue }
        throw .keyFile(.missing(path.text))
      }
      let isPrivate = found.hasPrefix("-----BEGIN ") || member.signs?.isSymmetric == false
      let value = isPrivate ? try privateKey(in: found, of: member) : found
      guard member.variable.accepts(value) else { throw .keyFile(.other(path.text)) }
      values[member.variable.name] = value
    }
    return values
  }

  /// Returns the private key of a PEM file, which may also have the parameters of its curve, or a certificate.
  private static func privateKey(in text: String, of member: Member) throws(PasteFault) -> String {
    var rest = text.exchanging("\r\n", for: "\n")[...]
    // A JSON file may contain a PEM text.
    if rest.first == "{" { throw .keyFile(.notPEM) }
    var found: KeyFile.Fault = .notPEM
    while let begin = rest.firstPlace(of: "-----BEGIN ") {
      let behind = rest[begin.upperBound...]
      guard let dashes = behind.firstPlace(of: "-----") else { break }
      let label = behind[..<dashes.lowerBound]
      guard let end = behind.firstPlace(of: "-----END " + label + "-----") else { break }
      let block = rest[begin.lowerBound..<end.upperBound]
      rest = rest[end.upperBound...]
      if label == "OPENSSH PRIVATE KEY" { throw .keyFile(.openSSH) }
      guard label.hasSuffix("PRIVATE KEY") else {
        found = .noPrivateKey
        continue
      }
      // The two forms of a key with a passphrase: RFC 5958, 3, and RFC 1421, 4.6.
      if label.hasPrefix("ENCRYPTED ") || block.firstPlace(of: "ENCRYPTED") != nil { throw .keyFile(.encrypted) }
      if block.contains("\\") { throw .keyFile(.escaped) }
      let key = String(block) + "\n"
      if let algorithm = member.signs, !Client.canSign(algorithm, key: key) {
        throw .keyFile(.otherKey(algorithm.keyKind))
      }
      return key
    }
    throw .keyFile(found)
  }

  private static let longest = 65_536
}

extension JSONValue {
  fileprivate func value(at path: FieldPath) -> JSONValue? {
    path.components.reduce(Optional(self)) { value, name in value?[name] }
  }

  /// Whether an object on the path has two values for the next name.
  fileprivate func repeats(_ path: FieldPath) -> Bool {
    var value: JSONValue? = self
    for name in path.components {
      if value?.repeatedNames.contains(name) == true { return true }
      value = value?[name]
    }
    return false
  }
}

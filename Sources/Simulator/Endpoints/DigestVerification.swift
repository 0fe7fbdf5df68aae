import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP

extension Simulation {
  var isDigest: Bool { style.isDigest && descriptor.aws4 == nil }

  /// Returns the challenges of a server, with a nonce for one request each (RFC 7616, 3.3).
  mutating func digestChallenges() -> [String] {
    ["MD5", "SHA-256"].map { algorithm in
      let nonce = randomText("nonce-")
      state.nonces.insert(nonce)
      return "Digest realm=\"simulator\", qop=\"auth, auth-int\", algorithm=\(algorithm), nonce=\"\(nonce)\", "
        + "opaque=\"o\""
    }
  }

  /// Returns the key whose hash answers a challenge.
  mutating func digestToken(_ request: HTTPRequest) throws(Refusal) -> String {
    guard let answer = DigestVerification(request.fields["Authorization"] ?? ""), let key = state.key,
      state.nonces.remove(answer.nonce) != nil
    else { throw .notPresented(expected: "Authorization: Digest …, after a challenge") }
    let name = style.username == nil ? key.token : answer.name
    let password = style.username == nil ? (try? style.password?.filled { key.variables[$0] }) ?? "" : key.token
    let isNamed =
      style.username.map { TemplatePattern($0, knowledge()).captures(in: answer.name) != nil } ?? (answer.name == name)
    guard isNamed, answer.isMade(by: password, for: request) else {
      throw .wrongValue("Authorization", kind: Refusal.header)
    }
    return key.token
  }
}

/// A digest as a server verifies it (RFC 7616, 3.4.1). Shares no code with the client, whose mistakes it would repeat.
struct DigestVerification {
  let name: String
  let nonce: String
  private let fields: [String: String]

  /// `nil` if the header is not a complete digest.
  init?(_ header: String) {
    guard header.hasPrefix("Digest ") else { return nil }
    var fields: [String: String] = [:]
    for part in header.dropFirst("Digest ".count).split(separator: ",") {
      let pair = part.split(separator: "=", maxSplits: 1).map { $0.drop { $0 == " " } }
      guard pair.count == 2, fields[String(pair[0])] == nil else { return nil }
      let isQuoted = pair[1].count > 1 && pair[1].hasPrefix("\"") && pair[1].hasSuffix("\"")
      fields[String(pair[0])] = String(isQuoted ? pair[1].dropFirst().dropLast() : pair[1])
    }
    guard let name = fields["username"], let nonce = fields["nonce"], fields["qop"] == "auth", fields["opaque"] == "o",
      fields["nc"] == "00000001", fields["cnonce"]?.isEmpty == false, fields["realm"] == "simulator"
    else { return nil }
    (self.name, self.nonce, self.fields) = (name, nonce, fields)
  }

  func isMade(by password: String, for request: HTTPRequest) -> Bool {
    let prefix = request.uri.origin
    let target = String(request.uri.text.dropFirst(prefix.count).prefix { $0 != "#" })
    guard fields["uri"] == (target.hasPrefix("/") ? target : "/" + target) else { return false }
    let first = hash("\(name):simulator:\(password)")
    let second = hash("\(request.method):\(fields["uri"] ?? "")")
    let middle = ["nonce", "nc", "cnonce", "qop"].map { fields[$0] ?? "" }.joined(separator: ":")
    return hash(first + ":" + middle + ":" + second) == fields["response"]
  }

  private func hash(_ text: String) -> String {
    let bytes = Array(text.utf8)
    switch fields["algorithm"] {
    case "SHA-256": return Hexadecimal.encode(HashAlgorithm.sha256.digest(bytes))
    case "MD5": return Hexadecimal.encode(md5(bytes))
    default: return ""
    }
  }
}

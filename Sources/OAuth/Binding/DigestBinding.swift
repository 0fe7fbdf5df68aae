import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

/// Answers a challenge with a hash of the user name and the password (HTTP Digest, RFC 7616). The first request has no
/// credential, and the password is never sent.
struct DigestBinding: TokenBinding {
  let client: Client
  let style: HeaderStyle

  var authenticatesClient: Bool { false }
  var fieldNames: Set<String> { ["authorization"] }

  func signsBody(of request: HTTPRequest) -> Bool { false }

  func sign(
    _ request: HTTPRequest, with credential: Credential, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    guard let challenge = nonce.demanded.flatMap(DigestChallenge.init) else { return request }
    let pair = try client.pair(of: credential, style, for: request, nonce: nonce)
    let value = challenge.answer(request, name: pair.name, password: pair.password, clientNonce: nonce.text)
    guard HTTPFields.isValid(value: value) else { throw .malformedHeader(name: "Authorization") }
    var request = request
    request.fields.set("Authorization", value)
    return request
  }

  func isPresented(in request: HTTPRequest) -> Bool { request.fields["Authorization"] != nil }

  func nonce(demandedBy response: HTTPResponse, after nonce: RequestNonce) -> RequestNonce? {
    guard response.status == 401 else { return nil }
    let offered = response.fields.values("WWW-Authenticate").joined(separator: ", ")
    guard DigestChallenge(offered) != nil else { return nil }
    // The same nonce again, because the first request did not use its text.
    var next = nonce
    next.demanded = offered
    return next
  }
}

/// A server's challenge (RFC 7616, 3.3).
struct DigestChallenge: Sendable {
  enum Algorithm: String, Sendable {
    case md5 = "MD5"
    case sha256 = "SHA-256"
  }

  let algorithm: Algorithm
  private let realm: String
  private let nonce: String
  private let opaque: String?

  /// Chooses among the challenges of `WWW-Authenticate`, SHA-256 first; `nil` if it can answer none of them.
  init?(_ field: String) {
    let offered = Challenge.all(in: [field]).compactMap { DigestChallenge($0) }
    guard let chosen = offered.first(where: { $0.algorithm == .sha256 }) ?? offered.first else { return nil }
    self = chosen
  }

  /// `nil` for another scheme, another algorithm, a protection of the body only (`auth-int`), or none (RFC 2069).
  private init?(_ challenge: Challenge) {
    let protections = (challenge["qop"] ?? "").lowercased().split { " ,".contains($0) }
    guard challenge.scheme == "digest",
      let algorithm = Algorithm(rawValue: challenge["algorithm"]?.uppercased() ?? Algorithm.md5.rawValue),
      protections.contains("auth"), let realm = challenge["realm"], let nonce = challenge["nonce"], !nonce.isEmpty
    else { return nil }
    (self.algorithm, self.realm, self.nonce, opaque) = (algorithm, realm, nonce, challenge["opaque"])
  }

  /// Returns the header of the request that answers the challenge (RFC 7616, 3.4).
  func answer(_ request: HTTPRequest, name: String, password: String, clientNonce: String) -> String {
    let target = (request.uri.path.isEmpty ? "/" : request.uri.path) + (request.uri.query.map { "?" + $0 } ?? "")
    // Each nonce is used for one request.
    let (count, protection) = ("00000001", "auth")
    let secret = hash([name, realm, password])
    let response = hash([secret, nonce, count, clientNonce, protection, hash([request.method, target])])
    // Section 3.4.4: other names than ASCII have a form of their own (RFC 8187).
    let isASCII = name.utf8.allSatisfy { $0 < 0x80 }
    let user = isASCII ? "username=" + Self.quoted(name) : "username*=UTF-8''" + PercentEncoding.encode(name)
    let parts = [
      user, "realm=" + Self.quoted(realm), "uri=" + Self.quoted(target), "algorithm=" + algorithm.rawValue,
      "nonce=" + Self.quoted(nonce), "nc=" + count, "cnonce=" + Self.quoted(clientNonce), "qop=" + protection,
      "response=" + Self.quoted(response),
    ]
    return "Digest " + (parts + (opaque.map { ["opaque=" + Self.quoted($0)] } ?? [])).joined(separator: ", ")
  }

  private func hash(_ parts: [String]) -> String {
    let bytes = Array(parts.joined(separator: ":").utf8)
    return Hexadecimal.encode(algorithm == .md5 ? md5(bytes) : HashAlgorithm.sha256.digest(bytes))
  }

  private static func quoted(_ text: String) -> String {
    "\"" + text.exchanging("\\", for: "\\\\").exchanging("\"", for: "\\\"") + "\""
  }
}

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrText

/// Signs each request with a key that never leaves this machine: AWS Signature Version 4
/// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
///
/// libcurl has a signer as well, but version 7.88 signs the query unsorted, and `header` works without libcurl.
struct AWS4Binding: TokenBinding {
  let client: Client
  let rules: AWS4Rules

  var authenticatesClient: Bool { true }
  var fieldNames: Set<String> { ["authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"] }

  /// The body of a request to S3 over TLS need not be signed, so it can be streamed.
  func signsBody(of request: HTTPRequest) -> Bool { !(request.uri.isSecure && scope(of: request, nil).service == "s3") }

  func sign(
    _ request: HTTPRequest, with credential: Credential, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let values = client.values(for: credential)
    guard let keyIdentifier = try? rules.keyIdentifier.filled(values) else { throw .malformedCredential }
    let scope = scope(of: request, credential)
    let isStreamed = request.body.isEmpty && !["GET", "HEAD", "DELETE"].contains(request.method)
    let isUnsigned = isStreamed && !signsBody(of: request)
    var request = request.withUnambiguousQuery
    // The hash of the body is part of the signature.
    let digest = Hexadecimal.encode(HashAlgorithm.sha256.digest(request.body))
    request.fields.set("X-Amz-Date", AWS4Signature.timestamp(nonce.timestamp))
    request.fields.set("X-Amz-Content-Sha256", isUnsigned ? "UNSIGNED-PAYLOAD" : digest)
    if let token = try? rules.sessionToken?.filled(values), !token.isEmpty {
      request.fields.set("X-Amz-Security-Token", token)
    }
    let signature = AWS4Signature(request, region: scope.region, service: scope.service)
    let text = try client.computing.signature("signature") { () throws(OAuthError) in
      signature.text(secret: credential.accessToken)
    }
    let value = signature.header(keyIdentifier: keyIdentifier, signature: text)
    guard request.fields.allSatisfy({ HTTPFields.isValid(value: $0.value) }), HTTPFields.isValid(value: value) else {
      throw .malformedHeader(name: "Authorization")
    }
    request.fields.set("Authorization", value)
    return request
  }

  /// Returns the region and the service: those of the descriptor, or those in the host's labels before the domain, such
  /// as `bucket.s3.eu-central-1` and `sts`.
  private func scope(of request: HTTPRequest, _ credential: Credential?) -> (region: String, service: String) {
    let values = client.values(for: credential)
    let region = (try? rules.region?.filled(values)) ?? ""
    if let service = try? rules.service?.filled(values), !service.isEmpty { return (region, service) }
    let host = request.uri.host ?? ""
    let domains = client.hosts(for: credential ?? client.noCredential).filter { $0.hasPrefix("*.") }
    let domain = domains.map { $0.dropFirst().prefix { $0 != ":" } }.first { host.hasSuffix($0) }
    var labels = host.dropLast(domain?.count ?? 0).split(separator: ".").map(String.init)
    if domain == nil { labels = Array(labels.prefix(1)) }
    let ownRegion = labels.count > 1 ? labels.last.flatMap { Self.isRegion($0) ? $0 : nil } : nil
    if ownRegion != nil { labels.removeLast() }
    let label = labels.last ?? ""
    return (ownRegion ?? region, rules.services[label] ?? label)
  }

  /// Whether a label has the form of a region: `eu-central-1`, `us-gov-west-1`.
  private static func isRegion(_ label: String) -> Bool {
    let words = label.split(separator: "-", omittingEmptySubsequences: false)
    return words.count > 2 && words.last?.utf8.allSatisfy { (0x30...0x39).contains($0) } == true
      && words.first?.utf8.count == 2
  }
}

extension Client {
  fileprivate var noCredential: Credential { Credential(grant: .secrets, accessToken: Secret(""), obtainedAt: 0) }
}

extension HTTPRequest {
  /// A plus in a query means a space to some servers and a plus to others.
  fileprivate var withUnambiguousQuery: HTTPRequest {
    guard let query = uri.query, query.utf8.contains(UInt8(ascii: "+")) else { return self }
    var request = self
    request.uri = uri.withoutQueryAndFragment.adding(query: uri.queryParameters)
    return request
  }
}

/// The signature of one request, which clients make and servers verify.
package struct AWS4Signature: Sendable {
  private let request: HTTPRequest
  private let region: String
  private let service: String

  package init(_ request: HTTPRequest, region: String, service: String) {
    (self.request, self.region, self.service) = (request, region, service)
  }

  /// Returns the moment as `20150830T123600Z`.
  package static func timestamp(_ moment: Moment) -> String { moment.text.filter { $0 != "-" && $0 != ":" } }

  private var timestamp: String { request.fields["X-Amz-Date"] ?? "" }

  private var scope: [String] { [String(timestamp.prefix(8)), region, service, "aws4_request"] }

  /// The headers that a proxy does not change and that the service reads.
  private var signed: [(name: String, value: String)] {
    var headers = [(name: "host", value: HostPattern.authority(request.uri) ?? "")]
    for field in request.fields {
      let name = field.name.lowercased()
      guard name.hasPrefix("x-amz-") || ["content-type", "content-md5"].contains(name) else { continue }
      headers.append((name, field.value.split(separator: " ").joined(separator: " ")))
    }
    return headers.sorted { $0.name < $1.name }
  }

  /// S3 alone encodes the path once, and keeps empty and dot segments.
  private var canonicalPath: String {
    let path = request.uri.path.isEmpty ? "/" : request.uri.path
    func encoded(_ segments: [Substring]) -> String {
      segments.map { PercentEncoding.encode(String($0)) }.joined(separator: "/")
    }
    let segments = path.split(separator: "/", omittingEmptySubsequences: false)
    if service == "s3" {
      return encoded(segments.map { PercentEncoding.decode($0, plusAsSpace: false).map { Substring($0) } ?? $0 })
    }
    var kept: [Substring] = []
    for segment in segments where !segment.isEmpty && segment != "." {
      if segment == ".." { _ = kept.popLast() } else { kept.append(segment) }
    }
    return "/" + encoded(kept) + (path.hasSuffix("/") && !kept.isEmpty ? "/" : "")
  }

  private var canonicalRequest: String {
    let lines = [request.method, canonicalPath, request.uri.queryParameters.normalized]
    let headers = signed.map { $0.name + ":" + $0.value + "\n" }.joined()
    let names = signed.map(\.name).joined(separator: ";")
    return (lines + [headers, names, request.fields["X-Amz-Content-Sha256"] ?? ""]).joined(separator: "\n")
  }

  /// Returns the signature. Each step makes a key for the next part of the scope.
  package func text(secret: Secret) -> String {
    let digest = Hexadecimal.encode(HashAlgorithm.sha256.digest(Array(canonicalRequest.utf8)))
    let text = ["AWS4-HMAC-SHA256", timestamp, scope.joined(separator: "/"), digest].joined(separator: "\n")
    let key = scope.reduce(Array("AWS4".utf8) + secret.revealBytes()) { key, part in
      HashAlgorithm.sha256.authenticationCode(for: Array(part.utf8), key: key)
    }
    return Hexadecimal.encode(HashAlgorithm.sha256.authenticationCode(for: Array(text.utf8), key: key))
  }

  package func header(keyIdentifier: String, signature: String) -> String {
    let names = signed.map(\.name).joined(separator: ";")
    let credential = ([keyIdentifier] + scope).joined(separator: "/")
    return "AWS4-HMAC-SHA256 Credential=\(credential), SignedHeaders=\(names), Signature=\(signature)"
  }
}

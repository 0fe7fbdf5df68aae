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

  /// Returns the region and the service: those of the descriptor, or those in the host's name.
  private func scope(of request: HTTPRequest, _ credential: Credential?) -> (region: String, service: String) {
    let values = client.values(for: credential)
    let region = (try? rules.region?.filled(values)) ?? ""
    if let service = try? rules.service?.filled(values), !service.isEmpty { return (region, service) }
    let host = request.uri.host ?? ""
    let domains = client.hosts(for: credential ?? client.noCredential).filter { $0.hasPrefix("*.") }
    let domain = domains.map { $0.dropFirst().prefix { $0 != ":" } }.first { host.hasSuffix($0) }
    let labels = host.dropLast(domain?.count ?? 0).split(separator: ".").map(String.init)
    let name = AWS4HostName(domain == nil ? Array(labels.prefix(1)) : labels)
    if name.region == nil, let service = try? rules.globalService?.filled(values), !service.isEmpty {
      return (region, service)
    }
    return (name.region ?? region, rules.service(of: name.labels))
  }
}

/// The labels of a host before the domain, in which AWS names the service and the region in several orders:
/// `bucket.s3.eu-west-1`, `s3-eu-west-1`, `s3.dualstack.eu-west-1`, `sts-fips.us-east-1`, `domain.eu-west-1.es`,
/// `endpoint.sqs.eu-west-1.vpce`, `iam.us-gov` (https://docs.aws.amazon.com/general/latest/gr/rande.html).
private struct AWS4HostName {
  private(set) var labels: [String]  // Without those of the region and of the variant.
  private(set) var region: String?

  init(_ labels: [String]) {
    self.labels = labels
    drop("vpce")
    // A label before `s3` is the name of a bucket, which may look like a region.
    let places = self.labels.last == "s3" ? [] : self.labels.indices.suffix(2)
    if let place = places.last(where: { Self.isRegion(self.labels[$0]) }), self.labels.count > 1 {
      region = self.labels.remove(at: place)
    } else if let last = self.labels.last, last.hasPrefix("s3-"), Self.isRegion(String(last.dropFirst(3))) {
      region = String(last.dropFirst(3))
      self.labels[self.labels.count - 1] = "s3"
    }
    if drop("us-gov") { region = region ?? "us-gov-west-1" }
    for word in ["global", "dualstack", "fips"] { drop(word) }
    guard var label = self.labels.popLast() else { return }
    if label.hasSuffix("-fips") { label.removeLast(5) }
    if label.hasPrefix("fips-") { label.removeFirst(5) }
    // The rest names a zone, or the API for control.
    if label.hasPrefix("s3express-") { label = "s3express" }
    self.labels.append(label)
  }

  @discardableResult private mutating func drop(_ label: String) -> Bool {
    guard labels.count > 1, labels.last == label else { return false }
    labels.removeLast()
    return true
  }

  /// Whether a label has the form of a region: `eu-central-1`, `us-gov-west-1`.
  private static func isRegion(_ label: String) -> Bool {
    let words = label.split(separator: "-", omittingEmptySubsequences: false)
    guard words.count > 2, let number = words.last, !number.isEmpty, let first = words.first else { return false }
    return number.utf8.allSatisfy { (0x30...0x39).contains($0) } && (2...4).contains(first.utf8.count)
      && first.utf8.allSatisfy { (0x61...0x7A).contains($0) } && directions.contains { words[words.count - 2] == $0 }
  }

  private static let directions = [
    "central", "north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest",
  ]
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

  private static let servicesOfS3: Set = ["s3", "s3-object-lambda", "s3-outposts", "s3express"]

  /// Only S3 encodes the path once, and keeps empty and dot segments.
  private var canonicalPath: String {
    let path = request.uri.path.isEmpty ? "/" : request.uri.path
    func encoded(_ segments: [Substring]) -> String {
      segments.map { PercentEncoding.encode(String($0)) }.joined(separator: "/")
    }
    let segments = path.split(separator: "/", omittingEmptySubsequences: false)
    if Self.servicesOfS3.contains(service) {
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

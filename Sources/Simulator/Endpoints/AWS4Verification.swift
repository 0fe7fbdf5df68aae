import CredmgrCryptography
import CredmgrHTTP
import CredmgrText

/// A signature as a server verifies it: from the headers that the request names (AWS Signature Version 4). Shares no
/// code with the client, whose mistakes it would repeat.
struct AWS4Verification {
  let identifier: String
  private let scope: [String]  // Date, region, service, `aws4_request`. Any region and service will do.
  private let names: [String]
  private let signature: String

  /// `nil` if the header is not a complete signature.
  init?(_ header: String) {
    let scheme = "AWS4-HMAC-SHA256 "
    guard header.hasPrefix(scheme) else { return nil }
    var parts: [String: String] = [:]
    for part in header.dropFirst(scheme.count).split(separator: ",") {
      let pair = part.trimmingBlanks.split(separator: "=", maxSplits: 1).map(String.init)
      if pair.count == 2 { parts[pair[0]] = pair[1] }
    }
    let credential = (parts["Credential"] ?? "").split(separator: "/").map(String.init)
    guard credential.count == 5, credential[4] == "aws4_request", let signature = parts["Signature"] else { return nil }
    (identifier, scope, self.signature) = (credential[0], Array(credential[1...]), signature)
    names = (parts["SignedHeaders"] ?? "").split(separator: ";").map(String.init)
  }

  func isMade(by secret: String, for request: HTTPRequest) -> Bool {
    let digest = Hexadecimal.encode(HashAlgorithm.sha256.digest(request.body))
    let date = request.fields["X-Amz-Date"] ?? ""
    let needed = ["host"] + request.fields.map { $0.name.lowercased() }.filter { $0.hasPrefix("x-amz-") }
    guard date.hasPrefix(scope[0] + "T"), request.fields["X-Amz-Content-Sha256"] == digest,
      needed.allSatisfy(names.contains)
    else { return false }
    var canonical = [request.method, path(of: request.uri), request.uri.queryParameters.normalized, ""]
      .joined(separator: "\n")
    for name in names {
      let host = request.uri.origin.split(separator: "/").last.map(String.init)
      let values = name == "host" ? [host ?? ""] : request.fields.values(name)
      canonical += name + ":" + values.joined(separator: ",").split(separator: " ").joined(separator: " ") + "\n"
    }
    canonical += "\n" + names.joined(separator: ";") + "\n" + digest
    var key = Array(("AWS4" + secret).utf8)
    for part in scope { key = HashAlgorithm.sha256.authenticationCode(for: Array(part.utf8), key: key) }
    let text =
      "AWS4-HMAC-SHA256\n\(date)\n\(scope.joined(separator: "/"))\n"
      + Hexadecimal.encode(HashAlgorithm.sha256.digest(Array(canonical.utf8)))
    return Hexadecimal.encode(HashAlgorithm.sha256.authenticationCode(for: Array(text.utf8), key: key)) == signature
  }

  /// Every service except S3 encodes the path of the request once more, without empty segments.
  private func path(of uri: URI) -> String {
    if scope[2] == "s3" {
      return uri.path.isEmpty
        ? "/"
        : uri.path.split(separator: "/", omittingEmptySubsequences: false)
          .map { PercentEncoding.encode(PercentEncoding.decode($0, plusAsSpace: false) ?? String($0)) }
          .joined(separator: "/")
    }
    let segments = uri.path.split(separator: "/").map { PercentEncoding.encode(String($0)) }
    return "/" + segments.joined(separator: "/") + (uri.path.hasSuffix("/") && !segments.isEmpty ? "/" : "")
  }
}

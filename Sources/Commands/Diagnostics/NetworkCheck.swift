import CredentialManager
import HTTP
import Platform
import Text

extension Doctor {
  /// Where libcurl is told to look when it is built for one of the common systems.
  private static let bundles = [
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
  ]

  mutating func checkCertificates() {
    if let folder = value("SSL_CERT_DIR"), !File.isDirectory(folder) {
      problem(
        .certificates, "SSL_CERT_DIR is \(quoted(folder)), which is no folder", "\(run: "unset", "SSL_CERT_DIR")")
    }
    if let file = value("SSL_CERT_FILE") {
      let bytes = try? File.read(file, limit: 16 << 20)
      if bytes?.firstPlace(of: Array("-----BEGIN ".utf8)) != nil {
        return ok(.certificates, "those in \"\(file)\", as SSL_CERT_FILE says")
      }
      let reason = bytes == nil ? "which cannot be read" : "in which there is no certificate"
      problem(.certificates, "SSL_CERT_FILE is \(quoted(file)), \(reason)", "\(run: "unset", "SSL_CERT_FILE")")
    } else if let file = Self.bundles.first(where: File.exists) {
      ok(.certificates, "those in \"\(file)\"")
    } else {
      problem(
        .certificates, "there are no certificates of authorities",
        "\(run: "sudo", "apt-get", "install", "ca-certificates"), or set SSL_CERT_FILE to a file of them")
    }
  }

  private var proxies: [String] {
    ["https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"].filter { value($0) != nil }
  }

  mutating func checkProxy() {
    for name in proxies {
      let text = context.environment(name) ?? ""
      let scheme = text.firstPlace(of: "://").map { String(text[..<$0.lowerBound]).lowercased() } ?? "http"
      // A password may stand before the host.
      let rest = text.firstPlace(of: "://").map { text[$0.upperBound...] } ?? text[...]
      let shown = scheme + "://" + (rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest)
      if ["http", "https", "socks4", "socks4a", "socks5", "socks5h"].contains(scheme), Self.isPlace(shown) {
        ok(.proxy, "\(name) is \"\(shown)\"")
      } else {
        problem(.proxy, "\(name) is \(quoted(shown)), which is no proxy that is known", "\(run: "unset", name)")
      }
    }
    if proxies.isEmpty { ok(.proxy, "there is none") }
  }

  /// Whether a host, and a port where there is one, can be what they say.
  private static func isPlace(_ proxy: String) -> Bool {
    guard let begin = proxy.firstPlace(of: "://") else { return false }
    let authority = proxy[begin.upperBound...].prefix { $0 != "/" }
    let host = authority.hasPrefix("[") ? authority.prefix { $0 != "]" } : authority.prefix { $0 != ":" }
    guard !host.isEmpty, host.allSatisfy({ !$0.isWhitespace }) else { return false }
    let rest = authority[host.endIndex...].drop { $0 == "]" }
    guard let colon = rest.first else { return true }
    return colon == ":" && UInt16(rest.dropFirst()).map { $0 > 0 } ?? false
  }

  /// Asks a provider's servers for an answer.
  ///
  /// - Throws: `CommandError.handOver` in the program without a network; `.credential` when the provider is not known.
  mutating func reach(_ provider: String) throws(CommandError) {
    let servers = try manager(context.source.reach(provider))
    for server in servers {
      switch server.date {
      case .failure(let error):
        let message = error.message(provider: provider)
        problem(.network, message.with(hints: [remedy(error, server.host, provider)]))
      case .success(let date):
        ok(.network, "\"\(server.host)\" of \"\(provider)\" answers")
        if let date { checkClock(of: server.host, date) }
      }
    }
  }

  private func remedy(_ error: HTTPError, _ host: String, _ provider: String) -> Remedy {
    guard case .unreachable(_, let reason) = error else { return comparing(provider) }
    switch reason {
    case .proxy where !proxies.isEmpty, .connectionRefused where !proxies.isEmpty,
      .nameNotResolved where !proxies.isEmpty, .timedOut where !proxies.isEmpty:
      return "correct the proxy, or \(run: ["unset"] + proxies) to do without it"
    case .tls:
      return "\(run: "sudo", "apt-get", "install", "--reinstall", "ca-certificates"), or see "
        + "\(command: "curl", "-v", "https://\(host)/")"
    case .nameNotResolved:
      return "connect this machine; \(command: "getent", "hosts", host) shows when the name is known"
    default: return comparing(provider)
    }
  }
}

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
        .certificates, "SSL_CERT_DIR is \(quoted(folder)), which is no folder", hints: "\(run: "unset", "SSL_CERT_DIR")"
      )
    }
    if let file = value("SSL_CERT_FILE") {
      let bytes = try? File.read(file, limit: 16 << 20)
      if bytes?.firstPlace(of: Array("-----BEGIN ".utf8)) != nil {
        return ok(.certificates, "those in \"\(file)\", as SSL_CERT_FILE says")
      }
      let reason = bytes == nil ? "which cannot be read" : "in which there is no certificate"
      problem(.certificates, "SSL_CERT_FILE is \(quoted(file)), \(reason)", hints: "\(run: "unset", "SSL_CERT_FILE")")
    } else if let file = Self.bundles.first(where: File.exists) {
      ok(.certificates, "those in \"\(file)\"")
    } else {
      problem(
        .certificates, "there are no certificates of authorities",
        hints: "\(run: "sudo", "apt-get", "install", "ca-certificates"), or set SSL_CERT_FILE to a file of them")
    }
  }

  private var proxies: [String] {
    ["https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"].filter { value($0) != nil }
  }

  mutating func checkProxy() {
    for name in proxies {
      let text = context.environment(name) ?? ""
      let mark = text.firstPlace(of: "://")
      let scheme = mark.map { String(text[..<$0.lowerBound]).lowercased() } ?? "http"
      // A password may stand before the host.
      let rest = mark.map { text[$0.upperBound...] } ?? text[...]
      let host = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
      let shown = scheme + "://" + host
      let isHost = host.last != ":" && (try? URI(parsing: "http://" + host)) != nil
      if isHost, ["http", "https", "socks4", "socks4a", "socks5", "socks5h"].contains(scheme) {
        ok(.proxy, "\(name) is \"\(shown)\"")
      } else {
        problem(.proxy, "\(name) is \(quoted(shown)), which is no proxy that is known", hints: "\(run: "unset", name)")
      }
    }
    if proxies.isEmpty { ok(.proxy, "there is none") }
  }

  mutating func reach(_ provider: String) throws(CommandError) {
    let servers = try manager(context.source.reach(provider))
    for server in servers {
      switch server.date {
      case .failure(let error):
        problem(.network, error.message(provider: provider).with(hints: [remedy(error, provider)]))
      case .success(let date):
        ok(.network, "\"\(server.host)\" of \"\(provider)\" answers")
        if let date { checkClock(of: server.host, date) }
      }
    }
  }

  private func remedy(_ error: HTTPError, _ provider: String) -> Remedy {
    guard !proxies.isEmpty, case .unreachable(_, let reason) = error,
      [.proxy, .connectionRefused, .nameNotResolved, .timedOut].contains(reason)
    else { return comparing(provider) }
    return "correct the proxy, or \(run: ["unset"] + proxies) to do without it"
  }
}

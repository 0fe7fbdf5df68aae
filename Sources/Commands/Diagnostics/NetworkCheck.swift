import CredmgrHTTP
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Doctor {
  /// The certificate bundles that libcurl uses on common systems.
  private static let bundles = [
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
  ]

  mutating func checkCertificates() {
    if let folder = value("SSL_CERT_DIR"), !File.isDirectory(folder) {
      problem(
        .certificates, "SSL_CERT_DIR names \(quoted(folder)), which is not a directory",
        hints: "\(run: "unset", "SSL_CERT_DIR")"
      )
    }
    if let file = value("SSL_CERT_FILE") {
      let bytes = try? File.read(file, limit: 16 << 20)
      if bytes?.firstPlace(of: Array("-----BEGIN ".utf8)) != nil {
        return ok(.certificates, "from \"\(file)\", set by SSL_CERT_FILE")
      }
      let reason = bytes == nil ? "which cannot be read" : "which contains no certificate"
      problem(
        .certificates, "SSL_CERT_FILE names \(quoted(file)), \(reason)", hints: "\(run: "unset", "SSL_CERT_FILE")")
    } else if let file = Self.bundles.first(where: File.exists) {
      ok(.certificates, "from \"\(file)\"")
    } else {
      problem(
        .certificates, "no CA certificates found",
        hints: "\(run: "sudo", "apt-get", "install", "ca-certificates") or set SSL_CERT_FILE")
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
      // The part before the host may contain a password.
      let rest = mark.map { text[$0.upperBound...] } ?? text[...]
      let host = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
      let shown = scheme + "://" + host
      let isHost = host.last != ":" && (try? URI(parsing: "http://" + host)) != nil
      if isHost, ["http", "https", "socks4", "socks4a", "socks5", "socks5h"].contains(scheme) {
        ok(.proxy, "\(name) is \"\(shown)\"")
      } else {
        problem(.proxy, "\(name) is \(quoted(shown)), which is not a supported proxy", hints: "\(run: "unset", name)")
      }
    }
    if proxies.isEmpty { ok(.proxy, "no proxy is set") }
  }

  mutating func reach(_ provider: String) throws(CommandError) {
    let servers = try manager(context.source.reach(provider))
    for server in servers {
      switch server.date {
      case .failure(let error):
        let message = error.message(provider: provider, title: context.titled(provider))
        problem(.network, message.with(hints: [remedy(error, provider)]))
      case .success(let date):
        ok(.network, "\"\(server.host)\" of \(context.titled(provider)) answers")
        if let date { checkClock(of: server.host, date) }
      }
    }
  }

  private func remedy(_ error: HTTPError, _ provider: String) -> Remedy {
    guard case .unreachable(_, let reason) = error,
      [.proxy, .connectionRefused, .nameNotResolved, .timedOut].contains(reason)
    else { return comparing(provider) }
    guard !proxies.isEmpty else {
      return reason == .nameNotResolved ? .checkingNetwork : comparing(provider)
    }
    return "correct the proxy, or \(run: ["unset"] + proxies) to use none"
  }
}

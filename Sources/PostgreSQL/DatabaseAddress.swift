import CredmgrCPQ
import CredmgrPlatform

/// The address of a database as libpq reads it: a URL, or keywords and values. It contains no password, because an
/// address is visible to others as an argument.
package struct DatabaseAddress: Sendable {
  package let text: String
  /// The values that replace those of the address, for each of its hosts. libpq would wait for the first host only.
  let hosts: [[String: String]]

  package init(_ text: String) throws(PostgreSQLError) {
    let values = try Self.values(text)
    if values["password"] != nil || values["sslpassword"] != nil { throw .passwordInAddress }
    // A user and a password where they do not belong, which messages about a host or a database would repeat.
    for keyword in ["host", "dbname"] {
      if values[keyword]?.utf8.contains(where: { "@=&".utf8.contains($0) }) == true { throw .badAddress }
    }
    // As in `postgresql://ada:secret/x`, without a host.
    for port in Self.list(values["port"]) where !port.isEmpty && UInt16(port).map({ $0 > 0 }) != true {
      throw .badAddress
    }
    // As in `postgresql://[::1:secret]/x`.
    for host in Self.list(values["host"]) where host.utf8.contains(UInt8(ascii: ":")) {
      guard Self.isIPv6(host.prefix { $0 != "%" }) else { throw .badAddress }
    }
    self.text = text
    let always = ["application_name": "credmgr", "client_encoding": "UTF8"]
    var certificates: String?
    if values["sslrootcert"] == nil, Environment.text("PGSSLROOTCERT") == nil {
      let own = (Environment.text("HOME") ?? "") + "/.postgresql/root.crt"
      if !File.exists(own), let system = Self.systemCertificates.first(where: File.exists) {
        certificates = system
      }
    }
    // These replace the place that the address names.
    let hasService = values["service"] != nil || Environment.text("PGSERVICE") != nil
    let address = Environment.text("PGHOSTADDR") ?? "localhost"
    let isElsewhere = hasService || !Self.isLoopback(address)
    let (names, addresses, ports) = (
      Self.list(values["host"]), Self.list(values["hostaddr"]), Self.list(values["port"])
    )
    let count = max(names.count, addresses.count, 1)
    hosts = (0..<count).map { index in
      var host = always
      if count > 1 {
        host["host"] = index < names.count ? names[index] : ""
        host["hostaddr"] = index < addresses.count ? addresses[index] : ""
        host["port"] = ports.count > 1 ? (index < ports.count ? ports[index] : "") : ports.first
        // Of several servers, only one accepts changes.
        host["target_session_attrs"] = values["target_session_attrs"] ?? "read-write"
      }
      let places = [
        index < names.count ? names[index] : nil, index < addresses.count ? addresses[index] : nil,
      ].compactMap { $0 }
      // libpq ignores this for a UNIX socket.
      let hasAddress = index < addresses.count && !addresses[index].isEmpty
      if places.isEmpty || isElsewhere && !hasAddress || !places.allSatisfy(Self.isLoopback) {
        host["sslmode"] = "verify-full"
        host["sslrootcert"] = certificates
      } else {
        // The connection does not leave this machine, so it may do without TLS unless the user asks for more.
        let mode = values["sslmode"] ?? Environment.text("PGSSLMODE") ?? "prefer"
        host["sslmode"] = mode
        if mode.hasPrefix("verify") { host["sslrootcert"] = certificates }
      }
      return host
    }
  }

  private static let systemCertificates = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]

  /// Whether the text may be an IPv6 address, and not a host with a password.
  private static func isIPv6(_ text: Substring) -> Bool {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    return parts.indices.allSatisfy { index in
      let numbers = parts[index].split(separator: ".", omittingEmptySubsequences: false)
      // The last one may be an IPv4 address.
      if index == parts.endIndex - 1, numbers.count == 4 { return numbers.allSatisfy { UInt8($0) != nil } }
      return parts[index].utf8.count <= 4 && parts[index].allSatisfy { $0.isASCII && $0.isHexDigit }
    }
  }

  private static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1"
      || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30..<0x3A).contains($0) })
  }

  private static func list(_ value: String?) -> [String] {
    value?.split(separator: ",", omittingEmptySubsequences: false).map { String($0) } ?? []
  }

  private static func values(_ text: String) throws(PostgreSQLError) -> [String: String] {
    guard let pq = PostgreSQL.library else { throw .libraryMissing }
    // A single word would be the name of a database.
    guard text.utf8.contains(UInt8(ascii: ":")) || text.utf8.contains(UInt8(ascii: "=")), !text.utf8.contains(0),
      let options = unsafe pq.parse(text, nil)
    else { throw .badAddress }
    defer { unsafe pq.free_options(options) }
    var values: [String: String] = [:]
    var option = unsafe options
    while let keyword = unsafe option.pointee.keyword {
      if let value = unsafe option.pointee.value { unsafe values[String(cString: keyword)] = String(cString: value) }
      unsafe option += 1
    }
    return values
  }
}

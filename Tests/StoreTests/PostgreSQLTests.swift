import CredmgrCryptography
import CredmgrPlatform
import Glibc
import Testing

@testable import CredmgrPostgreSQL

@Suite struct PostgreSQLTests {
  private let server: TestServer

  init() throws { server = try TestServer.shared.get() }

  @Test func valuesArriveUnchanged() throws {
    let connection = try server.connect()
    let bytes = (0...255).map { UInt8($0) }
    let rows = try connection.query(
      "SELECT $1,$2,$3,$4::bytea,a,b FROM unnest($5,$6) AS x(a,b)",
      [
        .bytes(bytes), .integer(-5_000_000_000), .text("é;'"), .bytes(nil), .byteLists([bytes, []]),
        .integers([.max, .min]),
      ], within: .seconds(30))
    #expect(rows.count == 2)
    #expect(rows[0].bytes(0) == bytes && rows[0].integer(1) == -5_000_000_000 && rows[0].text(2) == "é;'")
    #expect(rows[0].bytes(3) == nil && rows[0].bytes(4) == bytes && rows[1].bytes(4) == [])
    #expect(rows[0].integer(5) == .max && rows[1].integer(5) == .min && rows[1].bytes(9) == nil)
  }

  @Test func refusalsHaveACode() throws {
    let connection = try server.connect()
    for (statement, expected) in [("SELECT 1/0", "22012"), ("SELECT x", "42703"), ("nonsense", "42601")] {
      let failure = #expect(throws: PostgreSQLError.self) { try connection.query(statement, within: .seconds(30)) }
      guard case .refused(expected, _)? = failure else { throw TestServer.Failure(text: "\(failure as Any)") }
    }
    #expect(try connection.query("SELECT 1", within: .seconds(30)).count == 1)
    let failure = #expect(throws: PostgreSQLError.self) { try server.connect("missing") }
    guard case .refused("3D000", let detail)? = failure else { throw TestServer.Failure(text: "\(failure as Any)") }
    #expect(detail.contains("missing"))
  }

  @Test func addresses() throws {
    for text in [
      "team", "postgresql://[x/y", "nonsense=1", "", "host=ada:secret@h dbname=x", "dbname=postgresql://ada:secret@h/x",
      "postgresql://ada@h/x&passwor=secret", "postgresql://ada:secret/x", "postgresql://ada:770077/x",
      "postgresql://h,ada:770077/x", "host=h port=0", "postgresql://[::1:secret]/x", "postgresql://[::1:770077]/x",
      "postgresql://[::1:77.0077]/x", "postgresql://[::1.2.3.770077]/x",
    ] {
      #expect(throws: PostgreSQLError.badAddress) { try DatabaseAddress(text) }
    }
    for text in ["postgresql://ada:secret@host/x", "host=h password=secret", "postgresql://h/x?sslpassword=s"] {
      #expect(throws: PostgreSQLError.passwordInAddress) { try DatabaseAddress(text) }
    }
  }

  /// TLS with a verified name, unless the server is on this machine. An address cannot ask for less.
  @Test func encryption() throws {
    let verified = "verify-full"
    let cases: [(String, [String?])] = [
      ("postgresql://db.example/x", [verified]), ("postgresql://db.example/x?sslmode=disable", [verified]),
      ("service=team", [verified]), ("host=localhost hostaddr=192.0.2.1", [verified]),
      ("postgresql://127.0.0.1.example/x", [verified]), ("postgresql://127.0.0.1,db.example/x", ["prefer", verified]),
      ("postgresql://127.0.0.1/x", ["prefer"]), ("postgresql://localhost:5433/x", ["prefer"]),
      ("postgresql://[::1]/x", ["prefer"]), ("postgresql://[::1]/x?sslmode=verify-full", [verified]),
      ("postgresql://localhost/x?sslmode=disable", ["disable"]),
      // A service may name another server.
      ("postgresql://localhost/x?service=team", [verified]),
      ("postgresql://localhost/x?service=team&hostaddr=127.0.0.1", ["prefer"]),
    ]
    for (address, expected) in cases {
      #expect(try DatabaseAddress(address).hosts.map { $0["sslmode"] } == expected, "\(address)")
    }
    let several = try DatabaseAddress("postgresql://a.example:1,b.example:2/x")
    #expect(several.hosts.map { $0["host"] } == ["a.example", "b.example"])
    #expect(several.hosts.map { $0["port"] } == ["1", "2"])
    #expect(several.hosts.allSatisfy { $0["target_session_attrs"] == "read-write" })
  }

  /// A server that takes connections and says nothing, before and after the login.
  @Test func silenceEnds() throws {
    let connection = try server.connect()
    #expect(throws: PostgreSQLError.silent) {
      try connection.query("SELECT pg_sleep(600)", within: .milliseconds(50))
    }
    let folder = try server.folder()
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: (folder + "/.s.PGSQL.5432").utf8) }
    let bound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0 && listen(listener, 8) == 0)
    let silent = "postgresql://credmgr@/postgres?host=\(folder)"
    #expect(throws: PostgreSQLError.silent) {
      try PostgreSQL.connect(to: DatabaseAddress(silent), within: .milliseconds(50))
    }
    // The next host gets its own time.
    let both = "postgresql://credmgr@/postgres?host=\(folder),\(server.path)/socket"
    let second = try PostgreSQL.connect(to: DatabaseAddress(both), within: .seconds(1))
    #expect(try second.query("SELECT 1", within: .seconds(30)).count == 1)
  }

  @Test func connectionsThatEnd() throws {
    let connection = try server.connect()
    let number = try connection.query("SELECT pg_backend_pid()::bigint", within: .seconds(30))[0].integer(0) ?? 0
    try server.connect().query("SELECT pg_terminate_backend($1::int)", [.integer(number)], within: .seconds(30))
    let lost = #expect(throws: PostgreSQLError.self) { try connection.query("SELECT 1", within: .seconds(30)) }
    guard case .lost? = lost else { throw TestServer.Failure(text: "\(lost as Any)") }
    let failure = #expect(throws: PostgreSQLError.self) {
      try PostgreSQL.connect(
        to: DatabaseAddress("postgresql://credmgr@/postgres?host=/nonexistent"), within: .seconds(30))
    }
    guard case .unreachable(let detail)? = failure else { throw TestServer.Failure(text: "\(failure as Any)") }
    #expect(detail.contains("/nonexistent"))
  }
}

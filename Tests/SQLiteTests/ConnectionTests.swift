import CredmgrSQLite
import Testing

@Suite("Connection") struct ConnectionTests {
  private let connection: Connection

  init() throws {
    connection = try Connection(path: "", .memory, busyTimeout: .zero)
    try connection.execute("CREATE TABLE t(i INTEGER, t TEXT, b BLOB)STRICT")
  }

  @Test("values are read as they were bound", arguments: [[], [0], [1, 0, 2], Array(repeating: 7, count: 10_000)])
  func values(_ bytes: [UInt8]) throws {
    try connection.run("INSERT INTO t VALUES(?1,char(97,0,233),?2)", [.integer(.min), .blob(bytes)])
    let rows = try connection.rows("SELECT i,t,b FROM t") { row throws(SQLiteError) in
      #expect(try row.integer(0) == .min)
      #expect(try row.text(1) == "a\0é")
      return try row.bytes(2)
    }
    #expect(rows == [bytes])
  }

  @Test("nothing is converted") func types() throws {
    let statement = try connection.prepare("SELECT 1,'1',x'31',NULL")
    #expect(try statement.step())
    #expect(throws: SQLiteError.unexpectedType(column: 1)) { try statement.integer(1) }
    #expect(throws: SQLiteError.unexpectedType(column: 2)) { try statement.text(2) }
    #expect(throws: SQLiteError.unexpectedType(column: 0)) { try statement.bytes(0) }
    #expect(throws: SQLiteError.unexpectedType(column: 3)) { try statement.bytes(3) }
  }

  @Test("a transaction is undone if its body throws") func transaction() throws {
    struct Stop: Error {}
    #expect(throws: Stop.self) {
      try connection.transaction(.immediate, convert: { $0 as any Error }) { () throws(any Error) in
        try connection.execute("INSERT INTO t VALUES(1,'',x'')")
        throw Stop()
      }
    }
    #expect(!connection.isInTransaction)
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    try connection.transaction(.immediate, convert: { $0 }) { () throws(SQLiteError) in
      try connection.execute("INSERT INTO t VALUES(1,'',x'')")
    }
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }

  @Test("errors name the operation and contain no values") func errors() throws {
    do throws(SQLiteError) {
      try connection.execute("INSERT INTO t VALUES('secret',1,1)")
      Issue.record("a text went into a column of integers")
    } catch {
      #expect(!"\(error)".contains("secret"))
    }
    #expect(throws: SQLiteError.failed(code: 1)) { _ = try connection.prepare("SELECT nothing FROM nowhere") }
    #expect(throws: SQLiteError.self) { _ = try connection.prepare("") }
  }

  @Test("does not create a missing file") func absent() {
    do throws(SQLiteError) {
      _ = try Connection(path: "/nonexistent/file.db", .readWrite, busyTimeout: .zero)
      Issue.record("opened")
    } catch {
      #expect(error.condition == .cannotOpen)
    }
  }

  @Test("serialized bytes begin with SQLite's header") func serialize() throws {
    let bytes = try connection.serialize()
    #expect(bytes.starts(with: "SQLite format 3\0".utf8))
    #expect(bytes.count.isMultiple(of: 512))
    #expect(connection.fileSize == nil)
  }
}

import CredmgrCPQ
import CredmgrCryptography
import CredmgrPlatform
import CredmgrText
import Glibc

/// A connection to PostgreSQL through libpq, which is loaded at its first use. Every call has a time limit, because a
/// server or the network may stop to answer without closing the connection. Not thread-safe.
@safe package final class PostgreSQL {
  static let library: credmgr_pq? = {
    var pq = credmgr_pq()
    return unsafe credmgr_pq_load(&pq) != 0 ? pq : nil
  }()

  package static var isMissing: Bool { library == nil }

  private let pq: credmgr_pq
  private let connection: UnsafeMutableRawPointer

  /// Connects to the first host of the address that answers. Each has `time` to do so.
  package static func connect(
    to address: DatabaseAddress, password: Secret? = nil, within time: Duration
  ) throws(PostgreSQLError) -> PostgreSQL {
    guard let library else { throw .libraryMissing }
    var failure: PostgreSQLError?
    for host in address.hosts {
      do throws(PostgreSQLError) {
        return try PostgreSQL(library, address, host: host, password: password, until: .now() + time)
      } catch .interrupted {
        throw .interrupted
      } catch {
        // A refusal says more than the silence of another host.
        if case .refused = failure { continue }
        failure = error
      }
    }
    throw failure ?? .badAddress
  }

  private init(
    _ library: credmgr_pq, _ address: DatabaseAddress, host: [String: String], password: Secret?,
    until end: MonotonicMoment
  ) throws(PostgreSQLError) {
    pq = library
    // Later values replace those of the address.
    var options = [("dbname", address.text)] + host.map { ($0.key, $0.value) }
    if let password { options.append(("password", password.reveal())) }
    let texts = options.flatMap { [$0.0, $0.1] }
    var started: UnsafeMutableRawPointer?
    unsafe withCStrings(texts) { strings in
      var keywords: [UnsafePointer<CChar>?] = unsafe []
      var values: [UnsafePointer<CChar>?] = unsafe []
      for index in unsafe stride(from: 0, to: strings.count - 1, by: 2) {
        unsafe keywords.append(strings[index])
        unsafe values.append(strings[index + 1])
      }
      unsafe keywords.append(nil)
      unsafe values.append(nil)
      unsafe started = library.start(&keywords, &values, 1)
    }
    guard let started = unsafe started else { throw .unreachable(detail: "not enough memory") }
    unsafe connection = unsafe started
    unsafe credmgr_pq_silence(library, started)
    // The code is part of the message only then.
    _ = unsafe library.set_verbosity(started, 2)
    // PQconnectStart: as if the last answer was PGRES_POLLING_WRITING.
    var state: Int32 = 2
    while unsafe library.status(started) != 1, state != 3 {
      guard state == 1 || state == 2 else { throw failedConnection() }
      try wait(for: state == 1 ? POLLIN : POLLOUT, until: end)
      state = unsafe library.poll(started)
    }
    guard state == 3 else { throw failedConnection() }
    _ = unsafe library.set_verbosity(started, 1)
    guard unsafe library.set_nonblocking(started, 1) == 0 else { throw failedConnection() }
  }

  deinit { unsafe pq.finish(connection) }

  package var isEncrypted: Bool { unsafe pq.uses_tls(connection) != 0 }

  private var message: String {
    let text = unsafe pq.error(connection).map { unsafe String(cString: $0) } ?? ""
    return text.split(separator: "\n").first.map { String($0) } ?? "no connection"
  }

  private func failedConnection() -> PostgreSQLError {
    if unsafe pq.needs_password(connection) != 0 { return .passwordNeeded }
    let text = message
    // `FATAL:  28P01: password authentication failed for user "ada"`, whose first word depends on the language.
    for part in text.split(separator: ":").dropFirst() {
      let code = part.drop { $0 == " " }
      let isCode =
        code.utf8.count == 5 && code.utf8.allSatisfy { (0x30..<0x3A).contains($0) || (0x41..<0x5B).contains($0) }
      if isCode, part.hasPrefix("  ") {
        let detail = text.split(separator: ":").last.map { String($0.drop { $0 == " " }) } ?? text
        return .refused(code: String(code), detail: detail)
      }
    }
    // The server died during the handshake. Its certificate may be right.
    if text.firstPlace(of: "SYSCALL") != nil { return .unreachable(detail: text) }
    if ["certificate", "SSL"].contains(where: { text.firstPlace(of: $0) != nil }) { return .certificate(detail: text) }
    return .unreachable(detail: text)
  }

  private func wait(for events: Int32, until end: MonotonicMoment) throws(PostgreSQLError) {
    while true {
      if Signals.isInterrupted { throw .interrupted }
      // Waits in slices: otherwise a signal between the check and the call would be noticed only at the end.
      let rest = min(end - MonotonicMoment.now(), .milliseconds(200))
      if rest <= .zero { throw .silent }
      let socket = unsafe pq.socket(connection)
      guard socket >= 0 else { throw .lost(detail: message) }
      var file = pollfd(fd: socket, events: Int16(events), revents: 0)
      if unsafe poll(&file, 1, Int32(rest.millisecondsRoundedUp)) > 0 { return }
    }
  }

  /// Runs one statement with its parameters and returns the rows. The server keeps nothing for it afterwards, so that a
  /// pooler can give each statement another connection.
  @discardableResult package func query(
    _ statement: String, _ parameters: [SQLParameter] = [], within time: Duration
  ) throws(PostgreSQLError) -> [SQLRow] {
    let end = MonotonicMoment.now() + time
    try send(statement, parameters)
    while true {
      let status = unsafe pq.flush(connection)
      if status == 0 { break }
      if status < 0 { throw .lost(detail: message) }
      try wait(for: POLLOUT | POLLIN, until: end)
      if unsafe pq.consume(connection) == 0 { throw .lost(detail: message) }
    }
    var rows: [SQLRow] = []
    var failure: PostgreSQLError?
    while true {
      while unsafe pq.is_busy(connection) != 0 {
        try wait(for: POLLIN, until: end)
        if unsafe pq.consume(connection) == 0 { throw .lost(detail: message) }
      }
      guard let result = unsafe pq.result(connection) else { break }
      defer { unsafe pq.clear(result) }
      switch unsafe pq.result_status(result) {
      case 1: break  // PGRES_COMMAND_OK
      case 2: rows = unsafe read(result)  // PGRES_TUPLES_OK
      default:
        failure = unsafe failure ?? self.failure(result)
      }
    }
    if let failure { throw failure }
    return rows
  }

  private func send(_ statement: String, _ parameters: [SQLParameter]) throws(PostgreSQLError) {
    let values = parameters.map(\.bytes)
    let types = parameters.map(\.type)
    let lengths = values.map { Int32($0?.count ?? 0) }
    let formats = [Int32](repeating: 1, count: parameters.count)
    // One buffer for all values; an empty one needs a place as well, because a null pointer is NULL.
    var buffer: [UInt8] = []
    var starts: [Int?] = []
    for value in values {
      starts.append(value.map { _ in buffer.count })
      buffer += value ?? []
    }
    buffer.append(0)
    let sent = unsafe buffer.withUnsafeBytes { buffer in
      let pointers: [UnsafePointer<CChar>?] = unsafe starts.map { start in
        unsafe start.flatMap { unsafe buffer.baseAddress?.advanced(by: $0).assumingMemoryBound(to: CChar.self) }
      }
      return unsafe pq.send(connection, statement, Int32(values.count), types, pointers, lengths, formats, 1)
    }
    if sent == 0 { throw .lost(detail: message) }
  }

  private func failure(_ result: UnsafeMutableRawPointer) -> PostgreSQLError {
    func field(_ code: Character) -> String? {
      code.asciiValue.flatMap { code in unsafe pq.field(result, Int32(code)).map { unsafe String(cString: $0) } }
    }
    // PG_DIAG_SQLSTATE and PG_DIAG_MESSAGE_PRIMARY. Without a code, the text is the library's.
    guard let code = field("C"), unsafe pq.status(connection) == 0 else { return .lost(detail: message) }
    // Class 57 ends a connection or a statement from outside, and class 08 is a failure of the connection. 25P03 ends a
    // connection whose transaction has waited too long for its client.
    if code.hasPrefix("57P") || code.hasPrefix("08") || code == "25P03" { return .lost(detail: field("M") ?? code) }
    return .refused(code: code, detail: field("M") ?? code)
  }

  private func read(_ result: UnsafeMutableRawPointer) -> [SQLRow] {
    let columns = unsafe pq.columns(result)
    return unsafe (0..<pq.rows(result)).map { row in
      SQLRow(
        columns: (0..<columns).map { column in
          if unsafe pq.is_null(result, row, column) != 0 { return nil }
          let count = unsafe Int(pq.length(result, row, column))
          guard let start = unsafe pq.value(result, row, column) else { return [] }
          return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
        })
    }
  }
}

/// Calls `body` with the texts as C strings.
private func withCStrings(_ texts: [String], _ body: ([UnsafePointer<CChar>]) -> Void) {
  let copies = unsafe texts.map { unsafe strdup($0) }
  unsafe body(copies.compactMap { unsafe $0.map { unsafe UnsafePointer($0) } })
  for index in texts.indices {
    // One of them may be a password.
    if let copy = unsafe copies[index] { unsafe explicit_bzero(copy, texts[index].utf8.count) }
    unsafe free(copies[index])
  }
}

import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText

/// A file that says when a server did not answer in time, so that the next process need not wait as long.
struct Silence {
  let path: String
  let clock: any WallClock

  private var now: Int64 { clock.now().secondsSince1970 }

  func lasts(within time: Duration) -> Bool {
    guard let bytes = try? PrivateFile.read(path, limit: 32), let since = Int64(String(decoding: bytes, as: UTF8.self))
    else { return false }
    return (0..<time.wholeSeconds).contains(now - since)
  }

  func begin() { try? PrivateFile.replace(path, Array("\(now)".utf8)) }

  func end() { if File.exists(path) { _ = try? File.remove(path) } }
}

/// The database of a vault: connects at the first use, and again after a connection was lost.
final class Server {
  private let address: DatabaseAddress
  private let password: Secret?
  /// The name for errors.
  let name: String
  private let silence: Silence?
  private var connection: PostgreSQL?
  private(set) var isInTransaction = false
  private(set) var statementCount = 0
  /// Whether the server refused the stored password, and another one opened the connection.
  private(set) var isPasswordOutdated = false

  /// The time limit of a connection and of a statement. A lease outlasts several of them.
  static let patience = Duration.seconds(10)

  /// Another machine has kept rows locked for `Schema.lockTime`; nothing was changed.
  static let busy = ServerFault.unreachable(detail: "another machine has locked its records")

  init(_ address: String, password: Secret?, name: String, silence: Silence? = nil) throws(StoreError) {
    do throws(PostgreSQLError) {
      self.address = try DatabaseAddress(address)
    } catch {
      throw Self.converted(error, name)
    }
    self.password = password
    self.name = name
    self.silence = silence
  }

  func wasSilent(within time: Duration) -> Bool { silence?.lasts(within: time) == true }

  /// Forgets the silence of a server that fails immediately.
  private func note(_ error: PostgreSQLError) {
    switch error {
    case .silent: silence?.begin()
    case .interrupted: break
    default: silence?.end()
    }
  }

  func fault(_ fault: ServerFault) -> StoreError { .server(fault, vault: name) }

  var isEncrypted: Bool { connection?.isEncrypted ?? false }

  /// The outcome of a statement that may fail because another machine was faster.
  enum Outcome {
    case done([SQLRow])
    /// Another machine changed the same rows; nothing was changed.
    case beaten
    /// The connection ended, so the statement may have taken effect.
    case unknown(StoreError)
  }

  func attempt(_ statement: String, _ parameters: [SQLParameter] = []) throws(StoreError) -> Outcome {
    do throws(PostgreSQLError) {
      let connection = try connected()
      statementCount += 1
      let rows = try connection.query(statement, parameters, within: Self.patience)
      if statementCount == 1 { silence?.end() }
      return .done(rows)
    } catch {
      note(error)
      switch error {
      case .refused("22012", _), .refused("23505", _), .refused("40001", _), .refused("40P01", _): return .beaten
      case .lost, .silent:
        close()
        return .unknown(Self.converted(error, name))
      default:
        throw Self.converted(error, name)
      }
    }
  }

  /// Connects unless it has done so.
  func connect() throws(StoreError) {
    do throws(PostgreSQLError) { _ = try connected() } catch {
      note(error)
      throw Self.converted(error, name)
    }
  }

  private func connected() throws(PostgreSQLError) -> PostgreSQL {
    if let connection { return connection }
    let new: PostgreSQL
    do throws(PostgreSQLError) {
      new = try PostgreSQL.connect(to: address, password: password, within: Self.patience)
    } catch {
      guard case .refused("28P01", _) = error, password != nil else { throw error }
      // The password was changed: the user may have set the new one elsewhere, such as in ~/.pgpass.
      do throws(PostgreSQLError) {
        new = try PostgreSQL.connect(to: address, password: nil, within: Self.patience)
        isPasswordOutdated = true
      } catch .passwordNeeded { throw error } catch let failure { throw failure }
    }
    connection = new
    return new
  }

  private func close() {
    connection = nil
    isInTransaction = false
  }

  /// Runs a statement that may be repeated, such as a reading one.
  @discardableResult func query(
    _ statement: String, _ parameters: [SQLParameter] = []
  ) throws(StoreError) -> [SQLRow] {
    // A pooler or a failover may have closed the connection since its last use.
    let mayRepeat = connection != nil && !isInTransaction
    switch try attempt(statement, parameters) {
    case .done(let rows): return rows
    case .beaten: throw fault(.failed(detail: "conflict"))
    case .unknown(let error):
      guard mayRepeat, error != fault(.silent) else { throw error }
      guard case .done(let rows) = try attempt(statement, parameters) else { throw error }
      return rows
    }
  }

  /// Begins a transaction whose statements all see the same moment.
  func beginReading() throws(StoreError) {
    try query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    isInTransaction = true
  }

  func endReading() {
    if isInTransaction { _ = try? attempt("COMMIT") }
    isInTransaction = false
  }

  /// Runs the body in a transaction; returns `nil` if another machine was faster.
  func transaction<Value>(
    _ body: () throws(StoreError) -> Value?
  ) throws(StoreError) -> Value? {
    try query("BEGIN")
    isInTransaction = true
    defer { isInTransaction = false }
    do throws(StoreError) {
      try query(Schema.limits)
      if let value = try body() {
        switch try attempt("COMMIT") {
        case .done: return value
        case .beaten: return nil
        case .unknown(let error): throw error
        }
      }
    } catch {
      _ = try? attempt("ROLLBACK")
      throw error
    }
    _ = try attempt("ROLLBACK")
    return nil
  }

  private static func converted(_ error: PostgreSQLError, _ name: String) -> StoreError {
    if error == .interrupted { return .file(.interrupted) }
    let fault: ServerFault =
      switch error {
      case .libraryMissing: .libraryMissing
      case .badAddress: .badAddress
      case .passwordInAddress: .passwordInAddress
      case .passwordNeeded: .passwordNeeded
      case .certificate(let detail): .certificate(detail: detail)
      case .unreachable(let detail), .lost(let detail): .unreachable(detail: detail)
      case .silent: .silent
      case .interrupted: .silent
      case .refused(let code, let detail):
        switch code {
        case "28P01": .wrongPassword
        case "25006": .readOnly
        case "55P03": busy
        case "42501": .noRights(detail: detail)
        case "3D000": .noDatabase(detail: detail)
        case "3F000", "42P01": .noVault
        case "42703", "42883", "42804", "42P10", "23502", "42P07", "42P06", "22P02": .schemaEdited(detail: detail)
        // Class 28: a user or a host that the server does not let in. Class 53: it has no more of something.
        case _ where code.hasPrefix("28"): .noRights(detail: detail)
        case "53100": .full
        // Class 57: it starts or ends. Class 08: a pooler does not reach it.
        case _ where ["53", "57", "08"].contains(String(code.prefix(2))): .unreachable(detail: detail)
        default: .failed(detail: detail)
        }
      }
    return .server(fault, vault: name)
  }
}

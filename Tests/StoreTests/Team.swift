import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText

@testable import CredmgrSharedVault

/// A machine with its own local store, directory and clock.
final class Machine: Sendable {
  let contents = MemoryStore.Contents()
  let folder: String
  let clock: WaitingClock

  init(clock: WaitingClock = WaitingClock()) throws {
    folder = try TestServer.shared.get().folder()
    self.clock = clock
  }

  var place: SharedPlace {
    SharedPlace(local: MemoryStore(contents), folder: folder, random: SystemRandomSource(), clock: clock)
  }

  /// The vault in a new process of this machine.
  func open(_ name: String = "team") throws(StoreError) -> TeamVault {
    guard let vault = try TeamVaults().open(name, in: place) as? TeamVault else { throw .outOfMemory }
    return vault
  }
}

/// A vault with its members; the first one created it.
struct Team {
  let machines: [Machine]
  let database: String

  init(_ count: Int, database: String = "postgres") throws {
    self.database = database
    machines = try (0..<count).map { _ in try Machine() }
    try TeamVaults().create(
      "team", at: TestServer.shared.get().address(database), password: nil, member: "m0", in: machines[0].place)
    for number in machines.indices.dropFirst() {
      let text = try machines[0].open().invite("m\(number)", asAdministrator: number == 1, for: .seconds(3600))
      _ = try TeamVaults().join(text, as: nil, member: nil, in: machines[number].place)
    }
  }

  /// Runs SQL like the server's administrator; `$1` is the vault's identifier.
  @discardableResult func tamper(_ statement: String, _ parameters: [SQLParameter] = []) throws -> [SQLRow] {
    let vault = try machines[0].open().vault
    return try TestServer.shared.get().connect(database).query(
      statement, [.bytes(vault)] + parameters, within: .seconds(60))
  }

  /// Keeps all tables of the vault as they are now, and returns what brings them back.
  func backup() throws -> () throws -> Void {
    let name = "b" + Hexadecimal.encode(SystemRandomSource().bytes(6))
    let tables = ["vault", "roster", "wrap", "invitation", "record", "event"]
    let connection = try TestServer.shared.get().connect(database)
    try connection.query("CREATE SCHEMA \(name)", within: .seconds(60))
    for table in tables {
      try connection.query("CREATE TABLE \(name).\(table) AS TABLE credmgr.\(table)", within: .seconds(60))
    }
    let vault = try machines[0].open().vault
    return {
      for table in tables {
        let column = table == "vault" ? "id" : "vault"
        try connection.query("DELETE FROM credmgr.\(table) WHERE \(column)=$1", [.bytes(vault)], within: .seconds(60))
        try connection.query(
          "INSERT INTO credmgr.\(table) SELECT * FROM \(name).\(table) WHERE \(column)=$1", [.bytes(vault)],
          within: .seconds(60))
      }
    }
  }
}

extension ServerFault {
  /// The error of a vault with the name `team`.
  var ofTeam: StoreError { .server(self, vault: "team") }
}

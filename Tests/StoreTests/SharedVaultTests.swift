import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText
import Testing

@testable import CredmgrSharedVault

private let ana = AccountID("example", "ana")
private let credential = RecordIdentifier(.credential, of: ana)
private let pending = RecordIdentifier(.pending, of: ana)
private let registration = RecordIdentifier(.registration, of: AccountID("example"))

extension TeamVault {
  fileprivate func lock(_ clock: any WallClock, timeout: Duration = .zero) throws(LockError) -> LockedAccount {
    try lock(ana, timeout: timeout, clock: clock) { _ in true }
  }
}

@Suite struct SharedVaultTests {
  // MARK: Records

  @Test func membersShareRecords() throws {
    let team = try Team(2)
    let (one, two) = (try team.machines[0].open(), try team.machines[1].open())
    try one.apply([.store(Secret("token"), as: credential), .note(Secret("a login"))])
    #expect(try two.record(credential)?.payload == Secret("token"))
    let revision = try two.apply([.store(Secret("token 2"), as: credential)])
    let read = try #require(try one.record(credential))
    #expect(read.payload == Secret("token 2") && read.revision == revision)
    #expect(try one.events().events == [Secret("a login")])
    #expect(try one.verify() == [] && two.verify() == [])
  }

  /// A refresh as `Refresh.swift` makes it, from opening the vault to the end of the lock.
  @Test func aRefreshTakesFiveStatements() throws {
    let team = try Team(2)
    try team.machines[0].open().apply([.store(Secret("old"), as: credential)])
    _ = try team.machines[1].open().record(credential)
    let vault = try team.machines[1].open()
    do {
      let read = try vault.snapshot { () throws(StoreError) in
        (try vault.record(credential), try vault.record(pending))
      }
      #expect(try read.get().0?.payload == Secret("old"))
      #expect(try vault.record(pending) == nil)
      let locked = try vault.lock(team.machines[1].clock)
      #expect(try vault.record(credential)?.payload == Secret("old"))
      #expect(try vault.record(pending) == nil)
      let exchange = try locked.begin(noting: Secret("under way"))
      #expect(vault.stillHolds(ana))
      exchange.keep(Secret("new"), isForced: false)
      let revision = try exchange.finish(
        .renewed(Secret("new"), replacing: { $0 == Secret("old") }, [.note(Secret("refreshed"))]))
      #expect(revision != nil)
      _ = consume locked
    }
    #expect(vault.server.statementCount <= 5)
    #expect(try team.machines[0].open().record(credential)?.payload == Secret("new"))
    #expect(try !team.machines[0].open().isLocked(ana))
  }

  /// Neither names nor tokens, in any table.
  @Test func theDatabaseLearnsNothing() throws {
    let team = try Team(2)
    let names = ["provider.example", "anastasia", "secret-token", "note-text", "event-text", "bartholomew"]
    let account = AccountID(names[0], names[1])
    let vault = try team.machines[0].open()
    try vault.apply([
      .store(Secret(names[2]), as: RecordIdentifier(.credential, of: account)),
      .store(Secret(names[3]), as: RecordIdentifier(.pending, of: account)), .note(Secret(names[4])),
    ])
    _ = try vault.invite(names[5], asAdministrator: false, for: .seconds(60))
    for table in ["vault", "roster", "wrap", "invitation", "record", "event"] {
      let column = table == "vault" ? "id" : "vault"
      for row in try team.tamper("SELECT t::text FROM credmgr.\(table) t WHERE \(column)=$1") {
        for name in names {
          let hexadecimal = Hexadecimal.encode(Array(name.utf8))
          #expect(row.text(0)?.contains(hexadecimal) == false && row.text(0)?.contains(name) == false)
        }
      }
    }
  }

  // MARK: Attacks

  /// The ways in which the server's administrator can change the row of a record.
  enum Attack: CaseIterable { case altered, otherRevision, removed, replayed, swapped, oldSealOfNewRevision }

  @Test(arguments: Attack.allCases) func alteredRows(_ attack: Attack) throws {
    let team = try Team(2)
    let (one, other) = (try team.machines[0].open(), RecordIdentifier(.credential, of: AccountID("example", "ben")))
    try one.apply([.store(Secret("first"), as: credential), .store(Secret("ben's"), as: other)])
    let lookup = SQLParameter.bytes(one.keys.lookup(CellName(credential)))
    let old = try team.tamper("SELECT revision,sealed FROM credmgr.record WHERE vault=$1 AND lookup=$2", [lookup])[0]
    try one.apply([.store(Secret("second"), as: credential)])
    let (revision, sealed) = (old.integer(0) ?? 0, old.bytes(1) ?? [])
    let expected: ServerFault?
    switch attack {
    case .altered:
      try team.tamper(
        "UPDATE credmgr.record SET sealed=set_byte(sealed,30,get_byte(sealed,30)#1) WHERE vault=$1 AND lookup=$2",
        [lookup])
      expected = nil
    case .otherRevision:
      try team.tamper("UPDATE credmgr.record SET revision=revision+1 WHERE vault=$1 AND lookup=$2", [lookup])
      expected = nil
    case .removed:
      try team.tamper("DELETE FROM credmgr.record WHERE vault=$1 AND lookup=$2", [lookup])
      expected = .setBack(credential)
    case .replayed:
      try team.tamper(
        "UPDATE credmgr.record SET revision=$3,sealed=$4 WHERE vault=$1 AND lookup=$2",
        [lookup, .integer(revision), .bytes(sealed)])
      expected = .setBack(credential)
    case .oldSealOfNewRevision:
      try team.tamper(
        "UPDATE credmgr.record SET sealed=$3 WHERE vault=$1 AND lookup=$2", [lookup, .bytes(sealed)])
      expected = nil
    case .swapped:
      try team.tamper(
        "UPDATE credmgr.record SET (revision,sealed)=(SELECT revision,sealed FROM credmgr.record WHERE vault=$1 "
          + "AND lookup=$3) WHERE vault=$1 AND lookup=$2",
        [lookup, .bytes(one.keys.lookup(CellName(other)))])
      expected = nil
    }
    let seeing = try team.machines[0].open()
    #expect(throws: expected?.ofTeam ?? .damagedRecord(credential)) { try seeing.record(credential) }
    #expect(try seeing.isLost(credential))
    #expect(try seeing.unreadable(.credential, provider: nil, without: []) == [credential])
    #expect(try seeing.records(.credential, provider: nil).map(\.identifier) == [other])
    let findings = try seeing.verify()
    #expect(findings.count == 1)
    guard case .record(credential, _)? = findings.first else { throw TestServer.Failure(text: "\(findings)") }
    // A member that never saw the record notices everything but an older state of this one row.
    let unseeing = try team.machines[1].open()
    if attack == .replayed {
      #expect(try unseeing.record(credential)?.payload == Secret("first"))
    } else {
      #expect(throws: StoreError.damagedRecord(credential)) { try unseeing.record(credential) }
    }
    // A new login replaces it, and all members accept that.
    try seeing.apply([.store(Secret("third"), as: credential)])
    for machine in team.machines {
      #expect(try machine.open().record(credential)?.payload == Secret("third"))
      #expect(try machine.open().verify() == [])
    }
  }

  /// The server changes the columns by which it finds the rows of a kind and a provider. Members find the records by
  /// the directory, and a change or another key puts the columns right.
  @Test(arguments: ["kind", "grouping"]) func hiddenRows(_ column: String) throws {
    let team = try Team(2)
    let selection = RecordIdentifier(.selection, of: AccountID("example"))
    try team.machines[0].open().apply([
      .store(Secret("x"), as: credential), .store(Secret("r"), as: registration), .store(Secret("s"), as: selection),
    ])
    try team.tamper("UPDATE credmgr.record SET \(column)='\\x0011' WHERE vault=$1 AND kind<>''")
    try team.machines[1].open().apply([.store(Secret("t"), as: selection)])
    for machine in team.machines {
      let vault = try machine.open()
      #expect(try vault.records(.credential, provider: "example").map(\.payload) == [Secret("x")])
      #expect(try vault.records(.registration, provider: nil).map(\.payload) == [Secret("r")])
      #expect(try vault.unreadable(.credential, provider: nil, without: []) == [])
      #expect(try vault.verify() == [.record(credential, .altered), .record(registration, .altered)])
    }
    try team.machines[0].open().rotate()
    #expect(try team.machines[1].open().verify() == [])
    try team.tamper("UPDATE credmgr.record SET \(column)='\\x0011' WHERE vault=$1 AND kind=''")
    #expect(try team.machines[1].open().verify().count == CellName.initial.count)
  }

  /// The whole database is set back. A member that saw more notices each part of it.
  @Test func olderDatabase() throws {
    let team = try Team(2)
    try team.machines[0].open().apply([.store(Secret("old"), as: credential)])
    let restore = try team.backup()
    try team.machines[0].open().apply([.store(Secret("new"), as: credential)])
    #expect(try team.machines[1].open().record(credential)?.payload == Secret("new"))
    try restore()
    for machine in team.machines {
      #expect(throws: ServerFault.setBack(credential).ofTeam) { try machine.open().record(credential) }
    }
    _ = try team.machines[0].open().invite("late", asAdministrator: false, for: .seconds(60))
    try restore()
    #expect(throws: ServerFault.setBack(nil).ofTeam) { try team.machines[0].open().record(registration) }
  }

  /// Two copies of the database, of which each member sees another one.
  @Test func fork() throws {
    let team = try Team(2)
    let (one, two) = (team.machines[0], team.machines[1])
    try one.open().apply([.store(Secret("common"), as: credential)])
    #expect(try two.open().record(credential) != nil)
    let restore = try team.backup()
    try one.open().apply([.store(Secret("of one"), as: credential)])
    try restore()
    try two.open().apply([.store(Secret("of two"), as: credential)])
    try two.open().apply([.store(Secret("of two, later"), as: credential)])
    #expect(throws: ServerFault.forked(credential).ofTeam) { try one.open().record(credential) }
    #expect(try one.open().verify() == [.record(credential, .replayed)])
    // The list of members is forked: both have as many entries, but not the same ones.
    let other = try Team(2)
    let again = try other.backup()
    _ = try other.machines[0].open().invite("x", asAdministrator: false, for: .seconds(60))
    try again()
    _ = try other.machines[1].open().invite("y", asAdministrator: false, for: .seconds(60))
    try other.machines[1].open().apply([.store(Secret("z"), as: credential)])
    #expect(throws: ServerFault.forked(nil).ofTeam) { try other.machines[0].open().record(credential) }
    #expect(throws: (any Error).self) { try other.machines[0].open().verify() }
  }

  /// The row of an account that was removed is put back, for a member that had not seen it.
  @Test func rowsThatTheDirectoryDoesNotList() throws {
    let team = try Team(2)
    let one = try team.machines[0].open()
    try one.apply([.store(Secret("x"), as: credential)])
    let row = SQLParameter.bytes(one.keys.lookup(CellName(credential)))
    let old = try team.tamper("SELECT revision,sealed FROM credmgr.record WHERE vault=$1 AND lookup=$2", [row])[0]
    try one.apply([.remove(credential)])
    try team.tamper(
      "UPDATE credmgr.record SET revision=$3,sealed=$4 WHERE vault=$1 AND lookup=$2",
      [row, .integer(old.integer(0) ?? 0), .bytes(old.bytes(1))])
    let refusal = ServerFault.setBack(credential).ofTeam
    let two = try team.machines[1].open()
    #expect(throws: refusal) { try two.record(credential) }
    _ = try two.snapshot { () throws(StoreError) in
      #expect(throws: refusal) { try two.record(credential) }
    }
    do {
      let locked = try two.lock(team.machines[1].clock)
      #expect(throws: refusal) { try two.record(credential) }
      _ = consume locked
    }
    #expect(try two.records(.credential, provider: nil).isEmpty && two.isLost(credential))
    #expect(try two.unreadable(.credential, provider: nil, without: []) == [credential])
    #expect(try two.verify() == [.record(credential, .replayed)])
    // A login replaces it.
    try two.apply([.store(Secret("y"), as: credential)])
    #expect(try one.record(credential)?.payload == Secret("y"))
    #expect(try one.verify() == [] && two.verify() == [])
  }

  @Test func alteredDirectory() throws {
    let team = try Team(1)
    let vault = try team.machines[0].open()
    try vault.apply([.store(Secret("x"), as: credential)])
    let part = try #require(CellName.directory(of: credential))
    try team.tamper(
      "DELETE FROM credmgr.record WHERE vault=$1 AND lookup=$2", [.bytes(vault.keys.lookup(part))])
    guard case .directory(let number) = part else { return }
    #expect(try team.machines[0].open().verify() == [.index(UInt8(number), .dropped)])
    #expect(throws: (any Error).self) { try team.machines[0].open().rotate() }
  }

  /// Events are removed, reordered or altered, and a member that has never read them notices it.
  @Test func alteredLog() throws {
    let team = try Team(2)
    let one = try team.machines[0].open()
    for number in 0..<4 {
      try one.apply([.store(Secret("token \(number)"), as: credential), .note(Secret("refresh \(number)"))])
      try one.note(Secret("hand-out \(number)"))
    }
    #expect(try team.machines[1].open().events().events.map { $0.reveal() }.sorted().first == "hand-out 0")
    #expect(try one.events().events.count == 8)
    let restore = try team.backup()
    func end(of name: CellName) throws -> SQLParameter {
      guard case .cell(let stored)? = try one.fetch([name])[name] else { throw TestServer.Failure(text: "no cell") }
      return .bytes(stored.cell.log.chain)
    }
    for (name, identifier) in [(CellName(credential), credential), (.log, nil)] {
      let chain = try end(of: name)
      for change in [
        "DELETE FROM credmgr.event WHERE vault=$1 AND chain=$2",
        "DELETE FROM credmgr.event WHERE vault=$1 AND chain=$2 AND number=4",
        "DELETE FROM credmgr.event WHERE vault=$1 AND chain=$2 AND number=1",
        "DELETE FROM credmgr.event WHERE vault=$1 AND chain=$2 AND number=2",
        "UPDATE credmgr.event SET sealed=set_byte(sealed,30,get_byte(sealed,30)#1) WHERE vault=$1 AND chain=$2 AND number=3",
        "UPDATE credmgr.event e SET sealed=o.sealed FROM credmgr.event o WHERE e.vault=$1 AND o.vault=$1 AND e.chain=$2 "
          + "AND o.chain=$2 AND e.number=2 AND o.number=3",
        "UPDATE credmgr.event SET number=number+4 WHERE vault=$1 AND chain=$2",
        "INSERT INTO credmgr.event(vault,chain,number,epoch,sealed) SELECT vault,chain,5,epoch,sealed FROM credmgr.event "
          + "WHERE vault=$1 AND chain=$2 AND number=4",
      ] {
        try team.tamper(change, [chain])
        for machine in team.machines { #expect(try machine.open().verify() == [.log(identifier)], "\(change)") }
        try restore()
      }
    }
    try team.tamper("DELETE FROM credmgr.event WHERE vault=$1 AND chain=$2 AND number=2", [try end(of: .log)])
    #expect(try one.events().lost == 1)
    try restore()
    try team.tamper("INSERT INTO credmgr.event(vault,chain,number,epoch,sealed) VALUES($1,'x',1,1,'forged')")
    #expect(try one.verify() == [.log(nil)])
    try restore()
    try one.rotate()
    try one.note(Secret("a rotation"))
    for machine in team.machines { #expect(try machine.open().verify() == []) }
  }

  /// The log of each record is bounded, and its end is not an alteration.
  @Test func trimmedLog() throws {
    let team = try Team(2)
    let one = try team.machines[0].open()
    for number in 0..<70 {
      try one.apply([.store(Secret("token"), as: credential), .note(Secret("\(number)")), .note(Secret("more"))])
    }
    let events = try team.machines[1].open().events()
    #expect(events.events.count == 64 && events.lost == 0 && events.events.first == Secret("38"))
    #expect(try team.machines[1].open().verify() == [])
    try team.tamper("DELETE FROM credmgr.event WHERE vault=$1 AND number<=80")
    #expect(try team.machines[1].open().verify() == [.log(credential)])
  }

  // MARK: Schema

  @Test func schemas() throws {
    let name = try TestServer.shared.get().database()
    let team = try Team(2, database: name)
    let vault = try team.machines[0].open()
    try vault.apply([.store(Secret("x"), as: credential)])
    // A newer version of the same major version adds a column, and this one goes on working.
    try team.tamper("ALTER TABLE credmgr.record ADD more bigint NOT NULL DEFAULT 0")
    try team.tamper("UPDATE credmgr.vault SET version=1001 WHERE id=$1")
    try team.machines[1].open().apply([.store(Secret("y"), as: registration)])
    #expect(try team.machines[1].open().verify() == [])
    try team.tamper("UPDATE credmgr.vault SET version=2000 WHERE id=$1")
    let newer = ServerFault.newerVersion(found: 2000, supported: 1000).ofTeam
    #expect(throws: newer) { try team.machines[0].open().record(credential) }
    #expect(throws: newer) {
      try TeamVaults().create(
        "team", at: TestServer.shared.get().address(name), password: nil, member: "x", in: Machine().place)
    }
    try team.tamper("UPDATE credmgr.vault SET version=1000 WHERE id=$1")
    try team.tamper("ALTER TABLE credmgr.record RENAME holder TO holders")
    let edited = #expect(throws: StoreError.self) { try team.machines[0].open().record(credential) }
    guard case .server(.schemaEdited, _)? = edited else { throw TestServer.Failure(text: "\(edited as Any)") }
    try team.tamper("ALTER TABLE credmgr.record RENAME holders TO holder")
    try team.tamper("ALTER TABLE credmgr.record ALTER revision TYPE text")
    let retyped = #expect(throws: StoreError.self) { try team.machines[0].open().record(credential) }
    guard case .server(.schemaEdited, _)? = retyped else { throw TestServer.Failure(text: "\(retyped as Any)") }
    try team.tamper("ALTER TABLE credmgr.record ALTER revision TYPE bigint USING revision::bigint")
    try team.tamper("ALTER TABLE credmgr.event DROP epoch")
    #expect(try team.machines[0].open().verify() == [.tables])
    try team.tamper("DROP SCHEMA credmgr CASCADE")
    #expect(throws: ServerFault.noVault.ofTeam) { try team.machines[0].open().record(credential) }
  }

  /// A database whose role may read only, and one that accepts no changes.
  @Test func serversThatRefuse() throws {
    let team = try Team(1, database: try TestServer.shared.get().database())
    let vault = try team.machines[0].open()
    try vault.apply([.store(Secret("x"), as: credential)])
    try team.tamper("ALTER DATABASE \(team.database) SET default_transaction_read_only=on")
    let second = try team.machines[0].open()
    #expect(try second.record(credential) != nil)
    #expect(throws: ServerFault.readOnly.ofTeam) { try second.apply([.store(Secret("y"), as: credential)]) }
    #expect(throws: ServerFault.readOnly.ofTeam) { try second.check([registration]) }
    #expect(throws: LockError.store(ServerFault.readOnly.ofTeam)) { _ = try second.lock(team.machines[0].clock) }
    #expect(throws: ServerFault.notJoined.ofTeam) { try Machine().open() }
    let place = try Machine().place
    let unreachable = #expect(throws: StoreError.self) {
      try TeamVaults().create(
        "team", at: "postgresql://credmgr@/postgres?host=/nonexistent", password: nil, member: "m", in: place)
    }
    guard case .server(.unreachable, _)? = unreachable else {
      throw TestServer.Failure(text: "\(unreachable as Any)")
    }
    #expect(try place.names() == [])
  }
}

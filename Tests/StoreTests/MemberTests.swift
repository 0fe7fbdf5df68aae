import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText
import Synchronization
import Testing

@testable import CredmgrSharedVault

private let credential = RecordIdentifier(.credential, of: AccountID("example", "ana"))

/// Calls a closure before each random value.
private struct ObservedRandomSource: RandomSource {
  let observe: @Sendable () -> Void

  func bytes(_ count: Int) -> [UInt8] {
    observe()
    return SystemRandomSource().bytes(count)
  }
}

@Suite struct MemberTests {
  private func invitation(_ team: Team, _ name: String = "new") throws -> Secret {
    try team.machines[0].open().invite(name, asAdministrator: false, for: .seconds(3600))
  }

  @discardableResult private func join(
    _ text: Secret, _ machine: Machine, member: String? = nil
  ) throws(StoreError) -> String { try TeamVaults().join(text, as: nil, member: member, in: machine.place).name }

  @Test func membersAndInvitations() throws {
    let team = try Team(2)
    let first = try invitation(team)
    let members = try team.machines[1].open().members()
    #expect(members.map(\.name) == ["m0", "m1", "new"])
    #expect(members.map(\.isAdministrator) == [true, true, false])
    #expect(members.map(\.isSelf) == [false, true, false] && members.map(\.isInvited) == [false, false, true])
    #expect(members[0].fingerprint.count == 16 && members[0].fingerprint != members[1].fingerprint)
    let status = try team.machines[1].open().sharedStatus()
    #expect(status.members == 2 && status.epoch == 1 && status.records == 0 && status.hasStandby == false)
    #expect(try team.machines[0].place.names() == ["team"])
    #expect(throws: ServerFault.memberExists("m1").ofTeam) { try invitation(team, "m1") }
    // Another invitation of the same name replaces the first one.
    let second = try invitation(team)
    #expect(throws: ServerFault.invitation(.void).ofTeam) { try join(first, Machine()) }
    try join(second, Machine())
  }

  @Test func anInvitationIsForOneUse() throws {
    let team = try Team(1)
    let text = try invitation(team)
    let machine = try Machine()
    #expect(try join(text, machine) == "team")
    try machine.open().apply([.store(Secret("x"), as: credential)])
    #expect(throws: ServerFault.invitation(.used).ofTeam) { try join(text, Machine()) }
    #expect(throws: ServerFault.nameTaken.ofTeam) { try join(text, machine) }
    #expect(throws: ServerFault.notAdministrator.ofTeam) {
      try machine.open().invite("y", asAdministrator: false, for: .seconds(60))
    }
    #expect(throws: ServerFault.notAdministrator.ofTeam) { try machine.open().rotate() }
    // Another name for the member and for the vault.
    let other = try Machine()
    let second = try invitation(team, "second")
    #expect(throws: ServerFault.memberExists("new").ofTeam) { try join(second, other, member: "new") }
    #expect(try TeamVaults().join(second, as: "work", member: "laptop", in: other.place) == ("work", "second"))
    #expect(try other.open("work").record(credential)?.payload == Secret("x"))
    #expect(try team.machines[0].open().members().map(\.name) == ["m0", "new", "laptop"])
  }

  @Test func badInvitations() throws {
    let team = try Team(1)
    let text = try invitation(team).reveal()
    for altered in ["", "credmgr-invitation-1:", String(text.dropLast(3)), text.replacing("A", with: "B"), text + "A"] {
      #expect(throws: StoreError.server(.invitation(.malformed), vault: "")) { try join(Secret(altered), Machine()) }
    }
    // White space around it is fine, and an invitation that was not used is.
    try join(Secret("\n  \(text)\n"), Machine())
    let late = try invitation(team, "late")
    try team.tamper("UPDATE credmgr.invitation SET expires=1 WHERE vault=$1")
    #expect(throws: ServerFault.invitation(.late).ofTeam) { try join(late, Machine()) }
    // The server extends it, but an administrator has signed when it ends.
    let signed = try team.machines[0].open().invite("signed", asAdministrator: false, for: .seconds(-5))
    try team.tamper("UPDATE credmgr.invitation SET expires=expires+100000 WHERE vault=$1")
    #expect(throws: ServerFault.invitation(.late).ofTeam) { try join(signed, Machine()) }
    let void = try invitation(team, "void")
    try team.machines[0].open().rotate()
    #expect(throws: ServerFault.invitation(.void).ofTeam) { try join(void, Machine()) }
    let gone = try invitation(team, "gone")
    try team.tamper("DELETE FROM credmgr.invitation WHERE vault=$1")
    #expect(throws: ServerFault.invitation(.void).ofTeam) { try join(gone, Machine()) }
    let removed = try invitation(team, "removed")
    try team.tamper("DELETE FROM credmgr.vault WHERE id=$1")
    #expect(throws: ServerFault.invitation(.otherVault).ofTeam) { try join(removed, Machine()) }
  }

  /// The server keeps a voided invitation and the old state, but a member's records say more.
  @Test func replayedInvitation() throws {
    let team = try Team(2)
    let text = try invitation(team)
    let restore = try team.backup()
    let columns = "SELECT id,expires,sealed FROM credmgr.invitation WHERE vault=$1 AND state>=0"
    let row = try #require(try team.tamper(columns).first)
    try team.machines[0].open().rotate()
    #expect(try team.tamper(columns).isEmpty)
    try team.tamper(
      "INSERT INTO credmgr.invitation(vault,id,state,expires,sealed) VALUES($1,$2,2,$3,$4)",
      [.bytes(row.bytes(0) ?? []), .integer(row.integer(1) ?? 0), .bytes(row.bytes(2) ?? [])])
    #expect(throws: (any Error).self) { try join(text, Machine()) }
    try restore()
    let machine = try Machine()
    try join(text, machine)
    #expect(throws: ServerFault.setBack(nil).ofTeam) { try team.machines[0].open().members() }
  }

  @Test func removalsStayInTheList() throws {
    let team = try Team(3)
    let vaults = try team.machines.map { machine in try machine.open() }
    #expect(try vaults[0].remove("m2").isEmpty)
    _ = try vaults[1].invite("guest", asAdministrator: false, for: .hours(1))
    _ = try vaults[1].remove("guest")
    let removals = try ["m2", "guest", "m1"].map { name in try vaults[0].removal(of: name) }
    #expect(removals.map { $0?.wasMember } == [true, false, nil] && removals.map { $0?.isOwn } == [true, false, nil])
  }

  @Test func rotation() throws {
    let team = try Team(3)
    let accounts = (0..<3).map { RecordIdentifier(.credential, of: AccountID("example", "a\($0)")) }
    try team.machines[0].open().apply(accounts.map { .store(Secret("x"), as: $0) } + [.note(Secret("before"))])
    let old = try team.machines[2].open()
    #expect(try old.record(accounts[0]) != nil)
    try team.machines[1].open().rotate()
    try team.machines[1].open().rotate()
    for vault in [old, try team.machines[0].open(), try team.machines[2].open()] {
      #expect(try vault.records(.credential, provider: "example").map(\.identifier) == accounts)
      #expect(try vault.verify() == [])
      #expect(try vault.events().events == [Secret("before")])
    }
    #expect(try team.machines[2].open().sharedStatus().epoch == 3)
    try old.apply([.store(Secret("y"), as: accounts[1])])
    #expect(try team.machines[0].open().record(accounts[1])?.payload == Secret("y"))
    // A member that joins now reads everything that was written before.
    let machine = try Machine()
    try join(invitation(team), machine)
    #expect(try machine.open().record(accounts[2])?.payload == Secret("x"))
    #expect(try machine.open().events().events == [Secret("before")])
  }

  /// A machine takes over the leases of an administrator who is slow. The change of the key waits for its exchange.
  @Test func rotationWithoutItsLeases() throws {
    let account = credential.accountID
    let held = Mutex(LockedAccount?.none)
    let events = Mutex<[String]>([])
    let slow = WaitingClock {
      guard let locked = held.withLock({ $0.take() }) else { return }
      let stored = try? locked.begin(noting: Secret("n")).finish(
        .renewed(Secret("new"), replacing: { $0 == Secret("old") }, []))
      events.withLock { $0.append(stored.map { _ in "exchanged" } ?? "lost") }
    }
    let team = try Team(2)
    let (first, second) = (team.machines[0], team.machines[1])
    try first.open().apply([.store(Secret("old"), as: credential)])
    // Between its leases and its transaction, the administrator encrypts the new entry of the list of members.
    let random = ObservedRandomSource {
      let free = try? team.tamper("SELECT count(*) FROM credmgr.record WHERE vault=$1 AND holder IS NULL")
      guard free?.first?.integer(0) == 0, events.withLock({ $0.isEmpty }) else { return }
      events.withLock { $0.append("taken over") }
      held.withLock { $0 = try? second.open().lock(account, timeout: .seconds(200), clock: second.clock) { _ in true } }
    }
    let place = SharedPlace(local: MemoryStore(first.contents), folder: first.folder, random: random, clock: slow)
    try TeamVaults().open("team", in: place).rotate()
    #expect(events.withLock { $0 } == ["taken over", "exchanged"])
    #expect(try second.open().record(credential)?.payload == Secret("new"))
    #expect(try second.open().sharedStatus().epoch == 2 && !first.open().isLocked(account))
    #expect(try first.open().verify() == [] && second.open().verify() == [])
  }

  /// Of two administrators who change the key at the same time, the one who came later holds no lease meanwhile.
  @Test func rotationDuringARotation() throws {
    let team = try Team(2)
    let second = team.machines[1]
    try second.open().apply([.store(Secret("old"), as: credential)])
    let log = SQLParameter.bytes(try second.open().keys.lookup(.log))
    try team.tamper("UPDATE credmgr.record SET holder='first' WHERE vault=$1 AND lookup=$2", [log])
    let most = Mutex<Int64>(0)
    let clock = WaitingClock {
      let held = try? team.tamper("SELECT count(*) FROM credmgr.record WHERE vault=$1 AND holder<>'first'")
      most.withLock { $0 = max($0, held?.first?.integer(0) ?? 99) }
      // The first one finishes.
      _ = try? team.tamper("UPDATE credmgr.record SET holder=NULL WHERE vault=$1 AND holder='first'")
    }
    let place = SharedPlace(
      local: MemoryStore(second.contents), folder: second.folder, random: SystemRandomSource(), clock: clock)
    try TeamVaults().open("team", in: place).rotate()
    #expect(clock.monotonic() == MonotonicMoment(sinceBoot: .milliseconds(500)) && most.withLock { $0 } == 0)
    #expect(try team.machines[0].open().verify() == [])
  }

  /// The server ends the transaction of a machine that was cut off, and its limits end with the transaction.
  @Test func transactionsOfBoundedTime() throws {
    let team = try Team(2, database: TestServer.shared.get().database())
    let (one, two) = (try team.machines[0].open(), try team.machines[1].open())
    try two.apply([.store(Secret("old"), as: credential)])
    let names = ["idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout"]
    let text = "SELECT " + names.map { "current_setting('\($0)')" }.joined(separator: ",")
    func limits() throws(StoreError) -> [String?] {
      let row = try one.server.query(text).first
      return names.indices.map { row?.text($0) }
    }
    let before = try limits()
    let done: Bool? = try one.server.transaction { () throws(StoreError) in
      #expect(try limits() == ["20s", "10s", "8s"])
      try one.server.query("UPDATE credmgr.vault SET epoch=epoch WHERE id=$1", [.bytes(one.vault)])
      try one.server.query("SELECT 1 FROM credmgr.record WHERE vault=$1 FOR UPDATE", [.bytes(one.vault)])
      // The statements of others that wait for these rows end before their clients give up.
      let other = RecordIdentifier(.credential, of: AccountID("example", "ben"))
      #expect(throws: Server.busy.ofTeam) { try two.apply([.store(Secret("new"), as: other)]) }
      let waiting = try two.server.query(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type='Lock' AND datname=current_database()")
      #expect(waiting.first?.integer(0) == 0)
      return true
    }
    #expect(try done == true && limits() == before)
    try two.apply([.store(Secret("new"), as: credential)])
    #expect(try two.server.query(text).first?.text(2) == before[2])
  }

  /// With a copy of everything that his machine and the database had, before and after.
  @Test func aRemovedMemberReadsNothingNew() throws {
    let team = try Team(3)
    try team.machines[0].open().apply([.store(Secret("seen"), as: credential)])
    #expect(try team.machines[2].open().record(credential)?.payload == Secret("seen"))
    let invited = try invitation(team)
    let vault = try team.machines[2].open()
    #expect(try team.machines[0].open().remove("m2") == [AccountID("example", "ana")])
    try team.machines[1].open().apply([.store(Secret("later"), as: credential), .note(Secret("later"))])
    #expect(throws: ServerFault.removed.ofTeam) { try vault.record(credential) }
    #expect(throws: ServerFault.removed.ofTeam) { try vault.apply([.store(Secret("forged"), as: credential)]) }
    #expect(throws: ServerFault.removed.ofTeam) { try team.machines[2].open().members() }
    #expect(throws: (any Error).self) { try join(invited, Machine()) }
    // No key of his opens a row of the database.
    for row in try team.tamper("SELECT sealed,lookup,revision FROM credmgr.record WHERE vault=$1") {
      for secret in vault.membership.secrets {
        let keys = try EpochKeys(secret.key, secret.value)
        let cell = Cell(
          opening: row.bytes(0) ?? [], keys, vault: vault.vault, lookup: row.bytes(1) ?? [],
          revision: row.integer(2) ?? 0)
        #expect(cell == nil)
      }
    }
    for row in try team.tamper("SELECT sealed FROM credmgr.wrap WHERE vault=$1") {
      #expect(vault.membership.box.opened(row.bytes(0) ?? []) == nil)
    }
    // He and the server's administrator give the others a key that he knows, which they refuse.
    let forged = Secret(bytes: [UInt8](repeating: 7, count: 32))
    let member = try #require(try team.machines[1].open().membership.member)
    try team.machines[0].open().rotate()
    try team.tamper(
      "UPDATE credmgr.wrap SET sealed=$2 WHERE vault=$1 AND member=$3",
      [.bytes(BoxKey.seal(forged, for: member.box)), .bytes(member.identifier)])
    #expect(throws: ServerFault.altered.ofTeam) { try team.machines[1].open().record(credential) }
  }

  @Test func administratorsRemoveEachOther() throws {
    let team = try Team(2)
    let (one, two) = (try team.machines[0].open(), try team.machines[1].open())
    #expect(throws: ServerFault.noMember("nobody").ofTeam) { try one.remove("nobody") }
    _ = try two.members()
    #expect(try one.remove("m1") == [])
    #expect(throws: ServerFault.removed.ofTeam) { try two.remove("m0") }
    #expect(throws: ServerFault.ownMembership.ofTeam) { try one.remove("m0") }
    #expect(try one.members().map(\.name) == ["m0"])
  }

  /// An administrator leaves by himself if another one stays. The key changes, so he reads nothing new.
  @Test func anAdministratorLeaves() throws {
    let team = try Team(3)
    let (one, two, three) = (
      try team.machines[0].open(), try team.machines[1].open(), try team.machines[2].open()
    )
    #expect(throws: ServerFault.ownMembership.ofTeam) { try two.remove("m1") }
    #expect(try !three.leave())
    #expect(try two.leave())
    #expect(try one.members().map(\.name) == ["m0", "m2"])
    #expect(throws: ServerFault.notJoined.ofTeam) { try team.machines[1].open() }
    #expect(try !one.leave())
    #expect(try three.members().map(\.name) == ["m0", "m2"])
  }

  /// An entry that a member without the role signs does not count.
  @Test func onlyAdministratorsChangeTheMembers() throws {
    let team = try Team(3)
    let member = try team.machines[2].open()
    _ = try member.members()
    var roster = member.membership.roster
    let entry = roster.entry(
      .rekey(removing: "m0", before: member.keys.secret, commitment: member.keys.commitment, copies: []), at: 0,
      signedBy: member.membership.signing)
    let follows = roster.follow(entry)
    #expect(!follows)
    let admin = try team.machines[1].open()
    _ = try admin.members()
    var own = admin.membership.roster
    var good = own.entry(
      .rekey(removing: "m0", before: admin.keys.secret, commitment: admin.keys.commitment, copies: []), at: 0,
      signedBy: admin.membership.signing)
    good[20] ^= 1
    let altered = own.follow(good)
    good[20] ^= 1
    let (first, second) = (own.follow(good), own.follow(good))
    #expect(!altered && first && !second)
  }

  /// The server removes a member's copy of the key, so that he believes that he was removed, or adds one.
  @Test func alteredCopiesOfTheKey() throws {
    let team = try Team(3)
    #expect(try team.machines[2].open().verify() == [])
    try team.machines[0].open().rotate()
    let restore = try team.backup()
    for change in [
      "DELETE FROM credmgr.wrap WHERE vault=$1 AND member=$2",
      "UPDATE credmgr.wrap SET epoch=7 WHERE vault=$1 AND member=$2",
      "UPDATE credmgr.wrap SET sealed=set_byte(sealed,40,get_byte(sealed,40)#1) WHERE vault=$1 AND member=$2",
      "INSERT INTO credmgr.wrap SELECT vault,'\\x00',epoch,sealed FROM credmgr.wrap WHERE vault=$1 AND member=$2",
    ] {
      let member = try #require(try team.machines[1].open().membership.member)
      try team.tamper(change, [.bytes(member.identifier)])
      #expect(try team.machines[2].open().verify() == [.keyCopies], "\(change)")
      try restore()
      #expect(try team.machines[2].open().verify() == [])
    }
  }

  /// The server removes an open invitation, or changes what decides whether it works.
  @Test func alteredInvitations() throws {
    let team = try Team(2)
    _ = try team.machines[0].open().invite("used", asAdministrator: false, for: .seconds(-1))
    _ = try team.machines[0].open().invite("late", asAdministrator: false, for: .seconds(60))
    #expect(try team.machines[1].open().verify() == [])
    let restore = try team.backup()
    for change in [
      "DELETE FROM credmgr.invitation WHERE vault=$1",
      "UPDATE credmgr.invitation SET state=-1,sealed='' WHERE vault=$1",
      "UPDATE credmgr.invitation SET sealed='' WHERE vault=$1",
      "UPDATE credmgr.invitation SET id=set_byte(id,0,get_byte(id,0)#1) WHERE vault=$1",
      "UPDATE credmgr.invitation SET state=7 WHERE vault=$1", "UPDATE credmgr.invitation SET expires=1 WHERE vault=$1",
    ] {
      try team.tamper(change)
      #expect(try team.machines[1].open().verify() == [.invitation("late")], "\(change)")
      try restore()
    }
    try team.machines[0].open().rotate()
    #expect(try team.machines[1].open().verify() == [])
  }

  /// The server shows the row of a used invitation as open. A change of the key removes the row.
  @Test func aUsedInvitationThatIsPutBack() throws {
    let team = try Team(1)
    try join(invitation(team), Machine())
    #expect(try team.machines[0].open().verify() == [])
    try team.tamper("UPDATE credmgr.invitation SET state=1,sealed='\\x00' WHERE vault=$1")
    #expect(try team.machines[0].open().verify() == [.invitation("new")])
    try team.machines[0].open().rotate()
    #expect(try team.machines[0].open().verify() == [])
  }

  @Test func forgetting() throws {
    let team = try Team(2)
    try team.machines[1].open().apply([.store(Secret("x"), as: credential)])
    try team.machines[1].place.forget("team")
    #expect(try team.machines[1].place.names() == [])
    #expect(throws: ServerFault.notJoined.ofTeam) { try team.machines[1].open() }
  }

  @Test func memberships() throws {
    let vault = try Team(2).machines[1].open()
    let copy = try #require(Membership(vault.membership.encoded))
    #expect(copy.roster == vault.membership.roster && copy.server == vault.membership.server)
    #expect(copy.secrets == vault.membership.secrets && copy.member == vault.membership.member)
    #expect(Membership(Secret("x")) == nil)
  }
}

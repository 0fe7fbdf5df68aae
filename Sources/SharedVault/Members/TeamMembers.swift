import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText

extension TeamVault: SharedStore {
  package func members() throws(StoreError) -> [SharedMember] {
    try refreshState()
    return knownMembers
  }

  package var knownMembers: [SharedMember] {
    let now = (serverNow() ?? 0) / 1_000_000
    return membership.roster.members.map { member in
      SharedMember(
        name: member.name, isAdministrator: member.isAdministrator, since: Moment(secondsSince1970: member.joined),
        isInvited: false, fingerprint: member.fingerprint, isSelf: member.signing == membership.signing.publicKey)
    }
      + membership.roster.invitations.filter { $0.expires > now }.map { invitation in
        SharedMember(
          name: invitation.name, isAdministrator: invitation.isAdministrator,
          since: Moment(secondsSince1970: invitation.expires), isInvited: true, fingerprint: "", isSelf: false)
      }
  }

  package func invite(
    _ member: String, asAdministrator: Bool, for time: Duration
  ) throws(StoreError) -> Secret {
    let text = InvitationText(
      secret: Secret(bytes: place.random.bytes(32)), vault: vault, server: membership.server,
      password: membership.password, name: name, member: member)
    let (identifier, sealing, signing) = try cryptography(text.keys())
    var expires: Int64 = 0
    try append({ () throws(StoreError) in
      try requireAdministrator()
      // The invitation would contain a password that the server refuses.
      if server.isPasswordOutdated { throw server.fault(.wrongPassword) }
      if membership.roster.members.contains(where: { $0.name == member }) {
        throw server.fault(.memberExists(member))
      }
      // The server's clock decides, so that the clocks of the machines need not agree.
      expires = (serverNow() ?? 0) / 1_000_000 + time.wholeSeconds
      return (
        .invite(
          Roster.Invitation(key: signing.publicKey, name: member, isAdministrator: asAdministrator, expires: expires)),
        membership.signing, newSecret: nil
      )
    }) { next throws(StoreError) in
      let secret = try cryptography(next.keys()).secret
      let sealed = try cryptography(
        sealing.sealed(secret, Self.invitationContext(vault, next.roster.epoch), random: place.random))
      try server.query(
        "DELETE FROM credmgr.invitation WHERE vault=$1 AND expires+2592000<extract(epoch FROM clock_timestamp())",
        [.bytes(vault)])
      try server.query(
        "INSERT INTO credmgr.invitation(vault,id,state,expires,sealed) VALUES($1,$2,$3,$4,$5)",
        [.bytes(vault), .bytes(identifier), .integer(next.roster.epoch), .integer(expires), .bytes(sealed)])
      return true
    }
    return text.text
  }

  static func invitationContext(_ vault: [UInt8], _ epoch: Int64) -> FieldWriter {
    var fields = FieldWriter()
    fields.append("credmgr shared invitation")
    fields.append(vault)
    fields.append(epoch)
    return fields
  }

  package func remove(_ member: String) throws(StoreError) -> [AccountID] {
    try refreshState()
    if membership.member?.name == member { throw server.fault(.ownMembership) }
    try rekey(removing: member)
    return try records(.credential, provider: nil).map(\.identifier.accountID)
  }

  package func removal(of member: String) throws(StoreError) -> SharedRemoval? {
    var removal: SharedRemoval?
    try verifyRoster { entry, before in
      guard case .rekey(member, _, _, _) = entry.change else { return }
      removal = SharedRemoval(
        at: Moment(secondsSince1970: entry.time), wasMember: before.members.contains { $0.name == member },
        isOwn: entry.signer == membership.signing.publicKey)
    }
    return removal
  }

  package func leave() throws(StoreError) -> Bool {
    try refreshState()
    guard let own = membership.member, own.isAdministrator,
      membership.roster.members.contains(where: { $0.isAdministrator && $0 != own })
    else { return false }
    try rekey(removing: own.name)
    return true
  }

  package func removeFiles() {
    for name in (try? File.names(in: folder)) ?? [] { _ = try? File.remove(folder + "/" + name) }
    File.removeDirectory(folder)
  }

  package func setPassword(_ password: Secret) throws(StoreError) {
    var changed = membership
    changed.password = password
    try Server(changed.server, password: password, name: name).query("SELECT 1")
    try Self.store(changed, as: name, in: place.local)
  }

  package func rotate() throws(StoreError) { try rekey(removing: "") }

  private func rekey(removing member: String) throws(StoreError) {
    try refreshState()
    try requireAdministrator()
    let secret = Secret(bytes: place.random.bytes(32))
    // The holders of each attempt, the newest first.
    var holders: [[UInt8]] = []
    var copies: [KeyCopy] = []
    defer {
      if !holders.isEmpty { _ = try? server.attempt(Schema.releaseAll, [.bytes(vault), .byteLists(holders)]) }
    }
    func require() throws(StoreError) {
      try requireAdministrator()
      if !member.isEmpty, !membership.roster.isTaken(member) { throw server.fault(.noMember(member)) }
    }
    try append({ () throws(StoreError) in
      try require()
      holders.insert(place.random.bytes(16), at: 0)
      try takeAllLeases(holders)
      try require()
      let roster = membership.roster
      let new = try cryptography(EpochKeys(roster.epoch + 1, secret))
      copies = roster.members.filter { member.isEmpty || $0.name != member }.compactMap { other in
        BoxKey.seal(secret, for: other.box).map { KeyCopy(member: other.identifier, sealed: $0) }
      }
      return (
        .rekey(
          removing: member, before: keys.secret, commitment: new.commitment, copies: KeyCopy.hash(copies)),
        membership.signing, newSecret: secret
      )
    }) { next throws(StoreError) in
      FaultPoint.reach("rekey.begun")
      let new = try cryptography(next.keys())
      try server.query("DELETE FROM credmgr.wrap WHERE vault=$1", [.bytes(vault)])
      // Each open invitation ends with the key, also a used one that the server shows as open.
      try server.query("DELETE FROM credmgr.invitation WHERE vault=$1 AND state>=0", [.bytes(vault)])
      try server.query(
        "INSERT INTO credmgr.wrap(vault,member,epoch,sealed) SELECT $1,m,$2,s FROM unnest($3::bytea[],$4::bytea[]) "
          + "AS n(m,s)",
        [
          .bytes(vault), .integer(new.epoch), .byteLists(copies.map(\.member)), .byteLists(copies.map(\.sealed)),
        ])
      return try withAllSeen { () throws(StoreError) in try reseal(new, next, holder: holders[0]) }
    }
  }

  /// Takes the leases of all cells: an exchange under way ends first, because a member who is removed could not store
  /// its answer. A holder that died delays this as long as it delays others. The lease of the log comes first, so that
  /// two administrators do not wait for each other. `holders` are the new one and those of earlier attempts.
  private func takeAllLeases(_ holders: [[UInt8]]) throws(StoreError) {
    var watched: [[UInt8]: (holder: [UInt8], since: MonotonicMoment)] = [:]
    while true {
      let now = place.clock.monotonic()
      let ripe = watched.filter { now - $0.value.since >= Lease.time }.values.map(\.holder)
      let log = SQLParameter.bytes(keys.lookup(.log))
      let isFirst = try !server.query(
        Schema.leaseAll + " AND lookup=$4 RETURNING lookup",
        [.bytes(vault), .bytes(holders[0]), .byteLists(holders + ripe), log]
      ).isEmpty
      if isFirst {
        try server.query(
          Schema.leaseAll, [.bytes(vault), .bytes(holders[0]), .byteLists(holders.dropFirst() + ripe)])
      }
      let rows = try server.query(
        "SELECT lookup,holder FROM credmgr.record WHERE vault=$1 AND holder<>$2 AND ($3::bytea IS NULL OR lookup=$3)",
        [.bytes(vault), .bytes(holders[0]), isFirst ? .bytes(nil) : log])
      if isFirst, rows.isEmpty { return }
      for row in rows {
        guard let lookup = row.bytes(0), let other = row.bytes(1) else { continue }
        if watched[lookup]?.holder != other { watched[lookup] = (other, place.clock.monotonic()) }
      }
      do { try place.clock.sleep(for: .milliseconds(500)) } catch { throw .file(.interrupted) }
      // Another administrator may have changed the key, and with it the names of the rows.
      try refreshState()
    }
  }

  /// Seals all cells with other keys and moves them to other names, in the transaction that changes the key. Returns
  /// `false` if another machine holds a lease: it took over from this one, and may be talking to the provider.
  private func reseal(_ new: EpochKeys, _ next: Membership, holder: [UInt8]) throws(StoreError) -> Bool {
    let rows = try server.query(
      "SELECT 0::bigint,0::bigint,0::bigint,0::bigint,lookup,revision,sealed,holder FROM credmgr.record "
        + "WHERE vault=$1 ORDER BY lookup FOR UPDATE", [.bytes(vault)]
    ).compactMap(Row.init)
    if rows.contains(where: { $0.holder != nil && $0.holder != holder }) { return false }
    var (olds, lookups, kinds, groupings): ([[UInt8]], [[UInt8]], [[UInt8]], [[UInt8]]) = ([], [], [], [])
    var (revisions, sealings): ([Int64], [[UInt8]]) = ([], [])
    var missing = Set(CellName.initial)
    func flush() throws(StoreError) {
      try server.query(
        "UPDATE credmgr.record r SET lookup=n.lookup,kind=n.kind,grouping=n.grouping,revision=n.revision,"
          + "sealed=n.sealed,holder=NULL FROM "
          + "unnest($2::bytea[],$3::bytea[],$4::bytea[],$5::bytea[],$6::bigint[],$7::bytea[]) "
          + "AS n(old,lookup,kind,grouping,revision,sealed) WHERE r.vault=$1 AND r.lookup=n.old",
        [
          .bytes(vault), .byteLists(olds), .byteLists(lookups), .byteLists(kinds), .byteLists(groupings),
          .integers(revisions), .byteLists(sealings),
        ])
      (olds, lookups, kinds, groupings, revisions, sealings) = ([], [], [], [], [], [])
    }
    for row in rows {
      // Sealing an altered row again would make the alteration look genuine.
      guard let opened = Cell(opening: row.sealed, keys, vault: vault, lookup: row.lookup, revision: row.revision)
      else { throw server.fault(.altered) }
      let name = opened.name
      guard case .cell(let stored) = try loaded(name, row), keys.lookup(name) == row.lookup else {
        throw name.identifier.map { .damagedRecord($0) } ?? server.fault(.altered)
      }
      var cell = stored.cell
      cell.extend(after: stored.mark)
      cell.roster = next.roster.head
      let revision = stored.mark.revision + 1
      let sealed = try cryptography(cell.sealed(new, vault: vault, revision: revision, random: place.random))
      missing.remove(name)
      olds.append(row.lookup)
      lookups.append(new.lookup(name))
      let groups = new.groups(of: name)
      kinds.append(groups.kind)
      groupings.append(groups.grouping)
      revisions.append(revision)
      sealings.append(sealed)
      if olds.count == 500 { try flush() }
    }
    guard missing.isEmpty else { throw server.fault(.altered) }
    if !olds.isEmpty { try flush() }
    return true
  }

  package func sharedStatus() throws(StoreError) -> SharedVaultStatus {
    try refreshState()
    var records = 0
    for number in 0..<CellName.directoryCount {
      let part = CellName.directory(number)
      records += try directory(part, in: fetch([part])).records.count
    }
    let rows = try server.query(
      "SELECT current_setting('synchronous_standby_names',true),version FROM credmgr.vault WHERE id=$1",
      [.bytes(vault)])
    var status = SharedVaultStatus(
      server: membership.server, identifier: Hexadecimal.encode(Array(vault.prefix(16))),
      version: rows.first?.integer(1) ?? Schema.version, epoch: membership.roster.epoch,
      members: membership.roster.members.count, records: records,
      hasStandby: rows.first?.text(0).map { !$0.isEmpty }, isEncrypted: server.isEncrypted)
    if status.hasStandby == true {
      // Other engines need not have this view.
      let connected = try? server.query("SELECT count(*) FROM pg_stat_replication")
      status.lacksStandby = connected?.first?.integer(0) == 0
    }
    return status
  }
}

import CredmgrCryptography
import CredmgrPostgreSQL
import CredmgrStore
import CredmgrText

/// Vaults in PostgreSQL.
package struct TeamVaults: SharedVaults {
  package init() {}

  package func open(_ name: String, in place: SharedPlace) throws(StoreError) -> any SharedStore {
    guard let record = try place.local.record(RecordIdentifier(.membership, of: AccountID(name))) else {
      throw .server(.notJoined, vault: name)
    }
    guard let membership = Membership(record.payload) else { throw .damagedRecord(record.identifier) }
    return try TeamVault(name, membership, in: place)
  }

  private func requireFree(_ name: String, _ place: SharedPlace) throws(StoreError) {
    if try place.local.record(RecordIdentifier(.membership, of: AccountID(name))) != nil {
      throw .server(.nameTaken, vault: name)
    }
  }

  // MARK: Creation

  package func create(
    _ name: String, at address: String, password: Secret?, member: String, in place: SharedPlace
  ) throws(StoreError) {
    try requireFree(name, place)
    let server = try Server(address, password: password, name: name)
    try prepare(server)
    var membership = try cryptography(Membership(server: address, password: password, random: place.random))
    let keys = try cryptography(EpochKeys(1, Secret(bytes: place.random.bytes(32))))
    let time = try server.query("SELECT extract(epoch FROM clock_timestamp())::bigint").first?.integer(0) ?? 0
    let first = Roster.Member(
      name: member, isAdministrator: true, signing: membership.signing.publicKey, box: membership.box.publicKey,
      joined: time)
    let entry = membership.roster.entry(
      .create(first, commitment: keys.commitment), at: time, signedBy: membership.signing)
    guard membership.roster.follow(entry) else { throw server.fault(.altered) }
    membership.secrets[1] = keys.secret
    let made = membership
    // The membership comes first, because only its keys open the vault.
    try TeamVault.store(made, as: name, in: place.local)
    let vault = try TeamVault(name, made, in: place)
    do throws(StoreError) {
      let done: Bool? = try server.transaction { () throws(StoreError) in
        try server.query(
          "INSERT INTO credmgr.vault(id,version,epoch,sequence) VALUES($1,$2,1,1)",
          [.bytes(made.roster.vault), .integer(Schema.version)])
        try server.query(TeamVault.rosterInsertion, try TeamVault.row(entry, of: made, random: place.random))
        let revision = time * 1_000_000
        for name in CellName.initial {
          let cell = Cell(name, roster: made.roster.head)
          let sealed = try cryptography(
            cell.sealed(keys, vault: made.roster.vault, revision: revision, random: place.random))
          vault.remember(cell.name, Cell.mark(revision, sealed))
          try server.query(
            "INSERT INTO credmgr.record(vault,lookup,kind,grouping,revision,sealed) "
              + "VALUES($1,$2,'','',$3,$4)",
            [.bytes(made.roster.vault), .bytes(keys.lookup(cell.name)), .integer(revision), .bytes(sealed)])
        }
        return true
      }
      guard done == true else { throw server.fault(.failed(detail: "conflict")) }
      vault.saveSeen()
    } catch {
      // After an unknown outcome, the vault may exist.
      if case .server(.unreachable, _) = error { throw error }
      if case .server(.silent, _) = error { throw error }
      try? place.forget(name)
      throw error
    }
  }

  /// Makes the tables if they are missing.
  private func prepare(_ server: Server) throws(StoreError) {
    let found = try server.query("SELECT to_regclass('credmgr.vault') IS NOT NULL")
    if found.first?.integer(0) != 1 {
      for _ in 0..<2 {
        let done: Bool? = try server.transaction { () throws(StoreError) in
          for statement in Schema.statements {
            // Another machine may do the same.
            guard case .done = try server.attempt(statement) else { return nil }
          }
          return true
        }
        if done == true { break }
      }
    }
    try Schema.check(server)
    // Other vaults of this database may be of a newer version.
    let newest = try server.query("SELECT max(version) FROM credmgr.vault").first?.integer(0) ?? Schema.version
    guard Schema.supports(newest) else {
      throw server.fault(.newerVersion(found: newest, supported: Schema.version))
    }
  }

  // MARK: Joining

  package func join(
    _ invitation: Secret, as name: String?, member: String?, in place: SharedPlace
  ) throws(StoreError) -> (name: String, invited: String) {
    guard let text = InvitationText(invitation) else { throw .server(.invitation(.malformed), vault: "") }
    let name = name ?? text.name
    if try finishesJoin(name, of: text.vault, in: place) { return (name, text.member) }
    try requireFree(name, place)
    let server = try Server(text.server, password: text.password, name: name)
    let (identifier, sealing, signing) = try cryptography(text.keys())
    for _ in 0..<20 {
      var membership = try cryptography(
        Membership(server: text.server, password: text.password, random: place.random))
      let rows = try server.query(
        "SELECT v.version,v.epoch,v.sequence,extract(epoch FROM clock_timestamp())::bigint,i.state,i.expires,i.sealed "
          + "FROM credmgr.vault v LEFT JOIN credmgr.invitation i ON i.vault=v.id AND i.id=$2 WHERE v.id=$1",
        [.bytes(text.vault), .bytes(identifier)])
      guard let row = rows.first, let version = row.integer(0), let epoch = row.integer(1),
        let sequence = row.integer(2), let now = row.integer(3)
      else { throw server.fault(.invitation(.otherVault)) }
      guard Schema.supports(version) else {
        throw server.fault(.newerVersion(found: version, supported: Schema.version))
      }
      guard let state = row.integer(4), let expires = row.integer(5), let sealed = row.bytes(6) else {
        throw server.fault(.invitation(.void))
      }
      if state < 0 { throw server.fault(.invitation(.used)) }
      if expires < now { throw server.fault(.invitation(.late)) }
      guard state == epoch else { throw server.fault(.invitation(.void)) }
      guard let secret = sealing.opened(sealed, TeamVault.invitationContext(text.vault, epoch)), secret.count == 32
      else { throw server.fault(.altered) }
      membership.secrets[epoch] = secret
      try read(text.vault, to: sequence, by: &membership, on: server)
      guard let open = membership.roster.invitations.first(where: { $0.key == signing.publicKey }) else {
        throw server.fault(.invitation(.void))
      }
      if open.expires < now { throw server.fault(.invitation(.late)) }
      let chosen = member ?? text.member
      // The invitation reserves its own name.
      if chosen != open.name, membership.roster.isTaken(chosen) { throw server.fault(.memberExists(chosen)) }
      let new = Roster.Member(
        name: chosen, isAdministrator: open.isAdministrator, signing: membership.signing.publicKey,
        box: membership.box.publicKey, joined: now)
      let entry = membership.roster.entry(.join(new), at: now, signedBy: signing)
      guard membership.roster.follow(entry) else { throw server.fault(.altered) }
      if try commit(entry, membership, as: name, with: identifier, on: server, in: place) {
        return (name, open.name)
      }
    }
    throw server.fault(.failed(detail: "other machines change the members all the time"))
  }

  /// Whether an earlier attempt of this machine joined the vault, although the answer to its commit was lost. An
  /// attempt that failed is forgotten. A machine that joined has read records since.
  private func finishesJoin(_ name: String, of vault: [UInt8], in place: SharedPlace) throws(StoreError) -> Bool {
    guard let record = try place.local.record(RecordIdentifier(.membership, of: AccountID(name))),
      let membership = Membership(record.payload), membership.roster.vault == vault,
      try place.local.records(.seen, provider: name).isEmpty
    else { return false }
    do throws(StoreError) { try TeamVault(name, membership, in: place).verifyRoster() } catch {
      switch error {
      case .server(.joinUnfinished, _), .server(.setBack, _), .server(.forked, _), .server(.altered, _),
        .server(.removed, _):
        try place.forget(name)
        return false
      default: throw error
      }
    }
    return true
  }

  /// Reads the whole list of members, whose first entry is what the vault is named after.
  private func read(
    _ vault: [UInt8], to sequence: Int64, by membership: inout Membership, on server: Server
  ) throws(StoreError) {
    let rows = try server.query(
      "SELECT sequence,epoch,sealed FROM credmgr.roster WHERE vault=$1 AND sequence<=$2 ORDER BY sequence",
      [.bytes(vault), .integer(sequence)])
    try TeamVault.follow(rows, vault: vault, by: &membership, on: server)
  }

  private func commit(
    _ entry: [UInt8], _ membership: Membership, as name: String, with invitation: [UInt8], on server: Server,
    in place: SharedPlace
  ) throws(StoreError) -> Bool {
    let roster = membership.roster
    // The membership comes first: the invitation is of no use afterwards.
    try TeamVault.store(membership, as: name, in: place.local)
    do throws(StoreError) {
      let done: Bool? = try server.transaction { () throws(StoreError) in
        let rows = try server.query(
          "UPDATE credmgr.vault SET sequence=$2 WHERE id=$1 AND sequence=$2-1 AND epoch=$3 RETURNING id,"
            + Schema.durable,
          [.bytes(roster.vault), .integer(roster.head.sequence), .integer(roster.epoch)])
        guard !rows.isEmpty else { return nil }
        try server.query(
          TeamVault.rosterInsertion, try TeamVault.row(entry, of: membership, random: place.random))
        try server.query(
          "UPDATE credmgr.invitation SET state=-1,sealed='' WHERE vault=$1 AND id=$2",
          [.bytes(roster.vault), .bytes(invitation)])
        return true
      }
      if done != true { try place.forget(name) }
      return done == true
    } catch {
      if case .server(.unreachable, _) = error { throw error }
      if case .server(.silent, _) = error { throw error }
      try? place.forget(name)
      throw error
    }
  }
}

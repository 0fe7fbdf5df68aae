import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrStore
import CredmgrText

/// The operations of `credmgr vault` on a vault that several machines share.
enum SharedVaultOperations {
  static let all: [Command.Operation] = [
    Command.Operation(
      name: "create", operand: "NAME", help: "create a shared vault in a PostgreSQL database",
      options: ["--at", "--member", "--password-file", "--json"], run: create),
    Command.Operation(
      name: "invite", operand: "MEMBER", help: "print an invitation to a shared vault, for one use",
      options: ["--administrator", "--for", "--vault", "--json"], run: invite),
    Command.Operation(
      name: "join", operand: "INVITATION", help: "join a shared vault; \"-\" reads the invitation from standard input",
      options: ["--as", "--machine", "--yes", "--json"], run: join),
    Command.Operation(
      name: "members", help: "list the members and the open invitations of a shared vault",
      options: ["--vault", "--json"], run: members),
    Command.Operation(
      name: "remove-member", operand: "MEMBER",
      help: "remove a member or an invitation, and show what the member could read",
      options: ["--vault", "--yes", "--json"], run: removeMember),
    Command.Operation(
      name: "sync", help: "get new accounts and providers of a shared vault now",
      options: ["--vault", "--password-file", "--yes", "--json"],
      run: synchronize),
    Command.Operation(
      name: "leave", help: "forget a shared vault on this machine", options: ["--vault", "--yes", "--json"],
      run: leave),
  ]

  static let options: [Command.Option] = [
    .vault,
    Command.Option("--at", value: "URL", "create: address of the database, such as postgresql://HOST/NAME"),
    Command.Option("--member", value: "MEMBER", "create: your name in the vault (default: your user name)"),
    Command.Option("--password-file", value: "FILE", "create, sync: file with the password of the database"),
    Command.Option("--administrator", "invite: let the member invite and remove others"),
    Command.Option("--as", value: "NAME", "join: name of the vault on this machine (default: its own name)"),
    Command.Option("--machine", value: "MEMBER", "join: name of this machine in the vault (default: the invited name)"),
  ]

  // MARK: Create and join

  private static func operand(_ invocation: Invocation, _ what: String) throws(CommandError) -> String {
    let name = invocation.operands[0]
    guard let text = invocation.operands.dropFirst().first, !text.isEmpty else {
      let operand = invocation.command.operation(name)?.operand ?? ""
      throw .usage("name \(what)", hint: "usage: credmgr vault \(name) \(operand)")
    }
    return text
  }

  private static func name(_ text: String, _ what: String) throws(CommandError) -> String {
    if Accounts.isName(text) { return text }
    throw .usage("invalid \(what) \(quoted(text)): use 1 to 255 bytes without control characters")
  }

  private static func create(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let name = try name(operand(invocation, "the vault"), "name of a vault")
    guard let server = invocation.value("--at") else {
      throw .usage("name the database of the vault", hint: "\(add: "--at", "postgresql://HOST/NAME")")
    }
    let own = Environment.text("USER", context.environment) ?? UserEntry.current(elsewhere: true)?.name
    let member = try self.name(invocation.value("--member") ?? own ?? "admin", "name of a member")
    var password: Secret?
    if let path = invocation.value("--password-file") { password = try context.secret(path, called: "password") }
    do throws(CredentialError) {
      try context.source.createVault(name, at: server, password: password, member: member)
    } catch .vault(.server(.wrongPassword, _)) {
      let message = CredentialError.vault(.server(.wrongPassword, vault: name)).message
      throw .failed(
        message.with(hints: [
          password == nil
            ? "check PGPASSWORD and ~/.pgpass, or \(add: "--password-file", "FILE")"
            : "check the file of \"--password-file\" and the user in the address"
        ]))
    } catch .vault(.server(.passwordNeeded, _)) where password == nil && !Terminal.isTerminal(0) {
      let message = CredentialError.vault(.server(.passwordNeeded, vault: name)).message
      throw .failed(message.with(hints: ["\(add: "--password-file", "FILE"), or write the password to ~/.pgpass"]))
    } catch .vault(.server(.passwordNeeded, _)) where password == nil {
      let password = try context.secret("-", called: "password of the database")
      try manager(context.source.createVault(name, at: server, password: password, member: member))
    } catch { throw CommandError(error) }
    if context.isJSON { try context.output(["vault": .string(name), "member": .string(member)]) }
    context.tell("created the vault \(quoted(name)), with \(quoted(member)) as its administrator")
    if let status = try? context.source.joined(name).sharedStore().sharedStatus() { tellStandby(status, context) }
    context.tell(hint: "\(credmgr: "vault", "invite", "MEMBER", "--vault", name) to invite another machine")
  }

  private static func invite(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let member = try name(operand(invocation, "the member"), "name of a member")
    let time = try context.duration("--for", invocation) ?? .days(1)
    guard time > .zero, time <= .days(30) else { throw .usage("the time of \"--for\" must be between 1 s and 30 d") }
    let (source, store) = try opened(invocation, context)
    let isAdministrator = invocation.has("--administrator")
    let replaces = try vault(store.members()).contains { $0.isInvited && $0.name == member }
    let invitation = try vault(store.invite(member, asAdministrator: isAdministrator, for: time)).reveal()
    source.noteShared(.invite, member)
    try context.output(
      invitation + "\n",
      orJSON: [
        "member": .string(member), "administrator": .boolean(isAdministrator),
        "invitation": .string(invitation), "expires_at": .string((context.clock.now() + time).text),
      ])
    context.tell(
      "the invitation of \(quoted(member)) works once within \(exactDuration(time)); any person who has it can join, "
        + "so send it over a private channel")
    if replaces { context.tell(note: "the earlier invitation of \(quoted(member)) no longer works") }
  }

  private static func join(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let text = try operand(invocation, "the invitation")
    let invitation = text == "-" ? try context.secret("-", called: "invitation") : Secret(text)
    let wanted = try invocation.value("--as").map { text throws(CommandError) in
      try self.name(text, "name of a vault")
    }
    let member = try invocation.value("--machine").map { text throws(CommandError) in
      try self.name(text, "name of a member")
    }
    let name: String
    do throws(CredentialError) { name = try context.source.joinVault(invitation, as: wanted, member: member) } catch {
      throw inDoubt(error, "run the command again with the same invitation when the server answers")
    }
    context.tell("joined the vault \(quoted(name))")
    try synchronize(with: name, invocation, context)
  }

  private static func leave(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let name = try manager(context.source.vaultName(invocation.value("--vault")))
    let (loss, isListed) = loss(of: name, context)
    if invocation.has("--yes") {
      if let loss { context.tell("warning: \(loss)") }
    } else {
      guard Question.canAsk else {
        throw .usage("cannot ask whether to leave \(quoted(name)): no terminal", hint: "\(add: "--yes") to leave it")
      }
      // The server may be away, or take no changes.
      let waits = (try? context.source.joined(name).sharedStore())?.hasAnswers(besides: []) == true
      let words =
        loss
        ?? (waits
          ? "a new token waits on this machine, and is lost if \(quoted(name)) does not take it"
          : "only a new invitation lets this machine join \(quoted(name)) again")
      guard try Question.confirm("\(words.prefix(1).uppercased() + words.dropFirst()). Leave it?") else {
        throw .usage("nothing was changed")
      }
    }
    let (isRemoved, losesAnswer) = try manager(context.source.leaveVault(name))
    if context.isJSON { try context.output(["vault": .string(name)]) }
    context.tell("left the vault \(quoted(name)), and removed the copies of its accounts")
    if losesAnswer {
      context.tell(
        "warning: the new token that waited on this machine is lost, because the vault did not take it; "
          + "its account may need a login")
    }
    if !isRemoved, loss == nil, isListed {
      context.tell(note: "the other members list this machine until an administrator removes it")
    }
  }

  /// Returns what is lost when this machine leaves, or `nil` if it is nothing, and whether this machine is a member. If
  /// the server does not answer, the members that this machine knows count.
  private static func loss(of name: String, _ context: Context) -> (words: String?, isListed: Bool) {
    guard let store = try? context.source.joined(name).sharedStore() else { return (nil, true) }
    var members = store.knownMembers
    do throws(StoreError) { members = try store.members() } catch .server(.removed, _) { return (nil, false) } catch {}
    members = members.filter { !$0.isInvited }
    if members.isEmpty { return (nil, true) }
    if members.allSatisfy(\.isSelf) {
      return ("no other machine can open \(quoted(name)), so its accounts and their refresh tokens will be lost", true)
    }
    if members.filter(\.isAdministrator).allSatisfy(\.isSelf), members.contains(where: \.isSelf) {
      return ("\(quoted(name)) has no other administrator, so its members can never change again", true)
    }
    return (nil, true)
  }

  /// Says which open invitations a change of the key has made invalid.
  private static func tellVoid(_ before: [SharedMember], but removed: String?, _ context: Context) {
    let names = before.filter { $0.isInvited && $0.name != removed }.map(\.name)
    if names.isEmpty { return }
    context.tell(
      note: "the open invitation\(names.count == 1 ? "" : "s") of \(some(names)) no longer "
        + (names.count == 1 ? "works" : "work"))
  }

  /// Returns the error of a change that the server may have made although its answer was lost.
  private static func inDoubt(_ error: CredentialError, _ hint: Remedy) -> CommandError {
    switch error {
    case .vault(.server(.unreachable, _)), .vault(.server(.silent, _)): .failed(error.message.with(hints: [hint]))
    default: CommandError(error)
    }
  }

  // MARK: Members

  private static func members(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let store = try opened(invocation, context).store
    let members = try vault(store.members())
    let now = context.clock.now()
    let lines = members.map { member in
      let time =
        member.isInvited
        ? "invited for another \(duration(max(member.since - now, .zero)))"
        : "joined \(duration(max(now - member.since, .zero))) ago"
      return [
        member.name + (member.isSelf ? " (this machine)" : ""), member.isAdministrator ? "administrator" : "member",
        time,
        member.fingerprint,
      ].map(Message.visible)
    }
    try context.output(
      Layout.grid(lines, width: Terminal.outputColumns).map { $0 + "\n" }.joined(),
      orJSON: .array(
        members.map { member in
          [
            "member": .string(member.name), "administrator": .boolean(member.isAdministrator),
            "joined_at": .optional(member.isInvited ? nil : member.since.text),
            "invited_until": .optional(member.isInvited ? member.since.text : nil),
            "fingerprint": .optional(member.fingerprint.isEmpty ? nil : member.fingerprint),
            "this_machine": .boolean(member.isSelf),
          ]
        }))
  }

  private static func removeMember(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let member = try operand(invocation, "the member")
    let name = try manager(context.source.vaultName(invocation.value("--vault")))
    let (source, store) = try opened(invocation, context)
    let before = try vault(store.members())
    guard before.contains(where: { $0.name == member }) else {
      guard let removal = try vault(store.removal(of: member)) else {
        throw CommandError(.vault(.server(.noMember(member), vault: name)))
      }
      return try repeatRemoval(of: member, removal, in: name, source: source, context)
    }
    if Question.canAsk, !invocation.has("--yes"),
      !(try Question.confirm("Remove \(quoted(member)) from the vault \(quoted(name)), and change its key?"))
    {
      throw .usage("nothing was changed")
    }
    let isInvitation = before.contains { $0.name == member && $0.isInvited }
    // An invitation that was not used has shown nothing.
    let removed: [AccountID]
    do throws(StoreError) { removed = try store.remove(member) } catch {
      throw inDoubt(.vault(error), "run the command again when the server answers, to see what the member could read")
    }
    let seen = removed.filter { _ in !isInvitation }
    source.noteShared(.removeMember, member)
    try output(seen, readBy: member, in: name, context)
    context.tell(
      isInvitation
        ? "removed the invitation of \(quoted(member)), which was not used"
        : "removed \(quoted(member)), who cannot read anything that is written from now on")
    tellVoid(before, but: member, context)
    tellReadable(seen, by: member, in: name, context)
  }

  /// Prints what a removed member could read, because an earlier command may have lost the answer to the removal.
  private static func repeatRemoval(
    of member: String, _ removal: SharedRemoval, in name: String, source: CredentialSource, _ context: Context
  ) throws(CommandError) {
    var seen: [AccountID] = []
    if removal.wasMember {
      // The clocks of the machines may differ.
      seen = try manager(source.accounts().accounts(of: nil))
        .filter { $0.credential.loggedInAt <= removal.at + .hours(1) }.map(\.id)
    }
    let isLogged = try manager(source.log()).events.contains { $0.action == .removeMember && $0.detail == member }
    if removal.isOwn, !isLogged { source.noteShared(.removeMember, member) }
    try output(seen, readBy: member, in: name, context)
    let ago = duration(max(context.clock.now() - removal.at, .zero))
    context.tell("\(removal.wasMember ? "" : "the invitation of ")\(quoted(member)) was removed \(ago) ago")
    tellReadable(seen, by: member, in: name, context)
  }

  private static func output(
    _ seen: [AccountID], readBy member: String, in name: String, _ context: Context
  ) throws(CommandError) {
    func revocation(_ account: AccountID) -> [String] {
      ["credmgr", "logout", account.provider] + accountOption(account.name) + ["--vault", name]
    }
    func words(_ account: AccountID) -> String { revocation(account).map(argument).joined(separator: " ") }
    try context.output(
      seen.map { Message.visible(words($0)) + "\n" }.joined(),
      orJSON: [
        "member": .string(member),
        "seen": .array(
          seen.map { account in
            .object((json(account).members ?? []) + [.init("revoke", .string(words(account)))])
          }),
      ])
  }

  private static func tellReadable(
    _ seen: [AccountID], by member: String, in name: String, _ context: Context
  ) {
    if seen.isEmpty { return }
    context.tell(
      "\(quoted(member)) could read \(seen.count == 1 ? "1 account" : "\(seen.count) accounts"); the commands above "
        + "revoke the tokens, then log in again with \"--vault \(argument(name))\"")
  }

  // MARK: Operations that the own vault has too

  static func status(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let name = try manager(context.source.vaultName(invocation.value("--vault")))
    let store = try opened(invocation, context).store
    let status = try vault(store.sharedStatus())
    let standby = status.hasStandby.map { $0 ? "commits wait for a standby" : "none" } ?? "unknown"
    try context.output(
      Layout.table(
        [
          ("vault", name), ("server", status.server), ("identifier", status.identifier),
          ("format", "\(status.version)"),
          ("key", "number \(status.epoch)"), ("members", "\(status.members)"), ("records", "\(status.records)"),
          ("standby", standby), ("connection", status.isEncrypted ? "encrypted" : "not encrypted"),
        ].map { (left: $0.0, right: Message.visible($0.1)) }),
      orJSON: [
        "vault": .string(name), "server": .string(status.server), "identifier": .string(status.identifier),
        "format": .integer(status.version), "key": .integer(status.epoch), "members": .integer(Int64(status.members)),
        "records": .integer(Int64(status.records)), "standby": status.hasStandby.map(JSONValue.boolean) ?? .null,
        "encrypted": .boolean(status.isEncrypted),
      ])
    if context.isJSON { return }
    tellStandby(status, context)
    if status.lacksStandby { context.tell("warning: \(standbyMissing(name))") }
  }

  static func rotate(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let name = try manager(context.source.vaultName(invocation.value("--vault")))
    if Question.canAsk, !invocation.has("--yes"),
      !(try Question.confirm("Open invitations to \(quoted(name)) become invalid. Create a new key?"))
    {
      throw .usage("the key was not changed")
    }
    let (source, store) = try opened(invocation, context)
    let before = try vault(store.members())
    try vault(store.rotate())
    source.noteShared(.rotate, nil)
    if context.isJSON { try context.output(["vault": .string(name)]) }
    context.tell("encrypted the vault \(quoted(name)) with a new key")
    tellVoid(before, but: nil, context)
  }

  static func json(_ account: AccountID) -> JSONValue {
    ["provider": .string(account.provider), "account": .optional(account.name)]
  }

  private static func opened(
    _ invocation: Invocation, _ context: Context
  ) throws(CommandError) -> (source: CredentialSource, store: any SharedStore) {
    let source = try context.inVault(invocation).source
    return (source, try manager(source.sharedStore()))
  }

  /// Runs an operation of a shared vault and converts its error.
  private static func vault<Result>(
    _ step: @autoclosure () throws(StoreError) -> Result
  ) throws(CommandError) -> Result {
    do { return try step() } catch { throw CommandError(.vault(error)) }
  }
}

import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrStore
import CredmgrText

extension Command {
  private static let vaultOperations: [Operation] = [
    Operation(
      name: "status", help: "show the vault file and the ways to open it, or the server of a shared vault",
      options: ["--vault", "--json"], run: status),
    Operation(
      name: "verify", help: "check the vault for damage and manipulation", options: ["--vault", "--json"], run: verify),
    Operation(
      name: "protect", operand: "passphrase|secret-service|key-file",
      help: "add a way to open the vault, or remove it with \"--remove\"",
      options: ["--remove", "--passphrase-file", "--yes", "--json"], run: VaultKeyOperations.protect),
    Operation(
      name: "unlock", help: "keep the vault unlocked for some time, with the key in the kernel",
      options: ["--for", "--json"], run: VaultKeyOperations.unlock),
    Operation(name: "lock", help: "lock the vault again", options: ["--json"], run: VaultKeyOperations.lock),
    Operation(
      name: "rotate", help: "create a new key and encrypt everything again", options: ["--vault", "--yes", "--json"],
      run: VaultKeyOperations.rotate),
    Operation(
      name: "backup", operand: "FILE",
      help: "copy the encrypted vault to a file; with \"--vault\", encrypted with a passphrase",
      options: ["--vault", "--passphrase-file", "--json"],
      run: VaultKeyOperations.backup),
    Operation(
      name: "restore", operand: "FILE", help: "replace the vault with a backup", options: ["--key-file", "--json"],
      run: VaultKeyOperations.restore),
    Operation(
      name: "export", operand: "FILE",
      help:
        "write the vault, your descriptors and rules for another machine, encrypted with a passphrase; \"-\" writes "
        + "to standard output",
      options: ["--vault", "--plain", "--passphrase-file", "--json"], run: VaultKeyOperations.export),
    Operation(
      name: "import", operand: "FILE", help: "read a file from \"export\"",
      options: ["--plain", "--replace", "--yes", "--passphrase-file", "--json"],
      run: VaultKeyOperations.import),
  ]

  static let vault = Command(
    name: "vault", operands: "OPERATION [OPERAND]", operandCount: 1...2,
    summary: "Manage the vault: protect, unlock, back up, export",
    options: [
      Option(
        "--for", value: "DURATION",
        "unlock: time to stay unlocked (default: 8h); invite: time to use the invitation (default: 1d)"),
      Option("--remove", "protect: remove this way to open the vault"),
      Option(
        "--passphrase-file", value: "FILE",
        "protect, export, backup: file with the new passphrase; import: file with the passphrase of the export"),
      Option("--key-file", value: "FILE", "restore: key file that opens the backup"),
      Option(
        "--plain", repeats: true,
        "export: write without encryption (pass twice to confirm); import: read a file without encryption"),
      Option("--replace", "import: replace entries that differ"),
      Option(
        "--yes",
        "protect, rotate, remove-member, leave: do not ask; import, join, sync: agree to unusual descriptors without a "
          + "prompt"),
      json,
    ] + SharedVaultOperations.options,
    notes: [
      "Without a terminal, set CREDMGR_PASSPHRASE_FILE or CREDMGR_PASSPHRASE_COMMAND to provide the passphrase.",
      "If you forgot the passphrase while the vault is unlocked, \"protect passphrase\" sets a new one. Otherwise "
        + "nothing can open the vault: restore a backup that opens in another way, import an export, or move the "
        + "directory of the vault away and log in again.",
    ], operations: vaultOperations + SharedVaultOperations.all,
    examples: [
      ("credmgr vault protect passphrase", "Open the vault with a passphrase"),
      ("credmgr vault protect key-file --remove", "Then stop opening the vault without the passphrase"),
      ("credmgr vault unlock --for 8h", "Enter the passphrase once for a day's work"),
      ("credmgr vault backup credmgr.backup", "Make a backup that opens like the vault"),
      ("credmgr vault export credmgr.json", "Copy everything to another machine"),
      ("credmgr vault import credmgr.json", "Use that copy on the other machine"),
      ("credmgr vault rotate", "Create a new key after a copy of the old key was lost"),
      ("credmgr vault create team --at postgresql://db.example/credmgr", "Share accounts with a team"),
      ("credmgr vault invite ada", "Invite another machine to the only shared vault"),
      ("credmgr vault join - --machine runner-17 <invitation", "Join without a user, as a CI runner"),
      ("credmgr vault remove-member ada --vault team", "Remove a member and change the key"),
    ]
  ) { invocation, context throws(CommandError) in
    let name = invocation.operands[0]
    guard let operation = invocation.command.operation(name) else { throw invocation.command.unknownOperation(name) }
    if operation.operand == nil, invocation.operands.count > 1 {
      throw .usage("too many arguments for \"credmgr vault \(name)\"", hint: "\(credmgr: "help", "vault", name)")
    }
    for option in invocation.command.options
    where invocation.has(option.name) && !operation.options.contains(option.name) {
      throw .usage("\"vault \(name)\" does not take \"\(option.name)\"", hint: "\(credmgr: "help", "vault", name)")
    }
    try operation.run(invocation, context)
  }

  private static func status(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    if invocation.has("--vault") { return try SharedVaultOperations.status(invocation, context) }
    let (status, unlockedUntil, fault) = try manager(context.source.vaultStatus())
    let slots = status.slots.map { slot -> JSONValue in
      ["kind": .optional(slot.kind?.words), "created_at": .string(slot.created.text)]
    }
    let now = context.clock.now()
    var rows = [("file", status.path), ("format", "\(status.formatVersion)"), ("records", "\(status.recordCount)")]
    for slot in status.slots {
      let age = now - slot.created
      let made = slot.created == 0 ? "" : age < .seconds(60) ? ", created just now" : ", created \(duration(age)) ago"
      rows.append(("slot", (slot.kind?.words ?? "from a newer credmgr") + made))
    }
    if let unlockedUntil { rows.append(("unlocked", "for another \(duration(max(unlockedUntil - now, .zero)))")) }
    try context.output(
      Layout.table(rows.map { ($0.0, $0.1) }),
      orJSON: [
        "file": .string(status.path), "format": .integer(status.formatVersion), "slots": .array(slots),
        "records": .integer(status.recordCount), "unlocked_until": .optional(unlockedUntil?.text),
      ])
    if let fault {
      // The hint of the message names this command.
      let others = Set(status.slots.compactMap(\.kind)).subtracting([.keyFile])
      let path: String
      switch fault {
      case .keyFileMissing(let place), .keyFileInvalid(let place), .keyFileOfAnotherVault(let place): path = place
      default: throw CommandError(.vault(fault))
      }
      let ways = others.map(\.words).sorted().joined(separator: " or the ")
      if unlockedUntil != nil {
        let later = others.isEmpty ? "; restore it before the vault is locked" : "; the \(ways) can"
        return context.tell("warning: the key file \(quoted(path)) cannot open the vault" + later)
      }
      if others.isEmpty { throw .failed(fault.message(opensOtherwise: false)) }
      let unlocking: Remedy = "\(credmgr: "vault", "unlock") to use the \(ways)"
      throw .failed(fault.message().with(hints: ["restore the key file, or " + unlocking]))
    }
    if !context.isJSON, Set(status.slots.map(\.kind)) == [.keyFile] {
      context.tell("the key file protects copies of the vault, but not against programs that run as you")
    }
  }

  private static func verify(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    if let name = invocation.value("--vault") { try? context.source.commitAnswers(waitingFor: name) }
    let context = try context.inVaultIfNamed(invocation)
    let findings: [VaultFinding]
    do throws(CredentialError) {
      findings = try context.source.accounts().verify()
    } catch .vault(.damaged(let path, let part)) {
      let restoring = Remedy.restoring(vault: context.home.vaultLocation.file)
      throw .failed(StoreError.damaged(path: path, part).message().with(hints: [restoring]))
    } catch { throw CommandError(error) }
    try context.output(
      findings.map { Message.visible($0.sentence) + "\n" }.joined(),
      orJSON: ["findings": .array(findings.map { .string($0.sentence) })])
    guard findings.isEmpty else {
      let count = findings.count == 1 ? "1 finding" : "\(findings.count) findings"
      // Recreate records if possible, because a backup would lose later changes.
      let records = findings.compactMap { finding in if case .record(let record, _) = finding { record } else { nil } }
      let hint = records.count == findings.count ? records.first.map(context.mending) : nil
      let text = "the vault is damaged: \(count)"
      if let name = invocation.value("--vault") {
        throw .failed(text, hint: records.first.map { $0.remedy(inVault: name) }, status: .vault)
      }
      throw .failed(text, hint: hint ?? .rescuing(context.home.vault), status: .vault)
    }
    if !invocation.has("--json") { context.tell("the vault is intact") }
  }
}

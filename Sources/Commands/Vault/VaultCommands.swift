import CredentialManager
import JSON
import Store
import Text

extension Command {
  private static let vaultOperations: [Operation] = [
    Operation(name: "status", help: "what it is made of, and what opens it", options: ["--json"], run: status),
    Operation(name: "verify", help: "find whatever is not as it was written", options: ["--json"], run: verify),
    Operation(
      name: "protect", operand: "passphrase|secret-service|key-file",
      help: "make a way into it; with \"--remove\", take it away", options: ["--remove", "--passphrase-file"],
      run: VaultKeyOperations.protect),
    Operation(
      name: "unlock", help: "keep it open for a while, in the memory of the kernel", options: ["--for"],
      run: VaultKeyOperations.unlock),
    Operation(name: "lock", help: "end that", run: VaultKeyOperations.lock),
    Operation(
      name: "rotate", help: "make a new key, and seal everything anew", options: ["--yes"],
      run: VaultKeyOperations.rotate),
    Operation(name: "backup", operand: "FILE", help: "copy it as it is, sealed", run: VaultKeyOperations.backup),
    Operation(
      name: "restore", operand: "FILE", help: "put a backup in its place", options: ["--key-file"],
      run: VaultKeyOperations.restore),
    Operation(
      name: "export", operand: "FILE",
      help:
        "write everything for another machine, with your descriptors and rules, under a passphrase; "
        + "\"-\" is standard output",
      options: ["--plain", "--passphrase-file"], run: VaultKeyOperations.export),
    Operation(
      name: "import", operand: "FILE", help: "read what \"export\" wrote",
      options: ["--plain", "--replace", "--yes", "--passphrase-file"],
      run: VaultKeyOperations.import),
  ]

  static let vault = Command(
    name: "vault", operands: "OPERATION [OPERAND]", operandCount: 1...2,
    summary: "Show, check, lock, copy and protect the vault",
    options: [
      Option("--for", value: "DURATION", "unlock: for how long; otherwise 8h"),
      Option("--remove", "protect: remove this way into the vault"),
      Option(
        "--passphrase-file", value: "FILE", "protect, export: the new passphrase; import: the passphrase of the file"),
      Option("--key-file", value: "FILE", "restore: the key file of the time of the backup"),
      Option(
        "--plain", repeats: true,
        "export: without encryption, if it is given twice; import: take a file without encryption"),
      Option("--yes", "rotate: without a question"),
      Option("--replace", "import: replace what is there and different"),
      Option("--yes", "import: agree to what is unusual in a descriptor, unasked"),
      json,
    ],
    notes: [
      "CREDMGR_PASSPHRASE_FILE and CREDMGR_PASSPHRASE_COMMAND answer for the passphrase where there is no terminal."
    ], operations: vaultOperations,
    examples: [
      ("credmgr vault protect passphrase", "then \"credmgr vault protect key-file --remove\" asks for it"),
      ("credmgr vault unlock --for 8h", "for a day's work"),
      ("credmgr vault backup credmgr.backup", "a file that opens as the vault does"),
      ("credmgr vault export credmgr.json", "for another machine"),
    ]
  ) { invocation, context throws(CommandError) in
    let name = invocation.operands[0]
    guard let operation = vaultOperations.first(where: { $0.name == name }) else {
      let near = nearMiss(name, among: vaultOperations.map(\.name))
      throw .usage(
        "there is no \"vault \(name)\"\(didYouMean(near))",
        hints: .correcting(name, to: near) + ["\(credmgr: "help", "vault")"])
    }
    if operation.operand == nil, invocation.operands.count > 1 {
      throw .usage("too many arguments for \"credmgr vault \(name)\"", hint: "\(credmgr: "help", "vault")")
    }
    for option in invocation.command.options
    where invocation.has(option.name) && !operation.options.contains(option.name) {
      throw .usage("\"\(option.name)\" does not go with \"vault \(name)\"", hint: "\(credmgr: "help", "vault")")
    }
    try operation.run(invocation, context)
  }

  private static func status(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let (status, unlockedUntil, fault) = try manager(context.source.vaultStatus())
    let slots = status.slots.map { slot -> JSONValue in
      ["kind": .optional(slot.kind?.words), "created_at": .string(slot.created.text)]
    }
    let now = context.clock.now()
    var rows = [("file", status.path), ("format", "\(status.formatVersion)"), ("records", "\(status.recordCount)")]
    for slot in status.slots {
      let age = now - slot.created
      let made = slot.created == 0 ? "" : age < .seconds(60) ? ", made just now" : ", made \(duration(age)) ago"
      rows.append(("slot", (slot.kind?.words ?? "of a newer credmgr") + made))
    }
    if let unlockedUntil { rows.append(("unlocked", "for another \(duration(max(unlockedUntil - now, .zero)))")) }
    try context.output(
      Layout.table(rows.map { ($0.0, $0.1) }),
      orJSON: [
        "file": .string(status.path), "format": .integer(status.formatVersion), "slots": .array(slots),
        "records": .integer(status.recordCount), "unlocked_until": .optional(unlockedUntil?.text),
      ])
    if let fault { throw CommandError(.vault(fault)) }
    if !context.isJSON, status.slots.allSatisfy({ $0.kind == .keyFile }) {
      context.tell("a key file protects a copied vault, and nothing against programs that run as you")
    }
  }

  private static func verify(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let findings: [VaultFinding]
    do throws(CredentialError) {
      findings = try context.source.verifyVault()
    } catch .vault(.damaged(let path, let part)) {
      let restoring = Remedy.restoring(vault: context.home.vaultLocation.file)
      throw .failed(StoreError.damaged(path: path, part).message().with(hints: [restoring]))
    } catch { throw CommandError(error) }
    try context.output(
      findings.map { Message.visible($0.sentence) + "\n" }.joined(),
      orJSON: ["findings": .array(findings.map { .string($0.sentence) })])
    guard findings.isEmpty else {
      let count = findings.count == 1 ? "one finding" : "\(findings.count) findings"
      // What can be made anew need not be fetched from a backup, without all that came after it.
      let records = findings.compactMap { finding in if case .record(let record, _) = finding { record } else { nil } }
      let hint = records.count == findings.count ? records.first.map(context.mending) : nil
      let text = "the vault is not as it was written: \(count)"
      throw .failed(text, hint: hint ?? .rescuing(context.home.vault), status: .vault)
    }
    if !invocation.has("--json") { context.tell("the vault is as it was written") }
  }
}

import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrStore
import CredmgrText

enum VaultKeyOperations {
  private static func kind(_ invocation: Invocation) throws(CommandError) -> SlotKind {
    guard let text = invocation.operands.dropFirst().first else {
      throw .usage(
        "name a way to open the vault", hint: "usage: credmgr vault protect passphrase|secret-service|key-file")
    }
    if let kind = SlotKind.allCases.first(where: { $0.logName == text }) { return kind }
    let names = SlotKind.allCases.map(\.logName)
    let near = nearMiss(text, among: names)
    // Do not repeat a text that resembles no method, because it may be a passphrase.
    let called = near == nil ? "unknown way to open the vault" : "unknown way to open the vault \"\(text)\""
    throw .usage(
      called + didYouMean(near), hints: .correcting(text, to: near) + ["use one of \(names.joined(separator: ", "))"])
  }

  static func protect(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let kind = try kind(invocation)
    if invocation.has("--remove") {
      if invocation.has("--passphrase-file") { throw .exclusive(["--remove", "--passphrase-file"]) }
      if kind == .keyFile { try confirmRemovalOfKeyFile(invocation, context) }
      try manager(context.source.unprotect(kind))
      try reportSlots(context)
      context.tell("the \(kind.words) no longer opens the vault")
      guard kind == .keyFile else {
        context.tell(
          note: "older copies of the vault still open with it; \(credmgr: "vault", "rotate") to change the key")
        return
      }
      context.tell(
        note: "a backup that opens only with the deleted key file is lost; \(credmgr: "vault", "backup", "FILE") to "
          + "make a new one")
      context.tell(
        note: "copies of the key file still open older copies of the vault; \(credmgr: "vault", "rotate") to change "
          + "the key")
      return
    }
    let passphrase = try passphrase(invocation, context)
    if passphrase != nil, kind != .passphrase {
      throw .usage("\"--passphrase-file\" requires \"vault protect passphrase\"")
    }
    let others = try manager(context.source.protect(with: kind, passphrase: passphrase))
    try reportSlots(context)
    context.tell("the \(kind.words) now opens the vault")
    if kind != .keyFile, others.contains(.keyFile) {
      context.tell(note: "the key file still opens it without a prompt; \(keyFileRemoval) to remove it")
    }
  }

  /// A copy of the key file beside the vault, as `rotate` leaves it, would still open older copies of the vault, whose
  /// key is the present one. So the file is deleted, and a user at a terminal is asked first.
  private static func confirmRemovalOfKeyFile(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let slots = try manager(context.source.vaultStatus()).status.slots.compactMap(\.kind)
    guard slots.contains(.keyFile), slots.count > 1, Question.canAsk, !invocation.has("--yes") else { return }
    guard try Question.confirm("Backups so far may open only with the key file. Delete it?") else {
      throw .usage(
        "the key file was not removed",
        hint: "\(credmgr: "vault", "backup", "FILE") to make a backup that opens without it")
    }
  }

  private static func reportSlots(_ context: Context) throws(CommandError) {
    guard context.isJSON else { return }
    let kinds = try manager(context.source.vaultStatus()).status.slots.compactMap(\.kind)
    try context.output(["opens_with": .array(kinds.map { .string($0.words) })])
  }

  /// Reads the passphrase. `isNew` says whether the passphrase will protect something.
  private static func passphrase(
    _ invocation: Invocation, isNew: Bool = true, _ context: Context
  ) throws(CommandError) -> Secret? {
    guard let path = invocation.value("--passphrase-file") else { return nil }
    if let mode = PrivateFile.modeForOthers(path) {
      context.tell(
        note: "other users can read \"\(path)\" (mode \(String(mode, radix: 8))); \(run: "chmod", "go=", path)")
    }
    let passphrase = try context.secret(path, called: "passphrase")
    if isNew { TerminalPassphrase.warn(of: passphrase) }
    return passphrase
  }

  /// The kernel counts seconds in 32 bits (keyctl_set_timeout(3)).
  private static let longestUnlocking = Duration.days(365)

  static func unlock(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let time = try context.duration("--for", invocation) ?? .hours(8)
    guard time > .zero else { throw .usage("the time of \"--for\" must be longer than 0 s") }
    guard time <= longestUnlocking else {
      throw .usage(
        "cannot unlock the vault for longer than \(longestUnlocking.wholeSeconds / 86_400) days",
        hint: "\(credmgr: "vault", "protect", "key-file") to open it without a prompt permanently")
    }
    let outcome = try manager(context.source.unlock(for: time))
    if context.isJSON {
      let until = try manager(context.source.vaultStatus()).unlockedUntil
      try context.output(["unlocked_until": .optional(until?.text)])
    }
    switch outcome {
    case .kept: context.tell("the vault is unlocked for \(exactDuration(time))")
    case .opensByItself: context.tell("the vault needs no unlocking, because its key file opens it")
    }
  }

  private static var keyFileRemoval: Remedy { "\(credmgr: "vault", "protect", "key-file", "--remove")" }

  static func lock(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let (wasUnlocked, opensByItself) = try manager(context.source.lock())
    if context.isJSON { try context.output(["locked": .boolean(!opensByItself)]) }
    if opensByItself {
      context.tell(note: "the key file still opens the vault; \(keyFileRemoval) to remove it")
    } else {
      context.tell(wasUnlocked ? "the vault is locked" : "the vault was already locked")
    }
  }

  static func rotate(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    if invocation.has("--vault") { return try SharedVaultOperations.rotate(invocation, context) }
    if Terminal.isTerminal(0), Terminal.isTerminal(2), !invocation.has("--yes"),
      !(try Question.confirm("Existing backups open only with the old key. Create a new key?"))
    {
      throw .usage("the key was not changed")
    }
    let kept = try manager(context.source.rotateVault())
    if context.isJSON { try context.output(["older_key_file": .optional(kept.keyFile)]) }
    context.tell("encrypted the vault with a new key")
    if let keyFile = kept.keyFile {
      context.tell("older backups open with \"\(keyFile)\"; delete that file together with the last of them")
    }
    if let item = kept.item {
      let removal = SecretServiceClient.removal(of: item)
      context.tell(note: "older backups open with an older item of the Secret Service; \(run: removal) to delete it")
    }
    if kept.keyFile == nil, kept.item == nil {
      context.tell(
        note: "older backups still open with the old key; \(credmgr: "vault", "backup", "FILE") to make a new one")
    }
  }

  private static func file(_ invocation: Invocation) throws(CommandError) -> String {
    guard let path = invocation.operands.dropFirst().first, !path.isEmpty else {
      throw .usage("name a file", hint: "usage: credmgr vault \(invocation.operands[0]) FILE")
    }
    return path
  }

  static func backup(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    // The rows of the server are useless elsewhere, so the backup of a shared vault is an export.
    if invocation.has("--vault") { return try export(invocation, context) }
    if invocation.has("--passphrase-file") {
      throw .usage("\"vault backup\" takes \"--passphrase-file\" only with \"--vault\"")
    }
    let path = try file(invocation)
    let kinds = try manager(context.source.backUpVault(to: path))
    if context.isJSON {
      try context.output(["file": .string(path), "opens_with": .array(kinds.map { .string($0.words) })])
    }
    context.tell("backed up the vault to \"\(path)\"")
    if kinds == [.keyFile] {
      context.tell(
        "the backup opens only with \"\(context.home.vaultLocation.keyFile)\"; keep a copy of that file elsewhere")
    }
  }

  static func restore(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let path = try file(invocation)
    let restoration: VaultRestoration
    let otherKey: Remedy = "\(add: "--key-file", "FILE") with the earlier key file"
    do throws(CredentialError) {
      restoration = try context.source.restoreVault(from: path, keyFile: invocation.value("--key-file"))
    } catch .vault(.keyFileOfAnotherVault(let keyFile)) {
      throw .failed("cannot open the backup with the key file \"\(keyFile)\"", hint: otherKey, status: .vault)
    } catch .vault(.keyFileMissing(let keyFile)) {
      let text = "cannot open the backup: key file \"\(keyFile)\" not found"
      throw .failed(text, hint: otherKey, status: .vault)
    } catch .vault(.notAVault(let file)) where file == path {
      let hint: Remedy = "if \"vault export\" wrote the file, \(credmgr: "vault", "import", path)"
      throw .failed("cannot restore \"\(path)\": it is not a backup of a vault", hint: hint, status: .vault)
    } catch .vault(.damagedRecord) {
      throw .failed(
        "the backup \"\(path)\" is damaged; the vault was not changed", hint: "restore another backup", status: .vault)
    } catch .vault(.truncated(let file)) where file == path {
      throw .failed("the backup \"\(path)\" is truncated", hint: "restore another backup", status: .vault)
    } catch { throw CommandError(error) }
    if context.isJSON {
      try context.output([
        "file": .string(path), "kept": .array(restoration.replaced.map(JSONValue.string)),
        "restored_files": .array(restoration.files.map(JSONValue.string)),
        "different_files": .array(restoration.different.map(JSONValue.string)),
      ])
    }
    func names(_ paths: [String]) -> String { paths.map(quoted).joined(separator: " and ") }
    context.tell("restored the vault from \"\(path)\"")
    if !restoration.replaced.isEmpty { context.tell("the old vault is now in " + names(restoration.replaced)) }
    if !restoration.files.isEmpty { context.tell("also restored " + names(restoration.files)) }
    if !restoration.different.isEmpty {
      context.tell("warning: kept \(names(restoration.different)), which the backup has with another text")
    }
  }

  static func export(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let path = try file(invocation)
    let isPlain = invocation.all("--plain").count > 1
    if invocation.has("--plain"), !isPlain {
      throw .usage(
        "an unencrypted export lets anyone with the file use your tokens",
        hint: "pass \"--plain\" twice to confirm")
    }
    if path == "-", context.isJSON { throw .exclusive(["export -", "--json"]) }
    let context = try context.inVaultIfNamed(invocation)
    let passphrase = try passphrase(invocation, context)
    if isPlain, passphrase != nil { throw .exclusive(["--plain", "--passphrase-file"]) }
    let (json, parts) = try manager(context.source.exportVault(isPlain: isPlain, passphrase: passphrase))
    let text = json.formatted + "\n"
    if path == "-" {
      try context.output(text)
    } else {
      try system(PrivateFile.create(path, Array(text.utf8)))
      if context.isJSON { try context.output(.object([.init("file", .string(path))] + members(parts))) }
      context.tell("exported \(words(parts)) to \"\(path)\"")
      if !invocation.has("--vault"), let shared = try manager(context.source.joinedVaults()).first {
        context.tell(
          note: "accounts of shared vaults are not in the file; \(credmgr: "vault", "export", path, "--vault", shared) "
            + "or join the vault on the other machine")
      }
      try tellSharedLogins("log in again on the other machine after the import", context)
    }
  }

  static func `import`(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let bytes = try context.file(try file(invocation), limit: 1 << 30, ordinary: true)
    let passphrase = try passphrase(invocation, isNew: false, context)
    if invocation.has("--plain"), passphrase != nil { throw .exclusive(["--plain", "--passphrase-file"]) }
    var added: [String] = []
    let parts = try manager(
      context.source.importVault(
        bytes, passphrase: passphrase, acceptsPlain: invocation.has("--plain"), replaces: invocation.has("--replace"),
        confirms: { provider, places in
          Question.confirm(
            "the file's registration of \(quoted(provider)) requires your consent", list: places.map(\.difference),
            isGiven: invocation.has("--yes"))
        },
        agrees: { provider, places in
          Question.confirm(
            "\(quoted(provider)) requires your consent", list: places.peculiarities, isGiven: invocation.has("--yes"))
        }, adds: { added.append($0) }))
    for provider in added { try Command.tellAgreement(on: provider, context) }
    for provider in parts.replacesShipped {
      context.tell("warning: the file's descriptor \(quoted(provider)) replaces the built-in one")
    }
    context.tell(parts.isEmpty ? "nothing to import: everything already exists" : "imported \(words(parts))")
    if !parts.isEmpty { try tellSharedLogins(nil, context) }
    let missing = parts.isEmpty && !context.isJSON ? [] : try tellMissing(context)
    if context.isJSON {
      let commands = missing.map { JSONValue.string($0.map(argument).joined(separator: " ")) }
      try context.output(.object(members(parts) + [.init("next", .array(commands))]))
    }
  }

  /// Warns about logins that two machines would refresh. `advice` is the sentence for the machine that keeps them;
  /// `nil` names the command for the new one.
  private static func tellSharedLogins(_ advice: String?, _ context: Context) throws(CommandError) {
    let accounts = try manager(context.source.accountsIfAny()?.accounts(of: nil) ?? [])
    guard let first = accounts.first(where: { $0.credential.refreshToken != nil }) else { return }
    let command: Remedy = "\(credmgr: "login", first.provider, "--account", first.name) for a login of this machine"
    let danger: Remedy = "two machines that refresh the same login can log each other out; "
    context.tell(note: danger + (advice.map { Remedy(parts: [.words($0)]) } ?? command))
  }

  private static func members(_ parts: TransferredParts) -> [JSONValue.Member] {
    [
      .init("records", .integer(parts.records)), .init("descriptors", .integer(parts.descriptors)),
      .init("rules", .boolean(parts.hasRules)),
    ]
  }

  /// Says what does not work on this machine yet. Returns the commands to run.
  private static func tellMissing(_ context: Context) throws(CommandError) -> [[String]] {
    guard let vault = try manager(context.source.accountsIfAny()) else { return [] }
    var commands: [[String]] = []
    func tell(_ sentence: String, _ command: [String]) {
      context.tell(sentence)
      context.tell(hint: "\(credmgr: command)")
      commands.append(["credmgr"] + command)
    }
    for provider in try manager(vault.addedProviders()) where context.home.library.path(of: provider) == nil {
      context.tell("the descriptor of \(quoted(provider)) is missing, so credmgr cannot refresh its tokens")
    }
    let accounts = try manager(vault.accounts(of: nil))
    for (account, state) in try zip(accounts, manager(vault.states(of: accounts, at: context.clock.now())))
    where state.needsLogin {
      tell(
        "\(context.titled(account.provider)) requires a new login as \(quoted(account.name))",
        ["login", account.provider, "--account", account.name])
    }
    let unset = try UnsetHelpers(of: nil, context)
    if !unset.git.isEmpty { tell("git does not ask credmgr for \(some(unset.git)) yet", ["git-setup"]) }
    if !unset.docker.isEmpty {
      tell(
        "docker does not ask credmgr for \(some(unset.docker)) yet", ["docker-credential", "setup"] + unset.docker)
    }
    return commands
  }

  private static func words(_ parts: TransferredParts) -> String {
    var words = parts.records > 0 ? [records(parts.records)] : []
    if parts.descriptors > 0 {
      words.append(parts.descriptors == 1 ? "1 descriptor" : "\(parts.descriptors) descriptors")
    }
    if parts.hasRules { words.append("the account rules") }
    guard let last = words.popLast() else { return records(0) }
    return words.isEmpty ? last : words.joined(separator: ", ") + " and " + last
  }

  private static func records(_ count: Int) -> String { count == 1 ? "1 record" : "\(count) records" }
}

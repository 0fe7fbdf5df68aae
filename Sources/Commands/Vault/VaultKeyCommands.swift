import CredentialManager
import Cryptography
import Platform
import Store
import Text

enum VaultKeyOperations {
  private static func kind(_ invocation: Invocation) throws(CommandError) -> SlotKind {
    guard let text = invocation.operands.dropFirst().first else {
      throw .usage("name a way into the vault", hint: "usage: credmgr vault protect passphrase|secret-service|key-file")
    }
    if let kind = SlotKind.allCases.first(where: { $0.logName == text }) { return kind }
    let names = SlotKind.allCases.map(\.logName)
    let near = nearMiss(text, among: names)
    // What is near to no name may be a passphrase.
    let called = near == nil ? "there is no such way into a vault" : "there is no way into a vault called \"\(text)\""
    throw .usage(
      called + didYouMean(near), hints: .correcting(text, to: near) + ["there are \(names.joined(separator: ", "))"])
  }

  static func protect(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let kind = try kind(invocation)
    if invocation.has("--remove") {
      if invocation.has("--passphrase-file") { throw .exclusive(["--remove", "--passphrase-file"]) }
      try manager(context.source.unprotect(kind))
      context.tell("the \(kind.words) does not open the vault any more")
      context.tell(
        "copies of the vault that were made before still open with it; \"credmgr vault rotate\" changes the key")
      return
    }
    let passphrase = try passphrase(invocation, context)
    if passphrase != nil, kind != .passphrase { throw .usage("\"--passphrase-file\" goes with a passphrase only") }
    let others = try manager(context.source.protect(with: kind, passphrase: passphrase))
    context.tell("the \(kind.words) opens the vault")
    if kind != .keyFile, others.contains(.keyFile) {
      context.tell(
        "so does the key file, without anybody being asked; \"credmgr vault protect key-file --remove\" removes it")
    }
  }

  /// - Parameter isNew: whether something is to be protected with it.
  private static func passphrase(
    _ invocation: Invocation, isNew: Bool = true, _ context: Context
  ) throws(CommandError) -> Secret? {
    guard let path = invocation.value("--passphrase-file") else { return nil }
    if let mode = PrivateFile.modeForOthers(path) {
      context.tell(
        "other users can read \"\(path)\" (mode \(String(mode, radix: 8))); "
          + "\"chmod go= \(argument(path))\" keeps it to you")
    }
    let passphrase = try context.secret(path, called: "passphrase")
    if isNew { TerminalPassphrase.warn(of: passphrase) }
    return passphrase
  }

  /// The kernel counts seconds in 32 bits (keyctl_set_timeout(3)).
  private static let longestUnlocking = Duration.days(365)

  static func unlock(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let time = try context.duration("--for", invocation) ?? .hours(8)
    guard time > .zero else { throw .usage("a vault cannot be unlocked for no time") }
    guard time <= longestUnlocking else {
      throw .usage(
        "a vault cannot be unlocked for longer than \(longestUnlocking.wholeSeconds / 86_400) days",
        hint: "\(command: "credmgr", "vault", "protect", "key-file") opens it without anybody being asked, "
          + "for as long as it is there")
    }
    switch try manager(context.source.unlock(for: time)) {
    case .kept: context.tell("the vault is unlocked for \(exactDuration(time))")
    case .opensByItself: context.tell("the key file opens the vault; there is nothing to unlock")
    }
  }

  static func lock(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let (wasUnlocked, opensByItself) = try manager(context.source.lock())
    if opensByItself {
      context.tell("the key file still opens the vault; \"credmgr vault protect key-file --remove\" removes it")
    } else {
      context.tell(wasUnlocked ? "the vault is locked" : "the vault was locked already")
    }
  }

  static func rotate(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    if Terminal.isTerminal(0), Terminal.isTerminal(2), !invocation.has("--yes"),
      !Command.agrees("Earlier backups open with the earlier keys only. Make a new key?")
    {
      throw .usage("the vault keeps its key")
    }
    let kept = try manager(context.source.rotateVault())
    context.tell("the vault has a new key, and every record is sealed with it")
    if let kept {
      context.tell("earlier backups open with \"\(kept)\"; remove it when there are none any more")
    } else {
      context.tell("earlier backups open with the earlier keys only; \"credmgr vault backup FILE\" makes a new one")
    }
  }

  private static func file(_ invocation: Invocation) throws(CommandError) -> String {
    guard let path = invocation.operands.dropFirst().first, !path.isEmpty else {
      throw .usage("name a file", hint: "usage: credmgr vault \(invocation.operands[0]) FILE")
    }
    return path
  }

  static func backup(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let path = try file(invocation)
    let kinds = try manager(context.source.backUpVault(to: path))
    context.tell("wrote the vault to \"\(path)\"")
    if kinds == [.keyFile] {
      context.tell(
        "it opens with \"\(context.home.vaultLocation.keyFile)\" only, which is not in it: keep a copy elsewhere")
    }
  }

  static func restore(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let path = try file(invocation)
    let kept: [String]
    let otherKey: Remedy = "name the one of its time with \"--key-file FILE\""
    do throws(CredentialError) {
      kept = try context.source.restoreVault(from: path, keyFile: invocation.value("--key-file"))
    } catch .vault(.keyFileOfAnotherVault(let keyFile)) {
      throw .failed("the backup does not open with the key file \"\(keyFile)\"", hint: otherKey, status: .vault)
    } catch .vault(.keyFileMissing(let keyFile)) {
      let text = "the backup opens with a key file, and there is none at \"\(keyFile)\""
      throw .failed(text, hint: otherKey, status: .vault)
    } catch .vault(.notAVault(let file)) where file == path {
      let hint: Remedy =
        "name a file that \(command: "credmgr", "vault", "backup") made; "
        + "\(command: "credmgr", "vault", "import", "FILE") reads what \"export\" wrote"
      throw .failed("\"\(path)\" is no backup of a vault", hint: hint, status: .vault)
    } catch .vault(.truncated(let file)) where file == path {
      throw .failed("the end of the backup \"\(path)\" is missing", hint: "restore another backup", status: .vault)
    } catch { throw CommandError(error) }
    context.tell("the vault is the one of \"\(path)\"")
    if !kept.isEmpty {
      context.tell("what was there before is kept in " + kept.map { "\"\($0)\"" }.joined(separator: " and "))
    }
  }

  static func export(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let path = try file(invocation)
    let isPlain = invocation.all("--plain").count > 1
    if invocation.has("--plain"), !isPlain {
      throw .usage(
        "a plain export can be read, and every token in it used, by whoever has the file",
        hint: "say \"--plain\" twice if that is what you want")
    }
    let passphrase = try passphrase(invocation, context)
    if isPlain, passphrase != nil { throw .exclusive(["--plain", "--passphrase-file"]) }
    let (json, parts) = try manager(context.source.exportVault(isPlain: isPlain, passphrase: passphrase))
    let text = json.formatted + "\n"
    if path == "-" {
      try context.output(text)
    } else {
      try system(PrivateFile.create(path, Array(text.utf8)))
      context.tell("exported \(words(parts)) to \"\(path)\"")
    }
  }

  static func `import`(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    let bytes = try context.file(try file(invocation), limit: 1 << 30, ordinary: true)
    let passphrase = try passphrase(invocation, isNew: false, context)
    if invocation.has("--plain"), passphrase != nil { throw .exclusive(["--plain", "--passphrase-file"]) }
    let parts = try manager(
      context.source.importVault(
        bytes, passphrase: passphrase, acceptsPlain: invocation.has("--plain"), replaces: invocation.has("--replace"),
        confirms: { provider, places in
          Command.agrees(
            "the file's registration of \"\(provider)\" \(places.words(nil, "sends"))",
            to: places.map(\.difference))
        },
        agrees: { provider, places in
          invocation.has("--yes")
            || Command.agrees("\(quoted(provider)) needs consent:", to: places.peculiarities)
        }))
    context.tell(parts.isEmpty ? "everything was there already" : "imported \(words(parts))")
  }

  private static func words(_ parts: TransferredParts) -> String {
    var words = parts.records > 0 ? [records(parts.records)] : []
    if parts.descriptors > 0 {
      words.append(parts.descriptors == 1 ? "one descriptor" : "\(parts.descriptors) descriptors")
    }
    if parts.hasRules { words.append("the rules for accounts") }
    guard let last = words.popLast() else { return records(0) }
    return words.isEmpty ? last : words.joined(separator: ", ") + " and " + last
  }

  private static func records(_ count: Int) -> String { count == 1 ? "one record" : "\(count) records" }
}

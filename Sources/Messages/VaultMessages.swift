import CredmgrPlatform
import CredmgrStore
import CredmgrText

extension StoreError {
  /// Returns the message. `opensOtherwise` says whether the vault has other slots than its key file; `nil` if unknown.
  package func message(passphrase: PassphraseSource = .person, opensOtherwise: Bool? = nil) -> Message {
    func key(_ text: String, _ path: String) -> Message {
      let folder = Path.directory(of: path) ?? "."
      switch opensOtherwise {
      case true?: return .vault(text).hint("\(credmgr: "vault", "protect", "key-file") to create a new key file")
      case false?: return .vault(text).hint("restore the key file, or \(Remedy.settingAside(folder)) to start over")
      case nil:
        return .vault(text)
          .hint("restore the key file, or \(credmgr: "vault", "status") to see the other ways to open the vault")
      }
    }
    let verify: Remedy = "\(credmgr: "vault", "verify")"
    return switch self {
    case .absent(let path):
      .vault("vault \(quoted(path)) does not exist yet; adding a provider creates it")
        .hint("\(run: "credmgr") to see the first steps")
    case .keyFileMissing(let path): key("cannot open the vault: its key file \(quoted(path)) is missing", path)
    case .keyFileInvalid(let path): key("cannot open the vault: the key file \(quoted(path)) contains no key", path)
    case .keyFileOfAnotherVault(let path):
      key("cannot open the vault: the key file \(quoted(path)) belongs to another vault", path)
    case .locked: .vault("the vault is locked").hint(.unlocking)
    case .wrongPassphrase:
      .vault("wrong passphrase")
        .hint(passphrase.remedy ?? .lostPassphrase())
    case .passphraseUnavailable(let error): passphrase.message(error)
    case .passphraseCommandFailed(let status):
      .vault("the passphrase command failed with status \(status)")
        .hint("\(shell: "eval $CREDMGR_PASSPHRASE_COMMAND >/dev/null") to see its error")
    case .secretService(let fault): fault.message()
    case .kernelKeyring(.system(_, _, let code)):
      .vault("cannot keep the vault unlocked: the kernel does not store keys here (error \(code))")
        .hint("enter the passphrase each time, or set CREDMGR_PASSPHRASE_FILE")
    case .kernelKeyring(let error): .vault(error.message.text)
    case .noSlot(let kind): .usage("cannot remove the \(kind.words): the vault does not use one")
    case .lastSlot(let kind):
      .usage("cannot remove the \(kind.words): nothing else opens the vault")
        .hint("\(credmgr: "vault", "protect", kind == .passphrase ? "key-file" : "passphrase") first")
    case .otherSlots:
      .vault("another process has just changed the unlock methods of the vault").hint("\(credmgr: "vault", "status")")
    case .notAVault(let path): .vault("\(quoted(path)) is not a vault").hint(.restoring(vault: path))
    case .truncated(let path): .vault("the vault \(quoted(path)) is truncated").hint(.restoring(vault: path))
    case .newerFormat(let path, let found, let supported):
      .vault(
        "cannot open \(quoted(path)): it has format \(found), and this credmgr supports formats up to \(supported)"
      )
      .hint("install a newer credmgr")
    case .damaged(let path, let part): .vault("the vault \(quoted(path)) is damaged: \(part.words)").hint(verify)
    case .damagedRecord(let record): .damaged([record])
    case .conflict(let record, _):
      .unexpected("another process changed \(record.words) at the same time").hint("run the command again")
    case .tooLarge(let record): .usage("cannot store \(record.words): it is too large for the vault")
    case .file(let error): Message(error.message.text, hints: error.message.hints, status: .vault)
    case .busy(let path):
      .vault("timed out waiting for other processes that use the vault \(quoted(path))").hint("run the command again")
    case .full(let path): .vault(cause + "; nothing was changed").hint(.makingRoom(in: Path.directory(of: path) ?? "."))
    case .readOnly(let path):
      .vault(cause + "; nothing was changed").hint(.mending(.permissionDenied(path: path), at: path))
    case .inputOutput(let path, let code):
      .vault("cannot read or write the vault \(quoted(path)) (SQLite error \(code))").hint(verify)
    case .unconfirmed(let path):
      .vault(
        "\(quoted(path)) was changed, but a power failure may undo the change: the system cannot write its directory"
      ).hint(verify)
    case .outOfMemory: .vault("not enough memory for the keys")
    case .server(let fault, let vault): fault.message(vault: vault)
    }
  }

  /// The cause alone, for a sentence that states the consequence.
  package var cause: String {
    switch self {
    case .full(let path): "cannot write the vault \(quoted(path)): the disk is full"
    case .readOnly(let path): "cannot write the vault \(quoted(path)): permission denied"
    default: message().text
    }
  }
}

/// The source of the vault's passphrase.
package enum PassphraseSource: Equatable {
  case person, command
  case file(String)

  /// How to use another source; `nil` if the user was prompted.
  package var remedy: Remedy? {
    switch self {
    case .person: nil
    case .command:
      "\(run: "unset", "CREDMGR_PASSPHRASE_COMMAND") to get a prompt"
    case .file: "\(run: "unset", "CREDMGR_PASSPHRASE_FILE") to get a prompt"
    }
  }

  package func message(_ error: POSIXError) -> Message {
    let text: String
    switch (self, error) {
    case (_, .interrupted): return error.message
    case (_, .noTerminal):
      return .vault("the vault is locked, and credmgr cannot prompt for the passphrase: no terminal").hint(.unlocking)
    case (.person, .endOfInput):
      return .vault("no passphrase was entered").hint("run the command again and type the passphrase of the vault")
    case (.file(let path), .endOfInput):
      text = "CREDMGR_PASSPHRASE_FILE names \(quoted(path)), which is empty"
    case (.file(let path), .notFound(let missing)) where missing == path:
      // Do not repeat the name, because it may be the passphrase itself.
      text = "CREDMGR_PASSPHRASE_FILE names a file that does not exist"
    case (.file(let path), _): text = "CREDMGR_PASSPHRASE_FILE names \(quoted(path)): \(error.message.text)"
    case (.command, .endOfInput): text = "the command in CREDMGR_PASSPHRASE_COMMAND printed no passphrase"
    case (_, .timedOut): text = "timed out waiting for the passphrase"
    default: text = error.message.text
    }
    return Message(text, hints: remedy.map { [$0] } ?? error.message.hints, status: .vault)
  }
}

extension Remedy {
  package static let unlocking: Remedy = "\(credmgr: "vault", "unlock") at a terminal, or set CREDMGR_PASSPHRASE_FILE"

  /// The ways after a lost passphrase, which no one can find out. `folder` is the directory of the vault, if known.
  package static func lostPassphrase(_ folder: String? = nil) -> Remedy {
    let status: Remedy = "\(credmgr: "vault", "status") to see the ways to open the vault; "
    guard let folder else { return status + "if all are lost, only a backup or an export helps" }
    return status
      + "if all are lost, \(settingAside(folder)), then \(credmgr: "vault", "restore", "FILE") with a backup, or "
      + "\(credmgr: "setup") to start over"
  }

  package static func restoring(vault file: String) -> Remedy {
    "restore a backup, or \(settingAside(Path.directory(of: file) ?? ".")) to start over"
  }

  /// Returns commands that build a new vault from a damaged one, and keep the damaged one.
  package static func rescuing(_ folder: String) -> Remedy {
    let file = "rescued.json"
    let commands = [
      ["credmgr", "vault", "export", file], ["mv", folder, folder + ".old"], ["credmgr", "vault", "import", file],
    ]
    return "\(all: commands) to keep the rest"
  }
}

extension Message {
  /// Returns the message for unreadable records in a vault that otherwise works.
  package static func damaged(_ records: [RecordIdentifier]) -> Message {
    Message(
      "\(records.words) \(records.count == 1 ? "is" : "are") damaged in the vault",
      hint: records.first.map { $0.remedy() }, status: .vault)
  }
}

extension [RecordIdentifier] {
  package var words: String {
    prefix(3).map(\.words).joined(separator: ", ") + (count > 3 ? " and \(count - 3) more" : "")
  }

  package func words(and files: [String]) -> String {
    ((isEmpty ? [] : [words]) + files.prefix(3).map(quoted)).joined(separator: ", ")
      + (files.count > 3 ? " and \(files.count - 3) more" : "")
  }
}

extension RecordIdentifier {
  package var words: String {
    switch kind {
    case .credential: "the credential of \(quoted(account)) at \(quoted(provider))"
    case .registration: "the registration of \(quoted(provider))"
    case .selection: "the default account of \(quoted(provider))"
    case .login: "the login of \(quoted(account)) at \(quoted(provider))"
    case .event: "a log entry"
    case .host: "the host list of \(quoted(provider))"
    case .keySet: "the keys of \(quoted(provider))"
    case .descriptor: "the descriptor of \(quoted(provider))"
    case .membership: "the membership in the vault \(quoted(provider))"
    case .seen: "a record of the vault \(quoted(provider))"
    case .failure: "the error of the last login of \(quoted(account)) at \(quoted(provider))"
    case .pending: "the note of an unfinished request for \(quoted(account)) at \(quoted(provider))"
    }
  }

  /// Returns the remedy for a record. `other` is an existing account.
  package func remedy(account other: String? = nil) -> Remedy {
    let backup: Remedy = ", or restore the vault from a backup"
    return switch kind {
    case .credential: "\(credmgr: "login", provider, "--account", account)" + backup
    case .registration: "\(credmgr: "add-provider", provider, "--client-id", "ID", "--replace")" + backup
    case .selection: "\(credmgr: "use", provider, other ?? "ACCOUNT")" + backup
    default: "\(credmgr: "vault", "verify")"
    }
  }
}

extension SlotKind {
  package var words: String {
    switch self {
    case .keyFile: "key file"
    case .passphrase: "passphrase"
    case .secretService: "Secret Service"
    }
  }
}

extension SecretServiceFault {
  /// Returns the message. `opensVault` says whether the Secret Service can open the vault.
  package func message(opensVault: Bool = true) -> Message {
    let remove: Remedy = ", or \(credmgr: "vault", "protect", "secret-service", "--remove")"
    let otherwise = opensVault ? remove : ""
    return switch self {
    case .noBus:
      .vault("cannot reach the Secret Service: no session bus")
        .hint("run the command in a desktop session\(otherwise)")
    case .noService:
      .vault("cannot reach the Secret Service: it is not running")
        .hint("\(run: "sudo", "apt-get", "install", "gnome-keyring") and log in to the desktop again")
    case .locked: .vault("the keyring of the Secret Service is locked").hint("unlock it on the desktop\(otherwise)")
    case .noKey:
      .vault("the Secret Service does not have the key of this vault")
        .hint("\(credmgr: "vault", "protect", "secret-service") to store a new key")
    case .timedOut:
      .vault("the Secret Service did not answer within 2 s").hint("check the keyring of the desktop\(otherwise)")
    case .notInstalled:
      .vault("cannot reach the Secret Service: the program \"secret-tool\" is not installed")
        .hint("\(run: "sudo", "apt-get", "install", "libsecret-tools")")
    case .failed:
      .vault("the Secret Service refused the request").hint("check the keyring of the desktop\(otherwise)")
    }
  }
}

extension VaultPart {
  package var words: String {
    switch self {
    case .structure: "its structure"
    case .schema: "its tables"
    case .slots: "its key slots"
    case .header: "its header"
    case .index(let number): "part \(number) of its index"
    }
  }
}

extension VaultFinding {
  package var sentence: String {
    switch self {
    case .record(let record, let fault): "\(record.words) \(fault.words)"
    case .unknownRecord(let lookup): "a row belongs to no record (\(lookup))"
    case .index(let number, _): "part \(number) of the index was modified"
    case .header: "the header was modified"
    case .slots: "the key slots were modified"
    case .log(let record): "the log of \(record?.words ?? "the vault") was modified"
    case .members: "the list of members was modified"
    case .keyCopies: "the members' copies of the key were modified"
    case .invitation(let member): "the invitation of \(quoted(member)) was modified or removed"
    case .tables: "the tables of the database were changed"
    case .schema: "the file does not have the tables of a vault"
    case .structure: "the structure of the file is damaged"
    }
  }
}

extension VaultFinding.RecordFault {
  fileprivate var words: String {
    switch self {
    case .altered: "was modified"
    case .dropped: "was removed"
    case .replayed: "was replaced by an older version"
    case .swapped(let other): "was replaced by \(other.words)"
    }
  }
}

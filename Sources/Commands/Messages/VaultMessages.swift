import Platform
import Store
import Text

extension StoreError {
  /// - Parameter opensOtherwise: whether the vault has other slots than its key file.
  func message(passphrase: PassphraseSource = .person, opensOtherwise: Bool = false) -> Message {
    func key(_ text: String, _ path: String) -> Message {
      let folder = Path.directory(of: path) ?? "."
      return .vault(text).hint(
        opensOtherwise
          ? "\(credmgr: "vault", "protect", "key-file") to make a new one"
          : "put the key file back from a backup, or \(Remedy.settingAside(folder)) to begin with an empty vault")
    }
    let verify: Remedy = "\(credmgr: "vault", "verify")"
    return switch self {
    case .absent(let path):
      .vault("there is no vault at \(quoted(path)) yet")
        .hint("\(run: "credmgr") to see how to begin: the first provider that is added makes one")
    case .keyFileMissing(let path): key("the vault is there, and its key file \(quoted(path)) is not", path)
    case .keyFileInvalid(let path): key("the key file \(quoted(path)) holds no key", path)
    case .keyFileOfAnotherVault(let path): key("the key file \(quoted(path)) belongs to another vault", path)
    case .locked: .vault("the vault is locked").hint(.unlocking)
    case .wrongPassphrase:
      .vault("the passphrase is wrong")
        .hint(passphrase.remedy ?? "\(credmgr: "vault", "status") to see what else opens the vault")
    case .passphraseUnavailable(let error): passphrase.message(error)
    case .passphraseCommandFailed(let status):
      .vault("the command for the passphrase ended with status \(status)")
        .hint("\(shell: "eval $CREDMGR_PASSPHRASE_COMMAND >/dev/null") to see why")
    case .secretService(let fault): fault.message()
    case .kernelKeyring(.system(_, _, let code)):
      .vault("the kernel keeps no keys here (error \(code)); the vault stays locked")
        .hint("give the passphrase each time, or set CREDMGR_PASSPHRASE_FILE")
    case .kernelKeyring(let error): .vault(error.message.text)
    case .noSlot(let kind): .usage("the vault has no \(kind.words) to remove")
    case .lastSlot(let kind):
      .usage("the \(kind.words) is the only way into the vault, and stays")
        .hint("\(credmgr: "vault", "protect", kind == .passphrase ? "key-file" : "passphrase") first")
    case .otherSlots:
      .vault("the ways into the vault are others than they were a moment ago").hint("\(credmgr: "vault", "status")")
    case .notAVault(let path): .vault("\(quoted(path)) is not a vault").hint(.restoring(vault: path))
    case .truncated(let path): .vault("the end of the vault \(quoted(path)) is missing").hint(.restoring(vault: path))
    case .newerFormat(let path, let found, let supported):
      .vault("the vault \(quoted(path)) has format \(found), and this credmgr knows formats up to \(supported)")
        .hint("use a newer credmgr")
    case .damaged(let path, let part): .vault("the vault \(quoted(path)) is damaged: \(part.words)").hint(verify)
    case .damagedRecord(let record): .damaged([record])
    case .conflict(let record, _):
      .unexpected("another process changed \(record.words) at the same time").hint("run the command again")
    case .tooLarge(let record): .usage("\(record.words) is too large for the vault")
    case .file(let error): Message(error.message.text, hints: error.message.hints, status: .vault)
    case .busy(let path):
      .vault("other processes hold the vault \(quoted(path)) for too long").hint("run the command again")
    case .full(let path): .vault(cause + "; nothing was changed").hint(.makingRoom(in: Path.directory(of: path) ?? "."))
    case .readOnly(let path):
      .vault(cause + "; nothing was changed").hint(.mending(.permissionDenied(path: path), at: path))
    case .inputOutput(let path, let code):
      .vault("the vault \(quoted(path)) cannot be read or written (SQLite error \(code))").hint(verify)
    case .unconfirmed(let path):
      .vault(
        "the vault \(quoted(path)) was changed, but the system could not write its folder: after a power cut the "
          + "change may be gone"
      ).hint(verify)
    case .outOfMemory: .vault("there is no memory for the keys")
    }
  }

  /// Why something could not be done, for a sentence that says itself what became of it.
  var cause: String {
    switch self {
    case .full(let path): "the disk of the vault \(quoted(path)) is full"
    case .readOnly(let path): "the vault \(quoted(path)) cannot be written"
    default: message().text
    }
  }
}

/// What answers for the passphrase of the vault.
enum PassphraseSource: Equatable {
  case person, command
  case file(String)

  /// What lets another answer; `nil` where a person was asked.
  var remedy: Remedy? {
    switch self {
    case .person: nil
    case .command:
      "\(run: "unset", "CREDMGR_PASSPHRASE_COMMAND") to be asked, or set it to a command that writes the passphrase"
    case .file: "\(run: "unset", "CREDMGR_PASSPHRASE_FILE"), or set it to the file that has the passphrase"
    }
  }

  func message(_ error: POSIXError) -> Message {
    let text: String
    switch (self, error) {
    case (_, .interrupted): return error.message
    case (_, .noTerminal):
      return .vault("the vault is locked, and there is no terminal to ask for the passphrase at").hint(.unlocking)
    case (.person, .endOfInput):
      return .vault("there was no passphrase").hint("run the command again, and type the passphrase of the vault")
    case (.file(let path), .endOfInput):
      text = "CREDMGR_PASSPHRASE_FILE names \(quoted(path)), in which there is no passphrase"
    case (.file(let path), .notFound(let missing)) where missing == path:
      // It may be the passphrase itself.
      text = "CREDMGR_PASSPHRASE_FILE names a file that does not exist"
    case (.file(let path), _): text = "CREDMGR_PASSPHRASE_FILE names \(quoted(path)): \(error.message.text)"
    case (.command, .endOfInput): text = "the command in CREDMGR_PASSPHRASE_COMMAND wrote no passphrase"
    case (_, .timedOut): text = "nobody gave the passphrase in time"
    default: text = error.message.text
    }
    return Message(text, hints: remedy.map { [$0] } ?? error.message.hints, status: .vault)
  }
}

extension Remedy {
  static let unlocking: Remedy = "\(credmgr: "vault", "unlock") at a terminal, or set CREDMGR_PASSPHRASE_FILE"

  private static let fromBackup: Remedy = "put it back with \(command: "credmgr", "vault", "restore", "FILE"), or "

  static func restoring(vault file: String) -> Remedy {
    fromBackup + "\(settingAside(Path.directory(of: file) ?? ".")) to begin with an empty one"
  }

  /// Makes a vault of all that can be read in a damaged one, which stays beside it.
  static func rescuing(_ folder: String) -> Remedy {
    let file = "credmgr-rescued.json"
    let commands = [
      ["credmgr", "vault", "export", file], ["mv", folder, folder + ".old"], ["credmgr", "vault", "import", file],
    ]
    return fromBackup + "\(all: commands) to keep all that can be read, under a passphrase meanwhile"
  }
}

extension Message {
  /// Records that cannot be read. The others can.
  static func damaged(_ records: [RecordIdentifier]) -> Message {
    Message(
      "\(records.words) \(records.count == 1 ? "is" : "are") damaged in the vault",
      hint: records.first.map { $0.remedy() }, status: .vault)
  }
}

extension [RecordIdentifier] {
  var words: String { prefix(3).map(\.words).joined(separator: ", ") + (count > 3 ? " and \(count - 3) more" : "") }

  func words(and files: [String]) -> String {
    ((isEmpty ? [] : [words]) + files.prefix(3).map(quoted)).joined(separator: ", ")
      + (files.count > 3 ? " and \(files.count - 3) more" : "")
  }
}

extension RecordIdentifier {
  var words: String {
    switch kind {
    case .credential: "the credential of \(quoted(account)) at \(quoted(provider))"
    case .registration: "the registration at \(quoted(provider))"
    case .selection: "the choice of the default account at \(quoted(provider))"
    case .login: "the login of \(quoted(account)) at \(quoted(provider))"
    case .event: "an entry of the log"
    case .host: "the claim of \(quoted(provider))"
    case .pending: "the note of an exchange for \(quoted(account)) at \(quoted(provider))"
    }
  }

  /// - Parameter other: an account that there is.
  func remedy(account other: String? = nil) -> Remedy {
    let backup: Remedy = ", or put the vault back from a backup"
    return switch kind {
    case .credential: "\(credmgr: "login", provider, "--account", account)" + backup
    case .registration: "\(credmgr: "add-provider", provider, "--client-id", "ID", "--replace")" + backup
    case .selection: "\(credmgr: "use", provider, other ?? "ACCOUNT")" + backup
    default: "\(credmgr: "vault", "verify")"
    }
  }
}

extension SlotKind {
  var words: String {
    switch self {
    case .keyFile: "key file"
    case .passphrase: "passphrase"
    case .secretService: "Secret Service"
    }
  }
}

extension SecretServiceFault {
  /// - Parameter opensVault: whether the vault has a slot that the Secret Service opens.
  func message(opensVault: Bool = true) -> Message {
    let remove: Remedy = ", or \(credmgr: "vault", "protect", "secret-service", "--remove") to do without"
    let otherwise = opensVault ? remove : ""
    return switch self {
    case .noBus:
      .vault("there is no session bus on which the Secret Service could be reached")
        .hint("come here through the desktop's session\(otherwise)")
    case .noService:
      .vault("nobody on the session bus offers the Secret Service")
        .hint("\(run: "sudo", "apt-get", "install", "gnome-keyring"), and log in to the desktop anew")
    case .locked: .vault("the keyring of the Secret Service is locked").hint("unlock it on the desktop\(otherwise)")
    case .noKey:
      .vault("the Secret Service does not have the key of this vault")
        .hint("\(credmgr: "vault", "protect", "secret-service") to give it a new one")
    case .timedOut:
      .vault("the Secret Service did not answer within 2 s").hint("mend the keyring of the desktop\(otherwise)")
    case .notInstalled:
      .vault("secret-tool, which speaks to the Secret Service, is not installed")
        .hint("\(run: "sudo", "apt-get", "install", "libsecret-tools")")
    case .failed:
      .vault("the Secret Service did not do what it was asked for").hint("mend the keyring of the desktop\(otherwise)")
    }
  }
}

extension VaultPart {
  var words: String {
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
  var sentence: String {
    switch self {
    case .record(let record, let fault): "\(record.words) \(fault.words)"
    case .unknownRecord(let lookup): "a row that belongs to no record (\(lookup))"
    case .index(let number, _): "part \(number) of the index is not as it was written"
    case .header: "the header was altered"
    case .slots: "the key slots were altered"
    case .schema: "the tables are not those of a vault"
    case .structure: "the structure of the file is damaged"
    }
  }
}

extension VaultFinding.RecordFault {
  fileprivate var words: String {
    switch self {
    case .altered: "was altered"
    case .dropped: "was removed"
    case .replayed: "is an older one"
    case .swapped(let other): "was exchanged for \(other.words)"
    }
  }
}

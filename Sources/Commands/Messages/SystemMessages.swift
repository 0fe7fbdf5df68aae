import CredentialManager
import Glibc
import Platform
import Text
import Store

extension POSIXError {
  /// What the system did not do.
  package var message: Message {
    switch self {
    case .notFound(let path): Message("there is no file \(quoted(path))", status: .usage)
    case .folderNotFound(let path):
      Message("there is no folder \(quoted(path))", hint: "\(run: "mkdir", "-p", path)", status: .usage)
    case .notRegularFile(let path):
      Message(
        "\(quoted(path)) is not an ordinary file",
        hint: Self.examining(path, otherwise: "name an ordinary file", "shows what this one is"), status: .usage)
    case .notDirectory(let path):
      Message(
        "\(quoted(path)) is not a folder",
        hint: Self.examining(path, otherwise: "name a folder", "shows what this is"), status: .usage)
    case .symbolicLink(let path):
      Message("\(quoted(path)) is a symbolic link, which is not followed here", status: .usage)
    case .otherOwner(let path):
      Message(
        "\(quoted(path)) belongs to another user",
        hint: Self.examining(path, otherwise: "take one of your own", "shows whose it is"), status: .usage)
    case .readableByOthers(let path, let mode):
      Message(
        "\(quoted(path)) is open to other users (mode \(String(mode & 0o7777, radix: 8)))",
        hint: "\(run: "chmod", "go=", path)", status: .usage)
    case .writableByOthers(let path, let mode):
      Message(
        "\(quoted(path)) can be written by other users (mode \(String(mode & 0o7777, radix: 8)))",
        hint: "\(run: "chmod", "go-w", path)", status: .usage)
    case .tooLarge(let path, let limit):
      Message("\(quoted(path)) is longer than \(limit) bytes", status: .usage)
    case .exists(let path): Message("there is a file \(quoted(path)) already", status: .usage)
    case .permissionDenied(let path):
      Message("\(quoted(path)) cannot be used: permission denied", hint: Self.opening(path), status: .usage)
    case .readOnlyFileSystem(let path):
      Message(
        "\(quoted(path)) cannot be written: the file system is read-only", hints: Self.mounting(path), status: .usage)
    case .timedOut: Message("it took too long", status: .unexpected)
    case .interrupted: Message("interrupted", status: .interrupted)
    case .noTerminal: Message("there is no terminal to ask at", status: .usage)
    case .endOfInput: Message("the input ended", status: .usage)
    case .brokenPipe: Message("the reader of the output is gone", status: .unexpected)
    case .notText(let path): Message("\(quoted(path)) is not UTF-8", status: .usage)
    case .commandNotFound(let command): Message("there is no command \(quoted(command))", status: .usage)
    case .system(_, .some(let path), ENOSPC):
      Message("the disk of \(quoted(path)) is full", hint: Self.makingRoom(path), status: .unexpected)
    case .system(_, .some(let path), EDQUOT):
      Message("the disk quota for \(quoted(path)) is used up", hint: Self.makingRoom(path), status: .unexpected)
    case .system("mkdir", .some(let path), let code):
      Message(
        "the folder \(quoted(path)) cannot be made: \(systemWords(code))",
        hint: code == EACCES && File.closedPlace(path) != nil ? Self.opening(path) : .anotherHome, status: .usage)
    case .system("write", nil, let code):
      Message("standard output cannot be written: \(systemWords(code))", status: .unexpected)
    case .system(let call, let path, let code):
      Message(
        "the system call \(call) failed" + (path.map { " for \(quoted($0))" } ?? "") + ": \(systemWords(code))",
        status: .unexpected)
    }
  }
}

extension POSIXError {
  /// Whether a file is one of those that credmgr keeps, or a folder above them.
  private static func isOurs(_ path: String) -> Bool {
    guard let home = try? Home(environment: Environment.value, executable: "/usr/bin/credmgr") else { return false }
    return [home.configuration, home.vault].contains { place in
      path == place || path.hasPrefix(place + "/") || place.hasPrefix(path + "/")
    }
  }

  /// `credmgr doctor` looks at what is ours, and knows what mends it; what a person named is looked at by the person.
  private static func examining(_ path: String, otherwise: String, _ shows: String) -> Remedy {
    isOurs(path)
      ? "\(credmgr: "doctor")" : "\(otherwise); \(command: "ls", "-ld", File.existing(path)) \(shows)"
  }

  /// Gives us our own file or folder, or that above it which keeps us from it.
  fileprivate static func opening(_ path: String) -> Remedy {
    File.closedPlace(path).map { "\(run: "chmod", "u+rwX", $0)" }
      ?? examining(path, otherwise: "take one that you may use", "shows who may use this one")
  }

  fileprivate static func mounting(_ path: String) -> [Remedy] {
    [seeingMount(path)] + (isOurs(path) ? [.anotherHome] : [])
  }

  static func seeingMount(_ path: String) -> Remedy {
    "\(run: "findmnt", "-T", File.existing(path)) to see how it is mounted"
  }

  static func makingRoom(_ path: String) -> Remedy {
    "make room there, and run the command again; "
      + "\(command: "df", "-h", File.existing(path)) shows how much there is"
  }
}

/// What the commonest error numbers of Linux mean (errno(3)).
func systemWords(_ code: Int32) -> String {
  switch code {
  case EPERM: "operation not permitted"
  case ENOENT: "no such file or folder"
  case EIO: "input/output error"
  case EBADF: "it is closed"
  case ENOMEM: "out of memory"
  case EACCES: "permission denied"
  case EEXIST: "there is something of that name"
  case ENOTDIR: "a part of the path is not a folder"
  case EISDIR: "it is a folder"
  case ENFILE, EMFILE: "too many open files"
  case EFBIG: "the file is too large"
  case ENOSPC: "no space left on the disk"
  case EROFS: "the file system is read-only"
  case ENAMETOOLONG: "the name is too long"
  case ELOOP: "too many symbolic links"
  case EDQUOT: "the disk quota is exceeded"
  default: "error \(code)"
  }
}

extension StoreError {
  /// What is wrong with the vault.
  var message: Message {
    switch self {
    case .absent(let path):
      Message(
        "there is no vault at \(quoted(path)) yet",
        hint: "\(run: "credmgr") to see how to begin: the first provider that is added makes one",
        status: .vault)
    case .keyFileMissing(let path):
      Message(
        "the vault is there, and its key file \(quoted(path)) is not",
        hints: remedies(Self.folder(path)), status: .vault)
    case .keyFileInvalid(let path):
      Message(
        "the key file \(quoted(path)) holds no key", hints: remedies(Self.folder(path)),
        status: .vault)
    case .keyFileOfAnotherVault(let path):
      Message(
        "the key file \(quoted(path)) belongs to another vault",
        hints: remedies(Self.folder(path)), status: .vault)
    case .locked:
      Message(
        "the vault is locked", hint: "\(credmgr: "vault", "unlock") at a terminal, or set CREDMGR_PASSPHRASE_FILE",
        status: .vault)
    case .wrongPassphrase:
      Message(
        "the passphrase is wrong",
        hint: Message.askingForPassphrase ?? "\(credmgr: "vault", "status") to see what else opens the vault",
        status: .vault)
    case .passphraseUnavailable(let error): error.passphraseMessage
    case .passphraseCommandFailed(let status):
      Message(
        "the command for the passphrase ended with status \(status)",
        hint: "\(shell: "eval $CREDMGR_PASSPHRASE_COMMAND >/dev/null") to see why", status: .vault)
    case .secretService(let fault): fault.message
    case .kernelKeyring(.system(_, _, let code)):
      Message(
        "the kernel keeps no keys here (error \(code)); the vault stays locked",
        hint: "give the passphrase each time, or set CREDMGR_PASSPHRASE_FILE", status: .vault)
    case .kernelKeyring(let error): Message(error.message.text, status: .vault)
    case .noSlot(let kind): Message("the vault has no \(kind.words) to remove", status: .usage)
    case .lastSlot(let kind):
      Message(
        "the \(kind.words) is the only way into the vault, and stays",
        hint: "\(credmgr: "vault", "protect", kind == .passphrase ? "key-file" : "passphrase") first", status: .usage)
    case .otherSlots:
      Message(
        "the ways into the vault are others than they were a moment ago", hint: "\(credmgr: "vault", "status")",
        status: .vault)
    case .notAVault(let path):
      Message(
        "\(quoted(path)) is not a vault", hints: remedies(Self.folder(path)), status: .vault)
    case .truncated(let path):
      Message(
        "the end of the vault \(quoted(path)) is missing", hints: remedies(Self.folder(path)),
        status: .vault)
    case .newerFormat(let path, let found, let supported):
      Message(
        "the vault \(quoted(path)) has format \(found), and this credmgr knows formats up to \(supported)",
        hint: "use a newer credmgr", status: .vault)
    case .damaged(let path, let part):
      Message(
        "the vault \(quoted(path)) is damaged: \(part.words)", hint: "\(credmgr: "vault", "verify")", status: .vault)
    case .damagedRecord(let record): .damaged([record])
    case .conflict(let record, _):
      Message(
        "another process changed \(record.words) at the same time", hint: "run the command again", status: .unexpected)
    case .tooLarge(let record): Message("\(record.words) is too large for the vault", status: .usage)
    case .file(let error):
      switch error {
      case .symbolicLink, .notRegularFile, .notDirectory:
        Message(error.message.text, hints: error.remedies(), status: .vault)
      default: Message(error.message.text, hints: error.message.hints, status: .vault)
      }
    case .busy(let path):
      Message(
        "other processes hold the vault \(quoted(path)) for too long", hint: "run the command again", status: .vault)
    case .full(let path):
      Message(
        "the disk of the vault \(quoted(path)) is full; nothing was changed",
        hint: POSIXError.makingRoom(path), status: .vault)
    case .readOnly(let path):
      Message(
        "the vault \(quoted(path)) cannot be written; nothing was changed",
        hints: File.isOnReadOnlyFileSystem(path) ? POSIXError.mounting(path) : [POSIXError.opening(path)],
        status: .vault)
    case .inputOutput(let path, let code):
      Message(
        "the vault \(quoted(path)) cannot be read or written (SQLite error \(code))",
        hint: "\(credmgr: "vault", "verify")", status: .vault)
    case .unconfirmed(let path):
      Message(
        "the vault \(quoted(path)) was changed, but the system could not write its folder: after a power cut the "
          + "change may "
          + "be gone", hint: "\(credmgr: "vault", "verify")", status: .vault)
    case .outOfMemory: Message("there is no memory for the keys", status: .vault)
    }
  }
}

extension StoreError {
  /// What lies beside the vault lies in its folder.
  private static func folder(_ file: String) -> String { Path.directory(of: file) ?? "." }
}

extension Message {
  /// What makes a person be asked where something else answers for the passphrase; `nil` where nothing does.
  static var askingForPassphrase: Remedy? {
    if passphraseFile != nil { return mendingPassphraseFile }
    return isPassphraseCommandSet
      ? "\(run: "unset", "CREDMGR_PASSPHRASE_COMMAND") to be asked, or set it to a command that writes the passphrase"
      : nil
  }

  static let mendingPassphraseFile: Remedy =
    "\(run: "unset", "CREDMGR_PASSPHRASE_FILE"), or set it to the file that has the passphrase"

  /// The file that answers for the passphrase; `nil` where none does.
  fileprivate static var passphraseFile: String? {
    Environment.value("CREDMGR_PASSPHRASE_FILE").flatMap { $0.isEmpty ? nil : $0 }
  }

  /// A file is asked before it.
  fileprivate static var isPassphraseCommandSet: Bool {
    passphraseFile == nil && !(Environment.value("CREDMGR_PASSPHRASE_COMMAND") ?? "").isEmpty
  }

  /// Records that cannot be read. The others can.
  static func damaged(_ records: [RecordIdentifier]) -> Message {
    let words = records.prefix(3).map(\.words).joined(separator: ", ")
    let more = records.count > 3 ? " and \(records.count - 3) more" : ""
    return Message(
      "\(words)\(more) \(records.count == 1 ? "is" : "are") damaged in the vault",
      hint: records.first.map { $0.remedy() },
      status: .vault)
  }

}

extension RecordIdentifier {
  /// What makes the record anew.
  ///
  /// - Parameter account: one that there is.
  func remedy(account other: String? = nil) -> Remedy {
    let command: [String]
    switch kind {
    case .credential: command = ["login", provider, "--account", account]
    case .registration: command = ["add-provider", provider, "--client-id", "ID", "--replace"]
    case .selection: command = ["use", provider, other ?? "ACCOUNT"]
    default: return "\(credmgr: "vault", "verify")"
    }
    return "\(credmgr: command), or put the vault back from a backup"
  }
}

extension SlotKind {
  /// What a person calls the way into the vault.
  var words: String {
    switch self {
    case .keyFile: "key file"
    case .passphrase: "passphrase"
    case .secretService: "Secret Service"
    }
  }
}

extension POSIXError {
  /// Why the file with the passphrase is of no use.
  func passphraseFileWords(_ path: String) -> String {
    let name = "CREDMGR_PASSPHRASE_FILE names \(quoted(path))"
    return switch self {
    case .endOfInput: name + ", in which there is no passphrase"
    case .notFound(let file) where file == path: name + ", and there is no such file"
    default: "\(name): \(message.text)"
    }
  }

  fileprivate var passphraseMessage: Message {
    if self != .interrupted, self != .noTerminal, let path = Message.passphraseFile {
      return Message(
        passphraseFileWords(path), hint: Message.askingForPassphrase, status: .vault)
    }
    return switch self {
    case .noTerminal:
      Message(
        "the vault is locked, and there is no terminal to ask for the passphrase at",
        hint: "\(credmgr: "vault", "unlock") at a terminal, or set CREDMGR_PASSPHRASE_FILE", status: .vault)
    case .endOfInput where Message.isPassphraseCommandSet:
      Message(
        "the command in CREDMGR_PASSPHRASE_COMMAND wrote no passphrase", hint: Message.askingForPassphrase,
        status: .vault)
    case .endOfInput:
      Message(
        "there was no passphrase", hint: "run the command again, and type the passphrase of the vault", status: .vault)
    case .interrupted: message
    case .timedOut:
      Message(
        "nobody gave the passphrase in time",
        hint: "see what CREDMGR_PASSPHRASE_FILE or CREDMGR_PASSPHRASE_COMMAND waits for", status: .vault)
    default: Message(message.text, hints: Message.askingForPassphrase.map { [$0] } ?? message.hints, status: .vault)
    }
  }
}

extension SecretServiceFault {
  fileprivate var message: Message {
    let text =
      switch self {
      case .noBus: "there is no session bus on which the Secret Service could be reached"
      case .noService: "nobody on the session bus offers the Secret Service"
      case .locked: "the keyring of the Secret Service is locked"
      case .noKey: "the Secret Service does not have the key of this vault"
      case .timedOut: "the Secret Service did not answer within 2 s"
      case .notInstalled: "secret-tool, which speaks to the Secret Service, is not installed"
      case .failed: "the Secret Service did not do what it was asked for"
      }
    return Message(text, hint: remedy(), status: .vault)
  }
}

import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import CredmgrVault

package enum PassphraseQuestion: Sendable, Equatable {
  case vault(attempt: Int)  // To open the vault; 2 or more after a wrong answer.
  case backup(attempt: Int)  // To open a backup of the vault.
  case newForVault  // To protect the vault; the prompt rules out typing mistakes.
  case export(attempt: Int)
  case newForExport

  var attempt: Int {
    switch self {
    case .vault(let attempt), .backup(let attempt), .export(let attempt): attempt
    case .newForVault, .newForExport: 1
    }
  }
}

package struct KeySources {
  /// Prompts the user. Throws `.noTerminal` without a terminal.
  package typealias Ask = (PassphraseQuestion) throws(POSIXError) -> Secret

  let environment: (String) -> String?
  private let lock: LockPlace?
  private let ask: Ask
  private let settle: () -> Bool
  private let isQuick: Bool

  /// `settle` is called after each answer was checked; it returns false if the user wants to stop. `isQuick` leaves out
  /// passphrases and the secret service, because both take time, and a desktop may show its own prompt.
  package init(
    environment: @escaping (String) -> String?, lock: LockPlace? = nil,
    ask: @escaping Ask = { _ throws(POSIXError) in throw .noTerminal }, settle: @escaping () -> Bool = { true },
    isQuick: Bool = false
  ) {
    self.isQuick = isQuick
    self.environment = environment
    self.lock = lock
    self.ask = ask
    self.settle = settle
  }

  var secretService: SecretServiceClient { SecretServiceClient(environment: environment) }

  func holders(now: Moment, ofBackup isBackup: Bool = false) -> [KeyHolder] {
    let quick: [KeyHolder] = [
      .keyFile, .opened { vault in KeptKeys(vault, now: now)?.keys },
    ]
    if isQuick { return quick }
    return quick + [
      .secretService { item throws(StoreError) in try secretService.lookup(item) },
      .passphrase { attempt throws(StoreError) in
        try passphrase(isBackup ? .backup(attempt: attempt) : .vault(attempt: attempt))
      },
    ]
  }

  /// Runs an operation that may prompt for a passphrase, and checks the answer. Nothing changes before it ends.
  func asking<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    try asking(.passphraseUnavailable(.interrupted), body)
  }

  func asking<Result, Failure: Error>(
    _ interrupted: Failure, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let result: Result
    do throws(Failure) { result = try body() } catch {
      throw settle() ? error : interrupted
    }
    guard settle() else { throw interrupted }
    return result
  }
}

/// The keys of an opened vault, for opening it again.
struct OpenedKeys: Sendable {
  let vault: String
  let keys: Secret
}

extension KeySources {
  private static let attempts = 3
  private static let limit = 1 << 16

  /// Returns a passphrase. Throws `.wrongPassphrase` if prompting again cannot help.
  func passphrase(_ question: PassphraseQuestion) throws(StoreError) -> Secret {
    if let answer = try given() {
      // The variable or the command would give the same passphrase again.
      guard question.attempt == 1 else { throw .wrongPassphrase }
      return answer
    }
    guard question.attempt <= Self.attempts else { throw .wrongPassphrase }
    return try wrapping(StoreError.passphraseUnavailable, alone(ask(question)))
  }

  /// Takes a lock, because processes that prompt together would split the typed keys. Prompts anyway if that fails.
  private func alone(_ body: @autoclosure () throws(POSIXError) -> Secret) throws(POSIXError) -> Secret {
    guard let lock else { return try body() }
    let held: FileLock?
    do throws(POSIXError) { held = try FileLock.acquire(lock, timeout: .minutes(10)) } catch {
      if error == .interrupted { throw error }
      held = nil
    }
    return try withExtendedLifetime(held) { () throws(POSIXError) in try body() }
  }

  private func given() throws(StoreError) -> Secret? {
    var bytes: [UInt8]
    if let path = value("CREDMGR_PASSPHRASE_FILE") {
      bytes = try wrapping(StoreError.passphraseUnavailable, File.read(path, limit: Self.limit, patience: .seconds(60)))
    } else if let command = value("CREDMGR_PASSPHRASE_COMMAND") {
      bytes = try output(of: command)
    } else {
      return nil
    }
    while bytes.last == UInt8(ascii: "\n") || bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    guard !bytes.isEmpty else { throw .passphraseUnavailable(.endOfInput) }
    return Secret(bytes: bytes)
  }

  private func output(of command: String) throws(StoreError) -> [UInt8] {
    // Otherwise, a command that calls credmgr would run itself.
    let environment = Environment.all().filter { $0.key != "CREDMGR_PASSPHRASE_COMMAND" }
    let completion = try wrapping(
      StoreError.passphraseUnavailable,
      Launcher.run("/bin/sh", ["-c", command], environment: environment, limit: Self.limit))
    if completion.status != 0 { throw .passphraseCommandFailed(status: completion.status) }
    return completion.output
  }

  private func value(_ name: String) -> String? { Environment.text(name, environment) }
}

/// The keys that `vault unlock` leaves in the kernel's memory. Their name comes from the vault key's public name in the
/// vault's file, so old keys are not found after a rotation.
struct KeptKeys {
  let deadline: Moment
  let keys: Secret

  private static func name(_ vault: String) -> String { "credmgr:" + vault }

  private static let deadlineCount = 8

  /// Reads the keys. `nil` if their deadline has passed, even if the kernel still has them.
  init?(_ vault: String, now: Moment) {
    guard let bytes = try? KernelKeyring.read(Self.name(vault)), bytes.count > Self.deadlineCount else { return nil }
    deadline = Moment(secondsSince1970: bytes.prefix(Self.deadlineCount).reduce(0) { $0 << 8 | Int64($1) })
    keys = Secret(bytes: Array(bytes.dropFirst(Self.deadlineCount)))
    guard now < deadline else { return nil }
  }

  static func keep(_ keys: Secret, of vault: String, for time: Duration, now: Moment) throws(StoreError) {
    let deadline = (now + time).secondsSince1970
    let bytes = (0..<deadlineCount).map { UInt8(truncatingIfNeeded: deadline >> (56 - 8 * $0)) }
    try wrapping(
      StoreError.kernelKeyring,
      KernelKeyring.store(name(vault), bytes + keys.revealBytes(), for: time))
  }

  static func forget(_ vault: String) throws(StoreError) -> Bool {
    try wrapping(StoreError.kernelKeyring, KernelKeyring.remove(name(vault)))
  }
}

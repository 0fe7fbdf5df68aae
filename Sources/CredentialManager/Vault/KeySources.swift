import Cryptography
import Platform
import Store
import Vault

/// What a passphrase is asked for.
package enum PassphraseQuestion: Sendable, Equatable {
  /// To open the vault; 2 and more after a wrong answer.
  case vault(attempt: Int)
  /// To protect the vault with from now on. Whoever asks a person makes sure that it is typed right.
  case newForVault
  case export(attempt: Int)
  case newForExport

  var attempt: Int {
    switch self {
    case .vault(let attempt), .export(let attempt): attempt
    case .newForVault, .newForExport: 1
    }
  }
}

package struct KeySources {
  /// Asks a person. Throws `.noTerminal` where there is nobody.
  package typealias Ask = (PassphraseQuestion) throws(POSIXError) -> Secret

  /// Who is asked, in this order.
  let holders: [KeyHolder]
  let secretService: SecretServiceClient
  private let answers: PassphraseAnswers
  private let settle: () -> Bool

  /// Key file, kept keys, Secret Service, and then a person. `predecessor` has the keys that this program left when it
  /// put itself in its own place. `settle` is called when an answer was looked at: false if the person wanted to stop.
  package init(
    environment: @escaping (String) -> String?, predecessor: OpenedKeys?, lock: LockPlace?,
    ask: @escaping Ask, settle: @escaping () -> Bool = { true }
  ) {
    let client = SecretServiceClient(environment: environment)
    let answers = PassphraseAnswers(environment: environment, lock: lock, ask: ask)
    self.secretService = client
    self.answers = answers
    self.settle = settle
    holders = [
      .keyFile, .opened { vault in predecessor?.vault == vault ? predecessor?.keys : nil },
      .opened { vault in KeptKeys(vault)?.keys },
      .secretService { item throws(StoreError) in try client.lookup(item) },
      .passphrase { attempt throws(StoreError) in try answers.answer(.vault(attempt: attempt)) },
    ]
  }

  package static var keyFile: KeySources {
    KeySources(
      environment: { _ in nil }, predecessor: nil, lock: nil,
      ask: { _ throws(POSIXError) in throw .noTerminal })
  }

  /// Throws `.wrongPassphrase` when it makes no sense to ask again.
  func passphrase(_ question: PassphraseQuestion) throws(StoreError) -> Secret { try answers.answer(question) }

  /// Runs what may ask for a passphrase and looks at the answer. Nothing is changed before it has ended.
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

/// The keys of an opened vault, on the way from one program to the one that takes its place.
package struct OpenedKeys: Sendable {
  let vault: String
  let keys: Secret

  init(vault: String, keys: Secret) {
    self.vault = vault
    self.keys = keys
  }

  /// The name has 32 hexadecimal digits.
  private static let nameCount = 32

  package init?(decoding bytes: [UInt8]) {
    guard bytes.count > Self.nameCount else { return nil }
    vault = String(decoding: bytes.prefix(Self.nameCount), as: UTF8.self)
    keys = Secret(bytes: Array(bytes.dropFirst(Self.nameCount)))
  }

  /// For a memory that nobody else reads.
  package var bytes: [UInt8] { Array(vault.utf8) + keys.revealBytes() }
}

private struct PassphraseAnswers {
  let environment: (String) -> String?
  let lock: LockPlace?
  let ask: KeySources.Ask

  private static let attempts = 3
  private static let limit = 1 << 16

  func answer(_ question: PassphraseQuestion) throws(StoreError) -> Secret {
    if let answer = try given() {
      // It will not be another one the next time.
      guard question.attempt == 1 else { throw .wrongPassphrase }
      return answer
    }
    guard question.attempt <= Self.attempts else { throw .wrongPassphrase }
    do throws(POSIXError) {
      return try alone { () throws(POSIXError) in try ask(question) }
    } catch {
      throw .passphraseUnavailable(error)
    }
  }

  /// Several processes would share the keys that are typed. Where no lock can be had, the question is worth more.
  private func alone(_ body: () throws(POSIXError) -> Secret) throws(POSIXError) -> Secret {
    guard let lock else { return try body() }
    let held: FileLock?
    do throws(POSIXError) {
      held = try FileLock.acquire(lock, seconds: 600)
    } catch {
      if error == .interrupted { throw error }
      held = nil
    }
    return try withExtendedLifetime(held) { () throws(POSIXError) in try body() }
  }

  /// The answer of a file or of a command; `nil` where neither is named.
  private func given() throws(StoreError) -> Secret? {
    var bytes: [UInt8]
    if let path = value("CREDMGR_PASSPHRASE_FILE") {
      do throws(POSIXError) {
        bytes = try File.read(path, limit: Self.limit, patience: 60)
      } catch {
        throw .passphraseUnavailable(error)
      }
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
    // A command that asks credmgr for something would be asked itself.
    let environment = Environment.all().filter { $0.key != "CREDMGR_PASSPHRASE_COMMAND" }
    let completion: Launcher.Completion
    do throws(POSIXError) {
      completion = try Launcher.run("/bin/sh", ["-c", command], environment: environment, limit: Self.limit)
    } catch {
      throw .passphraseUnavailable(error)
    }
    if completion.status != 0 { throw .passphraseCommandFailed(status: completion.status) }
    return completion.output
  }

  private func value(_ name: String) -> String? { Environment.text(name, environment) }
}

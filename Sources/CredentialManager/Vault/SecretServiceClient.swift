import Cryptography
import Platform
import Vault

/// Speaks to the Secret Service by way of a program of ours: libsecret cannot be loaded into a static program, and a
/// service that does not answer is left behind with the program.
struct SecretServiceClient {
  /// Looked for when it is needed.
  let program: () -> String?
  let environment: (String) -> String?

  /// Seconds. Whoever has to ask a person is too slow for this.
  private static let patience = 2.0

  /// - Throws: `.secretService`.
  func lookup(_ name: String) throws(VaultError) -> Secret {
    let output = try run("lookup", name)
    guard let key = Hexadecimal.decode(String(decoding: output.dropLast(), as: UTF8.self)) else {
      throw .secretService(.noKey)
    }
    return Secret(bytes: key)
  }

  /// Keeps an item, and makes sure that it is kept.
  ///
  /// - Throws: `.secretService`.
  func store(_ item: SecretServiceItem) throws(VaultError) {
    let line = Hexadecimal.encode(item.key.revealBytes()) + "\n"
    _ = try run("store", item.name, input: Array(line.utf8))
    guard try lookup(item.name) == item.key else { throw .secretService(.failed) }
  }

  /// - Throws: `.secretService`.
  func remove(_ name: String) throws(VaultError) { _ = try run("remove", name) }

  private func run(_ operation: String, _ name: String, input: [UInt8] = []) throws(VaultError) -> [UInt8] {
    // Before anything is started: the libraries would start a bus.
    guard SessionBus.address(environment: environment) != nil else { throw .secretService(.noBus) }
    guard let program = program() else { throw .secretService(.notInstalled) }
    let completion: Launcher.Completion
    do throws(POSIXError) {
      completion = try Launcher.run(program, [operation, name], input: input, seconds: Self.patience, limit: 4096)
    } catch .timedOut {
      throw .secretService(.timedOut)
    } catch .interrupted {
      throw .passphraseUnavailable(.interrupted)
    } catch {
      throw .secretService(.failed)
    }
    switch completion.status {
    case 0: return completion.output
    case 3: throw .secretService(.noKey)
    case 4: throw .secretService(.locked)
    case 5: throw .secretService(.noService)
    case 6: throw .secretService(.noBus)
    case 7: throw .secretService(.noLibrary)
    default: throw .secretService(.failed)
    }
  }
}

import CredmgrCryptography
import CredmgrPlatform
import CredmgrStore
import CredmgrText
import CredmgrVault

/// Uses the Secret Service (specifications.freedesktop.org/secret-service) through libsecret's `secret-tool`. A static
/// program cannot load the library, and ending the tool also ends a call that hangs.
package struct SecretServiceClient {
  let environment: (String) -> String?

  private static let program = "secret-tool"
  private static let patience = Duration.seconds(2)  // Too short for a prompt, deliberately.
  /// Storing may make the desktop prompt for a keyring's password.
  private static let patienceOfPeople = Duration.seconds(60)
  /// Returns the attributes that identify an item, including the schema.
  private static func attributes(_ name: String) -> [String] {
    ["xdg:schema", "net.credmgr.VaultKey", "vault-key", name]
  }

  /// Returns the key with this name. Neither unlocks a keyring nor prompts.
  func lookup(_ name: String) throws(StoreError) -> Secret {
    guard let line = try search(name) else { throw .secretService(.noKey) }
    guard let key = Hexadecimal.decode(line) else { throw .secretService(.failed) }
    return Secret(bytes: key)
  }

  func store(_ item: SecretServiceItem) throws(StoreError) {
    // This first call fails quickly without a service; the second gives the user time to answer.
    _ = try search(item.name)
    let line = Array(Hexadecimal.encode(item.key.revealBytes()).utf8)
    let arguments = ["store", "--label=credmgr vault"] + Self.attributes(item.name)
    let stored = try run(arguments, input: line, timeout: Self.patienceOfPeople)
    guard stored.status == 0 else {
      let said = String(decoding: stored.output, as: UTF8.self)
      // If the user declines to create a collection, libsecret reports that the collection is missing.
      let isRefused = ["locked", "does not exist"].contains { said.firstPlace(of: $0) != nil }
      throw .secretService(isRefused ? .locked : .failed)
    }
    guard try lookup(item.name) == item.key else { throw .secretService(.failed) }
  }

  func remove(_ name: String) throws(StoreError) {
    guard try search(name) != nil else { return }
    guard try run(["clear"] + Self.attributes(name)).status == 0 else { throw .secretService(.failed) }
  }

  /// Returns the command that removes an item, to show to the user.
  package static func removal(of name: String) -> [String] { [program, "clear"] + attributes(name) }

  /// Returns an item; `nil` if it does not exist. `secret-tool lookup` would prompt to unlock it.
  private func search(_ name: String) throws(StoreError) -> String? {
    let found = try run(["search"] + Self.attributes(name))
    let lines = String(decoding: found.output, as: UTF8.self).split(separator: "\n")
    guard found.status == 0 else {
      throw .secretService(lines.contains { $0.firstPlace(of: "Could not connect") != nil } ? .noBus : .noService)
    }
    let secret = "secret = "
    if let line = lines.first(where: { $0.hasPrefix(secret) }) { return String(line.dropFirst(secret.count)) }
    if lines.contains(where: { $0.hasPrefix("label = ") }) { throw .secretService(.locked) }
    return nil
  }

  private func run(
    _ arguments: [String], input: [UInt8] = [], timeout: Duration = patience
  ) throws(StoreError) -> Launcher.Completion {
    // Check this before starting the tool, because the library would start a bus.
    guard let bus = SessionBus.address(environment: environment) else { throw .secretService(.noBus) }
    var variables = Environment.all()
    variables["DBUS_SESSION_BUS_ADDRESS"] = bus
    variables["LC_ALL"] = "C"
    do throws(POSIXError) {
      let program = try Launcher.find(Self.program, path: Environment.text("PATH", environment))
      return try Launcher.run(
        program, arguments, input: input, environment: variables, timeout: timeout, limit: 1 << 16, errors: .withOutput)
    } catch .commandNotFound {
      throw .secretService(.notInstalled)
    } catch .timedOut {
      throw .secretService(.timedOut)
    } catch .interrupted {
      throw .passphraseUnavailable(.interrupted)
    } catch {
      throw .secretService(.failed)
    }
  }
}

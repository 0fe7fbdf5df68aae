import CredmgrCryptography
import CredmgrPlatform

/// A tool that stores credentials on this machine: where its entries are, and how to read one.
///
/// To add a source, declare one value in its own file, and add that value to `all`.
package struct ImportSource: Sendable {
  package let name: String  // In commands: `gh`.
  package let title: String  // In sentences: `GitHub CLI`.
  /// The files that may contain entries, from `HOME` and the tool's own variables.
  var files: @Sendable (ImportPlaces) -> [String] = { _ in [] }
  /// Reads the entries of one of the files. Leaves out everything that it does not understand.
  var read: @Sendable (ImportText) throws(ImportFault) -> [ImportEntry] = { _ in [] }
  /// Returns the entries that the tool's own program or directory lists.
  var ask: @Sendable (ImportPlaces) throws(ImportFault) -> [ImportEntry] = { _ in [] }
  /// Whether to leave out entries without a provider, because most entries of this tool are not for programs.
  package var needsProvider = false

  package static let all: [ImportSource] = [
    .gitHubCLI, .gitCredentialStore, .gitCredentialCache, .secretService, .gitCredentialManager, .netrc, .docker, .npm,
    .pypi, .cargo, .pass,
    .environmentFile, .aws, .gcloud, .oidcAgent,
  ]
}

/// A credential in another tool's store.
package struct ImportEntry: Sendable, Equatable {
  package enum Kind: String, Sendable { case token, password, unsupported }

  /// The helper that can store the entry as a login if no provider has its host.
  package enum Use: Sendable { case git, docker, api }

  package enum Held: Sendable, Equatable {
    case value(Secret)
    /// A program that prints the secret on its first line. credmgr runs it only to move the entry.
    case command(ImportCommand)
  }

  package enum Removal: Sendable, Equatable {
    case cut([Range<Int>])  // These bytes of the file.
    case json([[String]])  // The members at these paths of the JSON file.
    case command(ImportCommand)
    case file  // The whole file, which contains nothing else.
    case none
  }

  /// The form of the secret.
  package enum Form: Sendable, Equatable {
    case secret  // The token or the password itself.
    /// JSON with a client and its refresh token (``ImportedClient``). Without a provider, it names the issuer.
    case client(provider: String?)
    case keyFile(provider: String)  // The private key of a service account, in the form that a login reads.
  }

  /// The name in `SOURCE:NAME`.
  package var name: String
  package var host: String  // In lowercase, with its port; empty if the tool does not say.
  package var user: String?
  package var kind: Kind
  package var use: Use
  package var held: Held
  package var form = Form.secret
  package var removal: Removal
  package var source = ""
  package var place = ""  // The file, or words for another place.
  /// The address as the tool wrote it, if it is more than the host.
  package var address: String?
  /// The remedy for an entry that credmgr cannot store.
  package var advice: ImportAdvice?
  /// The name of a variable, whose beginning may name the provider.
  package var variable: String?
  /// All values of a credential that has several, by the environment variable that programs read instead.
  package var variables: [String: Secret] = [:]
  /// The provider for hosts that no descriptor names, which its variable `host` takes, if the tool has only such hosts.
  package var hostedProvider: String?
  package var isUserToken = false  // Whether the user name is the token.
  /// The environment variable with the password that the tool's program needs; `nil` if it needs none.
  package var passwordVariable: String?

  init(
    _ name: String, host: String, user: String? = nil, kind: Kind, use: Use, held: Held, removal: Removal
  ) {
    (self.name, self.host, self.user, self.kind) = (name, host.lowercased(), user, kind)
    (self.use, self.held, self.removal) = (use, held, removal)
  }

  init(_ name: String, unsupported advice: ImportAdvice, host: String = "", user: String? = nil) {
    self.init(name, host: host, user: user, kind: .unsupported, use: .api, held: .value(Secret("")), removal: .none)
    self.advice = advice
  }

  /// An entry whose file contains nothing else.
  init(_ name: String, file: Secret, _ form: Form) {
    self.init(name, host: "", kind: .token, use: .api, held: .value(file), removal: .file)
    self.form = form
  }

  package var isClient: Bool { if case .client = form { true } else { false } }

  /// Whether this is the same entry as the other, possibly at another position in the file.
  func isSame(as other: ImportEntry) -> Bool {
    var moved = self
    moved.removal = other.removal
    return moved == other
  }
}

/// Why credmgr cannot store an entry, and what to do instead.
package enum ImportAdvice: Sendable, Equatable {
  case everyHost  // The entry is for every host.
  case identityToken  // docker: only the registry's own token server accepts it.
  case fileServer  // netrc: FTP, whose programs cannot ask credmgr.
}

package enum ImportFault: Error, Sendable, Equatable {
  case file(POSIXError)
  case malformed(path: String)
  /// The program of the tool failed; its output may be secret and is not shown.
  case program(String, status: Int32)
  case changed(path: String)  // Another program changed the entry meanwhile.
  case notRemovable(place: String)
  case notErased(program: String)  // The program succeeded, but still returns the secret.
  /// The vault did not return the moved credential, so the old place was restored.
  case notWorking(place: String)
}

/// A program of a tool. `input` is a question, or the password that decrypts the tool's file.
package struct ImportCommand: Sendable, Equatable {
  var program: String
  var arguments: [String]
  var input = ""
  /// The name of the line `name=value` with the secret; `nil` if the secret is the first line.
  var key: String?
  /// Whether a part of the output is on standard error.
  var readsErrors = false
}

/// The environment in which tools look for their files. Injected for tests.
package struct ImportPlaces {
  package typealias Run = (ImportCommand) throws(ImportFault) -> [UInt8]

  let environment: (String) -> String?
  let home: String?
  let directory: String?  // The current directory.
  let run: Run
  /// The hosts for which git could ask a provider; read only if a source needs them.
  package var gitHosts: () -> [String] = { [] }

  package init(
    environment: @escaping (String) -> String?, home: String?, directory: String?, run: @escaping Run = Self.run
  ) {
    (self.environment, self.home, self.directory, self.run) = (environment, home, directory, run)
  }

  func variable(_ name: String) -> String? { Environment.text(name, environment) }

  /// The absolute path in a variable, as the XDG base directories require; `nil` if it is unset or relative.
  func path(_ name: String) -> String? { variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }

  func inHome(_ path: String) -> String? { home.map { Path.joining($0, path) } }

  var configuration: String? { path("XDG_CONFIG_HOME") ?? inHome(".config") }

  /// Runs a tool's program with the user's environment. It may ask for a passphrase in its own window.
  package static func run(_ command: ImportCommand) throws(ImportFault) -> [UInt8] {
    var variables = Environment.all()
    variables["LC_ALL"] = "C"
    let done: Launcher.Completion
    do throws(POSIXError) {
      let program = try Launcher.find(command.program)
      done = try Launcher.run(
        program, command.arguments, input: Array(command.input.utf8), environment: variables, timeout: .seconds(60),
        limit: 1 << 20, errors: command.readsErrors ? .withOutput : .silenced)
    } catch { throw .file(error) }
    if done.status != 0 { throw .program(command.program, status: done.status) }
    return done.output
  }
}

import Cryptography
import HTTP
import OAuth
import Platform
import Descriptors

/// What another program asks for: the credentials that `credmgr` keeps for the person who runs it.
///
/// ```swift
/// import CredentialManager
/// import Curl
/// import HTTP
///
/// let credentials = try Credentials { () throws(HTTPError) in try CurlClient(userAgent: "notes/1.0") }
/// let token = try credentials.token(of: "github")
/// let headers = try credentials.headers(of: "github", for: "https://api.github.com/user")
/// ```
///
/// Logging in, adding providers and the rest are the work of `credmgr` and of ``CredentialSource``. Nobody is ever asked for anything here:
/// where only a person can help, the error is ``CredentialError/loginNeeded(provider:account:_:)``.
///
/// A value can be used from several threads and tasks at once. Each call opens the vault by itself, which takes about a millisecond; of
/// calls that find a token expired, in this process and in others, one refreshes it and the others wait for that. Calls block: for
/// the time of an exchange with the provider where a token has to be refreshed, else for that millisecond. A server calls from a
/// thread that may be blocked.
public struct Credentials: Sendable {
  /// Makes what sends requests, such as `CurlClient`; for each call a new one.
  public typealias Network = @Sendable () throws(HTTPError) -> any HTTPExchange

  /// An access token, and what is known of it.
  public struct Token: Sendable {
    /// The name of the account that it belongs to.
    public let account: String
    /// The token itself. It is erased from memory with its last copy; `reveal()` is its text.
    public let value: Secret
    /// When it expires, in seconds since 1970; `nil` when the provider does not say.
    public let expiresAt: Int64?
    /// What it may do: the granted scopes, else those that were asked for.
    public let scope: [String]
  }

  private let home: Home
  private let network: Network?
  private let environment: @Sendable (String) -> String?
  private let clock: any WallClock
  private let random: any RandomSource

  /// The credentials of the person whose environment this is (`CREDMGR_HOME`, else the folders of the XDG base directories).
  ///
  /// - Parameters:
  ///   - network: without one, what needs a refresh throws ``CredentialError/networkNeeded``.
  ///   - environment: looks a variable up; without it, in the environment of the process.
  /// - Throws: ``CredentialError/noHome``, ``CredentialError/relativeHome(_:)``, ``CredentialError/system(_:)``.
  public init(
    network: Network? = nil, environment: @escaping @Sendable (String) -> String? = { Environment.value($0) }
  ) throws(CredentialError) {
    let program: String
    do throws(POSIXError) {
      // Beside the installed program lie the descriptors that came with it.
      if let installed = try? Launcher.find("credmgr", path: environment("PATH")) {
        program = installed
      } else {
        program = try Path.executable()
      }
    } catch {
      throw .system(error)
    }
    try self.init(
      home: Home(environment: environment, executable: program), network: network, environment: environment,
      clock: SystemClock(), random: SystemRandomSource())
  }

  /// The same for a place, a clock and a randomness of one's own.
  init(
    home: Home, network: Network?, environment: @escaping @Sendable (String) -> String? = { Environment.value($0) },
    clock: any WallClock, random: any RandomSource
  ) {
    self.home = home
    self.network = network
    self.environment = environment
    self.clock = clock
    self.random = random
  }

  /// The names of a provider's accounts, in their order.
  ///
  /// - Throws: ``CredentialError/vault(_:)``.
  public func accounts(of provider: String) throws(CredentialError) -> [String] {
    try source().accountsIfAny()?.accounts(of: provider).map(\.name) ?? []
  }

  /// A token that is good, refreshed first if it must be.
  ///
  /// - Parameters:
  ///   - provider: its identifier, such as `github`.
  ///   - account: its name; without one the default account, or the only one.
  ///   - seconds: how long the token has to live from now on; without it, as the provider's descriptor says.
  /// - Throws: ``CredentialError/loginNeeded(provider:account:_:)``, ``CredentialError/unknownAccount(_:provider:known:)``,
  ///   ``CredentialError/ambiguousAccount(provider:known:)``, ``CredentialError/networkNeeded``,
  ///   ``CredentialError/http(_:provider:)``, ``CredentialError/oauth(_:provider:)``, ``CredentialError/vault(_:)``.
  public func token(
    of provider: String, account: String? = nil, validFor seconds: Int64? = nil
  ) throws(CredentialError) -> Token {
    let source = try source()
    let found = try source.freshAccount(account, of: provider, Freshen(validity: seconds))
    note(found, source)
    let credential = found.credential
    return Token(
      account: found.name, value: credential.accessToken, expiresAt: credential.expiresAt,
      scope: credential.grantedScope ?? credential.requestedScope)
  }

  /// The header fields that present a credential on a request: scheme and token, the headers that the provider wants besides, or the
  /// signature of OAuth 1.0a (RFC 5849, 3.5.1).
  ///
  /// - Parameters:
  ///   - url: what is requested. A credential is presented only to hosts that the provider's descriptor names.
  ///   - method: the request's method, which a signature is over.
  /// - Returns: names and values, in their order.
  /// - Throws: as ``token(of:account:validFor:)``; ``CredentialError/oauth(_:provider:)`` with `foreignHost`, and with
  ///   `presentedInQuery` where the provider wants the token in the URL: ``send(_:to:fields:body:of:account:)`` does that.
  public func headers(
    of provider: String, account: String? = nil, for url: String, method: String = "GET"
  ) throws(CredentialError) -> [(name: String, value: String)] {
    let source = try source()
    let request = try request(method, url, provider)
    let found = try source.freshAccount(account, of: provider)
    note(found, source)
    return try source.headerFields(found.name, of: provider, for: request).map { ($0.name, $0.value) }
  }

  /// Makes a request with a credential on it. Refreshes and repeats once when the provider answers 401.
  ///
  /// - Parameters:
  ///   - method: `GET`, `POST`, ….
  ///   - url: a host that the provider's descriptor names, over TLS or on loopback.
  ///   - fields: header fields of one's own.
  ///   - body: the body; none where it is empty.
  ///   - limits: how long the answer may be, and how long it may take.
  /// - Returns: the answer, whatever its status. A `GET` or `HEAD` that is redirected within its origin goes on
  ///   there; no other redirect is followed.
  /// - Throws: as ``token(of:account:validFor:)``, and ``CredentialError/oauth(_:provider:)`` with `foreignHost`.
  public func send(
    _ method: String = "GET", to url: String, fields: [(name: String, value: String)] = [], body: [UInt8] = [],
    of provider: String, account: String? = nil, limits: HTTPLimits = HTTPLimits()
  ) throws(CredentialError) -> HTTPResponse {
    var request = try request(method, url, provider)
    request.fields = HTTPFields(fields.map { HTTPField(name: $0.name, value: $0.value) })
    request.body = body
    var answer: [UInt8] = []
    var response = try source().send(request, account: account, of: provider, limits: limits) { part in
      if case .body(let bytes) = part { answer += bytes }
      return true
    }
    response.body = answer
    return response
  }

  private func request(_ method: String, _ url: String, _ provider: String) throws(CredentialError) -> HTTPRequest {
    do { return HTTPRequest(method: method, uri: try URI(parsing: url)) } catch {
      throw .http(error, provider: provider)
    }
  }

  /// Not shared between calls: it is not for several threads.
  private func source() throws(CredentialError) -> CredentialSource {
    var exchange: (any HTTPExchange)?
    if let network {
      do { exchange = try network() } catch { throw .http(error, provider: "") }
    }
    return CredentialSource(home: home, http: exchange, clock: clock, random: random, keys: keys)
  }

  /// All but a person.
  private var keys: KeySources {
    KeySources(
      environment: environment, legacy: nil, lock: home.passphraseLock,
      ask: { _ throws(POSIXError) in throw .noTerminal })
  }

  private func note(_ account: Account, _ source: CredentialSource) {
    let name = (try? Path.executable()).map(Path.lastComponent)
    source.noteHandOut(account, to: "library" + (name.map { " for " + $0 } ?? ""))
  }
}

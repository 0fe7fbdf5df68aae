import CredentialManager
import Cryptography
import Curl
import HTTP
import Platform

/// The credentials that `credmgr` keeps for the user who runs this program.
///
/// ```swift
/// import Credmgr
///
/// let credentials = try Credentials(userAgent: "notes/1.0")
/// let token = try credentials.token(of: "github")
/// let headers = try credentials.headers(of: "github", for: "https://api.github.com/user")
/// ```
///
/// Users add providers and log in with `credmgr`. This type never prompts: if only a user can help, it throws
/// ``CredentialsError/loginRequired(provider:account:)``.
///
/// A value can be shared between threads and tasks. Each call opens the vault, which takes about a millisecond. If a
/// token has expired, one caller refreshes it while the others wait. Calls block the thread, for up to 90 seconds
/// during a refresh, so a server calls from a thread that may block.
public struct Credentials: Sendable {
  package typealias Network = @Sendable () throws(HTTPError) -> any HTTPExchange

  private let home: Home
  private let network: Network?
  private let environment: @Sendable (String) -> String?
  private let clock: any WallClock
  private let random: any RandomSource

  /// Finds the credentials with the environment of the process (`CREDMGR_HOME`, or the XDG base directories).
  ///
  /// - Parameter userAgent: the value of `User-Agent` in requests that name no other (RFC 9110, 10.1.5).
  /// - Throws: ``CredentialsError/failed(_:)`` if the environment names no home directory.
  public init(userAgent: String) throws(CredentialsError) {
    try self.init(environment: { Environment.value($0) }) { () throws(HTTPError) in try CurlClient(userAgent: userAgent)
    }
  }

  /// Finds the credentials with another environment and another network.
  package init(environment: @escaping @Sendable (String) -> String?, network: Network? = nil) throws(CredentialsError) {
    do throws(CredentialError) {
      let program: String
      do throws(POSIXError) {
        // The shipped descriptors are beside the installed program.
        if let installed = try? Launcher.find("credmgr", path: environment("PATH")) {
          program = installed
        } else {
          program = try Path.executable()
        }
      } catch {
        throw .system(error)
      }
      self.init(
        home: try Home(environment: environment, executable: program), network: network, environment: environment,
        clock: SystemClock(), random: SystemRandomSource())
    } catch {
      throw CredentialsError(error)
    }
  }

  package init(
    home: Home, network: Network?,
    environment: @escaping @Sendable (String) -> String? = { Environment.value($0) }, clock: any WallClock,
    random: any RandomSource
  ) {
    self.home = home
    self.network = network
    self.environment = environment
    self.clock = clock
    self.random = random
  }

  /// Returns the names of a provider's accounts in order.
  ///
  /// - Throws: ``CredentialsError/failed(_:)`` if the vault cannot be opened.
  public func accounts(of provider: String) throws(CredentialsError) -> [String] {
    try asking { source throws(CredentialError) in
      try source.accountsIfAny()?.accounts(of: provider).map(\.name) ?? []
    }
  }

  /// Returns an access token, refreshing it first if needed.
  ///
  /// - Parameters:
  ///   - provider: the provider's identifier, for example `github`.
  ///   - account: the account's name; `nil` for the default account, or the only one.
  ///   - lifetime: how long the token has to be valid from now on; `nil` for the margin of the provider's descriptor.
  /// - Throws: ``CredentialsError``.
  public func token(
    of provider: String, account: String? = nil, validFor lifetime: Duration? = nil
  ) throws(CredentialsError) -> Token {
    try asking { source throws(CredentialError) in
      let policy = RefreshPolicy(validity: lifetime)
      let found = try source.freshAccount(account, of: provider, policy)
      note(found, source)
      let credential = found.credential
      return Token(
        account: found.name, secret: credential.accessToken, expiresAt: credential.expiresAt,
        scope: credential.grantedScope ?? credential.requestedScope)
    }
  }

  /// Returns the header fields that present a credential on a request: the token in the provider's header, extra
  /// headers, or the signature of OAuth 1.0a (RFC 5849, 3.5.1).
  ///
  /// - Parameters:
  ///   - url: the address of the request. Its host has to be one that the provider's descriptor names.
  ///   - method: the method of the request, which a signature covers.
  /// - Throws: ``CredentialsError``; `failed` for another host, and for a provider that wants the token in the URL.
  public func headers(
    of provider: String, account: String? = nil, for url: String, method: String = "GET"
  ) throws(CredentialsError) -> [HeaderField] {
    try asking { source throws(CredentialError) in
      let request = try Self.request(method, url, provider)
      let found = try source.freshAccount(account, of: provider)
      note(found, source)
      return try source.headerFields(found.name, of: provider, for: request).map { HeaderField($0.name, $0.value) }
    }
  }

  /// Sends a request with a credential, and once more with a new token if the provider answers 401.
  ///
  /// A `GET` or `HEAD` request follows redirects within its origin; no other request follows any.
  ///
  /// - Parameters:
  ///   - method: the request's method.
  ///   - url: the request's address, on a host that the provider's descriptor names, over TLS or on loopback.
  ///   - headers: further header fields.
  ///   - body: the request's body; empty for none.
  /// - Returns: the response, whatever its status; its body has at most 1 MiB and arrived within 30 seconds.
  /// - Throws: ``CredentialsError``.
  public func send(
    _ method: String = "GET", to url: String, headers: [HeaderField] = [], body: [UInt8] = [],
    of provider: String, account: String? = nil
  ) throws(CredentialsError) -> Response {
    try asking { source throws(CredentialError) in
      var request = try Self.request(method, url, provider)
      request.fields = HTTPFields(headers.map { HTTPField(name: $0.name, value: $0.value) })
      request.body = body
      var received: [UInt8] = []
      let head = try source.send(request, account: account, of: provider, limits: HTTPLimits()) { part in
        if case .body(let bytes) = part { received += bytes }
        return true
      }
      return Response(status: head.status, headers: head.fields.map { HeaderField($0.name, $0.value) }, body: received)
    }
  }

  private static func request(
    _ method: String, _ url: String, _ provider: String
  ) throws(CredentialError) -> HTTPRequest {
    do { return HTTPRequest(method: method, uri: try URI(parsing: url)) } catch {
      throw .http(error, provider: provider)
    }
  }

  /// Runs a body with a source of its own: a source is not thread-safe.
  private func asking<Value>(
    _ body: (CredentialSource) throws(CredentialError) -> Value
  ) throws(CredentialsError) -> Value {
    do throws(CredentialError) {
      var exchange: (any HTTPExchange)?
      if let network {
        do { exchange = try network() } catch { throw .http(error, provider: "") }
      }
      return try body(CredentialSource(home: home, http: exchange, clock: clock, random: random, keys: keys))
    } catch {
      throw CredentialsError(error)
    }
  }

  /// Every source of the vault key except a prompt.
  private var keys: KeySources {
    KeySources(
      environment: environment, predecessor: nil, lock: home.passphraseLock,
      ask: { _ throws(POSIXError) in throw .noTerminal })
  }

  private func note(_ account: Account, _ source: CredentialSource) {
    let name = (try? Path.executable()).map(Path.lastComponent)
    source.noteHandOut(account, to: "library" + (name.map { " for " + $0 } ?? ""))
  }
}

/// An access token and the facts that credmgr knows about it. Descriptions do not show the token.
public struct Token: Sendable {
  /// The name of the token's account.
  public let account: String
  /// The expiry in seconds since 1970; `nil` if the provider does not say.
  public let expiresAt: Int64?
  /// The granted scopes, or the requested ones if the provider does not say.
  public let scope: [String]
  private let secret: Secret

  fileprivate init(account: String, secret: Secret, expiresAt: Int64?, scope: [String]) {
    self.account = account
    self.secret = secret
    self.expiresAt = expiresAt
    self.scope = scope
  }

  /// Returns the token itself.
  public func reveal() -> String { secret.reveal() }
}

/// A header field of a request or response.
public struct HeaderField: Sendable, Equatable {
  /// The field's name.
  public let name: String
  /// The field's value.
  public let value: String

  /// Makes a field.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A provider's response.
public struct Response: Sendable {
  /// The status code.
  public let status: Int
  /// The header fields in order.
  public let headers: [HeaderField]
  /// The body.
  public let body: [UInt8]
}

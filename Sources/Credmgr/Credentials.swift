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

  /// Finds the credentials with the environment of the process (`CREDMGR_HOME`, or the XDG base directories).
  ///
  /// - Parameter userAgent: the value of `User-Agent` in requests that name no other (RFC 9110, 10.1.5).
  /// - Throws: ``CredentialsError/failed(_:)`` if the environment names no home directory.
  public init(userAgent: String) throws(CredentialsError) {
    // The shipped descriptors are beside the installed program.
    let installed = try? Launcher.find("credmgr", path: Environment.value("PATH"))
    do throws(CredentialError) {
      let program = installed ?? (try? Path.executable()) ?? ""
      let home = try Home(environment: { Environment.value($0) }, executable: program)
      self.init(home: home, network: { () throws(HTTPError) in CurlClient(userAgent: userAgent) })
    } catch {
      throw CredentialsError(error)
    }
  }

  package init(
    home: Home, network: Network? = nil,
    environment: @escaping @Sendable (String) -> String? = { Environment.value($0) },
    clock: any WallClock = SystemClock()
  ) {
    self.home = home
    self.network = network
    self.environment = environment
    self.clock = clock
  }

  /// Returns the names of a provider's accounts in order.
  ///
  /// - Throws: ``CredentialsError/failed(_:)`` if the vault cannot be opened.
  public func accounts(of provider: String) throws(CredentialsError) -> [String] {
    try asking { source throws(CredentialError) in try source.accountsIfAny()?.accounts(of: provider).map(\.name) ?? []
    }
  }

  /// Returns an access token, refreshing it first if needed.
  ///
  /// - Parameters:
  ///   - provider: the provider's identifier, for example `github`.
  ///   - account: the account's name; `nil` for the default account, or the only one.
  ///   - lifetime: how long the token has to be valid from now on; `nil` for the margin of the provider's descriptor.
  public func token(
    of provider: String, account: String? = nil, validFor lifetime: Duration? = nil
  ) throws(CredentialsError) -> Token {
    try asking { source throws(CredentialError) in
      let policy = RefreshPolicy(validity: lifetime)
      let found = try source.handOut(account, of: provider, by: .library, to: .caller, policy)
      note(found, source)
      let credential = found.credential
      return Token(
        account: found.name, expiresAt: credential.expiresAt.map { Timestamp(secondsSince1970: $0.secondsSince1970) },
        scope: credential.grantedScope ?? credential.requestedScope, secret: credential.accessToken)
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
      let request = try Self.request(method, url, of: provider)
      let found = try source.handOut(account, of: provider, by: .library, to: .caller)
      note(found, source)
      return try source.headerFields(found.name, of: provider, for: request, by: .library).map {
        HeaderField($0.name, $0.value)
      }
    }
  }

  /// Sends a request with a credential, and once more with a new token if the provider answers 401.
  ///
  /// A `GET` or `HEAD` request follows redirects within its origin; no other request follows any.
  ///
  /// - Parameters:
  ///   - url: the request's address, on a host that the provider's descriptor names, over TLS or on loopback.
  /// - Returns: the response, whatever its status; its body has at most 1 MiB and arrived within 30 seconds.
  public func send(
    _ method: String = "GET", to url: String, headers: [HeaderField] = [], body: [UInt8] = [],
    of provider: String, account: String? = nil
  ) throws(CredentialsError) -> Response {
    try asking { source throws(CredentialError) in
      var request = try Self.request(method, url, of: provider)
      request.fields = HTTPFields(headers.map { HTTPField(name: $0.name, value: $0.value) })
      request.body = body
      var received: [UInt8] = []
      let head = try source.send(request, account: account, of: provider, by: .library, limits: HTTPLimits()) { part in
        if case .body(let bytes) = part { received += bytes }
        return true
      }
      return Response(status: head.status, headers: head.fields.map { HeaderField($0.name, $0.value) }, body: received)
    }
  }

  private static func request(
    _ method: String, _ url: String, of provider: String
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
      // Every source of the vault key except a prompt.
      let keys = KeySources(environment: environment, lock: home.passphraseLock)
      return try body(
        CredentialSource(home: home, http: exchange, clock: clock, random: SystemRandomSource(), keys: keys))
    } catch {
      throw CredentialsError(error)
    }
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
  /// The expiry; `nil` if the provider does not say.
  public let expiresAt: Timestamp?
  /// The granted scopes, or the requested ones if the provider does not say.
  public let scope: [String]
  fileprivate let secret: Secret

  /// Returns the token itself.
  public func reveal() -> String { secret.reveal() }
}

/// A moment in UTC.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// The seconds since 1970, without leap seconds.
  public let secondsSince1970: Int64

  /// The earlier one is less.
  public static func < (one: Timestamp, other: Timestamp) -> Bool { one.secondsSince1970 < other.secondsSince1970 }
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

/// Why a program gets no credential.
public enum CredentialsError: Error, Sendable, Equatable {
  /// A user has to log in: `credmgr login PROVIDER`.
  case loginRequired(provider: String, account: String?)
  /// The provider or another process did not answer in time; a later call may succeed.
  case unavailable(String)
  /// Another error; its description is for a log and shows no secret.
  case failed(String)

  init(_ error: CredentialError) {
    self =
      switch error {
      case .loginNeeded(let provider, let account, _): .loginRequired(provider: provider, account: account)
      case .http, .lockTimedOut, .timedOut: .unavailable("\(error)")
      default: .failed("\(error)")
      }
  }
}

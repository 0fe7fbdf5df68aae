import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrCurl
import CredmgrHTTP
import CredmgrMessages
import CredmgrPlatform
import CredmgrSharedVault

/// The credentials that `credmgr` stores for the user who runs this program.
///
/// ```swift
/// import Credmgr
///
/// let credentials = try Credentials(userAgent: "notes/1.0")
/// let token = try await credentials.token(for: "github")
/// let response = try await credentials.send(Request(url: "https://api.github.com/user"), for: "github")
/// ```
///
/// Users add providers and log in with `credmgr`. This type never prompts: if only a user can help, it throws
/// ``CredentialsError/loginRequired(provider:account:)``.
///
/// Use one value from every task. Its methods suspend and never block a thread of Swift's concurrency. Tasks that ask
/// for the same token at the same time share the answer, so an expired token is refreshed once. A cancelled task
/// throws `CancellationError`; the refresh that it waited for continues, so no token is lost.
public struct Credentials: Sendable {
  package typealias Network = @Sendable () throws(HTTPError) -> any HTTPExchange
  package typealias Sleep = @Sendable (Duration) async throws -> Void

  private struct Question: Hashable {
    let provider: String
    let account: String?
    let validity: Duration?
  }

  private let home: Home
  private let network: Network?
  private let environment: @Sendable (String) -> String?
  private let clock: any WallClock
  private let sleep: Sleep
  private let log: @Sendable (String) -> Void
  private let threads: BlockingThreads
  private let requests: BlockingThreads  // Separate from `threads`, so that a slow API does not delay a token.
  private let tokens: SharedAnswers<Question, Token>

  /// Finds the user's vault and descriptors, as `credmgr` does.
  ///
  /// - Parameters:
  ///   - userAgent: the value of `User-Agent` in requests that name no other (RFC 9110, 10.1.5).
  ///   - home: the directory that replaces `CREDMGR_HOME`; `nil` for the environment's.
  ///   - runsPassphraseCommand: whether `CREDMGR_PASSPHRASE_COMMAND` is run to open the vault.
  ///   - transport: sends the requests; `nil` for libcurl.
  ///   - log: gets a line for each event that an operator may want to know. The line shows no secret.
  /// - Throws: ``CredentialsError/failed(_:)`` if the environment names no home directory.
  public init(
    userAgent: String, home: String? = nil, runsPassphraseCommand: Bool = false, transport: (any Transport)? = nil,
    log: @escaping @Sendable (String) -> Void = { _ in }
  ) throws(CredentialsError) {
    let environment: @Sendable (String) -> String? = { name in
      switch name {
      case "CREDMGR_HOME": home ?? Environment.value(name)
      // The programs that the library starts must not come from directories that a server added to its `PATH`.
      case "PATH": "/usr/local/bin:/usr/bin:/bin"
      case "CREDMGR_PASSPHRASE_COMMAND": runsPassphraseCommand ? Environment.value(name) : nil
      default: Environment.value(name)
      }
    }
    // The shipped descriptors are stored next to an installed credmgr.
    let installed = ["/usr/bin/credmgr", "/usr/local/bin/credmgr"].first(where: File.isExecutable)
    do throws(CredentialError) {
      let home = try Home(
        environment: environment, executable: installed ?? (try? Path.executable()) ?? "/usr/bin/credmgr")
      self.init(
        home: home,
        network: { () throws(HTTPError) in
          if let transport { TransportExchange(transport: transport) } else { CurlClient(userAgent: userAgent) }
        }, environment: environment, log: log)
    } catch {
      throw CredentialsError(error)
    }
  }

  package init(
    home: Home, network: Network? = nil,
    environment: @escaping @Sendable (String) -> String? = { Environment.value($0) },
    clock: any WallClock = SystemClock(), sleep: @escaping Sleep = { try await Task.sleep(for: $0) },
    log: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.home = home
    self.network = network
    self.environment = environment
    self.clock = clock
    self.sleep = sleep
    self.log = log
    // This is also the number of accounts that can be refreshed at the same time.
    threads = BlockingThreads(limit: 128)
    requests = BlockingThreads(limit: 128)
    tokens = SharedAnswers(on: threads)
  }

  /// Returns the names of a provider's accounts in order.
  ///
  /// - Parameter provider: the provider's identifier, for example `github`.
  /// - Throws: ``CredentialsError/failed(_:)`` if the vault cannot be opened.
  public func accounts(for provider: String) async throws -> [String] {
    try await asking(on: threads) { source throws(CredentialError) in
      try source.accountsIfAny()?.accounts(of: provider).map(\.name) ?? []
    }
  }

  /// Returns an access token, refreshing it first if needed.
  ///
  /// - Parameters:
  ///   - provider: the provider's identifier, for example `github`.
  ///   - account: the account's name; `nil` for the default account, or the only one.
  ///   - minimumValidity: how long the token has to be valid from now on; `nil` for the margin of the provider's
  ///     descriptor.
  /// - Throws: ``CredentialsError``, or `CancellationError` if the task is cancelled.
  public func token(
    for provider: String, account: String? = nil, minimumValidity: Duration? = nil
  ) async throws -> Token {
    let question = Question(provider: provider, account: account, validity: minimumValidity)
    return try await tokens.answer(to: question) { [self] () throws(CredentialsError) in
      try answer { source throws(CredentialError) in
        let policy = RefreshPolicy(validity: minimumValidity)
        let found = try source.handOut(account, of: provider, by: .library, to: .caller, policy)
        note(found, source)
        let credential = found.credential
        return Token(
          account: found.name, expiresAt: credential.expiresAt.map { Timestamp(secondsSince1970: $0.secondsSince1970) },
          scope: credential.grantedScope ?? credential.requestedScope, secret: credential.accessToken)
      }
    }
  }

  /// Returns a sequence of tokens for a long-lived connection: the present token, and each new one before the old one
  /// expires.
  ///
  /// While the provider is unavailable, the sequence tries again. It ends after a token that does not expire, and
  /// throws any other error.
  ///
  /// - Parameters:
  ///   - provider: the provider's identifier, for example `github`.
  ///   - account: the account's name; `nil` for the default account, or the only one.
  ///   - margin: how long before its expiry a token is replaced.
  public func tokens(
    for provider: String, account: String? = nil, margin: Duration = .seconds(60)
  ) -> AsyncThrowingStream<Token, any Error> {
    AsyncThrowingStream { continuation in
      let task = Task {
        var last: Token?
        do {
          while true {
            let pause: Duration
            do {
              let token = try await token(for: provider, account: account, minimumValidity: margin)
              if token != last { continuation.yield(token) }
              last = token
              guard let expiresAt = token.expiresAt else { break }
              let left = Duration.seconds(expiresAt.secondsSince1970 - clock.now().secondsSince1970)
              // Use half of a lifetime that is shorter than twice the margin.
              pause = max(.seconds(1), max(left - margin, left / 2))
            } catch CredentialsError.unavailable(let retryAfter) {
              pause = max(.seconds(1), retryAfter ?? .seconds(10))
            }
            try await sleep(pause)
          }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  /// Returns the header fields that present a credential on a request: the token in the provider's header, extra
  /// headers, or the signature of OAuth 1.0a (RFC 5849, 3.5.1).
  ///
  /// - Parameters:
  ///   - provider: the provider's identifier, for example `github`.
  ///   - account: the account's name; `nil` for the default account, or the only one.
  ///   - url: the address of the request. The provider's descriptor has to name its host.
  ///   - method: the method of the request, which a signature covers.
  /// - Throws: ``CredentialsError``, or `CancellationError` if the task is cancelled.
  public func headers(
    for provider: String, account: String? = nil, url: String, method: String = "GET"
  ) async throws -> [HeaderField] {
    let name = try await token(for: provider, account: account).account
    return try await asking(on: threads) { source throws(CredentialError) in
      let request = try Self.request(Request(method, url: url), for: provider)
      let found = try source.handOut(name, of: provider, by: .library, to: .caller)
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
  ///   - request: a request to a host that the provider's descriptor names, over TLS or on loopback.
  ///   - provider: the provider's identifier, for example `github`.
  ///   - account: the account's name; `nil` for the default account, or the only one.
  /// - Returns: the response, whatever its status. Its body has at most 1 MiB and arrived within 30 seconds.
  /// - Throws: ``CredentialsError``, or `CancellationError` if the task is cancelled.
  public func send(_ request: Request, for provider: String, account: String? = nil) async throws -> Response {
    let name = try await token(for: provider, account: account).account
    return try await asking(on: requests) { source throws(CredentialError) in
      let asked = try Self.request(request, for: provider)
      var received: [UInt8] = []
      let head = try source.send(asked, account: name, of: provider, by: .library, limits: HTTPLimits()) { part in
        if case .body(let bytes) = part { received += bytes }
        return true
      }
      return Response(status: head.status, headers: head.fields.map { HeaderField($0.name, $0.value) }, body: received)
    }
  }

  private static func request(_ request: Request, for provider: String) throws(CredentialError) -> HTTPRequest {
    do {
      return HTTPRequest(
        method: request.method, uri: try URI(parsing: request.url),
        fields: HTTPFields(request.headers.map { HTTPField(name: $0.name, value: $0.value) }), body: request.body)
    } catch {
      throw .http(error, provider: provider)
    }
  }

  /// Answers a question that no other task shares.
  private func asking<Value: Sendable>(
    on threads: BlockingThreads, _ body: @escaping @Sendable (CredentialSource) throws(CredentialError) -> Value
  ) async throws -> Value {
    try await SharedAnswers<Int, Value>(on: threads).answer(to: 0) { [self] () throws(CredentialsError) in
      try answer(body)
    }
  }

  /// Runs a body with a source of its own, because a source is not thread-safe. Blocks the thread.
  private func answer<Value>(
    _ body: (CredentialSource) throws(CredentialError) -> Value
  ) throws(CredentialsError) -> Value {
    do throws(CredentialError) {
      var exchange: (any HTTPExchange)?
      if let network {
        do { exchange = try network() } catch { throw .http(error, provider: "") }
      }
      // Every source of the vault key except a prompt.
      let keys = KeySources(environment: environment, lock: home.passphraseLock)
      let source = CredentialSource(home: home, http: exchange, clock: clock, random: SystemRandomSource(), keys: keys)
      source.vaults = TeamVaults()
      source.notice = { [log, clock, home] notice in
        let message = notice.message(now: clock.now(), titled: home.title(of:))
        log(message.text + (message.hint().map { "; " + $0 } ?? ""))
      }
      return try body(source)
    } catch {
      let words = CredentialsError(error, titled: home.title(of:))
      if case .unavailable = words { log(error.message(titled: home.title(of:)).text) }
      throw words
    }
  }

  private func note(_ account: Account, _ source: CredentialSource) {
    let name = (try? Path.executable()).map(Path.lastComponent)
    source.noteHandOut(account, to: "library" + (name.map { " for " + $0 } ?? ""))
  }
}

extension Duration {
  /// Returns a duration of `count` minutes. Another module's function of this name is preferred.
  @_disfavoredOverload
  public static func minutes(_ count: Int) -> Duration { .seconds(60 * count) }
}

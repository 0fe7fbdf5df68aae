import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// Receives the provider's answer: at a port of this machine, by an app's scheme, or as a pasted line.
final class CallbackReceiver {
  private enum Arrival {
    case redirect(FormParameters)  // The browser came to our port and waits for a page.
    case refusal(FormParameters)  // As `redirect`, but can only be an error.
    case handed(String)  // The desktop passed an address on. Any web page can cause that.
    case typed(String)
  }

  private var loopback: LoopbackReceiver?
  private var handler: SchemeHandler?
  private let isCode: Bool
  private var told: [LoginStep] = []
  let redirectURI: String

  init(_ session: LoginSession) throws(CredentialError) {
    let (client, options, home) = (session.client, session.options, session.source.home)
    guard options.refreshToken == nil, let part = session.grant.callback(client) else {
      (redirectURI, isCode) = ("", false)
      return
    }
    let redirect = try session.source.core(session.provider, client.redirect())
    switch redirect {
    case .loopback(let uri) where !options.pastes:
      do {
        let interface: LoopbackReceiver.Interface =
          uri.host == "localhost" ? .localhost : uri.host == "[::1]" ? .ipv6 : .ipv4
        let path = (uri.path.isEmpty ? "/" : uri.path) + (uri.query.map { "?" + $0 } ?? "")
        let relay = part == .fragment ? Base64.encodeURL(session.source.random.bytes(32)) : nil
        let receiver = try LoopbackReceiver(interface: interface, port: uri.port, path: path, relay: relay)
        (redirectURI, isCode) = (uri.replacing(port: receiver.port).text, false)
        loopback = consume receiver
      } catch {
        throw .http(error, provider: session.provider)
      }
    case .loopback(let uri):
      if session.grant == .implicit { throw .pasteExposesToken(provider: session.provider) }
      // Nothing listens here: the browser ends on an error page, and the user pastes its address. The port is random,
      // because another user of the browser's machine could listen at a predictable one.
      let random = session.source.random.bytes(2).reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
      (redirectURI, isCode) = (uri.port == nil ? uri.replacing(port: random | 0xC000).text : uri.text, false)
    case .elsewhere(let text):
      let scheme = SchemeHandler.scheme(of: text)
      // A scheme also receives other applications' answers (RFC 8252, 7.1). Without a state, only a user who pastes can
      // tell them apart.
      let isWeb = ["http", "https"].contains((try? URI(parsing: text))?.scheme)
      if !isWeb, !options.pastes, client.descriptor.state == .optional {
        throw .schemeWithoutState(provider: session.provider, redirect: text)
      }
      (redirectURI, isCode) = (text, false)
      // If registering fails, the user pastes the address, as on a machine without a desktop.
      if !options.pastes, options.opensBrowser, let scheme, let desktop = home.desktop {
        handler = try? SchemeHandler(scheme, executable: home.executable, runtime: home.runtime, desktop: desktop)
      }
    case .outOfBand(let text): (redirectURI, isCode) = (text, true)
    }
  }

  /// Opens a page for the user and waits for a matching answer. Other answers change nothing.
  func answer(to page: Step.Page, _ session: LoginSession) throws(CredentialError) -> Step {
    let (user, url) = (session.user, page.uri.text.harmlessAddress)
    try session.permit.require(page.uri)
    session.source.secrets.learn(page.uri.queryParameters, of: session.client.descriptor)
    let lead = loopback?.lead(
      to: page.uri, name: Base64.encodeURL(session.source.random.bytes(32)),
      needsOrigin: session.client.descriptor.state == .optional)
    user.tell(session.options.opensBrowser ? .open(url: url) : .visit(url: url))
    if session.options.opensBrowser, !user.open(session.options.hasLocalBrowser ? lead ?? url : url) {
      user.tell(.visit(url: url))
    }
    if let time = page.validFor, !session.options.opensBrowser { user.tell(.pageExpires(after: time)) }
    if page.bringsToken, user.pasteDescriptor != nil { user.tell(.tokenPaste) }
    if loopback == nil, handler == nil {
      user.tell(.paste(redirect: redirectURI))
    } else {
      user.tell(
        .awaiting(
          redirect: redirectURI, canPaste: user.pasteDescriptor != nil, opensBrowser: session.options.opensBrowser))
    }
    var stray: CredentialError?
    var strayCount = 0
    while true {
      let arrival = try next(session, stray)
      let step: Step
      let conflict: CredentialError?
      var parameters = FormParameters()
      do throws(OAuthError) {
        parameters =
          switch arrival {
          case .redirect(let parameters), .refusal(let parameters): parameters
          case .handed(let line), .typed(let line): try page.parameters(pasted: line, isCode: isCode)
          }
        if case .refusal = arrival {
          step = try page.refused(parameters, session.now)
        } else {
          step = try page.read(parameters, session.now)
        }
        conflict = session.others.conflict(of: session.client, answeredBy: parameters)
      } catch {
        // credmgr shows nothing of a stray redirect.
        if !error.isStray { session.source.secrets.learn(parameters, of: session.client.descriptor) }
        let told = CredentialError.oauth(error.masked(by: session.source.secrets), provider: session.provider)
        guard error.isStray else { throw told }
        loopback?.reply(.stray, isAwaited: false)
        if case .typed = arrival {
          user.tell(.strayPaste(told))
        } else {
          strayCount += 1
          user.tell(.strayRedirect(count: strayCount))
        }
        stray = told
        continue
      }
      if let conflict { throw conflict }
      session.source.secrets.learn(parameters, of: session.client.descriptor)
      return step
    }
  }

  /// Shows the result of the login in the browser if the browser waits for a page.
  func end(_ page: Page) { loopback?.reply(page, isAwaited: true) }

  private func tellOnce(_ step: LoginStep, _ user: any User) {
    if told.contains(step) { return }
    user.tell(step)
    told.append(step)
  }

  /// Waits for the next input. `stray` is the fault of the previous input, for users who cannot provide another.
  private func next(_ session: LoginSession, _ stray: CredentialError?) throws(CredentialError) -> Arrival {
    let (user, provider) = (session.user, session.provider)
    let late = CredentialError.timedOut(after: session.options.timeout)
    while let received = try received(session, late) {
      switch received {
      case .callback(let parameters): return .redirect(parameters)
      case .besideFragment(let parameters): return .refusal(parameters)
      case .line(let line): return .typed(line)
      case .intruder(let other): tellOnce(.intruder(user: other), user)
      case .tooLong: tellOnce(.tooLong, user)
      case .reopened: tellOnce(.reopened, user)
      case .taken: throw .loginPageTaken(provider: provider)
      }
    }
    do throws(POSIXError) {
      // Without a terminal, a line may come from standard input, as on a machine without a desktop.
      switch try handler?.line(
        within: session.timeLeft, alsoReading: user.pasteDescriptor ?? 0, isCancelled: session.pollForCancellation)
      {
      case .handed(let line): return .handed(line)
      case .typed(let line): return .typed(line)
      case nil: break
      }
    } catch {
      if error == .timedOut { throw late }
      throw error == .interrupted ? .interrupted : .system(error)
    }
    if let line = user.pastedLine(within: session.timeLeft) { return .typed(line) }
    if user.isCancelled { throw .interrupted }
    if session.timeLeft == .zero { throw late }
    throw stray ?? .pasteNeeded(provider: provider, isCode: isCode)
  }

  /// Waits at the port; `nil` if none is open.
  private func received(
    _ session: LoginSession, _ late: CredentialError
  ) throws(CredentialError) -> LoopbackReceiver.Received? {
    do throws(HTTPError) {
      return try loopback?.receive(
        within: session.timeLeft, alsoReading: session.user.pasteDescriptor, isCancelled: session.pollForCancellation)
    } catch {
      if error == .receiverTimedOut { throw late }
      throw error == .interrupted ? .interrupted : .http(error, provider: session.provider)
    }
  }
}

/// Shows the result of a login in the browser that brought the answer and waits for a page.
final class LoginEnding {
  var receiver: CallbackReceiver?

  func show(_ page: Page) {
    receiver?.end(page)
    receiver = nil
  }
}

extension Step.Page {
  /// Reads only errors from the query when the answer belongs in the fragment, because any web page can add a query.
  fileprivate func refused(_ parameters: FormParameters, _ now: Moment) throws(OAuthError) -> Step {
    do throws(OAuthError) {
      _ = try read(parameters, now)
    } catch {
      if case .refused = error { throw error }
    }
    throw .notARedirect
  }
}

extension Page {
  static func loggedIn(_ account: Account, _ title: String) -> Page {
    let name = account.credential.identity.flatMap { $0 == account.name ? nil : "\($0) (account \(account.name))" }
    return Page(
      .done, title: "Logged in: \(title)",
      text: "You are logged in as \(name ?? account.name).\nYou can close this window.")
  }

  static var stray: Page {
    Page(
      .ignored, title: "This page does not belong to the current login",
      text: """
        Nothing was changed.
        Use the page that credmgr opened last, or start the login again in the terminal.
        """)
  }

  static func question(_ found: String?, instead expected: String) -> Page {
    Page(
      .ignored, title: "See the terminal",
      text: "You signed in as \(found ?? "another user") instead of \(expected).\nAnswer the question in the terminal.")
  }

  /// Returns the page for a failed login. `title` is the provider's.
  static func failed(_ error: CredentialError, _ title: String) -> Page {
    guard case .oauth(.refused(_, let response), _) = error else {
      return Page(.refused, title: "Login failed: \(title)", text: "See the terminal for the reason.")
    }
    let isDenial = response.words == nil && response.code == "access_denied"
    return Page(
      .refused, title: "Login refused: \(title)",
      text: isDenial ? "The provider denied access." : "The provider says:",
      quotation: isDenial ? nil : response.words ?? response.code,
      end: "You can close this window and try again in the terminal.")
  }
}

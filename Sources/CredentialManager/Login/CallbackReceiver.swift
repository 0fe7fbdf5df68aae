import HTTP
import OAuth
import Platform

/// Where the provider's answer comes in: a port of this machine, the scheme of an app, or a line that the person pastes.
struct CallbackReceiver: ~Copyable {
  private var loopback: LoopbackReceiver?
  private var handler: SchemeHandler?
  private let redirect: Redirect
  private let inFragment: Bool
  private let provider: String
  /// The redirect URI to send.
  let redirectURI: String

  /// - Parameters:
  ///   - inFragment: the answer comes in the fragment.
  ///   - wish: whether the person pastes the answer, and whether there is a browser here.
  ///   - home: where a scheme of an app is registered.
  init(
    _ redirect: Redirect, inFragment: Bool, _ wish: LoginOptions, provider: String, home: Home
  ) throws(CredentialError) {
    let pastes = wish.pastes
    self.redirect = redirect
    self.inFragment = inFragment
    self.provider = provider
    handler = nil
    switch redirect {
    case .loopback(let uri) where !pastes:
      do {
        let interface: LoopbackReceiver.Interface =
          uri.host == "localhost" ? .localhost : uri.host == "[::1]" ? .ipv6 : .ipv4
        let path = (uri.path.isEmpty ? "/" : uri.path) + (uri.query.map { "?" + $0 } ?? "")
        let receiver = try LoopbackReceiver(interface: interface, port: uri.port, path: path, fragment: inFragment)
        redirectURI = uri.replacing(port: receiver.port).text
        loopback = consume receiver
      } catch {
        throw .http(error, provider: provider)
      }
    case .loopback(let uri):
      // Nothing listens: the browser ends on an error page, whose address the person pastes.
      redirectURI = uri.port == nil ? uri.replacing(port: 49152).text : uri.text
      loopback = nil
    case .elsewhere(let text):
      redirectURI = text
      loopback = nil
      // Where nothing can be registered, the person pastes as on a machine without a desktop.
      if !pastes, wish.opensBrowser, let scheme = SchemeHandler.scheme(of: text), let desktop = home.desktop {
        handler = try? SchemeHandler(scheme, executable: home.executable, runtime: home.runtime, desktop: desktop)
      }
    case .outOfBand(let text):
      redirectURI = text
      loopback = nil
    }
  }

  /// Sends the person to a page, and waits for the answer that fits.
  ///
  /// - Parameters:
  ///   - read: makes the answer from a redirect's parameters; what it refuses as not ours changes nothing.
  ///   - fromCode: makes the answer from a code that a page showed.
  mutating func answer<Answer>(
    to url: String, _ session: LoginSession, read: (FormParameters) throws(OAuthError) -> Answer,
    fromCode: (String) throws(OAuthError) -> Answer
  ) throws(CredentialError) -> Answer {
    let user = session.user
    if !session.options.opensBrowser {
      user.tell(.visit(url: url))
    } else {
      user.tell(.open(url: url))
      if !user.open(url) { user.tell(.visit(url: url)) }
    }
    guard loopback != nil || handler != nil else { return try pasted(session, read, fromCode) }
    user.tell(
      .awaiting(
        redirect: redirectURI, canPaste: user.pasteDescriptor != nil, opensBrowser: session.options.opensBrowser))
    while true {
      switch handler == nil ? try received(session, read) : try handed(session, read, fromCode) {
      case .answer(let answer): return answer
      case .line(let line):
        do throws(OAuthError) {
          return try self.answer(line, session.client, read, fromCode)
        } catch {
          guard !Self.isOurs(error) else { throw .oauth(error.masked(by: session.source.secrets), provider: provider) }
          user.tell(.strayPaste(.oauth(error, provider: provider)))
        }
      }
    }
  }

  private enum Arrival<Answer> {
    case answer(Answer)
    case line(String)
  }

  /// What comes first: the redirect, or a line that the person pasted.
  private mutating func received<Answer>(
    _ session: LoginSession, _ read: (FormParameters) throws(OAuthError) -> Answer
  ) throws(CredentialError) -> Arrival<Answer> {
    let user = session.user
    let title = session.client.descriptor.title
    var answer: Result<Answer, OAuthError>?
    let received: LoopbackReceiver.Received?
    do {
      received = try loopback?.receive(
        seconds: session.secondsLeft, alsoReading: user.pasteDescriptor, isCancelled: { user.isCancelled },
        judge: { parameters in
          do throws(OAuthError) {
            answer = .success(try read(parameters))
            return .accept(page: .loggedIn(title))
          } catch {
            guard Self.isOurs(error) else {
              user.tell(.strayRedirect)
              return .reject(page: .stray)
            }
            answer = .failure(error)
            return .accept(page: .refused(error, title))
          }
        })
    } catch {
      switch error {
      case .receiverTimedOut: throw .timedOut(seconds: session.options.timeout)
      case .interrupted: throw .interrupted
      default: throw .http(error, provider: provider)
      }
    }
    switch (received, answer) {
    case (.line(let line)?, _): return .line(line)
    case (_, .success(let answer)?): return .answer(answer)
    case (_, .failure(let error)?): throw .oauth(error.masked(by: session.source.secrets), provider: provider)
    case (_, nil): throw .interrupted
    }
  }

  /// The same for the scheme of an app: what the desktop hands over, or the person pastes.
  private mutating func handed<Answer>(
    _ session: LoginSession, _ read: (FormParameters) throws(OAuthError) -> Answer,
    _ fromCode: (String) throws(OAuthError) -> Answer
  ) throws(CredentialError) -> Arrival<Answer> {
    let user = session.user
    // Where nobody is at a terminal, a line may come from standard input, as it may without a desktop.
    let input = user.pasteDescriptor ?? 0
    while true {
      let line: LineInbox.Line?
      do {
        line = try handler?.line(seconds: session.secondsLeft, alsoReading: input) { user.isCancelled }
      } catch {
        switch error {
        case .timedOut: throw .timedOut(seconds: session.options.timeout)
        case .interrupted: throw .interrupted
        default: throw .system(error)
        }
      }
      switch line {
      case nil: throw .interrupted
      case .typed(let text): return .line(text)
      case .handed(let text):
        do throws(OAuthError) {
          return .answer(try answer(text, session.client, read, fromCode))
        } catch {
          guard !Self.isOurs(error) else { throw .oauth(error.masked(by: session.source.secrets), provider: provider) }
          // Any page can open the scheme, so what is not the answer to this login changes nothing.
          user.tell(.strayRedirect)
        }
      }
    }
  }

  /// Whether a redirect or a pasted line was the answer to this login, however it came out.
  private static func isOurs(_ error: OAuthError) -> Bool {
    switch error {
    case .stateMissing, .stateMismatch, .tokenMismatch, .notARedirect, .foreignRedirect: false
    default: true
    }
  }

  /// A line after the other, until one of them is the answer.
  private func pasted<Answer>(
    _ session: LoginSession, _ read: (FormParameters) throws(OAuthError) -> Answer,
    _ fromCode: (String) throws(OAuthError) -> Answer
  ) throws(CredentialError) -> Answer {
    session.user.tell(.paste(redirect: redirectURI))
    var failure: CredentialError?
    while true {
      guard let line = session.user.pastedLine(within: session.secondsLeft) else {
        if session.user.isCancelled { throw .interrupted }
        if session.secondsLeft == 0 { throw .timedOut(seconds: session.options.timeout) }
        throw failure ?? .pasteNeeded(provider: provider, isCode: isCode)
      }
      do throws(OAuthError) {
        return try answer(line, session.client, read, fromCode)
      } catch {
        let told = CredentialError.oauth(error.masked(by: session.source.secrets), provider: provider)
        guard !Self.isOurs(error) else { throw told }
        session.user.tell(.strayPaste(told))
        failure = told
      }
    }
  }

  private var isCode: Bool { if case .outOfBand = redirect { true } else { false } }

  /// What was pasted without the marks that mails and chats put around an address.
  private static func unwrapped(_ line: String) -> String {
    let marks: Set<Character> = ["<", ">", "\"", "'", "`", "“", "”", "‘", "’", "«", "»", " ", "\t"]
    let rest = line.drop { marks.contains($0) }
    return String(rest.dropLast(rest.reversed().prefix { marks.contains($0) }.count))
  }

  private func answer<Answer>(
    _ line: String, _ client: Client, _ read: (FormParameters) throws(OAuthError) -> Answer,
    _ fromCode: (String) throws(OAuthError) -> Answer
  ) throws(OAuthError) -> Answer {
    let line = Self.unwrapped(line)
    if isCode {
      if let parameters = client.outOfBandParameters(pasted: line) { return try read(parameters) }
      guard !line.isEmpty else { throw .notARedirect }
      return try fromCode(line)
    }
    return try read(client.redirectParameters(pasted: line, redirectURI: redirectURI, inFragment: inFragment))
  }
}

extension Page {
  static func loggedIn(_ title: String) -> Page {
    Page(
      .done, title: "Consent given: \(title)",
      text: "credmgr finishes the login in the terminal. You can close this window.")
  }

  static var stray: Page {
    Page(
      .ignored, title: "Not the answer that is waited for",
      text: """
        This address does not belong to the login that is under way, so nothing was changed.
        Use the page that credmgr opened last, or begin again in the terminal.
        """)
  }

  static func refused(_ error: OAuthError, _ title: String) -> Page {
    guard case .refused(_, let response) = error else {
      return Page(.refused, title: "The login did not work", text: "The terminal says what is wrong.")
    }
    return Page(
      .refused, title: "Login refused: \(title)",
      text: "\(response.words ?? response.code)\n\nYou can close this window, and try again in the terminal.")
  }
}

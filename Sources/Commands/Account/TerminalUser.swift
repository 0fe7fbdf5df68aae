import CredentialManager
import Descriptors
import Platform
import Text

final class TerminalUser: User {
  private let provider: String
  private let offersDevice: Bool
  /// Why the grant is the one that it is, until it was told.
  private var reason: String?
  private let context: Context
  private var isWaitingTold = false
  private var shownURL: String?
  private var strayRedirects = 0
  /// Whether the cursor is in a line that the next second writes over.
  private var isCounting = false
  /// A browser that was started, until its end, by the monotonic clock, means no more that it has failed.
  private var browser: (command: String, program: Launcher.Launched, end: Duration)?
  private var silence: Terminal.Silence?
  /// Where the person types, if that is not standard input.
  private let terminal: ControllingTerminal?
  /// The programs for which the login is, if it is for nobody else.
  private let waiting: WaitingPrograms?

  init(
    provider: String, offered: [Grant], fitting: Command.FittingGrant?, _ context: Context,
    terminal: ControllingTerminal? = nil, waiting: WaitingPrograms? = nil
  ) {
    self.provider = provider
    offersDevice = fitting == nil && offered.first != .deviceCode && offered.contains(.deviceCode)
    reason = fitting?.reason
    self.context = context
    self.terminal = terminal
    self.waiting = waiting
  }

  func tell(_ step: LoginStep) {
    if let reason { say(reason) }
    reason = nil
    switch step {
    case .alreadyLoggedIn(let accounts): say("already logged in to \"\(provider)\" as " + some(accounts))
    case .open(let url):
      say("opening the browser; if none appears, open this address:")
      show(url)
      shownURL = url
    case .visit(let url) where url == shownURL: say("no browser could be started" + otherwise)
    case .visit(let url):
      say("open this address in a browser:")
      show(url)
    case .awaiting(let redirect, canPaste: true, opensBrowser: false):
      say("a browser on another machine then ends up at \(redirect), and cannot load it")
      say("if so, copy the whole address from there, paste it here, and press Enter; Ctrl-C stops")
    case .awaiting(_, canPaste: true, opensBrowser: true):
      say("waiting for the consent; you can also paste the address where the browser ends up; Ctrl-C stops")
    case .awaiting:
      if Terminal.isTerminal(2) { say("waiting for the consent; Ctrl-C stops") }
    case .paste(let redirect):
      let isCode = redirect == "oob" || redirect.hasPrefix("urn:")
      if !isCode { say("after the consent the browser ends up at an address that begins with \(redirect)") }
      say("paste \(isCode ? "the code that the page shows" : "that address here"), and press Enter:")
    case .tokenPaste:
      silence = try? Terminal.Silence()
      if silence != nil { say("what you paste here is not shown") }
    case .device(let userCode, let url, let completeURL, let validity, let patience):
      showQRCode(completeURL ?? url)
      say("open \(url) in any browser, and enter the code \(userCode)")
      if let completeURL, completeURL != url { say("or open \(completeURL)") }
      say(
        patience < validity
          ? "waiting for at most \(exactDuration(patience)); Ctrl-C stops"
          : "the code is valid for \(duration(validity)); Ctrl-C stops")
    case .awaitingConsent(let time):
      let left = "\(countdown(time)) left; Ctrl-C stops"
      count(["waiting for the consent; " + left, left, countdown(time)])
    case .waiting(let time):
      if time >= .seconds(1), !isWaitingTold { say("waiting for another login to \"\(provider)\"; Ctrl-C stops") }
      isWaitingTold = isWaitingTold || time >= .seconds(1)
    case .strayPaste(let error):
      // Where nobody can paste once more, it is the error at the end.
      guard terminal != nil || Terminal.isTerminal(0) else { return }
      say(error.message.text)
      say("paste the whole address here, and press Enter; Ctrl-C stops")
    case .strayRedirect(let count):
      // Any program of this machine and any page can send one, a thousand times.
      if count == 1 { say("a redirect came that does not belong to this login, and was ignored") }
      strayRedirects = count
    case .intruder(let user):
      say("a program of another user of this machine (uid \(user)) came to the login page, and was refused")
    case .reopened: say("the browser opened the login page twice; if it shows no login, open the address above by hand")
    }
  }

  func end() {
    silence = nil
    settle()
    if strayRedirects > 1 { say("\(strayRedirects) redirects came that do not belong to this login") }
    strayRedirects = 0
  }

  private func say(_ text: String) {
    settle()
    context.tell(text)
  }

  private func show(_ url: String) { Terminal.writeError("  " + Message.visible(url) + "\n") }

  private func countdown(_ time: Duration) -> String {
    let seconds = max(time.wholeSeconds, 0)
    return "\(seconds / 60):" + (seconds % 60 < 10 ? "0" : "") + "\(seconds % 60)"
  }

  private func settle() {
    if isCounting { Terminal.writeError("\r\u{1B}[K") }
    isCounting = false
  }

  private func count(_ texts: [String]) {
    let lines = texts.lazy.map { "credmgr: " + $0 }
    guard canDraw, let line = lines.first(where: { $0.count < Terminal.width }) else { return }
    isCounting = true
    Terminal.writeError("\r" + line + "\u{1B}[K")
  }

  private var canDraw: Bool { Terminal.isTerminal(2) && ![nil, "", "dumb"].contains(context.environment("TERM")) }

  private func showQRCode(_ url: String) {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(context.environment).first { !$0.isEmpty } ?? ""
    let isUTF8 = ["utf-8", "utf8"].contains { locale.lowercased().hasSuffix($0) }
    guard canDraw, isUTF8, let modules = context.online?.qrCode(url) else { return }
    let drawing = QRCodeDrawing(modules: modules)
    guard drawing.width <= Terminal.width else { return }
    Terminal.writeError(drawing.lines.joined(separator: "\n") + "\n")
  }

  func open(_ url: String) -> Bool {
    let opening = (try? Browser.open(url, patience: .milliseconds(300))) ?? .failed
    if case .running(let command, let program) = opening {
      // One that ends by itself later has been closed.
      browser = (command, program, context.clock.monotonic() + .seconds(10))
    }
    return opening.isOpen
  }

  /// Says that the browser that was started has failed: who waits for its window would wait in vain.
  func poll() {
    guard let (command, program, end) = browser else { return }
    let status = context.clock.monotonic() > end ? 0 : (try? program.status(within: .zero))
    guard let status else { return }
    browser = nil
    if status != 0 {
      say("\"\(command)\" ended with status \(status); open the address above in a browser by hand" + otherwise)
    }
  }

  private var otherwise: String {
    offersDevice ? "; \"credmgr login \(provider) --grant device_code\" needs none here" : ""
  }

  func pastedLine(within time: Duration) -> String? {
    let end = context.clock.monotonic() + time
    while let line = try? Terminal.readLine(terminal?.number ?? 0, until: (end, context.clock)) {
      if !line.isEmpty { return line }
    }
    return nil
  }

  var pasteDescriptor: Int32? { terminal?.number ?? (Terminal.isTerminal(0) ? 0 : nil) }

  var isCancelled: Bool { Signals.isInterrupted || waiting?.haveEnded == true }
}

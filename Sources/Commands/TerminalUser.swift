import CredentialManager
import Messages
import POSIX

/// The person at the terminal.
final class TerminalUser: User {
  private let provider: String
  /// Whether the login could be done by a code on another device as well.
  private let offersDevice: Bool
  private var isWaitingTold = false
  private var shownURL: String?

  init(provider: String, offersDevice: Bool) {
    self.provider = provider
    self.offersDevice = offersDevice
  }

  func tell(_ step: LoginStep) {
    switch step {
    case .alreadyLoggedIn(let accounts):
      say("already logged in to \"\(provider)\" as " + accounts.map { "\"\($0)\"" }.joined(separator: ", "))
    case .open(let url):
      say("opening the browser; if none appears, open this address:")
      show(url)
      shownURL = url
    case .visit(let url) where url == shownURL:
      say(
        "no browser could be started"
          + (offersDevice ? "; \"credmgr login \(provider) --grant device_code\" needs none here" : ""))
    case .visit(let url):
      say("open this address in a browser:")
      show(url)
    case .paste(let redirect):
      if redirect == "oob" || redirect.hasPrefix("urn:") {
        say("paste the code that the page shows, and press Enter:")
      } else {
        say("after the consent the browser ends up at an address that begins with \(redirect)")
        say("paste that address here, and press Enter:")
      }
    case .device(let userCode, let url, let completeURL, let seconds):
      say("open \(url) in any browser, and enter the code \(userCode)")
      if let completeURL, completeURL != url { say("or open \(completeURL)") }
      say("the code is valid for \(duration(seconds)); Ctrl-C stops")
    case .waiting(let seconds):
      if seconds >= 1, !isWaitingTold {
        isWaitingTold = true
        say("waiting for another login to \"\(provider)\"; Ctrl-C stops")
      }
    case .strayRedirect:
      say("a redirect came that does not belong to this login, and was ignored")
    }
  }

  private func say(_ text: String) { Terminal.writeError("credmgr: " + Message.visible(text) + "\n") }

  private func show(_ url: String) { Terminal.writeError("  " + Message.visible(url) + "\n") }

  func open(_ url: String) -> Bool { (try? Browser.open(url, patience: 0.3)) ?? false }

  func pastedLine() -> String? {
    while let line = try? Terminal.readLine(0) {
      if !line.isEmpty { return line }
    }
    return nil
  }

  var pasteDescriptor: Int32? { Terminal.isTerminal(0) ? 0 : nil }

  var isCancelled: Bool { Signals.isInterrupted }
}

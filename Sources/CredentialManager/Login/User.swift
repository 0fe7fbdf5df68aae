import HTTP
import OAuth
import Descriptors

/// What a login tells the person on the way.
package enum LoginStep: Sendable, Equatable {
  /// Somebody is logged in there already.
  case alreadyLoggedIn(accounts: [String])
  /// The page to open.
  case open(url: String)
  /// The page to open by hand, where no browser is opened.
  case visit(url: String)
  /// A redirect to this machine is waited for. The person may paste it as well, if there is a terminal for it; where no
  /// browser was opened here, the page at the redirect's address may be one that the browser cannot load.
  case awaiting(redirect: String, canPaste: Bool, opensBrowser: Bool)
  /// The consent on another device is waited for.
  case awaitingConsent(secondsLeft: Int64)
  /// The person has to paste the address of the page where the browser ends up, or the code that it shows.
  case paste(redirect: String)
  /// The code to type on another device's browser; how long it is valid, and how long the login waits for it.
  case device(userCode: String, url: String, completeURL: String?, seconds: Int64, patience: Int64)
  /// Another process logs in or refreshes; seconds waited so far.
  case waiting(seconds: Double)
  /// A redirect came that is not the answer to this login.
  case strayRedirect
  /// What was pasted is not the answer to this login; why. Another line is waited for.
  case strayPaste(CredentialError)
}

/// The person, as a login sees them.
package protocol User: AnyObject {
  /// Tells what happens.
  func tell(_ step: LoginStep)
  /// Opens a page; whether that was possible.
  func open(_ url: String) -> Bool
  /// One line that the person pasted; `nil` when there is nobody to ask, or nothing came within so many seconds.
  func pastedLine(within seconds: Double) -> String?
  /// A descriptor to read a pasted line from while a browser is waited for; `nil` when there is none.
  var pasteDescriptor: Int32? { get }
  /// Looks after what was opened for the person. Called several times a second while something is waited for.
  func poll()
  /// Whether the person wants to stop.
  var isCancelled: Bool { get }
}

/// What a person asks for when logging in.
package struct LoginOptions: Sendable {
  /// The account's name; `nil`: as the provider names it.
  package var account: String?
  /// The grant; `nil`: the first one of the descriptor that is possible here.
  package var grant: Grant?
  /// The scopes; empty: the descriptor's.
  package var scope: [String]
  /// Values of variables for this account alone.
  package var variables: [String: String]
  /// Whether a browser may be opened.
  package var opensBrowser: Bool
  /// Whether the redirect is pasted, and nothing listens.
  package var pastes: Bool
  /// Seconds until the login is given up.
  package var timeout: Int64

  /// A login with everything as the descriptor says.
  package init() {
    scope = []
    variables = [:]
    opensBrowser = true
    pastes = false
    timeout = 300
  }
}

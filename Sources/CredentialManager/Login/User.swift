import HTTP
import OAuth
import Descriptors

package enum LoginStep: Sendable, Equatable {
  case alreadyLoggedIn(accounts: [String])
  case open(url: String)
  case visit(url: String)
  /// The user may also paste the redirect. If no browser was opened here, the browser may not be able to load it.
  case awaiting(redirect: String, canPaste: Bool, opensBrowser: Bool)
  case awaitingConsent(left: Duration)
  /// The person has to paste the address of the page where the browser ends up, or the code that it shows.
  case paste(redirect: String)
  case tokenPaste  // What may be pasted from now on has a token in it.
  /// The code to type on another device's browser; how long it is valid, and how long the login waits for it.
  case device(userCode: String, url: String, completeURL: String?, validFor: Duration, patience: Duration)
  case waiting(for: Duration)
  case strayRedirect(count: Int)  // A request that is not the answer to this login; how many there were.
  /// A program of another user of this machine came to an address of the login, and was refused.
  case intruder(user: UInt32)
  case reopened  // The browser opened the login page a second time, and was refused.
  /// What was pasted is not the answer to this login; why. Another line is waited for.
  case strayPaste(CredentialError)
}

package protocol User: AnyObject {
  func tell(_ step: LoginStep)
  func open(_ url: String) -> Bool
  /// One line that the person pasted; `nil` when there is nobody to ask, or nothing came within that time.
  func pastedLine(within time: Duration) -> String?
  /// A descriptor to read a pasted line from while a browser is waited for; `nil` when there is none.
  var pasteDescriptor: Int32? { get }
  /// Looks after what was opened for the person. Called several times a second while something is waited for.
  func poll()
  var isCancelled: Bool { get }
}

package struct LoginOptions: Sendable {
  package var account: String?  // The account's name; `nil`: as the provider names it.
  package var grant: Grant?  // The grant; `nil`: the first one of the descriptor that is possible here.
  package var scope: [String] = []  // The scopes; empty: the descriptor's.
  package var variables: [String: String] = [:]
  package var opensBrowser = true
  /// Whether the browser that is opened runs on this machine, and can be led to the page from a port of it.
  package var hasLocalBrowser = true
  package var pastes = false  // Whether the redirect is pasted, and nothing listens.
  package var timeout = Duration.seconds(300)  // Until the login is given up.
  /// Whether a token is all that is wanted: an account that has a valid one meanwhile needs no login.
  package var unlessAlive = false

  package init() {}

  /// Fills in what is not said with what an account was logged in with.
  mutating func `repeat`(_ credential: Credential, among offered: [Grant]) {
    if variables.isEmpty { variables = credential.variables }
    if scope.isEmpty { scope = credential.requestedScope }
    if grant == nil, !credential.isGiven, !credential.grant.traits.needsPerson, offered.contains(credential.grant) {
      grant = credential.grant
    }
  }
}

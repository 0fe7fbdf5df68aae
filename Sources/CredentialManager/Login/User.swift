import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrDescriptors
import CredmgrText

package enum LoginStep: Sendable, Equatable {
  case alreadyLoggedIn(accounts: [String])
  case open(url: String)
  case visit(url: String)
  case pageExpires(after: Duration)  // The user must open the address before that.
  /// The user may also paste the redirect. A browser on another machine cannot load it.
  case awaiting(redirect: String, canPaste: Bool, opensBrowser: Bool)
  case awaitingConsent(left: Duration)
  /// The user must paste the address where the browser ended, or the code on that page.
  case paste(redirect: String)
  case tokenPaste  // From now on, pasted text may contain a token.
  /// The code to enter in another device's browser, how long it is valid, and how long the login waits.
  case device(userCode: String, url: String, completeURL: String?, validFor: Duration, patience: Duration)
  /// The provider asks the user on another device, which shows the same message.
  case confirmation(bindingMessage: String?, validFor: Duration, patience: Duration)
  case waiting(for: Duration, process: Int32?)  // The process of the login that this one waits for, if known.
  case strayRedirect(count: Int)  // The number of requests that did not answer this login.
  /// Another user's program on this machine requested the login page and was refused.
  case intruder(user: UInt32)
  case tooLong  // The login page refused a request for its length, which may be the provider's answer.
  case reopened  // The browser opened the login page again and was refused.
  /// Why the pasted text does not answer this login, which now waits for another line.
  case strayPaste(CredentialError)
}

package protocol User: AnyObject {
  func tell(_ step: LoginStep)
  func open(_ url: String) -> Bool
  /// Returns a pasted line; `nil` if credmgr cannot prompt, or when the time is up.
  func pastedLine(within time: Duration) -> String?
  /// Returns one text for each field; `nil` if credmgr cannot prompt.
  func texts(for prompt: Step.Prompt) throws(CredentialError) -> [String]?
  /// Returns the index of the entry that the user chooses; `nil` if credmgr cannot prompt.
  func choice(among labels: [String], of provider: String) throws(CredentialError) -> Int?
  /// Shows why the provider neither accepted nor refused a credential, and asks whether to store it; `nil` if credmgr
  /// cannot prompt.
  func confirmStoring(unverified error: CredentialError) -> Bool?
  /// Whether the program can ask the user a question now.
  var canAnswer: Bool { get }
  /// Whether an account that no longer works shall belong to the user who signed in instead; `found` is `nil` if the
  /// provider's name for this user is not valid.
  func givesAway(_ account: String, of expected: String, to found: String?) -> Bool
  /// A file descriptor for pasted lines while a browser is open; `nil` if the user cannot paste.
  var pasteDescriptor: Int32? { get }
  /// Checks on programs opened for the user. Called several times a second during a wait.
  func poll()
  var isCancelled: Bool { get }
}

package struct LoginOptions: Sendable {
  package var account: String?  // `nil` to use the provider's user name.
  package var grant: Grant?  // `nil` for the descriptor's first grant that works here.
  package var scope: [String] = []  // If empty, the login requests the descriptor's scopes.
  package var details: AuthorizationDetails?  // `nil` for the descriptor's authorization details.
  package var demands = ConsentDemands()
  /// Whether the login also requests the scopes that the account has.
  package var keepsScope = false
  package var variables: [String: String] = [:]
  package var opensBrowser = true
  /// Whether the browser runs on this machine, so a local port can redirect it to the page.
  package var hasLocalBrowser = true
  package var pastes = false  // Whether to paste the redirect instead of listening.
  package var timeout = Duration.seconds(300)  // How long the login may take.
  /// Whether any account with a valid token makes the login unnecessary.
  package var unlessAlive = false
  /// Whether an existing token is stored only after the provider accepted it.
  package var verifies = false
  package var keepsUnverified = false  // Whether the user agreed to store a credential without verification.
  /// Whether an existing token may replace another token of the same account.
  package var replaces = true
  package var keeps: Set<String> = []  // Accounts that it never replaces.
  package var givesAway = false  // Whether the account may belong to another user from now on.
  /// The `CredentialSource.destinationsDigest` from before a question or a prompt; `nil` without one.
  package var seenDigest: String?
  package var vault: String?  // The shared vault that gets the account; `nil` for the vault that has it.
  package var refreshToken: Secret?  // Of another tool with the same client, which replaces the consent.
  package var clientIdentifier: String?  // That client; `nil` for the provider's.
  package var clientSecret: Secret?  // Its secret; `nil` for the provider's.
  package var importWords: [String] = []  // The words of the `import` that this login is a part of.
  /// The variables that chose the element of the account that this login may give to another user.
  private(set) var choices: [String: String] = [:]
  package var hasKeyFile = false  // Whether the user named the key file.
  package var expiresAt: Moment?  // When a key that the user brings expires; `nil` if the user does not say.

  package init() {}

  /// Fills in missing options from an earlier login of the account.
  mutating func `repeat`(_ credential: Credential, in descriptor: Descriptor) {
    let offered = descriptor.grants
    if variables.isEmpty {
      // The user types the parts of another key again.
      let inFile = descriptor.key?.file.map(\.variable) ?? []
      // The user does not type the token of another issuer.
      let isTyped = inFile.isEmpty && credential.grant != .tokenExchange
      variables = credential.variables.filter { name, _ in
        // Another user chooses again.
        if givesAway, descriptor.choosingVariables.contains(name) {
          choices[name] = credential.variables[name]
          return false
        }
        guard let variable = descriptor.variable(name), variable.isAtLogin else { return true }
        if variable.isAtExchange { return true }
        let isOfKey = isTyped || variable.isSecret || inFile.contains(name)
        return credential.grant.traits.asked == nil || !isOfKey
      }
    }
    if scope.isEmpty {
      scope = credential.requestedScope
    } else if keepsScope {
      let current = credential.requestedScope.isEmpty ? credential.grantedScope ?? [] : credential.requestedScope
      scope = current + scope.filter { !current.contains($0) }
    }
    details = details ?? credential.requestedDetails
    if grant == nil, !credential.isGiven, !credential.grant.traits.needsPerson, offered.contains(credential.grant) {
      grant = credential.grant
    }
  }
}

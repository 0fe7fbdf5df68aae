import Descriptors
import Text

/// Every sentence of the simulator, for people.
enum SimulatorWords {
  // MARK: Pages

  static let refusedTitle = "The request was refused"
  static let codeTitle = "Your code"
  static let codeText = "Copy this code into the program that asked for it:"
  static let decidedTitle = "Done"
  static let decidedText = "You can close this page and go back to the device."
  static let noScope = "none in particular"
  static let clientLabel = "Program"
  static let scopeLabel = "Scopes"
  static let redirectLabel = "Afterwards to"
  static let userCodeLabel = "Code"
  static let accountLabel = "Log in as"
  static let approveLabel = "Approve"
  static let denyLabel = "Deny"
  static let nothing = "nothing that this descriptor declares"

  static func consentTitle(_ provider: String) -> String { "Simulated \(provider)" }

  // MARK: What was wrong with a request

  static func sentence(_ reason: Reason) -> String {
    switch reason {
    case .foreignHost: "the request is for another host"
    case .noSuchPath: "no endpoint of the descriptor has this path"
    case .wrongMethod(let expected): "the method must be \(list(expected))"
    case .wrongMediaType(let expected): "the body must be of the type \(expected)"
    case .malformedBody: "the body cannot be read"
    case .unwantedBody: "the parameters belong into the query, and the body must be empty"
    case .missing(let name): "\(quoted(name)) is missing"
    case .misplaced(let name, let placement): "\(quoted(name)) must be in \(place(placement))"
    case .repeated(let name): "\(quoted(name)) is there twice"
    case .renamed(let name, let wire): "\(quoted(name)) is called \(quoted(wire)) here"
    case .unwanted(let name): "\(quoted(name)) must not be there"
    case .wrongValue(let name): "\(quoted(name)) does not have the value that the descriptor says"
    case .missingHeader(let name): "the header \(quoted(name)) is missing"
    case .wrongHeader(let name): "the header \(quoted(name)) does not have the value that the descriptor says"
    case .wrongScopeSeparator(let expected): "scopes must be separated by \(quoted(expected))"
    case .wrongClientAuthentication(let expected): "the client must authenticate by \(expected.rawValue)"
    case .twoClientAuthentications: "the client authenticates in two ways at once"
    case .unknownClient: "the client identifier or secret is not the registered one"
    case .unsupportedGrantType: "the descriptor has no leg with this grant type"
    case .unsupportedResponseType: "the descriptor has no grant with this response type"
    default: sentenceAboutGrants(reason)
    }
  }

  private static func sentenceAboutGrants(_ reason: Reason) -> String {
    switch reason {
    case .redirectMismatch:
      "the redirect URI is not the registered one, or not the one of the authorization request"
    case .malformedChallenge: "the code challenge does not have the form of its method"
    case .unwantedChallenge(let name):
      "the descriptor says that there is no PKCE, and \(quoted(name)) is there"
    case .verifierMismatch: "the code verifier does not belong to the challenge"
    case .codeUnknown: "the code is not known"
    case .codeExpired: "the code has expired"
    case .codeUsedTwice: "the code was used before, and what it gave is revoked"
    case .refreshTokenUnknown: "the refresh token is not known"
    case .refreshTokenExpired: "the refresh token has expired"
    case .refreshTokenReused: "the refresh token was replaced before, and what came of it is revoked"
    case .revoked: "the consent was revoked"
    case .denied: "the person said no"
    case .consentUnknown: "this page was answered before, or is from another start of the simulator"
    case .malformedAccount: "an account is a name of 1 to 64 characters"
    case .deviceCodeUnknown: "the device code is not known"
    case .userCodeUnknown: "no device waits with this code"
    case .devicePending: "nobody has confirmed yet"
    case .pollTooSoon: "the device asked sooner than it may"
    case .deviceCodeExpired: "the device code has expired"
    default: sentenceAboutTokens(reason)
    }
  }

  private static func sentenceAboutTokens(_ reason: Reason) -> String {
    switch reason {
    case .notPresented(let expected): "the token must be presented as: \(expected)"
    case .presentedTwice: "the token is presented twice"
    case .tokenUnknown: "the token is not known"
    case .tokenExpired: "the token has expired"
    case .protocolParametersMisplaced(let expected):
      "the signature and its parameters must be in the \(expected.rawValue), and nowhere else"
    case .wrongSignatureMethod(let expected): "the signature method must be \(expected.rawValue)"
    case .wrongSignature: "the signature is not that of the request"
    case .timestampOutOfRange: "the timestamp is missing, or far from the time here"
    case .nonceUsed: "the nonce was used before"
    case .temporaryCredentialsUnknown: "the temporary credentials are not known, or were used before"
    case .notAuthorized: "nobody has approved the temporary credentials"
    case .wrongVerifier: "the verifier is not the one of the approval"
    case .sessionHandleUnknown: "the session handle does not belong to the token"
    default: "the request is refused"
    }
  }

  static let descriptorComment =
    "The provider as credmgr-simulator plays it: it is gone when the simulator ends."

  private static func place(_ placement: ParameterPlacement) -> String {
    switch placement {
    case .query: "the query"
    case .form: "the form body"
    case .json: "the JSON body"
    case .fragment: "the fragment"
    }
  }

  static func list(_ texts: [String]) -> String { texts.joined(separator: ", ") }
}

func quoted(_ text: String) -> String { "\"\(text)\"" }

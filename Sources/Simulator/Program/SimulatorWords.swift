import Descriptors
import Commands
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
    case .unreadableRequest: "the request's target or host cannot be read"
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

  // MARK: Why it does not start

  static let descriptorComment =
    "The provider as credmgr-simulator plays it: it is gone when the simulator ends."

  static let usage = """
    usage: credmgr-simulator ID|FILE [OPTION]…

    "credmgr help simulate" shows its options.

    """

  static func message(_ error: SimulatorError) -> Message {
    switch error {
    case .usage(let usage): message(usage)
    case .unreadable(let path): Message("the file \(quoted(path)) cannot be read", status: .usage)
    case .provider(let error): error.message
    case .variableNeeded(let variable):
      Message(
        "the variable \(quoted(variable.name)) has no value" + (variable.help.map { ": " + $0 } ?? ""),
        hint: "add \"--set \(variable.name)=VALUE\"", status: .usage)
    case .unknownSignature(let text):
      Message("\(quoted(text)) is no signature method or transport of OAuth 1.0a", status: .usage)
    case .keyNeeded(let method):
      Message(
        "\(method.rawValue) needs the client's RSA key",
        hint: "make one with \"openssl genrsa -out key.pem 2048\", and add \"--client-secret-file key.pem\"",
        status: .usage)
    case .portUnavailable(let port):
      Message("the port \(port) is not free", hint: "leave \"--port\" out to get a free one", status: .usage)
    case .serverFailed: Message("the HTTP server does not start", status: .unexpected)
    case .temporaryFolder: Message("a temporary folder cannot be made or written", status: .unexpected)
    case .output: Message("standard output cannot be written", status: .unexpected)
    }
  }

  private static func message(_ usage: SimulatorError.Usage) -> Message {
    switch usage {
    case .unknownOption(let option, let suggestion):
      Message(
        "unknown option \(quoted(option))" + didYouMean(suggestion),
        hint: helpHint, status: .usage)
    case .missingValue(let option): Message("\(quoted(option)) needs a value", hint: helpHint, status: .usage)
    case .invalidValue(let option, let value):
      Message("\(quoted(value)) is no value for \(quoted(option))", hint: helpHint, status: .usage)
    case .unknownFault(let name, let known):
      Message(
        "unknown fault \(quoted(name))\(didYouMean(nearMiss(name, among: known))); known are \(list(known))",
        status: .usage)
    case .missingDescriptor:
      Message("the identifier or the file of a descriptor is missing", hint: helpHint, status: .usage)
    case .unexpectedArgument(let text):
      Message("unexpected argument \(quoted(text))", hint: helpHint, status: .usage)
    }
  }

  private static let helpHint = "run \"credmgr help simulate\""

  private static func place(_ placement: ParameterPlacement) -> String {
    switch placement {
    case .query: "the query"
    case .form: "the form body"
    case .json: "the JSON body"
    case .fragment: "the fragment"
    }
  }

  static func quoted(_ text: String) -> String { "\"\(text)\"" }

  static func list(_ texts: [String]) -> String { texts.joined(separator: ", ") }
}

import CredmgrOAuth
import CredmgrText

extension JWTFault {
  package var sentence: String {
    switch self {
    case .unsigned: "it is not signed"
    case .encrypted: "it is encrypted, and credmgr has no key for it"
    case .nested: "it contains another token (\"cty\")"
    case .critical: "it requires an extension that credmgr does not support (\"crit\")"
    case .type(let type): "it is another kind of token (\"typ\" is \(shortened(type)))"
    case .algorithm(let name): "credmgr does not accept its signature algorithm \(shortened(name)) for this provider"
    case .keyUnusable:
      "the key that signed it is too short, not for signatures, or of a kind that credmgr does not verify"
    case .keyOmitted(let count):
      "the key that signed it is not among the first \(count) keys of the provider, and credmgr reads no more"
    case .keyUnknown: "the provider does not publish the key that signed it"
    case .keyAmbiguous: "the provider publishes several keys that could have signed it"
    case .signature: "its signature is wrong"
    case .noSignatures: "this program is statically linked and cannot verify it"
    case .missing(let claim): "it lacks \(quoted(claim))"
    case .repeated(let claim): "it contains \(quoted(claim)) more than once"
    case .issuer(let expected, let found): "its issuer is \(shortened(found)) instead of \(shortened(expected))"
    case .audience: "it is for another client (\"aud\")"
    case .authorizedParty: "it was issued to another client (\"azp\")"
    case .expired: "it has expired (\"exp\"); the clock of this machine may be wrong"
    case .issuedLater: "it is from the future (\"iat\" or \"nbf\"); the clock of this machine may be wrong"
    case .nonce: "its \"nonce\" belongs to another login"
    case .accessTokenHash: "it does not belong to the access token (\"at_hash\")"
    case .authenticationContext(let found):
      "you signed in as \(shortened(found)), which the login did not request (\"acr\")"
    case .authenticatedEarlier: "you signed in longer ago than the login allows (\"auth_time\")"
    case .authenticatedLater: "you signed in in the future (\"auth_time\"); the clock of this machine may be wrong"
    case .subject: "it is for another user (\"sub\")"
    }
  }
}

/// Quotes a text of a server, which may be as long as its answer.
func shortened(_ text: String) -> String { quoted(clipped(text)) }

func clipped(_ text: String) -> String { text.count <= 200 ? text : String(text.prefix(200)) + "…" }

/// The first few of the names that a server gives.
package func first(_ names: [String]) -> String { listed(names.prefix(8).map(clipped)) }

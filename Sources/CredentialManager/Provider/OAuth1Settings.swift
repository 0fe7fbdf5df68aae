import CredmgrDescriptors
import CredmgrOAuth

/// The settings that protect a login and the secrets of OAuth 1.0a (RFC 5849), for ``Client/settings``.
extension Client {
  var signatureSettings: [String: [String]] {
    guard descriptor.grants.contains(.oauth1) else { return [:] }
    func rule(_ isRequired: Bool) -> [String] { isRequired ? ["required"] : ["required", "optional"] }
    let methods = AgreedPlaces(self, hiding: []).texts(of: descriptor.oauth1.signatureMethod)
    let isPlain = methods.contains(SignatureMethod.plaintext.rawValue)
    return [
      "oauth1.callback_confirmed": rule(descriptor.oauth1.requiresCallbackConfirmed),
      "oauth1.verifier": rule(descriptor.oauth1.requiresVerifier),
      "oauth1.signature_method": isPlain ? ["signed", SignatureMethod.plaintext.rawValue] : ["signed"],
    ]
  }

  var signatureSecrets: [ResponseField] {
    descriptor.grants.contains(.oauth1) ? [.oauthToken, .oauthTokenSecret, .oauthSessionHandle] : []
  }
}

import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrText

// OpenID Connect RP-Initiated Logout 1.0
extension CredentialSource {
  /// Returns the page that ends the session of an account's user at the provider; `nil` without such a page or without
  /// an ID token.
  package func endSessionPage(of name: String?, at provider: String) throws(CredentialError) -> URI? {
    guard let account = try accountsIfAny()?.resolve(name, provider: provider) else { return nil }
    let permit = try permit(.logout, provider, variables: account.credential.variables)
    guard permit.client.made(account.credential) else { return nil }
    secrets.learn(account.credential)
    let request = try core(provider, permit.client.endSessionRequest(account.credential, nonce: nonce))
    guard let uri = request?.uri else { return nil }
    try permit.require(uri)
    return uri
  }

  /// Shows a page with a secret in its address in the user's browser. The browser starts at a local address, because
  /// all users of a machine can read a program's arguments. Returns whether the browser got the page.
  package func show(
    _ page: URI, within time: Duration = .seconds(10), opening: (_ address: String) -> Bool
  ) throws(HTTPError) -> Bool {
    var receiver = try LoopbackReceiver(interface: .ipv4, port: nil, path: "/")
    let address = receiver.lead(to: page, name: Base64.encodeURL(random.bytes(32)), needsOrigin: true)
    guard opening(address) else { return false }
    return try receiver.leads(within: time)
  }
}

import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrOAuth

extension CredentialSource {
  /// Asks a container registry whether it accepts a login, as `docker login` does: with Basic, or with a token that its
  /// token server issues for the login (https://distribution.github.io/distribution/spec/auth/token/). Returns `nil` if
  /// the registry cannot say so, and its token server if another server got the password. The login belongs to the
  /// registry, not to a provider, so no agreement covers it.
  package func registry(
    at host: String, isSecure: Bool, accepts login: HostLogin
  ) throws(CredentialError) -> (isAccepted: Bool?, tokenServer: String?) {
    // Docker Hub's own name for its API.
    let isHub = HostClaim.names(of: host, for: .docker).count > 1
    let server = isHub ? "registry-1.docker.io" : host
    guard let base = try? URI(parsing: "\(isSecure ? "https" : "http")://\(server)/v2/"),
      base.isSecure || base.isLoopback
    else { return (nil, nil) }
    var asked: String?
    let basic = "Basic " + Base64.encode(Array("\(login.username ?? ""):\(login.password.reveal())".utf8))
    do throws(CredentialError) {
      let first = try get(base, nil)
      // A registry that answers everybody does not look at a login.
      guard first.status == 401 else { return (nil, nil) }
      let challenges = first.challenges
      if let bearer = challenges.first(where: { $0.scheme == "bearer" }) {
        guard let tokens = tokenServer(bearer, of: base, user: login.username ?? "") else {
          return (nil, nil)
        }
        if tokens.origin != base.origin { asked = tokens.origin }
        let answer = try get(tokens, basic)
        guard answer.status == 200 else { return ([401, 403].contains(answer.status) ? false : nil, asked) }
        let value = try? JSONValue.parse(answer.body)
        guard let token = value?["token"]?.text ?? value?["access_token"]?.text, Self.isPlain(token) else {
          return (nil, asked)
        }
        return (decision(try get(base, "Bearer " + token)), asked)
      }
      guard challenges.contains(where: { $0.scheme == "basic" }) else { return (nil, nil) }
      return (decision(try get(base, basic)), nil)
    } catch {
      guard case .http = error else { throw error }
      return (nil, asked)
    }
  }

  private static func isPlain(_ token: String) -> Bool { token.utf8.allSatisfy { (0x21..<0x7F).contains($0) } }

  private func decision(_ response: HTTPResponse) -> Bool? {
    switch response.status {
    case 200..<300: true
    case 401, 403: false
    default: nil
    }
  }

  /// Returns the request for a token that the registry demands; `nil` if its token server is not one for passwords.
  private func tokenServer(_ challenge: Challenge, of registry: URI, user: String) -> URI? {
    guard let realm = challenge["realm"], let uri = try? URI(parsing: realm), uri.fragment == nil,
      uri.isSecure || (uri.isLoopback && registry.isLoopback),
      // A remote registry must not direct the password to this machine or its private network.
      !uri.isInward || uri.host == registry.host
    else { return nil }
    var parameters = FormParameters()
    if let service = challenge["service"] { parameters.append("service", service) }
    parameters.append("account", user)
    return uri.adding(query: parameters)
  }

  private func get(_ uri: URI, _ authorization: String?) throws(CredentialError) -> HTTPResponse {
    var request = HTTPRequest(method: "GET", uri: uri)
    if let authorization { request.fields.set("Authorization", authorization) }
    return try sendWithoutCredential(to: uri.host ?? "", request)
  }
}

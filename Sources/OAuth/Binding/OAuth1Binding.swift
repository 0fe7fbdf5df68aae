import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP

/// Signs each request with the token's secret (RFC 5849, 3).
struct OAuth1Binding: TokenBinding {
  let client: Client

  private var rules: OAuth1Rules { client.descriptor.oauth1 }

  var authenticatesClient: Bool { true }
  var fieldNames: Set<String> { ["authorization"] }

  /// Only a form takes part in the signature (RFC 5849, 3.4.1.3.1).
  func signsBody(of request: HTTPRequest) -> Bool { request.hasForm }

  func sign(
    _ request: HTTPRequest, with credential: Credential, nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    try signed(
      request, token: (credential.accessToken, credential.tokenSecret ?? Secret("")), nonce: nonce,
      variables: credential.variables)
  }

  /// Signs a request (RFC 5849, 3.5). `token` is `nil` before the first step; that step adds its protocol parameters.
  func signed(
    _ request: HTTPRequest, token: (token: Secret, secret: Secret)?, _ protocolParameters: FormParameters = [],
    nonce: RequestNonce, variables: [String: String] = [:]
  ) throws(OAuthError) -> HTTPRequest {
    let values = client.values(for: nil, variables)
    let method: SignatureMethod = try named(rules.signatureMethod, values)
    let transport: SignatureTransport = try named(rules.transport, values)
    var parameters: FormParameters = [("oauth_consumer_key", client.identifier)]
    if let token { parameters.append("oauth_token", token.token.reveal()) }
    parameters.append("oauth_signature_method", method.rawValue)
    parameters.append("oauth_timestamp", "\(nonce.timestamp.secondsSince1970)")
    // Servers built on oauthlib accept only nonces of 20 to 30 letters and digits.
    parameters.append("oauth_nonce", String(nonce.text.prefix(28)))
    if rules.sendsVersion { parameters.append("oauth_version", "1.0") }
    parameters.append(contentsOf: protocolParameters)
    var request = request
    // Only a form can carry the parameters in its body; every request can carry them in a header (RFC 5849, 3.5).
    let mayCarry = !["GET", "HEAD"].contains(request.method) && (request.hasForm || request.body.isEmpty)
    let carriesBody = transport == .body && mayCarry
    let baseString = OAuth1Signature.baseString(request, parameters)
    let signature = try client.computing.signature("oauth_signature") { () throws(OAuthError) in
      try OAuth1Signature.sign(
        baseString, method, clientSecret: client.secret ?? Secret(""), tokenSecret: token?.secret ?? Secret(""))
    }
    parameters.append("oauth_signature", signature)
    if transport == .query {
      request.uri = request.uri.adding(query: parameters)
    } else if carriesBody {
      var form = FormParameters(decoding: String(decoding: request.body, as: UTF8.self))
      form.append(contentsOf: parameters)
      request.fields.set("Content-Type", "application/x-www-form-urlencoded")
      request.body = Array(form.encoded.utf8)
    } else {
      let realm = try? rules.realm?.filled(values)
      var pieces = realm.map { ["realm=\"" + $0 + "\""] } ?? []
      pieces += parameters.pairs.map {
        PercentEncoding.encode($0.name) + "=\"" + PercentEncoding.encode($0.value) + "\""
      }
      let value = "OAuth " + pieces.joined(separator: ", ")
      guard HTTPFields.isValid(value: value), realm?.contains("\"") != true else {
        throw .malformedHeader(name: "Authorization")
      }
      request.fields.set("Authorization", value)
    }
    return request
  }

  private func named<Choice: RawRepresentable>(
    _ template: Template, _ values: (String) -> String?
  ) throws(OAuthError) -> Choice where Choice.RawValue == String {
    let text = (try? template.filled(values)) ?? ""
    guard let choice = Choice(rawValue: text) else { throw .unknownSignature(text) }
    return choice
  }
}

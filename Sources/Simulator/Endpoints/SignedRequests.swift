import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// Signed authorization requests (RFC 9101) and answers (JARM).
extension Simulation {
  /// How many seconds the client's clock may be ahead: FAPI 2.0 Security Profile, 5.3.2.1, demands 10.
  private static let fastestClock: Int64 = 10

  /// Returns the parameters inside the request object, if the descriptor says that requests are signed. Parameters
  /// outside of it do not count (RFC 9101, 6.3), so a client that sends any others has a fault.
  func opened(_ parameters: EndpointParameters) throws(Refusal) -> EndpointParameters {
    guard descriptor.signsRequests else {
      if try parameters.optional("request") != nil { throw .unwanted("request") }
      return parameters
    }
    let identifier = parameters.wireName("client_id")
    for name in parameters.names where name != identifier && name != "request" { throw .unwanted(name) }
    guard isClient(try parameters.needed("client_id")) else { throw .unknownClient }
    let rules = descriptor.assertion ?? AssertionRules()
    let algorithm = rules.algorithm ?? .rs256
    guard let (header, claims, signature) = Self.parts(ofJWT: try parameters.needed("request")),
      header["alg"]?.text == algorithm.rawValue, header["typ"]?.text == "oauth-authz-req+jwt",
      rules.key.names != ["client_secret"]
        || isSignature(signature.bytes, of: signature.text, algorithm.scheme, key: clientSecret),
      claims["iss"]?.text.map(isClient) == true, let beginning = claims["nbf"]?.integer,
      let end = claims["exp"]?.integer,
      beginning <= now.wholeSeconds + Self.fastestClock, now.wholeSeconds <= end, end - beginning <= 3600,
      claims["aud"]?.text == issuer ?? (try? parameters.endpoint.url.filled(value))?.withoutQueryAndFragment.text,
      claims["request"] == nil, claims["request_uri"] == nil
    else { throw .wrongValue("request") }
    let own = (claims.members ?? []).filter { !["iss", "aud", "exp", "nbf", "iat", "jti"].contains($0.name) }
    var page = HTTPRequest(method: "GET", uri: parameters.request.uri)
    page.uri = page.uri.withoutQueryAndFragment.adding(
      query: FormParameters(own.map { .init(name: $0.name, value: $0.value.scalarText ?? $0.value.encoded) }))
    return try EndpointParameters(page, .authorization, of: parameters.endpoint)
  }

  /// Returns the answer as a JWT with a short life (JARM, 2.1).
  func signedAnswer(_ parameters: FormParameters) -> FormParameters {
    let own = parameters.pairs.filter { $0.name != "iss" }.map { JSONValue.Member($0.name, .string($0.value)) }
    let claims: [JSONValue.Member] = [
      .init("iss", .string(hasFault(.wrongIssuer) ? "https://wrong-issuer.example" : issuer ?? origin)),
      .init("aud", .string(Self.clientIdentifier)), .init("exp", .duration(now + .minutes(1))),
    ]
    return [("response", signed(.object(claims + own)))]
  }
}

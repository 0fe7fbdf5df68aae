import CredmgrDescriptors
import CredmgrHTTP
import CredmgrJSON
import CredmgrText

/// Signed authorization requests (RFC 9101) and answers (JARM).
extension Simulation {
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
    let object = try ClientJWT(
      parameters.needed("request"), as: .requestObject, descriptor.assertion?.algorithm ?? .rs256, checkedBy: self)
    let claims = object.claims
    guard claims["iss"]?.text.map(isClient) == true else { throw object.fault("its \"iss\" is not the client") }
    guard let beginning = claims["nbf"]?.integer, let end = claims["exp"]?.integer else {
      throw object.fault("it has no \"nbf\"")
    }
    // FAPI 2.0 Message Signing, 5.3.1.
    guard beginning >= end - 3600 else { throw object.fault("it is valid for more than an hour") }
    let address = (try? parameters.endpoint.url.filled(value))?.withoutQueryAndFragment.text
    guard claims["aud"]?.text == issuer ?? address else {
      throw object.fault("its \"aud\" is not the \(issuer == nil ? "address of the page" : "issuer")")
    }
    for name in ["request", "request_uri"] where claims[name] != nil {
      throw object.fault("it contains \(quoted(name))")
    }
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

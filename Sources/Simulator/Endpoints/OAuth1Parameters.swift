import CredmgrDescriptors
import CredmgrHTTP

/// The protocol parameters of a signed request (RFC 5849, 3.5), separated from the request.
struct OAuth1Parameters {
  let signed: FormParameters  // Without `realm` and the signature.
  let signature: String  // `oauth_signature`.
  let realm: String?  // From the header.
  /// The rest of the request, whose query and form take part in the signature.
  private(set) var request: HTTPRequest

  /// Throws if the parameters are missing, in several places, or not where `transport` says.
  init(_ request: HTTPRequest, _ transport: SignatureTransport) throws(Refusal) {
    self.request = request
    let isForm = request.fields.mediaType == MediaType.form
    let query = Self.parted(request.uri.queryParameters)
    let body = Self.parted(isForm ? FormParameters(decoding: String(decoding: request.body, as: UTF8.self)) : [])
    // Only a form can carry them in its body; every request can carry them in a header (RFC 5849, 3.5).
    let bodyCannot = request.method == "GET" || (!request.body.isEmpty && !isForm)
    let expected = transport == .body && bodyCannot ? .header : transport
    let found = [SignatureTransport.header: Self.header(of: request) ?? [], .body: body.own, .query: query.own]
    // A temporary token and verifier alone are the answer to a login page, not a signed request.
    guard found.filter({ $0.value.contains("oauth_signature") }).map(\.key) == [expected], let own = found[expected]
    else { throw .protocolParametersMisplaced(expected: expected) }
    for name in own.names where own.values(of: name).count > 1 { throw .repeated(name) }
    signature = own[first: "oauth_signature"] ?? ""
    realm = own[first: "realm"]
    signed = FormParameters(own.pairs.filter { $0.name != "oauth_signature" && $0.name != "realm" })
    if expected == .body { self.request.body = Array(body.others.encoded.utf8) }
    if expected == .query { self.request.uri = request.uri.withoutQueryAndFragment.adding(query: query.others) }
  }

  func needed(_ name: String) throws(Refusal) -> String {
    guard let value = signed[first: name], !value.isEmpty else { throw .missing(name) }
    return value
  }

  /// Returns the parameters of an `Authorization: OAuth` header; `nil` without such a header.
  static func header(of request: HTTPRequest) -> FormParameters? {
    let scheme = "oauth "
    guard let value = request.fields["Authorization"], value.lowercased().hasPrefix(scheme) else { return nil }
    var parameters = FormParameters()
    for piece in value.dropFirst(scheme.count).split(separator: ",") {
      let pair = Simulation.quotedPair(piece)
      // The realm is a quoted string and not percent-encoded.
      let text = pair.name == "realm" ? pair.value : PercentEncoding.decode(pair.value, plusAsSpace: false)
      if let text, let name = PercentEncoding.decode(pair.name, plusAsSpace: false) { parameters.append(name, text) }
    }
    return parameters
  }

  private static func parted(_ parameters: FormParameters) -> (own: FormParameters, others: FormParameters) {
    let isOwn = { (pair: FormParameters.Pair) in pair.name.hasPrefix("oauth_") }
    return (FormParameters(parameters.pairs.filter(isOwn)), FormParameters(parameters.pairs.filter { !isOwn($0) }))
  }
}

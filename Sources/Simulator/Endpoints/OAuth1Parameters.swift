import HTTP
import Descriptors

/// The protocol parameters of a signed request (RFC 5849, 3.5), taken out of where they stood.
struct OAuth1Parameters {
  /// Without `realm` and the signature.
  var signed = FormParameters()
  /// `oauth_signature`.
  var signature: String
  /// The realm of the header.
  var realm: String?
  /// The request without the parameters, whose own query and form take part in the signature.
  var request: HTTPRequest

  private static let prefix = "oauth_"

  /// - Throws: `Refusal` when they stand in another place than `transport` says, in two, or are not there.
  init(_ request: HTTPRequest, _ transport: SignatureTransport) throws(Refusal) {
    self.request = request
    let header = Self.header(of: request)
    let query = request.uri.queryParameters
    let isForm = HTTPResponse(status: 0, fields: request.fields).mediaType == MediaTypes.form
    let form = isForm ? FormParameters(decoding: String(decoding: request.body, as: UTF8.self)) : []
    // A request without a form cannot carry them in its body; the header can always (RFC 5849, 3.5).
    let bodyCannot = request.method == "GET" || (!request.body.isEmpty && !isForm)
    let expected = transport == .body && bodyCannot ? .header : transport
    let found: [(transport: SignatureTransport, parameters: FormParameters)] = [
      (.header, header ?? []), (.body, Self.protocolParameters(form)),
      (.query, Self.protocolParameters(query)),
    ]
    // The temporary token and the verifier alone are an answer to a person, and no signed request.
    guard found.filter({ $0.parameters.contains("oauth_signature") }).map(\.transport) == [expected],
      let parameters = found.first(where: { $0.transport == expected })?.parameters
    else { throw .request(.protocolParametersMisplaced(expected: expected)) }
    for name in parameters.names where parameters.values(of: name).count > 1 {
      throw .request(.repeated(name))
    }
    signature = parameters[first: "oauth_signature"] ?? ""
    realm = parameters[first: "realm"]
    signed = FormParameters(parameters.pairs.filter { $0.name != "oauth_signature" && $0.name != "realm" })
    switch expected {
    case .header: break
    case .body: self.request.body = Array(Self.others(form).encoded.utf8)
    case .query: self.request.uri = request.uri.withoutQueryAndFragment.adding(query: Self.others(query))
    }
  }

  /// The parameters of an `Authorization: OAuth` header; `nil` when there is none.
  static func header(of request: HTTPRequest) -> FormParameters? {
    let scheme = "oauth "
    guard let value = request.fields["Authorization"], value.lowercased().hasPrefix(scheme) else {
      return nil
    }
    var parameters = FormParameters()
    for piece in value.dropFirst(scheme.count).split(separator: ",") {
      let pair = piece.trimmingSpaces.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, pair[1].count >= 2, pair[1].hasPrefix("\""), pair[1].hasSuffix("\""),
        let name = PercentEncoding.decode(pair[0], plusAsSpace: false)
      else { continue }
      // The realm is a quoted string of HTTP, and not percent-encoded.
      let quoted = pair[1].dropFirst().dropLast()
      let text = name == "realm" ? String(quoted) : PercentEncoding.decode(quoted, plusAsSpace: false)
      if let text { parameters.append(name, text) }
    }
    return parameters
  }

  private static func protocolParameters(_ parameters: FormParameters) -> FormParameters {
    FormParameters(parameters.pairs.filter { $0.name.hasPrefix(prefix) })
  }

  private static func others(_ parameters: FormParameters) -> FormParameters {
    FormParameters(parameters.pairs.filter { !$0.name.hasPrefix(prefix) })
  }
}

extension Substring {
  var trimmingSpaces: Substring {
    var text = drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text = text.dropLast() }
    return text
  }
}

import CredmgrCryptography
import CredmgrHTTP
import CredmgrJSON
import CredmgrDescriptors
import CredmgrXML

/// How a request to an endpoint authenticates the client.
enum RequestProof {
  case asDescribed
  case token
  case signature  // Nothing yet; the signature is added to the finished request (RFC 5849, 3).
}

extension Client {
  /// Limits the total bytes of parameters that a descriptor adds. No real request is longer.
  private static let longestRequest = 1 << 20

  /// Builds a request from the RFC's parameters and the descriptor's changes. Templates may use `exchange`. `lists`
  /// names the parameters that are JSON lists if the endpoint accepts JSON.
  func request(
    _ kind: EndpointKind, _ parameters: FormParameters, credential: Credential? = nil, exchange: [String: String] = [:],
    lists: Set<String> = [], proof: RequestProof = .asDescribed, choosing person: PersonChoice? = nil,
    nonce: RequestNonce
  ) throws(OAuthError) -> HTTPRequest {
    let endpoint = try endpoint(kind)
    // Without the library, the answer and the only copy of its tokens would be lost.
    if endpoint.response.format == .xml, !computing.isOnlyShown, XMLDocument.isMissing {
      throw .libraryMissing(XMLDocument.library)
    }
    let calculate = calculator(nonce)
    var exchange = exchange
    exchange["identity"] = person?.identity
    let takesToken = endpoint.authentication == .accessToken || (kind == .identity && endpoint.authentication == nil)
    let presentsToken = proof == .token || (proof == .asDescribed && takesToken)
    let authenticates =
      proof == .asDescribed && !takesToken && kind != .authorization && kind != .registration
      && kind != .endSession && !kind.leg.isPublic
    // The grant itself may send the assertion (RFC 7523, 2.1), which another issuer may have made.
    let isGrant = parameters.contains("assertion") && !endpoint.sets("assertion")
    let assertion = try assertion(
      at: kind, isNeeded: isGrant, authenticates: authenticates, credential, exchange: exchange, nonce: nonce)
    if let assertion { exchange["assertion"] = assertion }
    let values = values(for: credential, exchange)
    let authentication =
      authenticates
      ? try authentication(at: endpoint, parameters, exchange["assertion"]) : (parameters: [], header: nil)

    var all = parameters
    if let resource, kind.leg.issuesToken { all.append("resource", resource) }
    if isGrant { all.replace("assertion", with: assertion) }
    all.append(contentsOf: authentication.parameters)
    var bytes = 0
    for rule in endpoint.parameters + (person == nil ? [] : endpoint.choosing) {
      let value = try filled(rule.value, values: values, calculate) { .computedValueTooLong(kind, name: rule.name) }
      bytes += value?.utf8.count ?? 0
      guard bytes <= Self.longestRequest else { throw .computedValueTooLong(kind, name: rule.name) }
      all.replace(rule.name, with: value)
    }
    let onTheWire = FormParameters(all.pairs.map { .init(name: endpoint.rename[$0.name] ?? $0.name, value: $0.value) })
    let content = try RequestContent(
      onTheWire, for: endpoint, kind: kind, at: uri(kind, values: values, calculate), lists: lists)
    let bare = HTTPRequest(method: endpoint.method, uri: content.uri, body: content.body)

    // A later field replaces an earlier one with the same name, so the body's own type wins.
    var fields: [HTTPField] = []
    if let header = authentication.header { fields.append(HTTPField(name: "Authorization", value: header)) }
    fields += try filled(
      endpoint.headers, values: self.values(for: credential, exchange, of: bare), calculate, kind: kind)
    if let mediaType = content.mediaType { fields.append(HTTPField(name: "Content-Type", value: mediaType)) }
    var request = bare
    for field in fields { request.fields.set(field.name, field.value) }
    if presentsToken, let credential { request = try presented(credential, on: request, nonce: nonce) }
    // A descriptor's own `Accept`, for this endpoint or for all, takes precedence.
    let format = endpoint.response.format
    if format == .json || format == .xml, request.fields["Accept"] == nil {
      request.fields.set("Accept", format == .json ? "application/json" : "application/xml")
    }
    if authenticates, self.authentication(for: endpoint).usesCertificate { request = try certified(request) }
    guard kind.leg.issuesToken, proof == .asDescribed else { return request }
    return try binding(of: credential, gettingTokenAt: kind).prove(request, nonce: nonce)
  }

  /// Returns the headers that have a value. Optional ones, such as an institution's, may have none.
  func filled(
    _ headers: [HeaderTemplate], values: (String) -> String?, _ calculate: Template.Calculator,
    kind: EndpointKind? = nil
  ) throws(OAuthError) -> [HTTPField] {
    var fields: [HTTPField] = []
    for header in headers {
      let value = try filled(header.value, values: values, calculate) {
        kind.map { .computedValueTooLong($0, name: header.name) } ?? .malformedHeader(name: header.name)
      }
      guard let value else { continue }
      guard HTTPFields.isValid(value: value) else { throw .malformedHeader(name: header.name) }
      fields.append(HTTPField(name: header.name, value: value))
    }
    return fields
  }

  /// Returns the filled template; `nil` if a value is missing.
  func filled(
    _ template: Template?, values: (String) -> String?, _ calculate: Template.Calculator,
    tooLong error: () -> OAuthError
  ) throws(OAuthError) -> String? {
    do { return try template?.filled(values, calculate: calculate) } catch .tooLong { throw error() } catch {
      return nil
    }
  }

  func uri(
    _ kind: EndpointKind, values: (String) -> String?, _ calculate: Template.Calculator
  ) throws(OAuthError) -> URI {
    let endpoint = try endpoint(kind)
    let uri: URI
    do {
      uri = try endpoint.url.filled(values, calculate: calculate)
    } catch .template(.missing(let name)) {
      throw .missingValue(kind, name: name)
    } catch {
      throw .url(kind, error)
    }
    // The descriptor itself was checked, but a variable's value may add a query.
    if kind.leg.asksForConsent, let name = OwnedParameters.owned(in: uri, at: kind, rename: endpoint.rename) {
      throw .ownedParameter(kind, name: name)
    }
    return uri
  }

  /// Returns the client authentication (RFC 6749, 2.3.1).
  private func authentication(
    at endpoint: Endpoint, _ parameters: FormParameters, _ assertion: String?
  ) throws(OAuthError) -> (parameters: FormParameters, header: String?) {
    switch authentication(for: endpoint) {
    case .clientSecretBasic:
      let secret = try sentSecret()
      // Encode both before joining, because a colon in the identifier would otherwise end it.
      let pair = PercentEncoding.encode(identifier) + ":" + PercentEncoding.encode(secret)
      return ([], "Basic " + Base64.encode(Array(pair.utf8)))
    case .clientSecretPost:
      let secret = try sentSecret()
      // A pushed authorization request contains the identifier already (RFC 9126, 2.1).
      var own: FormParameters = parameters.contains("client_id") ? [] : [("client_id", identifier)]
      own.append("client_secret", secret)
      return (own, nil)
    case .privateKeyJWT, .clientSecretJWT:
      guard let assertion else { throw .clientSecretMissing }
      let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
      return ([("client_assertion_type", type), ("client_assertion", assertion)], nil)
    case .none, .tlsClientAuth, .selfSignedTLSClientAuth:
      return (parameters.contains("client_id") || identifier.isEmpty ? [] : [("client_id", identifier)], nil)
    case .accessToken: return ([], nil)
    }
  }

  /// A client without a secret is public, even if the descriptor expects a secret.
  package func authentication(for endpoint: Endpoint) -> ClientAuthentication {
    if let own = endpoint.authentication { return own }
    // These clients are never public, so a missing secret is an error.
    if let method = descriptor.client.authentication, descriptor.profile != nil || method.usesCertificate {
      return method
    }
    guard let secret, !secret.isEmpty else { return .none }
    return descriptor.client.authentication ?? .clientSecretBasic
  }
}

extension FormParameters {
  /// Replaces or appends the parameter; `nil` removes it.
  fileprivate mutating func replace(_ name: String, with value: String?) {
    guard let value else { return remove(name) }
    if let index = pairs.firstIndex(where: { $0.name == name }) {
      pairs[index].value = value
    } else {
      append(name, value)
    }
  }
}

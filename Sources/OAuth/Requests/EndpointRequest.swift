import Cryptography
import HTTP
import JSON
import Descriptors

extension Client {
  /// The request of an endpoint: the RFC's parameters, changed as the descriptor says, put where it says.
  ///
  /// - Parameters:
  ///   - parameters: what the RFC sends, under its names.
  ///   - credential: what kept fields and tokens in templates stand for.
  ///   - exchange: what else templates may use in this exchange.
  ///   - lists: names of parameters whose value is a list, in JSON where the endpoint sends JSON.
  ///   - isSigned: whether a signature (RFC 5849) will show who the client is, so that nothing else does.
  /// - Throws: `OAuthError` when the endpoint is not described, its URL does not come about, or the client has no secret where
  ///   one is needed.
  func request(
    _ kind: EndpointKind, _ parameters: FormParameters, credential: Credential? = nil, exchange: [String: String] = [:],
    lists: Set<String> = [], isSigned: Bool = false
  ) throws(OAuthError) -> HTTPRequest {
    let endpoint = try endpoint(kind)
    let nonce = nonce?()
    let calculate = calculator(nonce)
    var exchange = exchange
    if let assertion = try assertion(endpoint, credential, exchange, nonce) { exchange["assertion"] = assertion }
    let values = values(for: credential, exchange)
    var parameters = parameters
    var fields = HTTPFields()
    let presentsToken =
      endpoint.authentication == .accessToken || (kind == .identity && endpoint.authentication == nil)
    if kind != .authorization, kind != .registration, !presentsToken, !isSigned {
      try authenticate(endpoint, &parameters, &fields, assertion: exchange["assertion"])
    }
    for rule in endpoint.parameters {
      parameters.replace(rule.name, with: rule.value.flatMap { try? $0.filled(values, calculate: calculate) })
    }
    parameters = FormParameters(
      parameters.pairs.map { .init(name: endpoint.rename[$0.name] ?? $0.name, value: $0.value) })
    var request = HTTPRequest(
      method: endpoint.method, uri: try uri(kind, values, calculate), fields: fields)
    try request.place(parameters, endpoint, kind, lists: lists)
    // What a header signs is there before it; the type of the body goes before what a descriptor calls it.
    let mediaType = request.fields["Content-Type"]
    request.fields = fields
    let requestValues = request.values(values)
    for header in endpoint.headers {
      guard let value = try? header.value.filled(requestValues, calculate: calculate) else { continue }
      guard HTTPFields.isValid(value: value) else { throw .malformedHeader(name: header.name) }
      request.fields.set(header.name, value)
    }
    if let mediaType { request.fields.set("Content-Type", mediaType) }
    if presentsToken, !isSigned, let credential {
      request = try presenting(credential, on: request, overwriting: false)
    }
    // What the descriptor says of `Accept`, for this endpoint or for the whole API, goes before this.
    if endpoint.response.format == .json, request.fields["Accept"] == nil {
      request.fields.set("Accept", "application/json")
    }
    return request
  }

  private func uri(
    _ kind: EndpointKind, _ values: (String) -> String?, _ calculate: Template.Calculator
  ) throws(OAuthError) -> URI {
    let url = try endpoint(kind).url
    do {
      return try url.filled(values, calculate: calculate)
    } catch .template(.missing(let name)) {
      throw .missingValue(kind, name: name)
    } catch {
      throw .url(kind, error)
    }
  }

  /// RFC 6749, 2.3.1.
  private func authenticate(
    _ endpoint: Endpoint, _ parameters: inout FormParameters, _ fields: inout HTTPFields, assertion: String?
  ) throws(OAuthError) {
    switch authentication(for: endpoint) {
    case .clientSecretBasic:
      guard let secret else { throw .clientSecretMissing }
      // Both are form-encoded before they are joined, so that a colon in the identifier does not end it.
      let pair = PercentEncoding.encode(identifier) + ":" + PercentEncoding.encode(secret.reveal())
      fields.set("Authorization", "Basic " + Base64.encode(Array(pair.utf8)))
    case .clientSecretPost:
      guard let secret else { throw .clientSecretMissing }
      parameters.append("client_id", identifier)
      parameters.append("client_secret", secret.reveal())
    case .privateKeyJWT, .clientSecretJWT:
      guard let assertion else { throw .clientSecretMissing }
      parameters.append("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
      parameters.append("client_assertion", assertion)
    case .none:
      if !parameters.contains("client_id") { parameters.append("client_id", identifier) }
    case .accessToken:
      break
    }
  }

  /// How the client shows who it is at an endpoint: as the endpoint says, else as the descriptor says, else by Basic when
  /// there is a secret.
  ///
  /// A client that was registered without a secret is a public one, whatever the descriptor expects.
  public func authentication(for endpoint: Endpoint) -> ClientAuthentication {
    if let own = endpoint.authentication { return own }
    guard let secret, !secret.isEmpty else { return .none }
    return descriptor.client.authentication ?? .clientSecretBasic
  }
}

extension FormParameters {
  /// Sets a parameter where it stands, appends it when it is not there, removes it for `nil`.
  fileprivate mutating func replace(_ name: String, with value: String?) {
    guard let value else { return remove(name) }
    if let index = pairs.firstIndex(where: { $0.name == name }) {
      pairs[index].value = value
    } else {
      append(name, value)
    }
  }
}

import CredmgrHTTP
import CredmgrOAuth
import CredmgrText

// The only code that sends requests to providers: it builds and sends each request, and checks the answer.
extension CredentialSource {
  var nonce: RequestNonce { RequestNonce(now: clock.now(), random: random) }

  /// Builds and sends a request. Repeats it once if the answer demands that, according to `binding`.
  func send(
    to permit: Permit, for use: Permit.Use = .exchange, bound binding: (any TokenBinding)? = nil,
    _ make: (RequestNonce) throws(OAuthError) -> HTTPRequest
  ) throws(CredentialError) -> HTTPResponse {
    let response = try exchange(with: permit.provider, permit: permit, for: use, bound: binding, making: make) {
      network, request, isRefused throws(HTTPError) in
      let response = try network.send(request, limits: .tokenEndpoint)
      _ = isRefused(response)
      return response
    }
    secrets.learn(response, of: permit.client.descriptor)
    return response
  }

  func sendWithoutCredential(
    to provider: String, limits: HTTPLimits = .tokenEndpoint, _ request: HTTPRequest
  ) throws(CredentialError) -> HTTPResponse {
    try exchange(with: provider, permit: nil, bound: nil, making: { _ in request }) {
      network, request, _ throws(HTTPError) in
      try network.send(request, limits: limits)
    }
  }

  /// Returns only the head of the answer, and ends the exchange before its body.
  func headWithoutCredential(to provider: String, _ request: HTTPRequest) throws(CredentialError) -> HTTPResponse {
    try exchange(with: provider, permit: nil, bound: nil, making: { _ in request }) {
      network, request, _ throws(HTTPError) in
      try network.stream(request, body: nil, limits: .tokenEndpoint) { _ in false }
    }
  }

  /// Streams the answer to `receive` and returns its head. `receive` does not get an answer that demands another try.
  /// `body` replaces the body of the request. Each try sends it from the beginning.
  func stream(
    to permit: Permit, body: (any HTTPBodySource)? = nil, limits: HTTPLimits, bound binding: (any TokenBinding)?,
    _ make: (RequestNonce) throws(OAuthError) -> HTTPRequest, receive: @escaping (HTTPPart) -> Bool
  ) throws(CredentialError) -> HTTPResponse {
    try exchange(with: permit.provider, permit: permit, for: .presentation, bound: binding, making: make) {
      network, request, isRefused throws(HTTPError) in
      body?.rewind()
      return try network.stream(request, body: body, limits: limits) { part in
        if case .head(let head) = part, isRefused(head) { return false }
        return receive(part)
      }
    }
  }

  private func exchange(
    with provider: String, permit: Permit?, for use: Permit.Use = .exchange, bound binding: (any TokenBinding)?,
    making make: (RequestNonce) throws(OAuthError) -> HTTPRequest,
    transmit: (
      _ network: any HTTPExchange, _ request: HTTPRequest, _ isRefused: @escaping (HTTPResponse) -> Bool
    ) throws(HTTPError) -> HTTPResponse
  ) throws(CredentialError) -> HTTPResponse {
    let network = try network()
    var nonce = nonce
    var mayRepeat = true
    while true {
      var request = try core(provider, make(nonce))
      let server = request.uri.origin
      let last = conversations[provider]?.nonces[server] ?? binding?.lastNonce(of: server)
      if let last, binding != nil, nonce.demanded == nil {
        nonce.demanded = last
        request = try core(provider, make(nonce))
      }
      try permit?.require(request.uri, for: use)
      secrets.learn(request)
      var demanded: RequestNonce?
      let response: HTTPResponse
      do {
        response = try transmit(network, request) { head in
          if let next = binding?.serverNonce(in: head) {
            self.conversations[provider, default: Conversation()].nonces[server] = next
          }
          demanded = mayRepeat ? binding?.nonce(demandedBy: head, after: nonce) : nil
          return demanded != nil
        }
      } catch {
        if request.clientCertificate != nil, case .unreachable(_, let reason) = error, reason.mayBeOfCertificate,
          let fault = permit?.client.certificateFault(at: clock.now())
        {
          notice(.certificateRefused(provider: provider, fault))
        }
        throw error == .interrupted ? .interrupted : .http(error, provider: provider)
      }
      if let permit, let date = response.fields["Date"].flatMap(Moment.init(httpDate:)) {
        conversations[provider, default: Conversation()].clockDifference = date - clock.now()
        conversations[provider]?.signsRequests = permit.client.descriptor.signsRequestsWithTimes
      }
      guard let next = demanded else { return response }
      (nonce, mayRepeat) = (next, false)
    }
  }

  /// Adds the nonces that servers sent meanwhile to a credential that is about to be stored. A request stores nothing,
  /// so it does not keep them.
  func keepNonces(in credential: inout Credential, after old: Credential? = nil, _ permit: Permit) {
    guard credential.proofKey != nil else { return }
    let nonces = old?.serverNonces ?? [:]
    credential.serverNonces = nonces.merging(conversations[permit.provider]?.nonces ?? [:]) { _, new in new }
  }
}

extension HTTPError.Unreachable {
  /// Whether the server may have ended the connection because of the client's certificate.
  fileprivate var mayBeOfCertificate: Bool {
    switch self {
    case .tls, .broken: true
    default: false
    }
  }
}

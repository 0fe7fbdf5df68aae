import Cryptography
import HTTP
import OAuth
import Platform
import Descriptors
import Store

/// One login, from the first request to the credential.
struct LoginSession {
  let source: CredentialSource
  let client: Client
  let options: LoginOptions
  let user: any User
  let deadline: Double

  init(
    source: CredentialSource, client: Client, options: LoginOptions, user: any User, seconds: Int64
  ) {
    self.source = source
    self.client = client
    self.options = options
    self.user = user
    deadline = source.clock.monotonic() + Double(seconds)
  }

  private var provider: String { client.descriptor.identifier }
  private var scope: [String] { options.scope.isEmpty ? client.descriptor.scope.requested : options.scope }
  var secondsLeft: Double { max(deadline - source.clock.monotonic(), 0) }

  /// Runs the grant, and keeps the credential until it is known whose it is.
  func credential(_ grant: Grant, _ pending: borrowing PendingExchange) throws(CredentialError) -> Credential {
    let credential =
      switch grant {
      case .authorizationCode, .implicit: try browserGrant(grant, pending)
      case .deviceCode: try deviceGrant(pending)
      case .clientCredentials: try clientCredentialsGrant(pending)
      case .oauth1: try oauth1Grant(pending)
      }
    guard let request = try core({ () throws(OAuthError) in try client.tokenExchangeRequest(credential) }) else {
      return credential
    }
    return try exchange(.tokenExchange, request, pending) { response throws(OAuthError) in
      try client.credential(
        response, .tokenExchange, grant: grant, scope: scope, previous: credential, now: source.clock.now())
    }
  }

  private func core<Result>(_ step: () throws(OAuthError) -> Result) throws(CredentialError) -> Result {
    try source.core(provider, step)
  }

  private func send(_ request: HTTPRequest) throws(CredentialError) -> HTTPResponse {
    try source.send(request, provider: provider)
  }

  // MARK: The commit

  /// The exchange that brings the token. Signals wait until it is in the vault.
  private func exchange(
    _ kind: EndpointKind, _ request: HTTPRequest, _ pending: borrowing PendingExchange,
    _ read: (HTTPResponse) throws(OAuthError) -> Credential
  ) throws(CredentialError) -> Credential {
    let (credential, response) = try Signals.deferring { () throws(CredentialError) in
      let response = try send(request)
      FaultPoint.reach("login.answered")
      return (kept(try core { () throws(OAuthError) in try read(response) }, pending), response)
    }
    tellUnreadable(response, kind, credential.grant)
    return credential
  }

  private func tellUnreadable(_ response: HTTPResponse, _ kind: EndpointKind, _ grant: Grant) {
    let fields = client.unreadableFields(response, kind, grant: grant)
    if !fields.isEmpty { source.notice(.unreadable(provider: provider, fields: fields)) }
  }

  /// Keeps a credential until it is known whose it is.
  private func kept(_ credential: Credential, _ pending: borrowing PendingExchange) -> Credential {
    var credential = credential
    credential.variables = options.variables
    pending.keep(credential, after: nil)
    return credential
  }

  // MARK: The grants

  private func browserGrant(_ grant: Grant, _ pending: borrowing PendingExchange) throws(CredentialError) -> Credential
  {
    let redirect = try core { () throws(OAuthError) in try client.redirect() }
    let inFragment =
      grant == .implicit || client.descriptor.endpoints[.authorization]?.response.format == .fragment
    var receiver = try CallbackReceiver(
      redirect, inFragment: inFragment, options, provider: provider, home: source.home)
    let request = try core { () throws(OAuthError) in
      try client.authorizationRequest(
        grant, redirectURI: receiver.redirectURI, scope: scope, random: source.random)
    }
    let response = try receiver.answer(to: request.uri.text, self) { parameters throws(OAuthError) in
      try client.authorizationResponse(parameters, to: request)
    } fromCode: { code throws(OAuthError) in
      // A code without a redirect has no `state` to compare: it was the person who brought it.
      try client.authorizationResponse([("code", code), ("state", request.state)], to: request)
    }
    if grant == .implicit {
      return kept(
        try core { () throws(OAuthError) in try client.credential(response, now: source.clock.now()) }, pending)
    }
    let tokenRequest = try core { () throws(OAuthError) in try client.tokenRequest(response) }
    return try exchange(.token, tokenRequest, pending) { tokenResponse throws(OAuthError) in
      try client.credential(tokenResponse, after: response, now: source.clock.now())
    }
  }

  private func oauth1Grant(_ pending: borrowing PendingExchange) throws(CredentialError) -> Credential {
    let redirect = try core { () throws(OAuthError) in try client.redirect() }
    var receiver = try CallbackReceiver(redirect, inFragment: false, options, provider: provider, home: source.home)
    let request = try core { () throws(OAuthError) in
      try client.temporaryCredentialsRequest(
        callback: receiver.redirectURI, scope: scope, nonce: source.nonce)
    }
    let answer = try send(request)
    let temporary = try core { () throws(OAuthError) in
      try client.temporaryCredentials(answer, callback: receiver.redirectURI)
    }
    let page = try core { () throws(OAuthError) in try client.authorizationPage(temporary, scope: scope) }
    let consent = try receiver.answer(to: page.text, self) { parameters throws(OAuthError) in
      try client.resourceOwnerAuthorization(parameters, to: temporary)
    } fromCode: { verifier throws(OAuthError) in
      client.resourceOwnerAuthorization(verifier: verifier)
    }
    let tokenRequest = try core { () throws(OAuthError) in
      try client.tokenRequest(temporary, consent, nonce: source.nonce)
    }
    return try exchange(.token, tokenRequest, pending) { response throws(OAuthError) in
      try client.oauth1Credential(response, .token, after: consent, scope: scope, now: source.clock.now())
    }
  }

  private func clientCredentialsGrant(_ pending: borrowing PendingExchange) throws(CredentialError) -> Credential {
    let request = try core { () throws(OAuthError) in try client.clientCredentialsRequest(scope: scope) }
    return try exchange(.clientCredentials, request, pending) { response throws(OAuthError) in
      try client.credential(
        response, .clientCredentials, grant: .clientCredentials, scope: scope, now: source.clock.now())
    }
  }

  private func deviceGrant(_ pending: borrowing PendingExchange) throws(CredentialError) -> Credential {
    let request = try core { () throws(OAuthError) in try client.deviceAuthorizationRequest(scope: scope) }
    let answer = try send(request)
    var device = try core { () throws(OAuthError) in
      try client.deviceAuthorization(answer, scope: scope, now: source.clock.now())
    }
    user.tell(
      .device(
        userCode: device.userCode, url: device.verificationURI, completeURL: device.verificationURIComplete,
        seconds: device.polling.secondsLeft(now: source.clock.now()), patience: Int64(secondsLeft.rounded(.up))))
    let page = device.verificationURIComplete ?? device.verificationURI
    // What opens a page starts a program for any scheme, and the address is the provider's word.
    if options.opensBrowser, let uri = try? URI(parsing: page), uri.isSecure || (uri.scheme == "http" && uri.isLoopback)
    {
      _ = user.open(page)
    }
    return try polled(&device, pending)
  }

  private func polled(
    _ device: inout DeviceAuthorization, _ pending: borrowing PendingExchange
  ) throws(CredentialError) -> Credential {
    while true {
      guard case .wait(let interval) = device.polling.next(now: source.clock.now()) else {
        throw .oauth(.deviceCodeExpired, provider: provider)
      }
      let patience = Int64(secondsLeft.rounded(.up))
      guard patience > 0 else { throw .timedOut(seconds: options.timeout) }
      // What is left after the interval may be too short for another one. A consent in that time is not to be lost: then the
      // last question comes at the end, which is never sooner than the provider allows, unless there is no time for one.
      let codeLeft = device.polling.secondsLeft(now: source.clock.now())
      let seconds = patience < 2 * interval ? min(patience, codeLeft - 1) : interval
      // Second by second, for a person who watches the time that is left.
      for _ in 0..<seconds {
        let left = min(device.polling.secondsLeft(now: source.clock.now()), Int64(secondsLeft.rounded(.up)))
        user.tell(.awaitingConsent(secondsLeft: left))
        do { try source.clock.sleep(seconds: 1) } catch { throw .interrupted }
        if user.isCancelled { throw .interrupted }
      }
      let pollRequest = try core { () throws(OAuthError) in try client.deviceTokenRequest(device) }
      let response: HTTPResponse
      do {
        response = try send(pollRequest)
      } catch .http(.unreachable(_, .timedOut), _) {
        // RFC 8628, 3.5: after a time-out, ask less often.
        device.polling.slowDown()
        continue
      }
      FaultPoint.reach("login.answered")
      let step: DeviceAnswer
      do throws(CredentialError) {
        step = try core { () throws(OAuthError) in
          try client.deviceAnswer(response, to: device, now: source.clock.now())
        }
      } catch .oauth(.unavailable(_, _, _, let retryAfter), _) {
        // A provider that cannot answer now is one to ask less often, too.
        device.polling.slowDown(to: retryAfter)
        continue
      }
      switch step {
      case .credential(let credential):
        let credential = Signals.deferring { kept(credential, pending) }
        tellUnreadable(response, .deviceToken, credential.grant)
        return credential
      case .pending: continue
      case .slowDown(let interval): device.polling.slowDown(to: interval)
      }
    }
  }
}

import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

final class LoginSession {
  let source: CredentialSource
  let loaded: DescriptorLibrary.Loaded
  var permit: Permit
  let grant: Grant
  let options: LoginOptions
  let user: any User
  let others: OtherProviders
  let person: PersonChoice?
  let ending: LoginEnding
  let deadline: MonotonicMoment
  private var bindingKey: Secret?  // The key of the account, made for this login.
  private(set) var clockDifference = Duration.zero  // How far the provider's clock is ahead of ours.
  private let registrationDigest: String?
  private let earlier: Account?  // The account whose element of a list the login uses again.
  private(set) var element: ExchangedElement?
  private var unused: Credential?  // The tokens of the last answer that had some.

  init(
    _ login: Login, user: any User, others: OtherProviders, person: PersonChoice?, deadline: MonotonicMoment
  ) throws(CredentialError) {
    (source, loaded, permit, grant) = (login.source, login.loaded, login.permit, login.grant)
    (options, ending, self.user, self.others) = (login.options, login.ending, user, others)
    (self.person, self.deadline, earlier) = (person, deadline, try login.earlierAccount(user))
    registrationDigest = login.earlierRegistration?.digest()
    bindingKey = permit.client.newBindingKey(of: grant, random: source.random)
    source.secrets.learn(bindingKey)
  }

  var client: Client {
    var client = permit.client
    client.bindingKey = bindingKey
    return client
  }
  var provider: String { client.descriptor.identifier }
  var timeLeft: Duration { max(deadline - source.clock.monotonic(), .zero) }
  private var patience: Duration { .seconds(timeLeft.secondsRoundedUp) }
  var now: Moment { source.clock.now() }

  /// Returns the credential of the login. If the login fails after the provider has issued tokens, drops them.
  func credential(_ pending: borrowing PendingExchange) throws(CredentialError) -> Credential {
    do throws(CredentialError) { return try steps(pending) } catch {
      if let unused { source.drop(unused, of: provider, with: error == .interrupted ? nil : permit) }
      throw error
    }
  }

  private func steps(_ pending: borrowing PendingExchange) throws(CredentialError) -> Credential {
    let receiver = try CallbackReceiver(self)
    ending.receiver = receiver
    let login = LoginContext(
      grant, client, scope: options.scope.isEmpty ? client.descriptor.scope.requested : options.scope,
      demanding: options.demands, redirectURI: receiver.redirectURI, choosing: person,
      random: source.random,
      nonce: source.nonce)
    var step =
      if let token = options.refreshToken { login.begin(refreshing: token, now: now) } else {
        try source.core(provider, login.begin())
      }
    while true {
      switch step {
      case .send(let exchange): step = try answer(to: exchange, pending)
      case .browse(let page): step = try save(receiver.answer(to: page, self), pending)
      case .showCode(let device, let poll):
        try show(device)
        step = .send(poll)
      case .awaitConsent(let pending, let poll):
        let message = pending.bindingMessage.flatMap { source.secrets.reveals($0) ? nil : $0 }
        user.tell(
          .confirmation(
            bindingMessage: message, validFor: pending.polling.timeLeft(now: now), patience: patience))
        step = .send(poll)
      case .prompt(let prompt): step = try typed(prompt)
      case .choose(let choice):
        let used = try source.element(of: choice.list, as: earlier, at: provider, user)
        element = ExchangedElement(used: used, read: choice.read)
        step = try save(source.core(provider, choice.read(used.place)), pending)
      case .done(let credential, let unreadable):
        if !unreadable.isEmpty { source.notice(.unreadable(provider: provider, fields: unreadable)) }
        return credential
      }
    }
  }

  /// Sends a request. If the answer may contain a token, signals wait until it is saved, except during polling.
  private func answer(
    to exchange: Step.Exchange, _ pending: borrowing PendingExchange
  ) throws(CredentialError) -> Step {
    if let pause = exchange.pause { try wait(pause) }
    guard exchange.pause == nil, exchange.kind.leg.issuesToken else { return try answered(exchange, pending) }
    return try Signals.deferring { () throws(CredentialError) in try answered(exchange, pending) }
  }

  private func answered(
    _ exchange: Step.Exchange, _ pending: borrowing PendingExchange
  ) throws(CredentialError) -> Step {
    let response: HTTPResponse
    do {
      response = try source.send(
        to: permit, for: exchange.kind.leg.isPublic ? .keys : .exchange, bound: client.binding(of: grant),
        exchange.request)
    } catch {
      // A server that loses one poll may answer the next one.
      guard case .http(.unreachable(_, let reason), _) = error, [.timedOut, .broken].contains(reason),
        let step = exchange.onTimeout
      else { throw error }
      return step()
    }
    if exchange.kind.leg.issuesToken {
      clockDifference = source.conversations[provider]?.clockDifference ?? .zero
      FaultPoint.reach("login.answered")
      if var tokens = client.tokens(in: response, of: exchange.kind, grant, now: now) {
        tokens.importedFrom = options.refreshToken
        unused = tokens
        if exchange.kind != .tokenExchange, let list = try? client.elements(in: response, exchange.kind, for: tokens),
          list.labels.count > 1
        {
          let variable = client.descriptor.choosingVariables.first
          source.notice(.chosen(provider: provider, list.labels[0], of: list.labels.count, variable: variable))
        }
      }
    }
    return try save(source.core(provider, exchange.read(response, now)), pending)
  }

  /// Saves the credential of the last step in a file until the login ends. Returns the step without secrets in the
  /// parts that credmgr shows.
  private func save(_ step: Step, _ pending: borrowing PendingExchange) -> Step {
    guard case .done(var credential, let unreadable) = step else { return step }
    credential = source.learn(credential)
    credential.add(options)
    credential.registrationDigest = registrationDigest
    Signals.deferring { pending.keep(credential, after: nil) }
    return .done(credential, unreadable: unreadable)
  }

  // MARK: The user

  /// Checks on the programs opened for the user. Returns whether the login was cancelled.
  func pollForCancellation() -> Bool {
    user.poll()
    return user.isCancelled
  }

  private func typed(_ prompt: Step.Prompt) throws(CredentialError) -> Step {
    for field in prompt.fields {
      // Typing it would store it.
      guard let variable = client.descriptor.variable(field.name), variable.isAtExchange else { continue }
      throw .subjectToken(provider: provider, variable, nil, .unset)
    }
    guard let texts = prompt.fields.isEmpty ? [] : try user.texts(for: prompt) else {
      throw missing(prompt.fields)
    }
    // A key may be pasted into any field, and some fields are shown.
    let lines = zip(prompt.fields, texts).filter { $0.0.content != .keyFile }.map(\.1)
    let given = options.variables.filter { client.descriptor.variable($0.key)?.isAtLogin == true }.values
    try source.requireOwnKey(lines + given.sorted(), of: loaded, client, agrees: options.keepsUnverified)
    let values: [String: String]
    do throws(PasteFault) { values = try prompt.values(of: texts) } catch {
      throw .wrongPaste(provider: provider, error)
    }
    // The values may be part of an address, and secrets, which no message may repeat.
    if grant.traits.brought != nil {
      let own = values.filter { client.descriptor.variable($0.key) != nil && !$0.value.isEmpty }
      permit = try source.permitToLogIn(
        loaded, needsClient: false, variables: options.variables.merging(own) { $1 }
      ).permit
    }
    return try source.core(provider, prompt.read(values, now))
  }

  /// Returns the error for values that the user did not bring and cannot type.
  private func missing(_ fields: [Step.Prompt.Field]) -> CredentialError {
    let needed = fields.filter { !$0.isOptional && !($0.content == .keyFile && options.hasKeyFile) }
    // The fields of another grant are not the credential, so options can bring them.
    guard grant.traits.signsJWT || grant.traits.asked == nil else {
      return .promptNeeded(provider: provider, fields.map(\.label))
    }
    let variables = needed.filter { $0.content != .keyFile }.map(\.name)
    return .keyFileNeeded(provider: provider, needed.map(\.label), variables: variables)
  }

  // MARK: The device

  private func show(_ device: DeviceAuthorization) throws(CredentialError) {
    let page = device.verificationURIComplete ?? device.verificationURI
    if [device.userCode, device.verificationURI, page].contains(where: source.secrets.reveals) {
      throw .oauth(.malformedField(.deviceAuthorization, .userCode), provider: provider)
    }
    try others.require(pages: [device.verificationURI, page], of: client)
    user.tell(
      .device(
        userCode: device.userCode, url: device.verificationURI.harmlessAddress,
        completeURL: device.verificationURIComplete?.harmlessAddress,
        validFor: device.polling.timeLeft(now: now), patience: patience))
    if options.opensBrowser { _ = user.open(page.harmlessAddress) }
  }

  private func wait(_ polling: DevicePolling) throws(CredentialError) {
    guard case .wait(let interval) = polling.next(now: now) else {
      throw .oauth(.deviceCodeExpired, provider: provider)
    }
    let patience = patience
    guard patience > .zero else { throw .timedOut(after: options.timeout) }
    // If the time left is too short for two intervals, poll once more just before the deadline, unless the provider
    // forbids polling that soon. Otherwise a late consent would be lost.
    let pause = patience < interval * 2 ? min(patience, polling.timeLeft(now: now) - .seconds(1)) : interval
    // Sleep second by second to update the time left.
    for _ in 0..<max(pause.wholeSeconds, 0) {
      user.tell(.awaitingConsent(left: min(polling.timeLeft(now: now), self.patience)))
      do { try source.clock.sleep(for: .seconds(1)) } catch { throw .interrupted }
      if pollForCancellation() { throw .interrupted }
    }
  }
}

import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrHTTP
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// The questions about the user's own client.
extension Setup {
  func askForClient(
    _ adding: inout AddingProvider, _ title: String, scope: [String]
  ) throws(CommandError) {
    let descriptor = adding.addition.descriptor
    let page = descriptor.client.register
    context.tell("register a client of \(title)" + (page.map { " at \($0)" } ?? "") + " with these values:")
    let rows = clientRows(of: descriptor, adding.variables, scope: scope)
    Terminal.writeError(Layout.table(rows, width: Terminal.width))
    if let page { try offer(page) }
    var identifier: String
    repeat {
      identifier = try Question.answer("client ID:") { text in
        text.isEmpty || text.contains(" ") ? "enter the client ID that the page shows" : nil
      }
    } while try !confirm(descriptor.client.doubt(identifier, as: .identifier), on: .identifier, of: title)
    adding.clientIdentifier = identifier
    if descriptor.client.hasSecret || descriptor.tokenBinding == .mutualTLS {
      adding.clientSecret = try clientSecret(of: identifier, descriptor, title)
    }
  }

  /// The values for the provider's page.
  func clientRows(
    of descriptor: Descriptor, _ variables: [String: String], scope: [String]
  ) -> [(left: String, right: String)] {
    var rows = [(left: "name", right: "any, for example credmgr")]
    if descriptor.grants.contains(where: \.traits.redirects), let uri = redirect(of: descriptor, variables) {
      rows.append(("callback URL", uri))
    }
    if descriptor.grants.contains(.deviceCode) { rows.append(("device flow", "enabled, if the page has this setting")) }
    let scope = scope.isEmpty ? descriptor.scope.requested : scope
    if !scope.isEmpty { rows.append(("scopes", scope.joined(separator: " ") + ", if the page asks")) }
    if !descriptor.client.hasSecret { rows.append(("client type", "public, without a secret")) }
    return rows.map { (left: $0.left, right: Message.visible($0.right)) }
  }

  /// Runs a login, and asks for another client as long as the provider refuses the user's own.
  func logIn(
    replacing adding: AddingProvider, scope: [String], seeing seen: String?,
    _ logIn: (String?) throws(CommandError) -> Void
  ) throws(CommandError) {
    var seen = seen
    while true {
      let refusal: CommandError
      do throws(CommandError) { return try logIn(seen) } catch {
        guard isRefusedClient(error, of: adding), let message = context.message(error) else { throw error }
        context.tell("error: \(message.text)")
        refusal = error
      }
      let words = Self.clientWords(hasSecret: adding.addition.descriptor.client.hasSecret)
      guard try Question.confirm("Enter \(words) again?") else { throw refusal }
      var another = adding
      another.replaces = true
      // The user agreed to these places when the provider was added.
      another.agreed = []
      try askForClient(&another, adding.title(context), scope: scope)
      try requireDestinations(seen, of: adding.addition.identifier)
      _ = try another.run(context)
      seen = destinations(of: adding.addition.identifier)
    }
  }

  /// Asks whether to use a client with which the user has never logged in, because its identifier may be wrong. If not,
  /// returns another way, for which it replaces the client if need be; `nil` to log in as it is.
  func correctedWay(
    _ adding: inout AddingProvider, _ title: String, scope: [String], seeing seen: inout String?
  ) throws(CommandError) -> Way? {
    guard let client = ownClient(of: adding.addition) else { return nil }
    context.tell("\(title) has the client \(quoted(client))")
    if try Question.confirm("Use it?", isUsual: true) { return nil }
    let way = try chosenWay(ways(of: adding.addition, isForeign: false), of: adding.addition.descriptor, title: title)
    guard way.hasOwnClient else { return way }
    adding.replaces = true
    // The user agreed to these places when the provider was added.
    adding.agreed = []
    if way == .client { try askForClient(&adding, title, scope: scope) } else { try askForDocument(&adding) }
    try requireDestinations(seen, of: adding.addition.identifier)
    _ = try adding.run(context)
    seen = destinations(of: adding.addition.identifier)
    return nil
  }

  /// The identifier of the client that the user brought to an added provider; `nil` without one.
  private func ownClient(of addition: ProviderAddition) -> String? {
    guard ClientNeeds(addition.descriptor).needsIdentifier else { return nil }
    return context.ownClient(of: addition.identifier)
  }

  static func clientWords(hasSecret: Bool) -> String { hasSecret ? "the client ID and the secret" : "the client ID" }

  /// Whether another client may help: the user registered the present one, and the provider refuses it or hides that
  /// it does not know it.
  private func isRefusedClient(_ error: CommandError, of adding: AddingProvider) -> Bool {
    guard case .credential(.oauth(let fault, provider: adding.addition.identifier)) = error,
      fault.mayRefuseClient
    else { return false }
    return ownClient(of: adding.addition) != nil
  }

  /// Asks whether to use a value that does not have the form that the provider issues. Returns true without a doubt.
  private func confirm(_ doubt: ClientDoubt?, on part: ClientPart, of title: String) throws(CommandError) -> Bool {
    guard let doubt else { return true }
    context.tell(doubt.warning(on: part, of: title))
    return try Question.confirm("Use it anyway?")
  }

  /// The redirect to register, as `credmgr providers` shows it; `nil` if it is not known.
  func redirect(of descriptor: Descriptor, _ variables: [String: String]) -> String? {
    let secrets = Set(descriptor.variables.filter(\.isSecret).map(\.name))
    guard secrets.isDisjoint(with: descriptor.redirect.template.names) else { return nil }
    let client = try? Client(descriptor: descriptor, identifier: "id", secret: nil, variables: variables)
    return switch try? client?.redirect() {
    case .loopback(let uri)?: uri.text
    case .elsewhere(let text)?, .outOfBand(let text)?: text
    case nil: nil
    }
  }

  func offer(_ page: String) throws(CommandError) {
    // Another scheme would start another program, and a file could be anything.
    guard let uri = try? URI(parsing: page), uri.isSecure || (uri.scheme == "http" && uri.isLoopback),
      SessionKind(environment: context.environment) == .desktop,
      try Question.confirm("Open this page in the browser?")
    else { return }
    if (try? Browser.open(page, patience: .milliseconds(300)))?.isOpen != true {
      context.tell("cannot start a browser; open \(page) yourself")
    }
  }

  private func clientSecret(
    of identifier: String, _ descriptor: Descriptor, _ title: String
  ) throws(CommandError) -> Secret? {
    let isBound = descriptor.tokenBinding == .mutualTLS
    let isCertified = isBound || descriptor.client.authentication?.usesCertificate == true
    func file(_ name: String) throws(CommandError) -> String {
      try Question.answer("file with the \(name):") { File.exists($0) ? nil : "file not found" }
    }
    let certificate = "certificate and its private key"
    switch descriptor.client.authentication {
    case .privateKeyJWT, .tlsClientAuth, .selfSignedTLSClientAuth, ClientAuthentication.none?:
      let path = try file(isCertified ? certificate : "private key")
      return try context.issuedSecret(context.secretFile(path, called: "private key"), path, called: "private key")
    default: break
    }
    let isNeeded = ClientNeeds(descriptor).needsSecret
    while true {
      let typed = try Question.secret("client secret" + (isNeeded ? ":" : " (Enter for none):"))
      if !typed.isEmpty {
        let secret = try context.issuedSecret(typed, "-", called: "client secret")
        if try confirm(descriptor.client.doubt(secret, of: identifier), on: .secret, of: title) {
          return isBound ? try context.secret(secret, withCertificate: file(certificate)) : secret
        }
        continue
      }
      if !isNeeded { return nil }
      context.tell("\(context.titled(descriptor.identifier)) requires a client secret")
    }
  }

  /// Asks for the URL of a document with the client's metadata, and shows the document.
  func askForDocument(_ adding: inout AddingProvider) throws(CommandError) {
    context.tell("the provider reads the client's metadata from a document that you publish")
    let location = try Question.answer("https URL of the document:") { text in
      ClientDocument.isLocation(text) ? nil : "type an https URL with a path, such as https://HOST/credmgr.json"
    }
    adding.clientIdentifier = location
    context.tell("publish this document at \(location):")
    let document = try manager(
      context.source.clientDocument(at: location, for: adding.addition, adding.variables))
    Terminal.writeError(document.formatted + "\n")
    while true {
      _ = try Question.answer("Press Enter when it is published.")
      guard let warning = try adding.faultOfDocument(at: location, context) else { return }
      context.tell(warning)
      if try Question.confirm("Use it anyway?") { return }
    }
  }
}

extension Context {
  /// Whether the descriptor in use is a shipped one, whose endpoints are right.
  func isShipped(_ provider: String) -> Bool { (try? home.library.load(provider)).map(source.isShipped) ?? false }

  /// Returns the identifier of a client that the user, not credmgr, registered; `nil` without one.
  func ownClient(of provider: String) -> String? {
    guard let client = try? source.accountsIfAny()?.registration(of: provider), client.registered == nil,
      !client.clientIdentifier.isEmpty
    else { return nil }
    return client.clientIdentifier
  }

  /// Returns the command that corrects a client with which no login has succeeded; empty if the client is not the
  /// user's.
  func correctingClient(of provider: String) -> [Remedy] {
    guard Question.canAsk, !isJSON, ownClient(of: provider) != nil,
      (try? source.accountsIfAny()?.accounts(of: provider))?.isEmpty == true
    else { return [] }
    return ["\(credmgr: "setup", provider) to use another client"]
  }

  /// Returns the command that replaces a refused client; empty if none was added. The refused identifier may be the
  /// wrong one, so the command does not repeat it.
  func anotherClient(of provider: String) -> [Remedy] {
    guard let client = try? source.accountsIfAny()?.registration(of: provider), !client.clientIdentifier.isEmpty else {
      return [replacingClient(provider)]
    }
    if client.registered != nil {
      return ["\(credmgr: "add-provider", provider, "--replace") to register another client"]
    }
    let hasSecret = client.clientSecret != nil
    if Question.canAsk, !isJSON {
      return ["\(credmgr: "setup", provider) to enter \(Setup.clientWords(hasSecret: hasSecret)) again"]
    }
    return [replacingClient(provider, hasSecret: hasSecret)]
  }
}

import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// Adds a provider and tells the user about it, for `add-provider` and `setup`.
struct AddingProvider {
  let addition: ProviderAddition
  /// Whether the descriptor was made from an issuer's metadata, which the user saw completely.
  let isDiscovered: Bool
  /// Whether the descriptor did not come with the program.
  let isForeign: Bool
  var clientIdentifier: String?
  var clientSecret: Secret?
  var initialAccessToken: Secret?
  var variables: [String: String] = [:]
  var replaces = false
  var isForTokens = false  // Whether tokens of the user need no client.
  /// The provider of the shared vault that is changed with it; `nil` for this machine only.
  var shared: SharedProvider?
  /// The other providers of that vault whose tokens the changed descriptor would send elsewhere.
  var dependents: [String] = []
  /// Whether the user agreed beforehand to anything unusual.
  var isAgreed = false
  /// The unusual places that the user agreed to after `preview` showed all places; `nil` before that.
  var agreed: [NewPlace]?

  /// Adds the provider, and returns its registration if the provider registered a client. Changes nothing if it throws.
  mutating func add(_ context: Context) throws(CommandError) -> Registration? {
    let (identifier, isDiscovered, isAgreed, agreed) = (addition.identifier, isDiscovered, isAgreed, agreed ?? [])
    let also =
      dependents.isEmpty ? [] : ["the members cannot use \(some(dependents)) until you change them in the vault too"]
    do throws(CredentialError) {
      return try context.source.add(
        addition, clientIdentifier: clientIdentifier, clientSecret: clientSecret, variables: variables,
        initialAccessToken: initialAccessToken, replaces: replaces, isForTokens: isForTokens, shared: shared,
        confirms: { provider, accounts, places in
          let subject =
            provider == identifier
            ? "the new descriptor of \(quoted(identifier))" : "\(quoted(provider)) extends \(quoted(identifier)) and"
          let tokens = accounts.isEmpty ? "" : " for the tokens of \(some(accounts))"
          return Question.confirm(
            "\(subject) requires your consent\(tokens)", list: places.map(\.difference) + also, isGiven: isAgreed)
        },
        // The user saw the complete metadata of the issuer, but not which provider owns its login page.
        agrees: { places in
          Self.agrees(
            to: places.filter { !agreed.contains($0) }, of: identifier, isDiscovered: isDiscovered, isGiven: isAgreed)
        })
    } catch .provider(.missingVariable) {
      let missing = try context.missing(variables, of: addition)
      guard missing.allSatisfy(\.isSecret), Terminal.isTerminal(2) else { throw .failed(.missing(missing)) }
      for variable in missing { variables[variable.name] = try Command.asked(variable).reveal() }
      return try add(context)
    } catch { throw CommandError(error) }
  }

  private static func agrees(
    to places: [NewPlace], of identifier: String, isDiscovered: Bool, isGiven: Bool = false
  ) -> Bool {
    places.isEmpty || isDiscovered && !places.contains(where: \.isBorrowed)
      || Question.confirm("\(quoted(identifier)) requires your consent", list: places.peculiarities, isGiven: isGiven)
  }

  /// Shows where a stranger's descriptor sends secrets, and asks about anything unusual, before the user types any.
  mutating func preview(_ context: Context) throws(CommandError) {
    let places = try manager(context.source.places(adding: addition, variables: variables))
    try Command.tellAgreement(on: addition.identifier, context, places: places.all, of: addition.descriptor)
    guard Self.agrees(to: places.unusual, of: addition.identifier, isDiscovered: isDiscovered) else {
      throw CommandError(.peculiar(provider: addition.identifier, places.unusual, isBeingAdded: true))
    }
    agreed = places.unusual
  }

  /// The name by which the user knows the provider before it is added.
  func title(_ context: Context) -> String {
    isForeign ? quoted(addition.identifier) : context.titled(addition.identifier)
  }

  /// Warns about values that are probably not those of a client, and asks at a terminal whether to use them.
  func checkClient(_ context: Context) throws(CommandError) {
    let rules = addition.descriptor.client
    let title = title(context)
    let doubts: [(ClientPart, ClientDoubt?)] = [
      (.identifier, clientIdentifier.flatMap { rules.doubt($0, as: .identifier) }),
      (.secret, clientSecret.flatMap { rules.doubt($0.shared, of: clientIdentifier) }),
    ]
    for case (let part, let doubt?) in doubts {
      context.tell(doubt.warning(on: part, of: title))
      guard !isAgreed, Question.canAsk else { continue }
      guard try Question.confirm("Use it anyway?") else { throw .usage("nothing was added") }
    }
    guard let clientIdentifier, doubts[0].1 == nil else { return }
    guard let warning = try faultOfDocument(at: clientIdentifier, context) else { return }
    context.tell(warning)
    guard !isAgreed, Question.canAsk else { return }
    guard try Question.confirm("Use it anyway?") else { throw .usage("nothing was added") }
  }

  /// Returns what keeps the provider from accepting the document at a URL that is the client's identifier; `nil` if the
  /// identifier is not such a URL.
  func faultOfDocument(at location: String, _ context: Context) throws(CommandError) -> String? {
    guard addition.descriptor.client.takesDocument, location.hasPrefix("https://") else { return nil }
    do throws(CredentialError) {
      return try context.source.faultOfDocument(at: location, for: addition, variables)?.warning(at: location)
    } catch {
      guard case .http = error else { throw CommandError(error) }
      return "warning: \(error.message.text)"
    }
  }

  /// Prints the document to publish at the URL that is the client's identifier.
  func printDocument(_ context: Context) throws(CommandError) {
    guard let clientIdentifier, ClientDocument.isLocation(clientIdentifier) else {
      throw .usage(
        "\"--client-document\" requires the https URL where you publish the document",
        hint: "\(add: "--client-id", "https://HOST/credmgr.json")")
    }
    let document = try manager(context.source.clientDocument(at: clientIdentifier, for: addition, variables))
    try context.output(document.formatted + "\n")
  }

  /// Adds the provider and tells the user what was added.
  mutating func run(_ context: Context) throws(CommandError) -> Registration? {
    let accounts = try? context.source.accountsIfAny()
    let before = try? accounts?.registration(of: addition.identifier)
    let registration = try add(context)
    StandardError.show(addition.warnings)
    if let registered = registration?.registered, let registration {
      context.tell("registered the client \"\(registration.clientIdentifier)\" at \(registered.place)")
      if let expiresAt = registered.secretExpiresAt {
        let another: Remedy = "\(credmgr: "add-provider", addition.identifier, "--replace") to register another client"
        context.tell(note: "its secret expires in \(duration(expiresAt - context.clock.now())); then \(another)")
      }
    }
    let added = try manager(context.source.accountsIfAny()?.registration(of: addition.identifier))
    let methods: [ClientAuthentication?] = [nil, .clientSecretBasic, .clientSecretPost]
    if addition.descriptor.grants.first == .clientCredentials, added?.clientSecret == nil,
      methods.contains(addition.descriptor.client.authentication),
      !addition.descriptor.variables.contains(where: \.isSecret)
    {
      let again: Remedy = "\(credmgr: "add-provider", addition.identifier, "--replace", "--client-secret-file", "FILE")"
      context.tell(note: "warning: a login as the client requires its secret; \(again)")
    }
    if isForeign, agreed == nil { try Command.tellAgreement(on: addition.identifier, context) }
    if let before, before.clientIdentifier != added?.clientIdentifier {
      let tied = ((try? accounts?.accounts(of: addition.identifier)) ?? []).filter { $0.credential.refreshToken != nil }
      if !tied.isEmpty {
        context.tell(
          "warning: the refresh tokens of \(some(tied.map(\.name))) belong to an earlier client; log in again when "
            + "the access tokens expire")
      }
    }
    if context.isJSON {
      let client = added?.clientIdentifier
      try context.output([
        "provider": .string(addition.identifier), "client_id": .optional(client?.isEmpty == true ? nil : client),
        "registered": .boolean(registration?.registered != nil),
      ])
    }
    return registration
  }
}

import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

/// Moves a tool's client with its refresh token: adds the client, and lets the provider refresh the token.
struct ImportClient {
  private let item: ImportPlan.Item
  private let isShown: Bool  // Whether the list showed the servers, so that the user chose them.
  private let context: Context
  private let agrees: Bool
  private let replaces: Bool
  private let kept: [String: Set<String>]  // The accounts that this import stored, by provider.
  private let words: [String]  // The command that moves the entry.

  /// The provider that gets the refresh token.
  private struct Destination {
    let provider: String
    var adding: AddingProvider?  // `nil` if the provider has the client.
    var earlierSecret: Secret??  // The client's other secret there; `nil` if it has no other one.
    var seenDigest: String?  // The digest of its destinations before the question; `nil` if it is added.
  }

  init(
    _ item: ImportPlan.Item, _ context: Context, agrees: Bool, replaces: Bool, keeping kept: [String: Set<String>],
    by words: [String]
  ) {
    (self.item, self.context, self.agrees, self.replaces, self.kept) = (item, context, agrees, replaces, kept)
    self.words = words
    isShown = item.target != .issuer && item.servers.isEmpty
  }

  /// Returns the account of the client, which may already be there. Without a provider, the text names the issuer.
  func account(at name: String?, _ text: Secret, attempts: Int = 4) throws(CommandError) -> Account {
    guard let client = ImportedClient(text) else { throw .usage("the entry has no client with a refresh token") }
    let destination = try self.destination(of: client, at: name)
    let (provider, adding) = (destination.provider, destination.adding)
    if let account = try manager(context.source.account(importedFrom: client.refreshToken, of: provider)) {
      return account
    }
    // The login looks again, but not before the client is added.
    let accounts = try manager(context.source.accountsIfAny()?.accounts(of: provider))?.map(\.name) ?? []
    let hasOtherSecret = destination.earlierSecret != nil
    if hasOtherSecret && !replaces || !accounts.isEmpty && (!replaces || kept[provider] != nil) {
      throw refusal(accounts, at: provider, hasOtherSecret: hasOtherSecret)
    }
    let before = try manager(context.source.snapshot(of: provider))
    do throws(CommandError) {
      if var adding { _ = try adding.add(context) }
      if let earlier = destination.earlierSecret {
        try manager(context.source.replaceSecret(earlier, by: client.secret, ofClient: client.identifier, at: provider))
      }
    } catch {
      // Another import has just added it, perhaps with another client.
      guard attempts > 1 else { throw error }
      switch error {
      case .credential(.alreadyAdded), .credential(.providerChanged):
        return try account(at: name, text, attempts: attempts - 1)
      default: throw error
      }
    }
    do throws(CredentialError) { return try logIn(to: provider, client, destination.seenDigest) } catch {
      if adding != nil { try? context.source.restore(before) }
      // An answer that waits shows that the new secret is valid.
      if let earlier = destination.earlierSecret, (try? context.source.hasUnfinishedLogin(at: provider)) != true {
        try? context.source.replaceSecret(client.secret, by: earlier, ofClient: client.identifier, at: provider)
      }
      switch error {
      case .alreadyThere(let records, _): throw refusal(records.map(\.account), at: provider)
      // Another import of this client failed, and took it away.
      case .notAdded where attempts > 1: return try account(at: name, text, attempts: attempts - 1)
      default: throw CommandError(error)
      }
    }
  }

  /// The error for an entry that may replace the token of an account, or the secret of the client.
  private func refusal(_ accounts: [String], at provider: String, hasOtherSecret: Bool = false) -> CommandError {
    let title = context.titled(provider)
    if accounts.isEmpty {
      return .usage(
        "\(title) has another secret of this client; nothing was changed",
        hint: "\(add: "--replace") to replace the secret by that of the entry")
    }
    let secret = hasOtherSecret ? " and the client's secret" : ""
    let what = "it may replace the token of \(some(accounts))\(secret) at \(title)"
    if kept[provider] != nil { return .usage(what + ", which this import moved") }
    if replaces { return .usage(what + ", which was stored meanwhile; nothing was changed") }
    return .usage(
      what + "; nothing was changed", hint: "\(add: "--replace") to replace the token if the account is the same")
  }

  private func logIn(
    to provider: String, _ client: ImportedClient, _ seenDigest: String?
  ) throws(CredentialError) -> Account {
    var wish = LoginOptions()
    wish.seenDigest = seenDigest
    (wish.refreshToken, wish.clientIdentifier, wish.scope) = (client.refreshToken, client.identifier, client.scope)
    (wish.replaces, wish.keeps) = (replaces, kept[provider] ?? [])
    (wish.clientSecret, wish.importWords) = (client.secret, words)
    let grants = (try? context.home.library.load(provider))?.descriptor.grants ?? []
    wish.grant = grants.first { $0.traits.renewal == .refreshToken && $0.traits.needsClient }
    let terminal = TerminalUser(provider: provider, offered: grants, fitting: nil, context)
    defer { terminal.end() }
    let user = try context.user(terminal)
    do throws(CredentialError) { return try context.source.login(provider, wish, user: user) } catch {
      // If the provider does not name its users, the account keeps the name from the tool.
      guard case .nameNeeded = error, let name = item.entry.accountName(context) else { throw error }
      wish.account = name
      return try context.source.login(provider, wish, user: user)
    }
  }

  /// Returns the provider that has the client, or how to add the client: to the issuer's provider, or to a provider
  /// from the issuer's metadata.
  private func destination(of client: ImportedClient, at name: String?) throws(CommandError) -> Destination {
    let providers = try manager(ProvidersOfHosts(context.source))
    let candidates = name.map { [$0] } ?? client.issuer.map(providers.providers(ofIssuer:)) ?? []
    let suffix = item.entry.user ?? item.entry.source
    let addition: ProviderAddition
    switch try manager(context.source.place(of: client, among: candidates, suffix: suffix)) {
    case .added(let provider)?:
      let seen = digest(of: provider)
      try askWhether(belongsTo: provider, providers)
      return Destination(provider: provider, seenDigest: seen)
    case .otherSecret(let provider, let secret)?:
      let seen = digest(of: provider)
      try askWhether(belongsTo: provider, providers)
      return Destination(provider: provider, earlierSecret: .some(secret), seenDigest: seen)
    case .addition(let found)?:
      try askWhether(belongsTo: candidates[0], providers)
      addition = found
    case nil:
      guard let issuer = client.issuer else { throw .usage("the entry names no issuer") }
      addition = try discovered(issuer)
    }
    let adding = AddingProvider(
      addition: addition, isDiscovered: candidates.isEmpty, isForeign: candidates.isEmpty,
      clientIdentifier: client.identifier, clientSecret: client.secret, isAgreed: agrees)
    return Destination(provider: addition.identifier, adding: adding)
  }

  /// Returns the digest of an added provider's destinations when the list showed it, or now.
  private func digest(of provider: String) -> String? {
    if item.target == .account(provider: provider, isAdded: true), let seen = item.seenDigest { return seen }
    return context.source.destinationsDigest(ofLogin: LoginOptions(), to: provider)
  }

  /// oidc-agent ends each issuer with a slash, and the address with the slash may be that of an API.
  private func discovered(_ issuer: String) throws(CommandError) -> ProviderAddition {
    let address = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
    do throws(CommandError) { return try Command.discovered(at: address, isAgreed: agrees, context) } catch {
      if case .credential(.alreadyAdded(let provider)) = error {
        throw .usage("\(context.titled(provider)) has already been added for another issuer")
      }
      guard case .credential(.discovery(.otherIssuer(let found), _)) = error, found == address + "/" else {
        throw error
      }
      return try Command.discovered(at: found, isAgreed: agrees, context)
    }
  }

  /// Asks about the servers of a descriptor that did not come with the program.
  private func askWhether(belongsTo provider: String, _ providers: ProvidersOfHosts) throws(CommandError) {
    guard !isShown, case .one(_, _, let servers)? = providers.provider(named: provider), !servers.isEmpty else {
      return
    }
    try context.askWhether(item, belongsTo: provider, at: servers, isGiven: agrees)
  }
}

extension Context {
  /// Asks whether an entry may go to servers that only a file of the user names.
  func askWhether(
    _ item: ImportPlan.Item, belongsTo provider: String, at servers: [String], isGiven: Bool
  ) throws(CommandError) {
    let title = titled(provider)
    tell("\(item.label) would go to \(title) at \(servers.joined(separator: ", "))")
    if isGiven { return }
    guard Question.canAsk, !isJSON else {
      throw .usage(
        "it may belong to another provider than \(title)", hint: "\(add: "--yes") to send it there")
    }
    guard try Question.confirm("Does it belong there?") else { throw .usage("nothing was sent") }
  }
}

extension ImportEntry {
  /// The name of the entry's account if the provider names none; `nil` if the user name is a token.
  func accountName(_ context: Context) -> String? {
    guard !isUserToken, let user, Accounts.isName(user) else { return nil }
    return context.source.ownersOfKey(in: user).isEmpty ? user : nil
  }
}

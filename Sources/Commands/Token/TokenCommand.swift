import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrText

extension Command {
  static let token = Command(
    name: "token", operands: "ID", operandCount: 1...1,
    summary: "Print an access token, refreshing it if needed",
    options: [
      account,
      Option("--min-validity", value: "DURATION", "minimum time until expiry (default: set by the descriptor)"),
      Option("--refresh", "always refresh the token first"),
      Option("--timeout", value: "DURATION", "time to wait for another process that refreshes the token (default: 1m)"),
      Option("--field", value: "NAME", "print another value of the account, such as a user name"), json,
    ],
    examples: [
      ("credmgr token twilio --field username", "Print the user name that belongs to a password"),
      ("export GITHUB_TOKEN=$(credmgr token github)", "Set a token in the environment"),
      ("credmgr token github --min-validity 30m", "Get a token that is valid for at least 30 minutes"),
    ]
  ) { invocation, context throws(CommandError) in
    let provider = try context.provider(invocation.operands[0])
    let name = try context.account(invocation, of: provider)
    let wanted = try context.duration("--min-validity", invocation)
    let policy = RefreshPolicy(
      validity: wanted, always: invocation.has("--refresh"),
      lockTimeout: try context.duration("--timeout", invocation) ?? .seconds(60))
    let account = try manager(context.source.handOut(name, of: provider, by: .token, to: .caller, policy))
    let credential = account.credential
    try context.noteHandOut(account, by: "token")
    // This is the best token available; callers with stricter needs can read its expiry.
    if let wanted, let lifetime = credential.expiresAt.map({ $0 - credential.obtainedAt }), lifetime < wanted {
      let (actual, wish) = (duration(max(lifetime, .zero)), exactDuration(wanted))
      context.tell("warning: \(context.titled(provider)) tokens are valid for only \(actual), not \(wish)")
    }
    // A token alone that the user supplied needs no look at the agreement either.
    let isBound = credential.isBound
    if !invocation.has("--field"), isBound {
      context.tell(
        "warning: the token alone is of no use: each request to \(context.titled(provider)) needs a proof of the "
          + (credential.isCertificateBound ? "client's certificate" : "account's key"))
      context.tell(
        hint: credential.isCertificateBound
          ? "\(credmgr: "request", provider, "URL")" : "\(credmgr: "header", provider, "--url", "URL") for one request")
    } else if !invocation.has("--field") {
      try context.warnAboutSignature(of: account)
    }
    if let field = invocation.value("--field") {
      let value = String(decoding: try CredentialFields(of: account, by: .token, context).value(field), as: UTF8.self)
      return try context.output(
        value + "\n",
        orJSON: [
          "provider": .string(provider), "account": .string(account.name), "field": .string(field),
          "value": .string(value),
        ])
    }
    try context.output(
      credential.accessToken.reveal() + "\n",
      orJSON: [
        "provider": .string(provider), "account": .string(account.name),
        "access_token": .string(credential.accessToken.reveal()), "token_type": .optional(credential.tokenType),
        "expires_at": .optional(credential.expiresAt?.text),
        "scope": .array((credential.grantedScope ?? credential.requestedScope).map(JSONValue.string)),
        "kept": .object(credential.kept.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }),
      ])
  }
}

extension Context {
  /// Warns if the token alone is of no use, because requests are signed with further secrets.
  func warnAboutSignature(of account: Account) throws(CommandError) {
    let credential = account.credential
    let isBearer =
      credential.tokenType?.lowercased() == "bearer"
      || credential.isGiven && credential.tokenSecret == nil && credential.grant.traits.typed == nil
    if isBearer { return }
    guard try !manager(source.isUsableAlone(account)) else { return }
    tell("warning: requests to \(titled(account.provider)) need a signature in addition to the token")
  }
}

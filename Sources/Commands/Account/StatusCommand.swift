import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

extension Command {
  static let status = statusCommand { invocation, context throws(CommandError) in
    let provider: String? = if let text = invocation.operands.first { try context.provider(text) } else { nil }
    if invocation.has("--short") {
      for option in ["--why", "--for", "--json"] where invocation.has(option) { throw .exclusive(["--short", option]) }
      return try short(of: provider, context)
    }
    if invocation.has("--why") || invocation.has("--for") { return try whichAccount(of: provider, invocation, context) }
    let overview = try AccountOverview(of: provider, context)
    let now = overview.now
    if context.isJSON {
      try context.output(.array(overview.rows.map(\.json) + overview.logins.map(\.json)))
      try SharedVaultOperations.tellAnswersOfOthers(context)
      return try overview.reportDamagedRecords(context)
    }
    overview.tellIfEmpty(context)
    let style = Style(1)
    let columns = Terminal.outputColumns
    var text = ""
    for row in overview.rows {
      let account = row.account
      text += style.bold("\(account.provider)  \(account.name)") + (row.isDefault ? "  (default)" : "") + "\n"
      text += Layout.table(details(account.credential, row.state, at: now, style: style), width: columns)
    }
    for login in overview.logins {
      text += style.bold(Message.visible("\(login.address)  \(login.user)")) + "\n"
      var rows: [(left: String, right: String)] = [("kind", login.kindWords), ("state", login.stateWords)]
      if let command = login.deletion.sentence() { rows.append(("to delete it", Message.visible(command))) }
      text += Layout.table(rows, width: columns)
    }
    try context.output(text)
    overview.tellInterrupted(context)
    try SharedVaultOperations.tellAnswersOfOthers(context)
    try overview.reportDamagedRecords(context)
  }

  static func statusCommand(
    _ run: @escaping @Sendable (Invocation, Context) throws(CommandError) -> Void
  ) -> Command {
    Command(
      name: "status", operands: "[ID]", operandCount: 0...1,
      summary: "Show accounts with their scopes and expiry",
      options: [
        Option("--short", "print the accounts of this directory on one line, for a prompt"),
        Option("--why", "show which account is used in this directory, and why"),
        Option("--for", value: "URL", "show which account is used for a remote's URL, and why"), json,
      ],
      notes: [
        "With \"--short\", credmgr prints PROVIDER:ACCOUNT for each provider, with \"!\" if a login is required and "
          + "\"?\" if no account is chosen. It never prompts, and prints nothing if the vault is locked or damaged."
      ],
      examples: [
        ("credmgr status", "Show all accounts"),
        ("credmgr status github --json", "Print the accounts of a provider as JSON"),
        ("credmgr status --for https://github.com/octo/notes", "Show which account git uses for a repository"),
        ("PS1='$(credmgr status --short github) $ '", "Show the account of GitHub in the prompt of bash"),
      ], quickOption: "--short", run: run)
  }

  private static func details(
    _ credential: Credential, _ state: AccountState, at now: Moment, style: Style
  ) -> [(left: String, right: String)] {
    var rows: [(left: String, right: String)] = [credential.kind]
    if let vault = credential.vault {
      rows.append(("vault", vault + (credential.isMoving ? " (not there yet; share the account again)" : "")))
    }
    let names = credential.variables.keys.sorted()
    if credential.grant.traits.asked != nil, !names.isEmpty { rows.append(("fields", names.joined(separator: ", "))) }
    if let identity = credential.identity {
      rows.append(("identity", identity))
    } else if let earlier = credential.earlierIdentity {
      rows.append(("identity", "not verified; it was \(quoted(earlier)) before"))
    }
    if credential.isUnverified { rows.append(("verified", "no; the provider has not confirmed it")) }
    let scope = credential.grantedScope ?? credential.requestedScope
    if !scope.isEmpty { rows.append(("scope", scope.joined(separator: " "))) }
    let withheld = credential.withheldScope
    if !withheld.isEmpty { rows.append(("not granted", withheld.joined(separator: " "))) }
    if let details = credential.details { rows.append(("details", details.text)) }
    rows.append((credential.typedWords ?? "token", expiry(credential.expiresAt, now)))
    if let end = credential.keyExpiresAt { rows.append((credential.grant.traits.brought ?? "key", expiry(end, now))) }
    if credential.endsSoon(at: now) { rows.append(("warning", "make a new key, then log in again with it")) }
    if credential.refreshToken != nil {
      let expiry = expiry(credential.refreshTokenExpiresAt, now)
      rows.append(("refresh token", state.isRefreshRefused ? "refused by the provider" : expiry))
    }
    // The provider supplied parts of this text.
    rows = rows.map { ($0.left, Message.visible($0.right)) }
    let sentence = state.sentence + (credential.endedKey(at: now).map { ", " + $0 } ?? "")
    rows.append(("state", state.needsLogin ? style.red(sentence) : sentence))
    return rows
  }

  private static func expiry(_ moment: Moment?, _ now: Moment) -> String {
    guard let moment else { return "expiry unknown" }
    return moment > now ? "expires in \(duration(moment - now))" : "expired \(duration(now - moment)) ago"
  }
}

extension Credential {
  /// The kind of credential: `oauth` for a token that a provider issued.
  var kindName: String {
    guard grant.traits.asked != nil else { return isGiven ? "token" : "oauth" }
    return isGiven ? "personal_access_token" : grant.rawValue
  }

  fileprivate var kind: (left: String, right: String) {
    // Any token of the provider may have been given.
    if isGiven { return ("kind", "token") }
    return grant.traits.asked == nil ? ("grant", grant.rawValue) : ("kind", grant.traits.kind)
  }

  /// The kind of credential in words for a list.
  var kindWords: String {
    if grant.traits.asked != nil { return kind.right }
    return isGiven ? "token" : grant.traits.kind
  }

  /// Whether a key of the user expires within 14 days, or has expired. Only the user can replace it.
  func endsSoon(at now: Moment) -> Bool { endOfKey.map { $0 - now <= .days(14) } ?? false }

  /// The words for an expired key that got the tokens, which may still be valid; `nil` if it has not expired.
  func endedKey(at now: Moment) -> String? {
    keyExpiresAt.flatMap { $0 <= now ? (grant.traits.brought ?? "key") + " expired" : nil }
  }

  /// When the key, or whatever else the user brought, expires; `nil` if the user did not say.
  var endOfKey: Moment? { isTyped ? expiresAt : keyExpiresAt }
}

extension AccountState {
  fileprivate var isRefreshRefused: Bool {
    switch self {
    case .refused, .doubtful: true
    default:
      switch loginReason {
      case .refreshRefused, .refreshInterrupted: true
      default: false
      }
    }
  }

  var names: (state: String, next: String) {
    switch self {
    case .usable: ("usable", "valid")
    case .expiring: ("expiring", "refresh")
    case .ending: ("ending", "valid")
    case .refused: ("refused", "valid")
    case .refreshable: ("refreshable", "refresh")
    case .doubtful: ("doubtful", "login")
    case .loggingIn: ("logging_in", "login")
    case .expired: ("expired", "login")
    }
  }

  /// The state in words for a list.
  var words: String {
    switch self {
    case .ending, .refused: "log in again soon"
    default: sentence
    }
  }

  fileprivate var sentence: String {
    switch self {
    case .usable: "ready to use"
    case .ending, .refused: "ready to use until it expires; then log in again"
    case .expiring, .refreshable: "refreshed at the next use"
    case .loggingIn: "login in progress"
    case .expired, .doubtful: "log in again"
    }
  }
}

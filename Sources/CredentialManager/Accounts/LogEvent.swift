import CredmgrCryptography
import CredmgrJSON
import CredmgrStore
import CredmgrText

/// An entry of the log, without secrets.
package struct LogEvent: Sendable, Equatable {
  /// The action. The raw value appears in the log and in `credmgr log --json`.
  package enum Action: String, Sendable, CaseIterable {
    case login, refresh, logout
    case refused
    case addProvider = "add-provider"
    case removeProvider = "remove-provider"
    case handOut = "hand-out"
    case store
    case erase
    case protect, unprotect  // A way to open the vault was added or changed.
    case unlock  // The kernel now holds the keys.
    case rotate
    case backup, restore, export, `import`
    case create, join, leave, share  // A shared vault, or an account that moved to one.
    case invite
    case removeMember = "remove-member"
  }

  package let time: Moment
  package let action: Action
  package let provider: String?
  package let account: String?
  package let detail: String?  // The receiver, the method, or another detail.
  package var member: String?  // In the log of a shared vault, the member that did it.
}

extension LogEvent {
  private static let limit = 255  // Limits text from outside to this length.

  var encoded: Secret {
    var members: [JSONValue.Member] = [.init("t", .moment(time)), .init("a", .string(action.rawValue))]
    func append(_ name: String, _ text: String?) {
      if let text { members.append(.init(name, .string(String(text.unicodeScalars.prefix(Self.limit))))) }
    }
    append("p", provider)
    append("n", account)
    append("d", detail)
    append("m", member)
    return Secret(JSONValue.object(members).encoded)
  }

  init?(decoding payload: Secret) {
    guard let value = try? JSONValue.parse(payload.revealBytes()), let time = value["t"]?.moment,
      let action = value["a"]?.text.flatMap(Action.init)
    else { return nil }
    self.init(
      time: time, action: action, provider: value["p"]?.text, account: value["n"]?.text, detail: value["d"]?.text)
    member = value["m"]?.text
  }
}

extension CredentialSource {
  func noting(
    _ action: LogEvent.Action, of provider: String? = nil, account: String? = nil, detail: String? = nil
  ) -> Change {
    .note(event(action, of: provider, account: account, detail: detail))
  }

  func event(
    _ action: LogEvent.Action, of provider: String? = nil, account: String? = nil, detail: String? = nil
  ) -> Secret {
    LogEvent(
      time: clock.now(), action: action, provider: provider, account: account, detail: detail,
      member: shared?.store.memberName
    ).encoded
  }

  /// Notes that `receiver`, such as `git github.com`, gets a credential. A failure to write this event does not fail
  /// the request.
  package func noteHandOut(_ account: Account, to receiver: String) {
    noteHandOut(account.provider, account.name, to: receiver)
  }

  package func noteHandOut(_ provider: String, _ account: String, to receiver: String) {
    guard let store = try? accountsIfAny()?.store else { return }
    do throws(StoreError) {
      let name = provider.firstPlace(of: "://") == nil ? account : Self.logged(account)
      try store.note(event(.handOut, of: provider, account: name, detail: receiver))
    } catch .file(let error) {
      // Other messages report a full or read-only disk. Nothing else would report a planted file.
      switch error {
      case .symbolicLink, .notRegularFile, .otherOwner, .readableByOthers: notice(.handOutNotNoted(error))
      default: break
      }
    } catch {}
  }

  /// Notes that `receiver`, such as `kubectl for https://k8s.example`, gets no credential. Ignores failures.
  package func noteRefusal(_ provider: String, _ account: String?, to receiver: String) {
    try? accountsIfAny()?.store.note(event(.refused, of: provider, account: account, detail: receiver))
  }

  /// Notes an action that is already done, so a failure to note it is ignored.
  func note(_ action: LogEvent.Action, _ detail: String? = nil) {
    try? accountsIfAny()?.store.note(event(action, detail: detail))
  }

  /// Returns the events, oldest first, and how many are known to be lost. Throws if the log is not a regular file.
  package func log() throws(CredentialError) -> (events: [LogEvent], lost: Int) {
    guard let accounts = try accountsIfAny() else { return ([], 0) }
    let logged = try inStore(accounts.store.events())
    // Entries with equal times stay in the order in which they were noted.
    let events = logged.events.compactMap(LogEvent.init(decoding:))
    let sorted = events.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
    return (sorted.map(\.element), logged.lost)
  }
}

import Cryptography
import JSON
import Store
import Text

/// A line of the log: what happened, never with a secret in it.
package struct LogEvent: Sendable, Equatable {
  /// What happened. The text is in the log and in the output of `credmgr log --json`.
  package enum Action: String, Sendable, CaseIterable {
    case login, refresh, logout
    case refused
    case addProvider = "add-provider"
    case removeProvider = "remove-provider"
    case handOut = "hand-out"
    case store
    case erase
    case protect, unprotect  // A way into the vault was added or changed.
    case unlock  // The keys were given to the kernel to keep.
    case rotate
    case backup, restore, export, `import`
  }

  package let time: Moment
  package let action: Action
  package let provider: String?
  package let account: String?
  package let detail: String?  // To whom, how, or what else is worth knowing.
}

extension LogEvent {
  private static let limit = 255  // What comes from outside is cut to this length.

  var encoded: Secret {
    var members: [JSONValue.Member] = [.init("t", .moment(time)), .init("a", .string(action.rawValue))]
    func append(_ name: String, _ text: String?) {
      if let text { members.append(.init(name, .string(String(text.unicodeScalars.prefix(Self.limit))))) }
    }
    append("p", provider)
    append("n", account)
    append("d", detail)
    return Secret(JSONValue.object(members).encoded)
  }

  init?(decoding payload: Secret) {
    guard let value = try? JSONValue.parse(payload.revealBytes()), let time = value["t"]?.moment,
      let action = value["a"]?.text.flatMap(Action.init)
    else { return nil }
    self.init(
      time: time, action: action, provider: value["p"]?.text, account: value["n"]?.text, detail: value["d"]?.text)
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
    LogEvent(time: clock.now(), action: action, provider: provider, account: account, detail: detail).encoded
  }

  /// Notes that `receiver`, such as `git github.com`, gets a credential, also if that cannot be noted.
  package func noteHandOut(_ account: Account, to receiver: String) {
    noteHandOut(account.provider, account.name, to: receiver)
  }

  package func noteHandOut(_ provider: String, _ account: String, to receiver: String) {
    guard let store = try? accountsIfAny()?.store else { return }
    do throws(StoreError) {
      try store.note(event(.handOut, of: provider, account: account, detail: receiver))
    } catch .file(let error) {
      // A disk that is full or cannot be written says so elsewhere; what somebody put there would not be noticed.
      switch error {
      case .symbolicLink, .notRegularFile, .otherOwner, .readableByOthers: notice(.handOutNotNoted(error))
      default: break
      }
    } catch {}
  }

  /// Notes that `receiver`, such as `kubectl for https://k8s.example`, gets no credential, if that can be noted.
  package func noteRefusal(_ provider: String, _ account: String?, to receiver: String) {
    try? accountsIfAny()?.store.note(event(.refused, of: provider, account: account, detail: receiver))
  }

  /// Notes what cannot be undone because it cannot be noted.
  func note(_ action: LogEvent.Action, _ detail: String? = nil) {
    try? accountsIfAny()?.store.note(event(action, detail: detail))
  }

  /// The events, the oldest first, and how many are known to be lost. Throws if something else is in the log's place.
  package func log() throws(CredentialError) -> (events: [LogEvent], lost: Int) {
    guard let accounts = try accountsIfAny() else { return ([], 0) }
    let logged = try inStore(accounts.store.events())
    // In the order in which they were noted, where the clock says the same or was set back between them.
    let events = logged.events.compactMap(LogEvent.init(decoding:))
    let sorted = events.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
    return (sorted.map(\.element), logged.lost)
  }
}

import JSON

/// What was found at one place: as it should be, worth knowing, or not working, with what a person can do about it.
struct Diagnostic {
  /// What was looked at.
  enum Check: String, CaseIterable, Sendable {
    case home, vault, accounts, clock, browser, keyring, programs, git, docker, descriptors, hosts, rules, certificates
    case proxy, network
  }

  enum Severity: String, Sendable {
    case ok
    /// Worth knowing; nothing has to be done.
    case note
    /// Something does not work, or will not.
    case problem
  }

  let check: Check
  let severity: Severity
  let text: String
  var remedies: [Remedy] = []
  /// The exit status that a command has that comes across it.
  var status = ExitStatus.done

  var json: JSONValue {
    [
      "check": .string(check.rawValue), "state": .string(severity.rawValue), "sentence": .string(text),
      "hints": .array(remedies.compactMap { $0.sentence() }.map(JSONValue.string)),
    ]
  }
}

import CredmgrCredentialManager
import CredmgrOAuth
import CredmgrText

extension PasteFault {
  /// Returns the message for a login that cannot prompt for these values.
  static func message(withoutTerminal fields: [String], _ provider: String, _ title: String) -> Message {
    .loginNeeded("cannot log in to \(title): no terminal to prompt for the \(fields.joined(separator: " and the "))")
      .hint(
        "\(reading: "login", provider, "--with-token"), where FILE has "
          + (fields.count == 1 ? "it on one line" : "them in this order, one per line"))
  }

  /// Returns the message without any part of the text, which may be a secret.
  func message(of title: String) -> Message {
    switch self {
    case .empty(let label): .usage("invalid \(label) of \(title): it is empty")
    case .lines(let label):
      .usage("invalid \(label) of \(title): it has several lines").hint("paste only the \(label), on one line")
    case .blank(let label):
      .usage("invalid \(label) of \(title): it contains a space").hint("paste only the \(label)")
    case .character(let label):
      .usage("invalid \(label) of \(title): it contains a character that a header cannot have")
        .hint("copy the \(label) again")
    case .tooLong(let label, let bytes):
      .usage("invalid \(label) of \(title): it is longer than \(bytes / 1024) KiB").hint("paste only the \(label)")
    case .pattern(let label):
      .usage("this is not the \(label) of \(title): it has another form; it was not stored")
        .hint("copy the \(label) again")
    case .count(let fields):
      .usage("standard input must have \(fields.count) lines for \(title): \(fields.joined(separator: ", "))")
        .hint("put each value on its own line, in this order")
    }
  }
}

extension ClientPart {
  fileprivate var name: String { self == .identifier ? "client ID" : "client secret" }
}

extension ClientDoubt {
  /// Returns a warning without any part of the pasted text.
  package func warning(on part: ClientPart, of title: String) -> String {
    let reason =
      switch self {
      case .otherForm: "it has another form"
      case .other(let other): "it looks like a \(other.name)"
      case .named(let words): "it looks like \(words)"
      }
    return "warning: this is probably not a \(part.name) of \(title): \(reason)"
  }
}

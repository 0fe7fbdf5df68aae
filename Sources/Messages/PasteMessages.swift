import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrOAuth
import CredmgrText

extension PasteFault {
  /// Returns the message for a login that cannot prompt for these values.
  static func message(withoutTerminal fields: [String], _ provider: String, _ title: String) -> Message {
    .loginNeeded("cannot log in to \(title): no terminal to prompt for \(fields.withArticles)")
      .hint(
        "\(reading: "login", provider, "--with-token"), where FILE has "
          + (fields.count == 1 ? "it on one line" : "them in this order, one per line"))
  }

  /// Returns the message for a login that needs a key file, or further values, and cannot prompt for them.
  static func message(withoutKeyFile labels: [String], variables: [String], _ title: String) -> Message {
    let hasFile = labels.count > variables.count
    let options = (hasFile ? ["--key-file", "FILE"] : []) + variables.flatMap { ["--set", $0 + "=VALUE"] }
    return .loginNeeded("cannot log in to \(title): no terminal to prompt for \(labels.withArticles)")
      .hint(Remedy(parts: [.again(options)]))
  }

  /// Returns the message without any part of the text, which may be a secret.
  func message(of title: String) -> Message {
    switch self {
    case .empty(let label): .usage("invalid \(label.bare) of \(title): it is empty")
    case .lines(let label):
      .usage("invalid \(label.bare) of \(title): it has several lines")
        .hint("paste only the \(label.bare), on one line")
    case .blank(let label):
      .usage("invalid \(label.bare) of \(title): it contains a space").hint("paste only the \(label.bare)")
    case .character(let label):
      .usage("invalid \(label.bare) of \(title): it contains a character that is not allowed in a header")
        .hint("copy the \(label.bare) again")
    case .tooLong(let label, let bytes):
      .usage("invalid \(label.bare) of \(title): it is longer than \(bytes / 1024) KiB")
        .hint("paste only the \(label.bare)")
    case .pattern(let label): Self.other(label, of: title, "it has another form")
    case .choice(let label, let choices):
      Self.other(label, of: title, "it must be one of \(choices.joined(separator: ", "))")
    case .format(let label, let format): Self.other(label, of: title, format.rule ?? "it has another form")
    case .colon(let label): Self.other(label, of: title, "it contains a colon")
    case .address(let label):
      .usage("this is not the \(label.bare) of \(title): it is a web address; it was not stored")
        .hint("paste only the \(label.bare)")
    case .count(let fields):
      .usage("standard input must have \(fields.count) lines for \(title): \(fields.joined(separator: ", "))")
        .hint("put each value on its own line, in this order")
    case .keyFile(let fault): fault.message(of: title)
    }
  }

  private static func other(_ label: String, of title: String, _ reason: String) -> Message {
    .usage("this is not the \(label.bare) of \(title): \(reason); it was not stored")
      .hint("copy the \(label.bare) again")
  }
}

extension String {
  /// The label without an article. The help of a variable may begin with one.
  fileprivate var bare: String { hasPrefix("the ") ? String(dropFirst("the ".count)) : self }
}

extension [String] {
  /// The labels, each with an article.
  fileprivate var withArticles: String { map { "the " + $0.bare }.joined(separator: " and ") }
}

extension SubjectTokenFault {
  func message(at place: SubjectTokenPlace?, of variable: Variable, _ provider: String, _ title: String) -> Message {
    let label = variable.help ?? variable.name
    let failed = "cannot get a token of \(title): "
    let setting = variable.name + "=@FILE"
    guard let place else {
      return .loginNeeded("cannot log in to \(title): it needs the \(label), which is never typed")
        .hint(Remedy(parts: [.again(["--set", setting])]))
    }
    let again: Remedy = "\(credmgr: "login", provider, "--set", setting) to name another file"
    let name =
      switch place {
      case .file(let path): "the \(label) in \(quoted(path))"
      // Most names of variables are words in capitals with "_" between them.
      case .environment(let name) where mayBeKey(name) && (name.contains(where: \.isLowercase) || !name.contains("_")):
        "the \(label) in the environment variable"
      case .environment(let name): "the \(label) in the environment variable \(name)"
      }
    if case .unreadable(.notFound(let path)) = self, mayBeKey(path.split(separator: "/").last.map(String.init) ?? "") {
      return .loginNeeded(failed + "the file with the \(label) does not exist").hint(again)
    }
    switch self {
    case .unset: return .loginNeeded(failed + name + " is not set").hint("set the variable in this job")
    case .unreadable(let error):
      return .loginNeeded(failed + "cannot read \(name): \(error.message.sentence)").hint(again)
    case .empty: return .loginNeeded(failed + name + " is empty").hint(again)
    case .notText: return .loginNeeded(failed + name + " is not a token on one line").hint(again)
    case .expired(let moment):
      return .loginNeeded(failed + "\(name) expired at \(moment.text)")
        .hint("let the CI or the cluster issue a new one, then repeat the command")
    }
  }
}

extension KeyFile.Fault {
  fileprivate func message(of title: String) -> Message {
    let other: Remedy = "\(add: "--key-file", "FILE") with the file that the provider gave you"
    switch self {
    case .notJSON: return .usage("this is not the key file of \(title): it is not a JSON file").hint(other)
    case .notPEM: return .usage("this is not the key file of \(title): it is not a PEM file").hint(other)
    case .missing(let name):
      return .usage("this is not the key file of \(title): it has no \(quoted(name))").hint(other)
    case .repeated(let name):
      return .usage("cannot read the key file of \(title): it has \(quoted(name)) more than once").hint(other)
    case .other(let name):
      return .usage("this is not the key file of \(title): its \(quoted(name)) has another value").hint(other)
    case .otherKey(let kind):
      return .usage("this is not the key file of \(title): its private key is not \(kind.words)").hint(other)
    case .noPrivateKey: return .usage("this is not the key file of \(title): it has no private key").hint(other)
    case .encrypted:
      return .usage("cannot read the key file of \(title): it has a passphrase")
        .hint(.removingPassphrase)
    case .escaped:
      return .usage("this is not the key file of \(title): its line ends are written as \"\\n\"")
        .hint("write each line of the private key on its own line")
    case .openSSH:
      return .usage("cannot read the key file of \(title): it has the form of OpenSSH")
        .hint(.changingForm)
    }
  }
}

extension AssertionAlgorithm.KeyKind {
  fileprivate var words: String {
    switch self {
    case .rsa: "an RSA key of at least 2048 bits"
    case .ellipticCurve: "an EC key on the curve P-256"
    case .edwards: "an Ed25519 key"
    case .shared: "a shared secret"
    }
  }
}

extension ClientPart {
  fileprivate var name: String { self == .identifier ? "client ID" : "client secret" }
}

extension ClientDocument.Fault {
  /// Returns a warning about the document at a URL that is a client identifier.
  package func warning(at location: String) -> String {
    let reason =
      switch self {
      case .unavailable(let status): "its URL answers with status \(status)"
      case .notJSON: "it is not a JSON object"
      case .otherIdentifier: "its \"client_id\" is not this URL"
      case .noRedirect(let redirect): "its \"redirect_uris\" do not contain \(redirect)"
      case .secret: "it requires a client secret"
      }
    return "warning: the provider will not accept the document at \(location): \(reason)"
  }
}

extension ClientDoubt {
  /// Returns a warning without any part of the pasted text.
  package func warning(on part: ClientPart, of title: String) -> String {
    let reason =
      switch self {
      case .otherForm: "it has another form"
      case .other(let other): "it looks like a \(other.name)"
      case .named(let words): "it looks like \(words)"
      case .location(isAccepted: true): "such a URL needs a path, and has no query or fragment"
      case .location: "it is a URL, and the provider does not say that it reads client metadata"
      }
    return "warning: this is probably not a \(part.name) of \(title): \(reason)"
  }
}

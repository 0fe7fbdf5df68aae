import CredentialManager
import Store
import Text

extension CredentialError {
  var message: Message {
    let passphraseFile: Remedy = "\(add: "--passphrase-file", "FILE")"
    return switch self {
    case .noHome: .usage("there is no home folder").hint("set HOME, or \(Remedy.anotherHome)")
    case .relativeHome(let path):
      .usage("CREDMGR_HOME is \(quoted(path)), which is not an absolute path").hint(Self.absolute(path))
    case .provider(let error): error.message
    case .oauth(let error, let provider): error.message(provider: provider)
    case .http(let error, let provider): error.message(provider: provider)
    case .vault(let error): error.message()
    case .system(let error): error.message
    case .discovery(let error, let issuer): error.message(issuer: issuer)
    case .notAdded(let provider, let needs):
      .usage("the provider \(quoted(provider)) was not added yet" + needs.registration)
        .hint("\(credmgr: ["add-provider", provider] + needs.options)")
    case .alreadyAdded(let provider):
      .usage("the provider \(quoted(provider)) was added already").hint("\(add: "--replace") to change it")
        .hint("\(add: "--as", "ID") to add it once more")
    case .clientIdentifierMissing(let provider, let needs):
      .usage("\(quoted(provider)) needs a client identifier" + needs.registration).hint("\(add: needs.options)")
    case .loginNeeded(let provider, let account, let reason):
      .loginNeeded(reason.sentence(provider, account)).hint("\(credmgr: ["login", provider] + accountOption(account))")
    case .unknownAccount(let name, let provider, let known):
      Self.unknown(
        name, at: provider, known: known, "there is no account \(quoted(name)) at \(quoted(provider))", hints: [])
    case .ambiguousAccount(let provider, let known):
      .usage("there are several accounts at \(quoted(provider)): \(some(known))")
        .hint("\(credmgr: "use", provider, known.first ?? "ACCOUNT") to make one the default")
        .hint("\(add: "--account", known.first ?? "ACCOUNT") for this time")
    case .malformedAccount(let name):
      .usage("\(quoted(name)) is no name for an account: 1 to 255 bytes without control characters")
    case .identityMismatch(let provider, let account, let expected, let found, let other):
      .refused(
        "the login was for \(found.map(quoted) ?? "somebody whom the provider does not name")"
          + (other.map { ", who is the account \(quoted($0)) already" } ?? "")
          + ", and the account \(quoted(account)) is \(quoted(expected)); nothing was changed"
      ).with(hints: Self.ways(provider, account, expected: expected, found: found, other: other))
    case .nameNeeded(let provider, let account):
      .usage(
        "\(quoted(provider)) does not say who logs in, and \(quoted(account)) is logged in already; nothing was changed"
      )
      .hint("\(add: "--account", "NAME") for another account")
      .hint("\(add: "--account", account) to put a new token in the place of the old one")
    case .grantNotOffered(let grant, let offered):
      .usage("the provider does not offer the grant \(quoted(grant.rawValue))")
        .with(hints: .correcting(grant.rawValue, to: offered.first?.rawValue))
        .hint("it offers \(listed(offered.map(\.rawValue)))")
    case .pasteNeeded(let provider, let isCode):
      .usage(
        "nobody pasted the \(isCode ? "code that the page shows" : "address of the page where the browser ended up")"
      )
      .hint("\(credmgr: "login", provider) at a terminal, or give the \(isCode ? "code" : "address") on standard input")
    case .pasteExposesToken(let provider):
      .usage(
        "\(quoted(provider)) puts the token into the address of a port of this machine, where another program may wait "
          + "for it with \"--paste\""
      ).hint("leave \"--paste\" out; \"--no-browser\" prints the address, and waits at the port")
    case .schemeWithoutState(let provider, let redirect):
      .usage("cannot log in to \(quoted(provider)): without a state, any program can answer at \(quoted(redirect))")
        .hint("\(add: "--paste")")
    case .loginPageTaken(let provider):
      .loginNeeded("another program opened the login page first; the login was stopped")
        .hint("\(credmgr: "login", provider, "--no-browser"), and open the address that it prints")
    case .timedOut(let time):
      .loginNeeded("nobody finished the login within \(exactDuration(time))").hint("run the command again")
    case .lockTimedOut(let provider, let account):
      .unexpected(
        "another process did not finish with " + (account.map { "\(quoted($0)) at " } ?? "") + quoted(provider)
      )
      .hint("run the command again, or see \(command: "ps", "-C", "credmgr-online")")
    case .uncommitted(let provider, let account, let isKept, let error):
      .vault(
        "\(quoted(provider)) gave a new token\(account.map { " for \(quoted($0))" } ?? ""), "
          + (isKept ? "which waits beside the vault: " : "which is lost: ") + error.cause
      ).hint(
        isKept
          ? "mend that, and run the command again"
          : "mend that, then \(credmgr: ["login", provider] + accountOption(account))")
    case .interrupted: Message("interrupted", status: .interrupted)
    case .noLoginWaits:
      .usage("no login waits for this address").hint("begin the login again, and use the page that it opens")
    case .networkNeeded:
      .unexpected("this program has no network").hint("\(credmgr: "doctor") to see how to install it")
    case .destinationChange(let provider, let accounts, let places):
      .usage("the new descriptor of \(quoted(provider)) \(places.words(accounts, "would send"))")
        .hint("run it at a terminal to agree, or \(command: "credmgr", "logout", provider, "--all") first")
    case .descriptorChanged(let provider, let file, let isOwn, let places):
      .usage(
        isOwn
          ? "\(quoted(file)) was changed after \(quoted(provider)) was added, and \(places.words(nil, "would send"))"
          : "\(quoted(provider)) was added with another descriptor than \(quoted(file)), which "
            + places.words(nil, "would send")
      ).hint("look at the file; if it is right, \(credmgr: "add-provider", provider, "--replace") at a terminal")
    case .notAgreed(let provider, let origin, let route):
      .usage(
        "the credentials of \(quoted(provider)) do not go to \(quoted(origin)), because that was not agreed to when "
          + "the provider was added"
      ).hint(
        route == .kubectl
          ? "name it below \"kubectl\" in the descriptor, then \(credmgr: "add-provider", provider, "--replace")"
          : "\(credmgr: "providers", provider) to see where they go")
    case .peculiar(let provider, let places, let isBeingAdded):
      .usage("\(quoted(provider)) needs consent: " + places.peculiarities.joined(separator: ", and "))
        .hint(
          isBeingAdded
            ? "at a terminal it asks; \(add: "--yes") if you trust the descriptor's author"
            : "\(credmgr: "add-provider", provider, "--replace") at a terminal asks; it takes \"--set\" as well")
    case .foreignDevicePage(let provider, let origin):
      Message(
        "\(quoted(provider)) wants its code to be entered at \(quoted(origin)), which is none of its servers",
        hint:
          "\(credmgr: "providers", provider) shows its servers; another provider's page would give your account away",
        status: .refused)
    case .clusterNeeded(let provider):
      .usage(
        "the descriptor of \(quoted(provider)) names its clusters, and kubectl does not say for which one it asks, so "
          + "the token is not given"
      ).hint("write \"provideClusterInfo: true\" below \"exec\" in the kubeconfig")
    case .mixUp(let provider, let other, let mixUp):
      Message(
        mixUp.sentence(provider, other),
        hint: "look at both descriptors; \(credmgr: "remove-provider", provider) if you do not trust its author",
        status: mixUp.isInAnswer ? .refused : .usage)
    case .accountsRemain(let provider, let accounts):
      .usage("somebody is logged in to \(quoted(provider)): \(some(accounts))")
        .hint("\(credmgr: "logout", provider, "--all") first")
    case .loginUnderWay(let provider, let account):
      .usage("a login at \(quoted(provider))\(account.map { " as \(quoted($0))" } ?? "") is under way")
        .hint("end it, then \(credmgr: "remove-provider", provider) again")
    case .extended(let provider, let dependents):
      .usage("your descriptor \(quoted(provider)) is extended by \(some(dependents))")
        .hint("\(credmgr: "remove-provider", dependents.first ?? "ID") first")
    case .nothingToRemove(let provider):
      .usage(
        "there is nothing to remove: \(quoted(provider)) was not added, and you have no descriptor of your own for it"
      )
      .hint("\(credmgr: "providers") to see which were added")
    case .malformedRegistration(let provider):
      .vault("the registration at \(quoted(provider)) in the vault cannot be read")
        .hint(RecordIdentifier(kind: .registration, provider: provider, account: "").remedy())
    case .malformedRules(let findings):
      Message(
        "the rules for accounts have \(findings.count == 1 ? "an error" : "\(findings.count) errors")"
          + (findings.first.map { " in \(quoted($0.place.source.name))" } ?? ""), findings: findings)
    case .uneditableRules(let path):
      .usage("\(quoted(path)) is not written line by line, and can be edited only by hand")
    case .malformedToken:
      .usage("what was given is no token: it is empty, or has spaces or other characters that a header cannot have")
    case .tokenRefused(let provider, let words):
      .refused("\(quoted(provider)) does not take this token" + (words.map { ": \($0)" } ?? "") + "; it was not kept")
        .hint(
          "\(credmgr: "login", provider, "--with-token") with another one, or "
            + "\(command: "credmgr", "login", provider) for a new one")
    case .malformedExport: .usage("this is no file that \"credmgr vault export\" made")
    case .wrongExportPassphrase: .usage("the passphrase is not the one of the exported file")
    case .newPassphraseUnavailable(.noTerminal):
      .usage("there is no terminal to ask for the new passphrase at").hint(passphraseFile)
    case .newPassphraseUnavailable(.endOfInput):
      .usage("there was no passphrase; nothing was changed").hint(passphraseFile)
    case .exportPassphraseUnavailable(.noTerminal):
      .usage("there is no terminal to ask for the passphrase of the exported file at").hint(passphraseFile)
    case .exportPassphraseUnavailable(.endOfInput): .usage("there was no passphrase")
    case .newPassphraseUnavailable(let error), .exportPassphraseUnavailable(let error): error.message
    case .plainExport:
      .usage("the file is not encrypted, so anybody who had it can have changed it")
        .hint("if you trust it, \(add: "--plain")")
    case .importWidens(let provider, let places):
      .usage(
        "the file's registration of \(quoted(provider)) \(places.words(nil, "would send")), which was not agreed to "
          + "here; nothing was changed"
      ).hint("run it at a terminal to agree, or \(command: "credmgr", "remove-provider", provider) first")
    case .alreadyThere(let records, let files):
      .usage("the import would replace \(records.words(and: files)); nothing was changed")
        .hint("\(add: "--replace") to replace what is there")
    case .notValidatable(let provider): .usage("\(quoted(provider)) has no endpoint that says whether a token is good")
    }
  }

  /// `others` are the providers that have an account with the name: it is probably meant for them alone.
  static func unknownAccount(
    ofEnvironment name: String, provider: String, known: [String], others: [String]
  ) -> Message {
    let meant = others.map { "\($0)=\(name)" }.joined(separator: ",")
    let near: Remedy? =
      if let near = nearMiss(name, among: known, isShort: true) { "\(export: "CREDMGR_ACCOUNT", near)" } else {
        others.isEmpty ? nil : "\(export: "CREDMGR_ACCOUNT", meant) to leave the other providers their own accounts"
      }
    return unknown(
      name, at: provider, known: known,
      "CREDMGR_ACCOUNT is \(quoted(name)), and there is no such account at \(quoted(provider))",
      hints: (near.map { [$0] } ?? []) + ["\(run: "unset", "CREDMGR_ACCOUNT")"])
  }

  private static func ways(
    _ provider: String, _ account: String, expected: String, found: String?, other: String?
  ) -> [Remedy] {
    let again: Remedy =
      "\(credmgr: "login", provider, "--account", account), and log in as \(quoted(expected)) on the page"
    let beside = found.map { name -> Remedy in
      let command = other.map { ["use", provider, $0] } ?? ["login", provider, "--account", name]
      return "\(credmgr: command) to \(other == nil ? "keep it beside the other one" : "use that account")"
    }
    return [again] + (beside.map { [$0] } ?? []) + ["\(all: another(account, of: provider)) to make it the other one"]
  }

  /// The commands that give an account's name to somebody else.
  static func another(_ account: String, of provider: String) -> [[String]] {
    ["logout", "login"].map { ["credmgr", $0, provider, "--account", account] }
  }

  private static func unknown(
    _ name: String, at provider: String, known: [String], _ sentence: String, hints: [Remedy]
  ) -> Message {
    let near = nearMiss(name, among: known, isShort: true)
    return Message(
      sentence + didYouMean(near) + "; there \(known.count == 1 ? "is" : "are") \(some(known))",
      hints: .correcting(name, to: near) + hints + ["\(credmgr: "login", provider, "--account", name) to add it"],
      status: .loginNeeded)
  }

  /// What a person meant by a path that no shell has made absolute.
  private static func absolute(_ path: String) -> Remedy {
    let isBelowHome = path == "~" || path.hasPrefix("~/")
    let rest = isBelowHome ? String(path.dropFirst()) : "/" + path
    return "\(shell: "export CREDMGR_HOME=\(isBelowHome ? "~" : "$PWD")" + (rest.isEmpty ? "" : argument(rest)))"
  }
}

extension ClientNeeds {
  fileprivate var registration: String {
    needsIdentifier ? "; register a client at " + (register ?? "the provider") : ""
  }

  /// What follows "credmgr add-provider ID".
  var options: [String] {
    (needsIdentifier ? ["--client-id", "ID"] : []) + (needsSecret ? ["--client-secret-file", "FILE"] : [])
  }
}

extension CredentialError.LoginReason {
  fileprivate func sentence(_ provider: String, _ account: String?) -> String {
    let whose = "provider \(quoted(provider))" + (account.map { " and account \(quoted($0))" } ?? "")
    func said(_ words: String?) -> String { words.map { ": \($0)" } ?? "" }
    return switch self {
    case .noCredential: "no credential for \(whose)"
    case .expired: "the credential for \(whose) has expired, and cannot be refreshed"
    case .refreshRefused(let words):
      "the provider \(quoted(provider)) does not refresh the credential" + (account.map { " of \(quoted($0))" } ?? "")
        + " any more" + said(words)
    case .notRefreshable: "the credential for \(whose) is good, and there is nothing to refresh it with"
    case .refreshInterrupted(let words):
      "an earlier refresh at \(quoted(provider)) was interrupted, and its answer is lost" + said(words)
    case .rejected: "the credential for \(whose) was refused, and cannot be refreshed"
    }
  }
}

extension [NewPlace] {
  /// What a new descriptor does, with the places where it says so: `would send tokens to "evil.example" (file:1:1)`.
  /// `accounts` are those whose tokens are kept; `nil` where that is not known.
  func words(_ accounts: [String]?, _ send: String) -> String {
    let use = send.exchanging("send", for: "use")
    func listed(_ places: [NewPlace]) -> String { places.map(\.named).joined(separator: ", ") }
    var words: [String] = []
    let origins = filter { $0.kind == .secrets || $0.kind == .tokens }
    if !origins.isEmpty {
      let what = accounts.map { $0.isEmpty ? "the client secret" : "the tokens of \(some($0))" } ?? "tokens"
      words.append("\(send) \(what) to \(listed(origins))")
    }
    for place in self where place.kind != .secrets && place.kind != .tokens {
      switch place.kind {
      case .anyIssuer: words.append("\(use) answers of any issuer" + place.source)
      case .setting(let key): words.append("\(send.exchanging("send", for: "set")) \(quoted(key)) to \(place.named)")
      case .shownSecret: words.append("\(send.exchanging("send", for: "show")) the secret \(place.named)")
      default: words.append("\(use) the \(place.noun) \(place.named)")
      }
    }
    return words.joined(separator: ", and ")
  }

  /// Why somebody has to agree to them; those for one reason in one sentence.
  var peculiarities: [String] {
    var reasons: [(key: [String], values: [String])] = []
    for place in self { reasons.note(place.named, of: place.reason) }
    return reasons.map { $0.key[0] + $0.values.joined(separator: ", ") + $0.key[1] }
  }
}

extension NewPlace {
  fileprivate var named: String { quoted(name) + source }

  fileprivate var source: String { place.map { " (\($0.source.name):\($0.line):\($0.column))" } ?? "" }

  fileprivate var noun: String {
    switch kind {
    case .secrets, .tokens, .borrower: "origin"
    case .redirect, .scheme: "redirect"
    case .devicePage, .othersDevicePage: "device page"
    case .issuer, .anyIssuer: "issuer"
    case .audience: "audience of assertions"
    case .shownSecret: "variable"
    case .setting(let key): key
    }
  }

  private var gets: String {
    switch kind {
    case .secrets: "gets the client secret and tokens"
    case .tokens: "gets tokens"
    case .redirect: "gets the answer to a login"
    case .scheme(let owner): "is opened by \(quoted(owner))"
    case .devicePage, .othersDevicePage: "is opened for the code of a device"
    case .borrower: "gets tokens of another provider"
    case .issuer: "is whose answers count"
    case .anyIssuer: "lets the answers of any issuer count"
    case .audience: "takes assertions that the client signs"
    case .shownSecret: "is shown and no secret any more"
    case .setting(let key):
      key.hasPrefix("response.") ? "is where that secret is taken from" : "protects less"
    }
  }

  /// What stands before and behind the name.
  fileprivate var reason: [String] {
    switch kind {
    case .issuer: ["its issuer ", " is on another server than its endpoints"]
    case .devicePage: ["its page for a device's code ", " is on another server than its endpoints"]
    case .othersDevicePage(let owner): ["its page for a device's code ", " belongs to \(quoted(owner))"]
    case .borrower(let owner, let page):
      ["logins are on \(quoted(page)), which belongs to \(quoted(owner)), and what they give goes to ", ""]
    default: ["its \(noun) ", " \(gets)"]
    }
  }

  /// The old and the new place, and what the new one gets, as one line.
  var difference: String {
    let old = before.isEmpty ? "(nothing)" : before.map(quoted).joined(separator: ", ")
    return "\(noun): \(old) -> \(named), which \(gets)"
  }
}

extension MixUp {
  fileprivate func sentence(_ provider: String, _ other: String) -> String {
    switch self {
    case .issuer(let issuer):
      "\(quoted(provider)) names the issuer \(quoted(issuer)), which belongs to \(quoted(other))"
    case .page(let page, let token):
      "the login page of \(quoted(provider)) is on \(quoted(page)), which belongs to \(quoted(other)), and its codes "
        + "would go to \(quoted(token))"
    case .redirect(let redirect): "the redirect of \(quoted(provider)) is that of \(quoted(other)): \(quoted(redirect))"
    case .devicePage(let host):
      "the page for the code of \(quoted(provider)) is on \(quoted(host)), which belongs to \(quoted(other))"
    case .answer(let issuer):
      "the redirect comes from \(quoted(issuer)), which belongs to \(quoted(other)), and not from \(quoted(provider))"
    }
  }

  fileprivate var isInAnswer: Bool {
    switch self {
    case .answer, .devicePage: true
    case .issuer, .page, .redirect: false
    }
  }
}

import CredmgrCredentialManager
import CredmgrOAuth
import CredmgrStore
import CredmgrText

extension Message {
  package static func malformedAccounts(_ fault: (part: String, isSecond: Bool)) -> Message {
    .usage(
      "cannot read CREDMGR_ACCOUNT: \(quoted(fault.part)) "
        + (fault.isSecond ? "names a second account of that provider" : "is not PROVIDER=ACCOUNT")
    ).hint("\(run: "unset", "CREDMGR_ACCOUNT") to use the default accounts")
  }
}

extension CredentialError {
  /// The optimizer would copy all messages for this one parameter, 30 KB in each program.
  @_optimize(none)
  package var message: Message { message(titled: quoted) }

  /// - Parameter titled: returns the title that the user knows for a provider's identifier.
  package func message(titled: (String) -> String) -> Message {
    let passphraseFile: Remedy = "\(add: "--passphrase-file", "FILE")"
    return switch self {
    case .noHome: .usage("cannot find your home directory: HOME is not set").hint(.anotherHome)
    case .relativeHome(let path):
      .usage("invalid CREDMGR_HOME \(quoted(path)): it must be an absolute path").hint(Self.absolute(path))
    case .provider(let error): error.message
    case .oauth(let error, let provider): error.message(provider: provider, title: titled(provider))
    case .http(let error, let provider): error.message(provider: provider, title: titled(provider))
    case .vault(let error): error.message()
    case .system(let error): error.message
    case .discovery(let error, let issuer): error.message(issuer: issuer)
    case .notAdded(let provider, let needs):
      .usage("\(titled(provider)) has not been added" + needs.registration)
        .hint("\(credmgr: ["add-provider", provider] + needs.options)")
    case .alreadyAdded(let provider):
      .usage("\(titled(provider)) has already been added").hint("\(add: "--replace") to change it")
    case .descriptorExists(let path):
      .usage("another descriptor is stored in \(quoted(path)); nothing was changed").hint(.settingAside(path))
    case .notPublished(let address, let status, let location):
      .refused(
        "no descriptor found at \(address) "
          + (location.map { "(it redirects to \(clipped($0)))" } ?? "(status \(status))")
      ).hint("check the address")
    case .clientIdentifierMissing(let provider, let needs):
      .usage("\(titled(provider)) requires a client ID" + needs.registration).hint(
        needs.takesDocument
          ? "\(add: "--client-id", "https://HOST/credmgr.json", "--client-document") with a URL of yours"
          : "\(add: needs.options)")
    // The name of an account that does not exist may be a key.
    case .loginNeeded(let provider, let account?, .noCredential) where mayBeKey(account):
      Self.loginNeeded(provider: provider, account: nil, .noCredential).message(titled: titled)
    case .loginNeeded(let provider, let account, let reason):
      .loginNeeded(reason.sentence(titled(provider), account)).hint(
        reason.remedy([provider] + accountOption(account)))
    case .unknownAccount(let name, let provider, let known):
      Self.unknown(
        name, at: provider, known: known,
        "\(titled(provider)) has no account " + (mayBeKey(name) ? "with this name" : quoted(name)))
    case .ambiguousAccount(let provider, let known):
      .usage("\(titled(provider)) has several accounts and no default: \(some(known))")
        .hint("\(add: "--account", known.first ?? "ACCOUNT")")
        .hint("\(credmgr: "use", provider, known.first ?? "ACCOUNT") to set the default account")
    case .malformedAccount(let name):
      .usage(
        "invalid account name\(mayBeKey(name) ? "" : " " + quoted(name)): use 1 to 255 bytes without control characters"
      )
    case .tokenMissing(let provider, let name, let known):
      .usage(
        "the login to \(titled(provider)) has no token" + shown(name, or: " of this name")
          + (known.isEmpty ? "" : "; it has " + known.joined(separator: ", "))
      )
      .hint(known.isEmpty ? "omit \"--field\" to use the token of the login" : "\(add: "--field", known[0])")
    case .identityMismatch(let provider, let account, let expected, let found, let other):
      .refused(
        "cannot log in as \(quoted(account)): you signed in as \(found.map(quoted) ?? "an unnamed user")"
          + (other.map { " (account \(quoted($0)))" } ?? "") + " instead of \(quoted(expected)); nothing was changed"
      ).hint(
        "sign in as \(quoted(expected)), or "
          + (other.map { "\(credmgr: "use", provider, $0)" }
            ?? "\(credmgr: "login", provider, "--account", account, "--replace")"))
    case .nameNeeded(let provider, let account):
      .usage(
        "\(titled(provider)) does not report who logged in, and account \(quoted(account)) exists; nothing was changed"
      )
      .hint("\(add: "--account", account) to replace its token, or choose another name")
    case .grantNotOffered(let grant, let offered):
      .usage("the provider does not offer the grant \(quoted(grant.rawValue)), only \(listed(offered.map(\.rawValue)))")
        .with(hints: .correcting(grant.rawValue, to: offered.first?.rawValue))
    case .pasteNeeded(let provider, let isCode):
      .usage("cannot log in to \(titled(provider)): no \(isCode ? "code" : "address") was pasted")
        .hint("\(credmgr: "login", provider) at a terminal, or pipe the \(isCode ? "code" : "address") into it")
    case .pasteExposesToken(let provider):
      .usage(
        "cannot log in to \(titled(provider)) with \"--paste\": another program on this machine could read the token"
      ).hint(Remedy(parts: [.without("--paste", instead: ["--no-browser"])]))
    case .schemeWithoutState(let provider, let redirect):
      .usage("cannot log in to \(titled(provider)): without \"state\", any program can answer at \(quoted(redirect))")
        .hint("\(add: "--paste")")
    case .loginPageTaken(let provider):
      .loginNeeded("the login was stopped: another program opened the login page first")
        .hint("\(credmgr: "login", provider, "--no-browser") and open the address that it prints")
    case .timedOut(let time):
      .loginNeeded("the login timed out after \(exactDuration(time))").hint("run the command again")
    case .lockTimedOut(let provider, let account, let vault):
      .unexpected(
        "timed out waiting for another \(vault == nil ? "process" : "machine") that uses "
          + (account.map { "\(quoted($0)) at " } ?? "") + titled(provider)
      ).hint(
        vault == nil
          ? "\(run: "ps", "-C", "credmgr-online") to find the process"
          : "if that machine does not answer, run the command again after 90 seconds")
    case .uncommitted(let provider, _, true, let error) where error.isUnreachable:
      .unreachable("saved the new \(titled(provider)) token only in a file next to the vault: \(error.cause)")
        .hint("repeat the command when the server answers")
    case .uncommitted(let provider, let account, let isKept, let error):
      .vault(
        (isKept
          ? "saved the new \(titled(provider)) token only in a file next to the vault: "
          : "lost the new \(titled(provider)) token\(account.map { " for \(quoted($0))" } ?? ""): ") + error.cause
      ).hint(
        isKept
          ? "\(credmgr: "doctor") to fix the cause, then repeat the command"
          : "fix the cause, then \(credmgr: ["login", provider] + accountOption(account))")
    case .interrupted: Message("interrupted", status: .interrupted)
    case .otherLoginFailed(let provider):
      .refused("the login to \(titled(provider)) in another process failed").hint("\(credmgr: "login", provider)")
    case .noLoginWaits:
      .usage("no login is waiting for this address").hint("log in again and use the page that the login opens")
    case .networkNeeded:
      .unexpected("cannot use the network: the program \"credmgr-online\" is missing")
        .hint("\(credmgr: "doctor") to see how to install it")
    case .destinationChange(let provider, let accounts, let places):
      .usage("the new descriptor of \(quoted(provider)) requires your consent", items: places.sentences(accounts))
        .hint("if you trust the author of the descriptor, \(add: "--yes")")
    case .descriptorChanged(let provider, let file, let isOwn, let places):
      .usage(
        isOwn
          ? "the descriptor of \(quoted(provider)) changed after you added the provider"
          : "\(quoted(provider)) was added with another descriptor than \(quoted(file))",
        items: places.sentences()
      ).hint("if you trust the file, \(credmgr: "add-provider", provider, "--replace") at a terminal to agree")
    case .notAgreed(let provider, let origin, let route):
      .usage(
        "cannot send credentials of \(quoted(provider)) to \(quoted(origin)): you did not agree to this server when "
          + "you added the provider"
      ).hint(
        route == .kubectl
          ? "add it under \"kubectl\" in the descriptor, then \(credmgr: "add-provider", provider, "--replace")"
          : "\(credmgr: "providers", provider) to see the allowed servers")
    case .notUsableAlone(let provider, let route):
      .usage(
        "cannot use a token of \(quoted(provider)) with \(route == .kubectl ? "kubectl" : "other programs"): each "
          + "request needs a signature by credmgr"
      ).hint("\(credmgr: "request", provider, "URL") to send signed requests")
    case .proofNeeded(let provider, let account, let isDescribed):
      Message(
        "\(quoted(provider)) accepts only tokens that are bound to a key (DPoP), and the account \(quoted(account)) "
          + "has no key",
        hint: isDescribed
          ? "\(credmgr: "login", provider, "--account", account) to get a bound token"
          : "add \"token_binding: dpop\" to its descriptor, then \(credmgr: "login", provider, "--account", account)",
        status: isDescribed ? .loginNeeded : .refused)
    case .peculiar(let provider, let places, let isBeingAdded):
      .usage("\(quoted(provider)) requires your consent", items: places.peculiarities)
        .hint(
          isBeingAdded
            ? "if you trust the author of the descriptor, \(add: "--yes")"
            : "\(credmgr: "add-provider", provider, "--replace") at a terminal to agree")
    case .foreignDevicePage(let provider, let origin):
      Message(
        "\(quoted(provider)) asks for its code at \(quoted(origin)), which is not one of its servers",
        hint:
          "do not enter the code: it could give away another account of yours; "
          + "\(credmgr: "providers", provider) to see the servers",
        status: .refused)
    case .clusterNeeded(let provider):
      .usage(
        "cannot give kubectl a token of \(titled(provider)): kubectl does not name the cluster, and the descriptor "
          + "allows only certain clusters"
      ).hint("add \"provideClusterInfo: true\" under \"exec\" in the kubeconfig")
    case .mixUp(let provider, let other, let mixUp):
      Message(
        mixUp.sentence(provider, other),
        hint: "check both descriptors; \(credmgr: "remove-provider", provider) if you do not trust its author",
        status: mixUp.isInAnswer ? .refused : .usage)
    case .accountsRemain(let provider, let accounts, let vault):
      .usage("cannot remove \(titled(provider)): it still has accounts: \(some(accounts))")
        .hint(
          vault.map { "\(credmgr: "logout", provider, "--account", accounts[0], "--vault", $0) first" }
            ?? "\(credmgr: "logout", provider, "--all") first")
    case .importWaits(let provider, let words):
      .usage("cannot remove or change \(titled(provider)): an interrupted import needs it")
        .hint(
          "\(credmgr: words.isEmpty ? ["import"] : words) to finish it, or "
            + "\(credmgr: "logout", provider, "--all") to give it up")
    case .loginUnderWay(let provider, let account):
      .usage("a login to \(titled(provider))\(account.map { " as \(quoted($0))" } ?? "") is in progress")
        .hint("stop the login, then run the command again")
    case .accountInLogin(let provider, let account, let process):
      .usage(
        "cannot log out \(quoted(account)) at \(titled(provider)): a login is in progress"
          + (process.map { " (process \($0))" } ?? "")
      ).hint(Self.stopping(process) + ", then log out again")
    case .extended(let provider, let dependents, let vault):
      .usage(
        "cannot remove \(quoted(provider)): \(vault == nil ? "your" : "its") descriptor is extended by "
          + some(dependents)
      ).hint(
        "\(credmgr: ["remove-provider", dependents.first ?? "ID"] + (vault.map { ["--vault", $0] } ?? [])) first")
    case .nothingToRemove(let provider, let vault?):
      .usage("cannot remove \(titled(provider)): the vault \(quoted(vault)) does not have it")
    case .nothingToRemove(let provider, nil):
      .usage("cannot remove \(titled(provider)): it has not been added, and you have no descriptor of your own for it")
        .hint("\(credmgr: "providers") to see the added providers")
    case .malformedRegistration(let provider):
      .vault("cannot read the registration of \(titled(provider)) in the vault")
        .hint(RecordIdentifier(kind: .registration, provider: provider, account: "").remedy())
    case .malformedRules(let findings):
      Message(
        "the account rules" + (findings.first.map { " in \(quoted($0.place.source.name))" } ?? "")
          + " have \(findings.count == 1 ? "an error" : "\(findings.count) errors")", findings: findings)
    case .uneditableRules(let path):
      .usage("cannot edit \(quoted(path)): its rules are not one key per line")
        .hint("edit the file by hand")
    case .wrongPaste(let provider, let fault): fault.message(of: titled(provider))
    case .foreignKey(let provider, let owners, _) where owners.contains(provider):
      .usage(
        "your own descriptor of \(titled(provider)) sends keys to other servers than the shipped one; the key was not "
          + "stored"
      ).hint("\(add: "--yes") if these servers accept it")
    case .foreignKey(let provider, let owners, let canAgree):
      .usage(
        "this is not a key of \(titled(provider)): it looks like a key of "
          + owners.map(titled).joined(separator: " or ") + "; it was not stored"
      ).hint(
        "\(credmgr: "login", owners[0]) to store it at \(titled(owners[0]))"
          + (canAgree ? ", or \(add: "--yes") if \(titled(provider)) accepts it" : ""))
    case .unverified(let provider, let error):
      error.message(titled: titled).adding("; nothing was stored")
        .with(hints: [error.remedy(withoutVerification: titled(provider))])
    case .notStored: .usage("nothing was stored")
    case .providerChanged(let provider):
      .usage("\(titled(provider)) was changed during the login; nothing was stored")
        .hint("\(credmgr: "providers", provider) to see its servers, then log in again")
    case .promptNeeded(let provider, let fields):
      PasteFault.message(withoutTerminal: fields, provider, titled(provider))
    case .keyFileNeeded(let provider, let labels, let variables):
      PasteFault.message(withoutKeyFile: labels, variables: variables, titled(provider))
    case .subjectToken(let provider, let variable, let place, let fault):
      fault.message(at: place, of: variable, provider, titled(provider))
    case .detailsNotSupported(let provider, let type, let known):
      .usage("\(titled(provider)) does not know authorization details of the type \(quoted(type))")
        .hint("use one of \(known.joined(separator: ", "))")
    case .tokenRefused(let provider, let refused, let words):
      .refused("\(titled(provider)) rejected the \(refused)" + (words.map { ": \($0)" } ?? "") + "; nothing was stored")
        .hint("\(credmgr: "login", provider, "--with-token") to try again")
    case .malformedExport: .usage("cannot import the file: \"credmgr vault export\" did not write it")
    case .wrongExportPassphrase: .usage("wrong passphrase for the export file")
    case .newPassphraseUnavailable(.noTerminal):
      .usage("cannot prompt for the new passphrase: no terminal").hint(passphraseFile)
    case .newPassphraseUnavailable(.endOfInput):
      .usage("no passphrase was entered; nothing was changed").hint(passphraseFile)
    case .exportPassphraseUnavailable(.noTerminal):
      .usage("cannot prompt for the passphrase of the export file: no terminal").hint(passphraseFile)
    case .exportPassphraseUnavailable(.endOfInput): .usage("no passphrase was entered")
    case .newPassphraseUnavailable(let error), .exportPassphraseUnavailable(let error): error.message
    case .plainExport:
      .usage("cannot import an unencrypted file without \"--plain\": anyone could have changed it")
        .hint("if you trust the file, \(add: "--plain")")
    case .importWidens(let provider, let places):
      .usage("cannot import \(quoted(provider)) without your consent", items: places.sentences())
        .hint("if you trust the file, \(add: "--yes")")
    case .alreadyThere(let records, let files):
      .usage("the import would replace \(records.words(and: files)); nothing was changed")
        .hint("\(add: "--replace") to replace \(records.count + files.count == 1 ? "it" : "them")")
    case .shared(let error): error.message(titled: titled)
    case .notValidatable(let provider):
      .usage("cannot validate credentials of \(titled(provider)): its descriptor has no endpoint for it")
    }
  }

  /// `others` are the providers that have an account with the name, which is probably meant only for them.
  package static func unknownAccount(
    ofEnvironment name: String, provider: String, known: [String], others: [String],
    titled: (String) -> String = quoted
  ) -> Message {
    let meant = others.map { "\($0)=\(name)" }.joined(separator: ",")
    let near: Remedy? =
      if let near = nearMiss(name, among: known, isShort: true) { "\(export: "CREDMGR_ACCOUNT", near)" } else {
        others.isEmpty ? nil : "\(export: "CREDMGR_ACCOUNT", meant) to set it for the other providers only"
      }
    return unknown(
      name, at: provider, known: known,
      "CREDMGR_ACCOUNT names \(quoted(name)), which is not an account at \(titled(provider))",
      hints: [near ?? "\(run: "unset", "CREDMGR_ACCOUNT")"])
  }

  private static func stopping(_ process: Int32?) -> Remedy {
    process.map { "\(run: "kill", "\($0)") to stop the login" } ?? "press Ctrl-C in the terminal of the login"
  }

  private static func unknown(
    _ name: String, at provider: String, known: [String], _ sentence: String, hints: [Remedy] = []
  ) -> Message {
    let near = nearMiss(name, among: known, isShort: true)
    return Message(
      sentence + didYouMean(near)
        + (near == nil ? "; \(known.count == 1 ? "the only account is" : "its accounts are") \(some(known))" : ""),
      hints: .correcting(name, to: near) + hints
        + (mayBeKey(name) ? [] : ["\(credmgr: "login", provider, "--account", name) to add it"]),
      status: .loginNeeded)
  }

  /// Returns the remedy for a path that no shell made absolute.
  private static func absolute(_ path: String) -> Remedy {
    let isBelowHome = path == "~" || path.hasPrefix("~/")
    let rest = isBelowHome ? String(path.dropFirst()) : "/" + path
    return "\(shell: "export CREDMGR_HOME=\(isBelowHome ? "~" : "$PWD")" + (rest.isEmpty ? "" : argument(rest)))"
  }
}

extension ClientNeeds {
  /// The clause that says where to register a client; empty if the provider needs no client.
  package var registration: String {
    guard needsIdentifier else { return "" }
    return (takesDocument ? ": publish a client metadata document, or" : ":") + " register a client at "
      + (register ?? "the provider")
  }

  /// The options to add to "credmgr add-provider ID".
  package var options: [String] {
    (needsIdentifier ? ["--client-id", "ID"] : []) + (needsSecret ? ["--client-secret-file", "FILE"] : [])
      + (needsCertificate ? ["--client-certificate", "FILE"] : [])
      + variables.flatMap { ["--set", $0] }
  }
}

extension CredentialError.LoginReason {
  /// An API may have rejected a token that the provider accepts.
  fileprivate func remedy(_ account: [String]) -> Remedy {
    isRejection
      ? "\(credmgr: ["login"] + account), or \(credmgr: ["validate"] + account) if the provider still accepts it"
      : "\(credmgr: ["login"] + account)"
  }

  fileprivate func sentence(_ title: String, _ account: String?) -> String {
    let whose = account.map { " for \(quoted($0))" } ?? ""
    let token = "the \(title) token" + whose
    func said(_ words: String?) -> String { words.map { ": \($0)" } ?? "" }
    return switch self {
    case .noCredential: "not logged in to \(title)" + (account.map { " as \(quoted($0))" } ?? "")
    case .expired: "\(token) has expired and cannot be refreshed"
    case .refreshRefused(let words): "\(title) refused to refresh the token" + whose + said(words)
    case .notRefreshable: "cannot refresh \(token): the provider issued no refresh token"
    case .refreshInterrupted(let words):
      "an earlier refresh of \(token) was interrupted, and the new token is lost" + said(words)
    case .rejected: "\(token) was rejected and cannot be refreshed"
    case .elementGone: "cannot refresh \(token): \(title) does not list exactly one entry with its values"
    case .otherIssuer: "cannot refresh \(token): another issuer made it, and the provider's issuer has changed"
    case .loginUnderWay: "cannot refresh \(token) while a login is under way"
    case .typed(let words, .expired): "the \(title) \(words)\(whose) expired"
    case .typed(let words, .rejected): "\(title) rejected the \(words)\(whose)"
    case .typed(let words, .notRefreshable): "cannot refresh the \(title) \(words)\(whose): only a login replaces it"
    case .typed(_, let reason): reason.sentence(title, account)
    }
  }
}

extension CredentialError {
  /// How to store a credential that the provider did not verify for this reason.
  fileprivate func remedy(withoutVerification title: String) -> Remedy {
    guard case .http(.unreachable(_, .nameNotResolved), _) = self else {
      return "\(add: "--yes") to store the credential of \(title) without verification"
    }
    return "check the host name and the network, or \(add: "--yes") to store the credential without verification"
  }
}

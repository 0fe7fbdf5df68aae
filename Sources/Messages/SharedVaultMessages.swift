import CredmgrCredentialManager
import CredmgrStore
import CredmgrText

extension ServerFault {
  /// Returns the message. `vault` is the vault's name, or its address before it has a name.
  package func message(vault: String) -> Message {
    let name = quoted(vault)
    func changed(_ record: RecordIdentifier?) -> String { record?.words ?? "the list of members" }
    return switch self {
    case .libraryMissing:
      .unreachable("cannot reach the vault \(name): libpq is not installed")
        .hint("\(run: "sudo", "apt-get", "install", "libpq5")")
    case .badAddress:
      // It may contain a password.
      .usage("cannot read the address of the database").hint("write it like postgresql://db.example/credmgr")
    case .passwordInAddress:
      .usage("the address of the database contains a password")
        .hint("remove it from the address, and use --password-file or ~/.pgpass")
    case .passwordNeeded:
      .vault("the server of the vault \(name) asks for a password")
        .hint("set PGPASSWORD, or write the password to ~/.pgpass")
    case .wrongPassword:
      .vault("the server of the vault \(name) refused the password")
        .hint(
          """
          check PGPASSWORD and ~/.pgpass; after a change, \
          \(credmgr: "vault", "sync", "--password-file", "FILE", "--vault", vault)
          """
        )
    case .unreachable(let detail):
      .unreachable("cannot reach the vault \(name): \(detail)")
        .hint("check that the database runs, and that this machine reaches it")
    case .silent:
      .unreachable("cannot reach the vault \(name): the server does not answer")
        .hint("\(credmgr: "vault", "status", "--vault", vault) to see whether the server waits for its standby")
    case .certificate(let detail):
      .unreachable("cannot trust the server of the vault \(name): \(detail)")
        .hint("if your own authority issued the certificate, name its file with \"sslrootcert\" in the address")
    case .noRights(let detail):
      .vault("the server refuses access to the vault \(name): \(detail)")
        .hint("grant the role the rights that docs/shared-vault.md lists")
    case .readOnly:
      .vault("the server of the vault \(name) accepts no changes; nothing was changed")
        .hint("let the database accept changes, or promote its standby")
    case .full:
      .vault("the disk of the server of the vault \(name) is full; nothing was changed")
        .hint("make room on the disk of the server")
    case .noVault:
      .vault("the database of \(name) does not contain this vault")
        .hint("restore the database; if it is lost, \(credmgr: "vault", "leave", "--vault", vault)")
    case .noDatabase(let detail):
      .unreachable("cannot reach the vault \(name): \(detail)").hint("create the database, or correct the address")
    case .newerVersion(let found, let supported):
      .vault(
        "cannot open the vault \(name): it has version \(found), and this credmgr supports versions up to \(supported)"
      ).with(hints: found > supported ? ["install a newer credmgr"] : [])
    case .schemaEdited(let detail): .vault("the tables of the vault \(name) were changed: \(detail)")
    case .failed(let detail): .unexpected("the server of the vault \(name) failed: \(detail)")
    case .notJoined: .usage("this machine has not joined a vault" + shown(vault, or: " of this name"))
    case .nameTaken: .usage("this machine already has a vault \(name)")
    case .memberExists(let member): .usage("the vault \(name) already has a member \(quoted(member))")
    case .noMember(let member): .usage("the vault \(name) has no member \(quoted(member))")
    case .notAdministrator: .refused("only an administrator of the vault \(name) may do this")
    case .ownMembership:
      .usage("cannot remove the machine that you use from the vault \(name)")
        .hint("\(credmgr: "vault", "leave", "--vault", vault) to leave the vault")
    case .removed:
      .vault("this machine was removed from the vault \(name), or the server hides its copy of the key")
        .hint("ask an administrator to \(credmgr: "vault", "verify", "--vault", "VAULT")")
    case .joinUnfinished:
      .vault("this machine has not finished joining the vault \(name), or the server shows an older list of members")
        .hint("\(credmgr: "vault", "join", "-", "--as", vault) with the same invitation")
    case .invitation(let fault): fault.message
    case .setBack(let record):
      .vault("the server of the vault \(name) shows an older state of \(changed(record)) than before")
        .hint(.goingOn(with: record, vault))
    case .forked(let record):
      .vault("the server of the vault \(name) shows another history of \(changed(record)) than before")
        .hint(.goingOn(with: record, vault))
    case .damaged(let record):
      .vault("\(record.words) is damaged in the vault \(name)")
        .hint(record.kind == .credential ? record.replacement(inVault: vault) : record.remedy(inVault: vault))
    case .altered:
      .vault("the vault \(name) was altered")
        .hint("\(credmgr: "vault", "verify", "--vault", vault) to see what was altered")
    case .overtaken(let account):
      .unexpected("another machine took over the request for \(quoted(account.name ?? account.provider))")
        .hint("run the command again")
    }
  }
}

extension SharedAccountError {
  func message(titled: (String) -> String) -> Message {
    switch self {
    case .vaultNeeded(let known):
      known.isEmpty
        ? .usage("this machine has not joined a shared vault").hint("\(credmgr: "vault", "join", "INVITATION")")
        : .usage("name one of your shared vaults: \(some(known))").hint("\(add: "--vault", known[0])")
    case .alreadyShared(let provider, let account, let vault):
      .usage("\(quoted(account)) at \(titled(provider)) is already in the vault \(quoted(vault))")
    case .nameTaken(let provider, let account, let vault):
      .usage(
        "the vault \(quoted(vault)) has another account \(quoted(account)) at \(titled(provider)); nothing was changed"
      ).hint("\(add: "--replace") to replace it, or log in with another name")
    case .loggedInSince(let provider, let account, let vault):
      .usage(
        "the vault \(quoted(vault)) has a newer login of \(quoted(account)) at \(titled(provider)) by another member; "
          + "your interrupted login stays on this machine, and is valid until you revoke it"
      ).hint(
        "\(credmgr: "logout", provider, "--account", account, "--keep-remote") to use the vault's login, or "
          + "\(credmgr: "share", provider, account, "--vault", vault, "--replace") to replace it")
    case .notInVault(let provider, let account, let vault, let replaces, let error):
      notInVault(provider, account: account, vault: vault, replaces: replaces, error, titled: titled)
    case .otherProvider(let provider, let vault, let places, .isGiven):
      .usage(
        "cannot share accounts of \(quoted(provider)): the vault \(quoted(vault)) has another provider of this name",
        items: places.sentences()
      ).hint("give one of the two providers another name with the option \"--as\" of \"credmgr add-provider\"")
    case .otherProvider(let provider, let vault, let places, let difference):
      .usage(
        "this machine has another provider \(quoted(provider)) than the vault \(quoted(vault))",
        items: places.sentences()
      ).hint(difference.remedy(provider, vault))
    case .notAgreed(let provider, let vault, let places):
      .usage(
        "the vault \(quoted(vault)) has a changed descriptor for \(quoted(provider)), but no member has agreed to it",
        items: places.sentences()
      ).hint(.changing(provider, inVault: vault))
    case .providerChanged(let provider, let vault, let isChangedHere):
      .usage(
        "cannot change \(quoted(provider)) in the vault \(quoted(vault)): another member has just changed it or shared "
          + "an account; " + (isChangedHere ? "only this machine's provider was changed" : "the vault was not changed")
      ).hint("run the command again")
    case .notShareable(let provider, let variable):
      .usage(
        "cannot share \(quoted(provider)): \(quoted(variable)) names a file or an environment variable of one machine"
      ).hint("\(credmgr: "login", provider) on each machine instead")
    case .unfinishedExchange(let provider, let account):
      .usage("cannot share \(quoted(account)) at \(titled(provider)): its last request did not succeed")
        .hint("\(credmgr: "refresh", provider, "--account", account) first")
    case .answerWaits(let provider, let account, let vault, let error):
      Message(
        "cannot leave the vault \(quoted(vault)): the new token of \(quoted(account)) at \(titled(provider)) is only "
          + "on this machine",
        items: [error.message(titled: titled).text],
        hint: "\(credmgr: "vault", "sync", "--vault", vault) when the database answers, or log out of the account "
          + "to give the token up",
        status: error.message.status)
    case .unfinishedShare(let provider, let account, let vault):
      .usage("\(quoted(account)) at \(titled(provider)) is still on its way to the vault \(quoted(vault))")
        .hint(
          "\(credmgr: "share", provider, account, "--vault", vault) to finish it; if the vault is lost, "
            + "\(credmgr: "logout", provider, "--account", account, "--keep-remote")")
    }
  }

  /// Returns the message for a login whose account is not in its shared vault because of an error.
  private func notInVault(
    _ provider: String, account: String, vault: String, replaces: Bool, _ error: CredentialError,
    titled: (String) -> String
  ) -> Message {
    let message = error.message(titled: titled)
    let isNameTaken = if case .shared(.nameTaken) = error { true } else { false }
    let reason = isNameTaken ? "it has another account of this name" : message.text
    let replacement = replaces || isNameTaken ? ["--replace"] : []
    let isOther = if case .shared(.otherProvider) = error { true } else { false }
    return Message(
      "logged in to \(titled(provider)) as \(quoted(account)) on this machine only, "
        + "not in the vault \(quoted(vault)): \(reason)",
      // Until the providers are the same, the vault would refuse the account again.
      hints: isOther
        ? message.hints : ["\(credmgr: ["share", provider, account, "--vault", vault] + replacement) to move it"],
      status: message.status)
  }
}

extension SharedAccountError.OtherProvider {
  fileprivate func remedy(_ provider: String, _ vault: String) -> Remedy {
    switch self {
    case .isOutdated: "\(credmgr: "vault", "sync", "--vault", vault) at a terminal to agree to the vault's"
    case .hasFile(let path): "give your file \(quoted(path)) another name to use the vault's after the next sync"
    case .isOwn, .isGiven: "\(credmgr: "remove-provider", provider) to use the vault's after the next sync"
    }
  }
}

extension StoreError {
  /// Whether the server of a shared vault does not answer.
  var isUnreachable: Bool {
    switch self {
    case .server(.unreachable, _), .server(.silent, _): true
    default: false
    }
  }
}

extension Remedy {
  /// For a provider of a vault that extends a changed descriptor.
  package static func changing(_ provider: String, inVault vault: String) -> Remedy {
    "\(credmgr: "add-provider", provider, "--replace", "--vault", vault) to change it for all members"
  }

  /// For a machine that has seen what its team gave up, such as a fork or what was lost with a disk.
  fileprivate static func goingOn(with record: RecordIdentifier?, _ vault: String) -> Remedy {
    if let record, [.credential, .registration, .descriptor, .selection].contains(record.kind) {
      return "if the server is right now, \(record.remedy(inVault: vault))"
    }
    return "if the server is right now, \(credmgr: "vault", "leave", "--vault", vault) and join again; "
      + "without another administrator, create another vault"
  }
}

extension RecordIdentifier {
  /// Returns the remedy for a record of a shared vault, whose members refuse a backup.
  package func remedy(inVault vault: String) -> Remedy {
    switch kind {
    case .credential: "\(credmgr: "login", provider, "--account", account, "--vault", vault)"
    case .selection: "\(credmgr: "login", provider, "--vault", vault)"
    case .registration, .descriptor:
      "\(credmgr: "add-provider", provider, "--client-id", "ID", "--replace", "--vault", vault)"
    default: "\(credmgr: "vault", "verify", "--vault", vault)"
    }
  }

  /// Returns the remedy for an account. Without its provider, no login can replace it.
  fileprivate func replacement(inVault vault: String) -> Remedy {
    let logout = ["logout", provider, "--account", account, "--vault", vault, "--keep-remote"]
    return """
      \(credmgr: "login", provider, "--account", account, "--vault", vault); if the provider no longer answers, \
      \(credmgr: logout)
      """
  }
}

extension InvitationFault {
  package var message: Message {
    let another: Remedy = "ask an administrator for another invitation"
    return switch self {
    case .malformed: .usage("this is not a complete invitation").hint("copy the invitation again")
    case .used: .refused("the invitation was already used").hint(another)
    case .late: .refused("the invitation has expired").hint(another)
    case .void: .refused("the invitation was withdrawn or replaced, or the vault's key has changed").hint(another)
    case .otherVault: .refused("the invitation belongs to another vault").hint(another)
    }
  }
}

import Commands

/// The pages on credmgr, on each group of its commands, and on the names by which git and docker call it.
struct CommandPages {
  let date: String

  static let names: [(name: String, section: Int)] =
    [("credmgr", 1)] + Command.groups.map { ($0.page, 1) } + [
      ("git-credential-credmgr", 1), ("docker-credential-credmgr", 1), ("credmgr-descriptor", 5),
    ]

  /// The commands by whose names the page of their group is found as well; each is a page that shows that one
  /// (`so` in roff(7)).
  static let aliases: [(fileName: String, text: String)] = Command.groups.flatMap { group in
    group.commands.filter { $0.page != group.page }.map { command in
      (fileName: command.page + ".1", text: ".so man1/\(group.page).1\n")
    }
  }

  var all: [ManualPage] {
    [overview] + Command.groups.map(group) + [
      helper("git", "git-credential", also: [("git", 1), ("gitcredentials", 7), ("git-credential", 1)]),
      helper("docker", "docker-credential", also: [("docker", 1)]),
    ]
  }

  // MARK: credmgr(1)

  private var overview: ManualPage {
    var page = ManualPage("credmgr", 1, "keeps credentials, and hands fresh ones to programs", date: date)
    page.section("synopsis")
    page.macro("Nm credmgr")
    page.macro("Ar COMMAND")
    page.macro("Op Ar ARGUMENT ...")
    page.section("description")
    page.paragraph(
      """
      credmgr keeps the credentials of many providers and accounts in an encrypted vault, refreshes them before they expire, \
      and hands them to git, docker, kubectl and other programs. How a provider behaves is said by a descriptor, a file that \
      anybody can write.
      """)
    page.paragraph("To begin:")
    page.literal([
      "credmgr providers", "credmgr providers github",
      "credmgr add-provider github --client-id ID --client-secret-file FILE", "credmgr login github",
    ])
    page.paragraph(
      """
      Standard output carries the result and nothing else; everything for a person goes to standard error. Secrets are never \
      taken from the command line.
      """)
    for group in Command.groups {
      page.subsection(Self.capitalized(group.title))
      page.list(
        written: group.commands.map { command in
          ("Cm \(ManualPage.arguments(command.name))", [ManualPage.escaped(command.summary) + "."])
        })
      page.macro("Pp")
      page.macro("Xr \(group.page) 1")
    }
    page.subsection("Options of every command")
    page.list(
      written: (Command.common.map(option)
        + [("Fl -help , Fl h", ["Say how the command is called."])]))
    environment(&page)
    files(&page)
    exitStatus(&page)
    page.seeAlso(Self.names)
    return page
  }

  private func environment(_ page: inout ManualPage) {
    page.section("environment")
    let variables = [
      ("CREDMGR_HOME", "A folder for everything: configuration, vault and runtime files."),
      ("CREDMGR_ACCOUNT", "The account that is used where no option names one."),
      ("CREDMGR_PASSPHRASE_FILE", "A file with the passphrase of the vault."),
      ("CREDMGR_PASSPHRASE_COMMAND", "A command that prints the passphrase of the vault."),
      ("BROWSER", "Commands that show an address, separated by colons."),
      ("NO_COLOR", "When it is set, nothing is coloured but a QR code, which is black on white."),
      ("SSL_CERT_FILE", "A file with the certificates that are trusted."),
      ("SSL_CERT_DIR", "A folder with the certificates that are trusted."),
      ("https_proxy", "The proxy for addresses with https; never used for this machine itself."),
      ("no_proxy", "Hosts that are reached without a proxy."),
      ("XDG_CONFIG_HOME", "Where configuration lies instead of ~/.config."),
      ("XDG_DATA_HOME", "Where the vault lies instead of ~/.local/share."),
    ]
    page.list(written: variables.map { ("Ev " + $0.0, [ManualPage.escaped($0.1)]) })
  }

  private func files(_ page: inout ManualPage) {
    page.section("files")
    let files = [
      ("~/.config/credmgr/providers/", "The person's own descriptors; see credmgr-descriptor(5)."),
      ("~/.config/credmgr/accounts.yaml", "Which account is used for which remote and in which folder."),
      ("~/.local/share/credmgr/vault.db", "The vault."),
      ("~/.local/share/credmgr/vault.key", "The key file that opens it."),
      ("/etc/credmgr/providers/", "The machine's descriptors."),
    ]
    page.list(written: files.map { ("Pa " + ManualPage.arguments($0.0), [ManualPage.escaped($0.1)]) })
  }

  private func exitStatus(_ page: inout ManualPage) {
    page.section("exit status")
    let statuses = [
      ("0", "Done."), ("1", "Something unexpected."),
      ("2", "Usage, or input that does not parse or validate."), ("3", "A login is needed."),
      ("4", "The provider refused."), ("5", "The provider could not be reached."),
      ("6", "The vault is locked, damaged or not ours."), ("130", "Interrupted."),
    ]
    page.list(written: statuses.map { ($0.0, [$0.1]) })
  }

  // MARK: A group

  private func group(_ group: Command.Group) -> ManualPage {
    let others = group.commands.map(\.page).filter { $0 != group.page }
    var page = ManualPage(group.page, 1, "credmgr's commands: \(group.title)", also: others, date: date)
    page.section("synopsis")
    for command in group.commands { synopsis(command, &page) }
    page.section("description")
    for command in group.commands {
      page.subsection("credmgr " + command.name)
      describe(command, &page)
    }
    page.seeAlso(Self.names)
    return page
  }

  private func synopsis(_ command: Command, _ page: inout ManualPage) {
    page.macro("Nm credmgr")
    page.macro("Cm " + ManualPage.arguments(command.name))
    if !command.operands.isEmpty { page.macro("Ar " + ManualPage.arguments(command.operands)) }
    if !command.options.isEmpty { page.macro("Op Ar OPTION ...") }
  }

  private func describe(_ command: Command, _ page: inout ManualPage) {
    page.paragraph(command.summary + ".")
    if !command.operations.isEmpty {
      page.list(
        written: command.operations.map { operation in
          let operand = operation.operand.map { " Ar " + ManualPage.arguments($0) } ?? ""
          return (
            "Cm " + ManualPage.arguments(operation.name) + operand,
            [ManualPage.escaped(Self.capitalized(operation.help)) + "."]
          )
        })
    }
    if !command.options.isEmpty {
      page.paragraph("The options are:")
      page.list(written: command.options.map(option))
    }
    for note in command.notes { page.paragraph(note) }
    for example in command.examples {
      page.paragraph(Self.capitalized(example.help) + ":")
      page.command(example.line)
    }
  }

  private static func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }

  private func option(_ option: Command.Option) -> (term: String, meaning: [String]) {
    let names = [option.short, option.name].compactMap { $0 }
      .map { "Fl " + ManualPage.arguments(String($0.dropFirst())) }.joined(separator: " , ")
    let value = option.value.map { " Ar " + ManualPage.arguments($0) } ?? ""
    return (names + value, [ManualPage.escaped(Self.capitalized(option.explanation)) + "."])
  }

  // MARK: Names of helpers

  private func helper(_ program: String, _ name: String, also: [(name: String, section: Int)]) -> ManualPage {
    let title = name + "-credmgr"
    var page = ManualPage(title, 1, "gives \(program) credentials out of credmgr's vault", date: date)
    guard let command = Command.all.first(where: { $0.name == name }) else { return page }
    page.section("synopsis")
    page.macro("Nm " + title)
    page.macro("Ar " + ManualPage.arguments(command.operands))
    if !command.options.isEmpty { page.macro("Op Ar OPTION ...") }
    page.section("description")
    page.paragraph("The same program as credmgr \(name), under the name by which \(program) looks for it.")
    describe(command, &page)
    page.seeAlso(also + [("credmgr", 1), ("credmgr-helpers", 1)])
    return page
  }
}

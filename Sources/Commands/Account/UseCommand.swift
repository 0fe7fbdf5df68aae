import CredmgrCredentialManager
import CredmgrJSON
import CredmgrPlatform
import CredmgrText

extension Command {
  static let use = Command(
    name: "use", operands: "ID ACCOUNT", operandCount: 0...2,
    summary: "Set the default account or an account rule",
    options: [
      Option("--for", value: "URL", "use the account for remotes with this URL or below it, like https://HOST/OWNER"),
      Option("--in", value: "DIRECTORY", "use the account in this directory and below it"),
      Option("--list", "list the rules of the provider (default: of all providers)"),
      Option("--remove", "remove the provider's rules that match the URL, the directory and the account"),
      json,
    ],
    notes: [
      "With \"--for\" and \"--in\", a rule applies only if both match. The rules are stored in "
        + "~/.config/credmgr/accounts.yaml.",
      "\"credmgr status --why\" shows which account is used in the current directory.",
    ],
    examples: [
      ("credmgr use github work", "Set the default account"),
      ("credmgr use github work --for https://github.com/octo", "Use an account for the repositories of an owner"),
      ("credmgr use github work --in ~/work", "Use an account below a directory"),
      ("credmgr use --list", "List all rules"),
      ("credmgr use github --for https://github.com/octo --remove", "Remove a rule"),
    ]
  ) { invocation, context throws(CommandError) in
    let isListed = invocation.has("--list")
    let options = ["--list", "--remove"].filter(invocation.has)
    guard options.count < 2 else { throw .exclusive(options) }
    guard isListed || invocation.operands.count > (options.isEmpty ? 1 : 0) else {
      throw .usage("too few arguments for \"credmgr use\"", hint: "usage: \(invocation.command.usage)")
    }
    let provider = try invocation.operands.first.map { text throws(CommandError) in try context.provider(text) }
    let name = invocation.operands.dropFirst().first
    let remote = invocation.value("--for").map(RemoteAddress.written)
    if let remote { _ = try address(remote, form: "OWNER") }
    let folder: String? =
      if let text = invocation.value("--in") {
        try writtenFolder(text, context, mustExist: !isListed && !invocation.has("--remove"))
      } else { nil }
    if isListed { return try listRules(of: provider, context) }
    guard let provider else { return }
    let conditions = (remote.map { " for \($0)" } ?? "") + (folder.map { " in \($0)" } ?? "")
    if invocation.has("--remove") {
      let count = try manager(
        context.source.removeRules(of: provider, account: name, remote: remote, folder: folder))
      let whose = "of \(context.titled(provider))" + (name.map { " for the account \"\($0)\"" } ?? "") + conditions
      guard count > 0 else {
        throw .usage(
          "found no rules \(whose)", hint: "\(credmgr: "use", "--list") to see all rules")
      }
      context.tell(count == 1 ? "removed the rule \(whose)" : "removed \(count) rules \(whose)")
      if context.isJSON { try context.output(["provider": .string(provider), "removed": .integer(Int64(count))]) }
      return
    }
    guard let name else { return }
    try manager(context.source.find(name, of: provider))
    if remote == nil, folder == nil {
      try manager(context.source.accounts(.readWrite).select(name, provider: provider))
      context.tell("\"\(name)\" is now the default account of \(context.titled(provider))")
    } else {
      if let remote, let own = try manager(context.source.hostsElsewhere(RemoteAddress(remote), of: provider)) {
        throw .usage(
          "cannot add the rule: the git hosts of \(context.titled(provider)) are \(own.joined(separator: ", ")), not "
            + quoted(remote), hint: "\(credmgr: "status", "--for", remote) to see which provider has this host")
      }
      try manager(context.source.addRule(provider: provider, account: name, remote: remote, folder: folder))
      context.tell("\"\(name)\" is now the account of \(context.titled(provider))\(conditions)")
      for rule in try manager(context.source.rulesHidden(by: provider, remote: remote, folder: folder)) {
        context.tell(
          "warning: git no longer uses \"\(rule.account)\" at \(context.titled(rule.provider)) \(rule.condition), "
            + "because the new rule comes first")
      }
    }
    guard context.isJSON else { return }
    try context.output([
      "provider": .string(provider), "account": .string(name), "for": .optional(remote), "in": .optional(folder),
    ])
  }

  private static func listRules(of provider: String?, _ context: Context) throws(CommandError) {
    let rules = try manager(context.source.accountRules()).rules.filter { $0.provider == provider ?? $0.provider }
    if rules.isEmpty, !context.isJSON {
      context.tell("no rules" + (provider.map { " for " + context.titled($0) } ?? ""))
    }
    try context.output(
      rules.map { "\($0.provider)  \($0.account)  \($0.condition)\n" }.joined(),
      orJSON: .array(
        rules.map { rule in
          [
            "provider": .string(rule.provider), "account": .string(rule.account),
            "condition": .string(rule.condition), "file": .string(rule.place.source.name),
            "line": .integer(Int64(rule.place.line)),
          ]
        }))
  }

  /// Returns the directory as the file stores it: absolute, or relative to the home directory.
  private static func writtenFolder(
    _ text: String, _ context: Context, mustExist: Bool
  ) throws(CommandError) -> String {
    guard !text.isEmpty else {
      throw .usage("the directory of \"--in\" is empty", hint: "use a form like \"--in .\" or \"--in ~/work\"")
    }
    let here = try system(Path.currentDirectory())
    var text = text
    // Shells do not expand the tilde in `--in=~/work` and '~/work'.
    if text == "~" || text.hasPrefix("~/"), let home = context.home.person { text = home + text.dropFirst() }
    let path = Path.resolved(text) ?? Path.joining(here, text)
    if mustExist, !File.exists(path) {
      throw .usage("the directory \(quoted(text)) does not exist", hint: "\(run: "mkdir", "-p", path)")
    }
    if File.exists(path), !File.isDirectory(path) {
      throw .usage("\(quoted(text)) is a file, not a directory", hint: "name the directory that contains it")
    }
    guard let home = context.home.person, path.hasPrefix(home + "/") else { return path }
    return "~" + path.dropFirst(home.count)
  }
}

import CredentialManager
import JSON
import Platform
import Text

extension Command {
  static let use = Command(
    name: "use", operands: "ID ACCOUNT", operandCount: 0...2,
    summary: "Set the default account of a provider, or the one for a remote or a folder",
    options: [
      Option("--for", value: "URL", "use it for remotes with this URL, or below it: https://HOST/OWNER"),
      Option("--in", value: "FOLDER", "use it in this folder and below it"),
      Option("--list", "list the rules, or those of a provider"),
      Option(
        "--remove", "remove the provider's rules for the URL, the folder or the account; without any, all of them"),
      json,
    ],
    notes: [
      "With both options, both have to fit. The rules stand in the file accounts.yaml in the configuration's folder.",
      "\"credmgr status --why\" says which account is used here.",
    ],
    examples: [
      ("credmgr use github work", "wherever no rule says otherwise"),
      ("credmgr use github work --for https://github.com/octo", "for the repositories of an owner"),
      ("credmgr use github work --in ~/work", "below a folder"),
      ("credmgr use --list", "which rules there are"),
      ("credmgr use github --for https://github.com/octo --remove", "without a rule"),
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
    let folder: String? = if let text = invocation.value("--in") { try writtenFolder(text, context) } else { nil }
    if isListed { return try listRules(of: provider, context) }
    guard let provider else { return }
    let conditions = (remote.map { " for \($0)" } ?? "") + (folder.map { " in \($0)" } ?? "")
    if invocation.has("--remove") {
      let count = try manager(
        context.source.removeRules(of: provider, account: name, remote: remote, folder: folder))
      let whose = "of \"\(provider)\"" + (name.map { " for the account \"\($0)\"" } ?? "") + conditions
      guard count > 0 else {
        throw .usage(
          "no rule was removed: there is none \(whose)", hint: "\(credmgr: "use", "--list") to see all rules")
      }
      return context.tell(count == 1 ? "removed the rule \(whose)" : "removed \(count) rules \(whose)")
    }
    guard let name else { return }
    try requireAccount(name, of: provider, context)
    if remote == nil, folder == nil {
      try manager(context.source.accounts(.readWrite).select(name, provider: provider))
      context.tell("\"\(name)\" is the default account of \"\(provider)\"")
    } else {
      if let remote, let own = try manager(context.source.hostsElsewhere(RemoteAddress(remote), of: provider)) {
        throw .usage(
          "no rule was added: \(quoted(remote)) is no remote of \(quoted(provider)), whose git hosts are "
            + own.joined(separator: ", "), hint: "\(credmgr: "status", "--for", remote) to see who answers there")
      }
      try manager(context.source.addRule(provider: provider, account: name, remote: remote, folder: folder))
      context.tell("\"\(name)\" is the account of \"\(provider)\"\(conditions)")
    }
  }

  private static func listRules(of provider: String?, _ context: Context) throws(CommandError) {
    let rules = try manager(context.source.accountRules()).rules.filter { $0.provider == provider ?? $0.provider }
    if rules.isEmpty, !context.isJSON { context.tell("there are no rules" + (provider.map { " for \"\($0)\"" } ?? "")) }
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

  /// A folder as the file has it: absolute, or from the home folder on.
  private static func writtenFolder(_ text: String, _ context: Context) throws(CommandError) -> String {
    guard !text.isEmpty else {
      throw .usage("\"\" is no folder", hint: "\"--in .\" is the folder here, \"--in ~/work\" one of yours")
    }
    let here = try system(Path.currentDirectory())
    var text = text
    // A shell leaves the tilde of `--in=~/work` and of '~/work' alone.
    if text == "~" || text.hasPrefix("~/"), let home = context.home.person { text = home + text.dropFirst() }
    let path = Path.resolved(text) ?? Path.joining(here, text)
    if File.exists(path), !File.isDirectory(path) {
      throw .usage("\(quoted(text)) is a file, and a rule is for a folder", hint: "name the folder in which it is")
    }
    guard let home = context.home.person, path.hasPrefix(home + "/") else { return path }
    return "~" + path.dropFirst(home.count)
  }
}

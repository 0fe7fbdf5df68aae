import CredentialManager
import Descriptors
import Platform
import Text

extension Command {
  static let exec = Command(
    name: "exec", operands: "ID[:ACCOUNT][=VARIABLE]… -- COMMAND [ARGUMENT]…", operandCount: 0...10_000,
    summary: "Run a command with tokens in its environment", options: [],
    notes: [
      "Without VARIABLE, the token of github is in GITHUB_TOKEN, that of my-gitlab in MY_GITLAB_TOKEN.",
      "The command takes this program's place: signals and exit status are its own. Only these variables are added.",
      "With \"--trace\" before the \"--\", every HTTP exchange is printed on standard error, without secrets.",
      "The exit status is 127 where there is no such command and 126 where it cannot be run, as with env(1).",
    ],
    examples: [
      Example("credmgr exec github -- gh repo list", "with GITHUB_TOKEN"),
      Example("credmgr exec github:work=GH_TOKEN gitlab -- ./release", "two tokens, one of them under another name"),
    ], passesOptions: true
  ) { invocation, context throws(CommandError) in
    if let first = invocation.operands.first, ["--help", "-h"].contains(first) {
      try context.output(invocation.command.help)
      return .done
    }
    guard let separator = invocation.operands.firstIndex(of: "--") else {
      throw .usage("there is no \"--\" before the command", hint: separated(invocation.operands, context))
    }
    let wishes = invocation.operands[..<separator].filter { $0 != "--trace" }
    let arguments = Array(invocation.operands[(separator + 1)...])
    guard !wishes.isEmpty, let name = arguments.first else {
      throw .usage(
        wishes.isEmpty ? "no provider was named" : "no command was named", hint: "usage: credmgr exec ID -- COMMAND")
    }
    let program = try program(name)
    let list = try wishes.map { text throws(CommandError) in try EnvironmentWish(text) }
    for (index, wish) in list.enumerated() where list[..<index].contains(where: { $0.variable == wish.variable }) {
      throw .usage("two tokens would be in \"\(wish.variable)\"", hint: "name another variable: ID=VARIABLE")
    }
    var environment = Environment.entries()
    for wish in list {
      let accountName = try context.account(wish.account, of: wish.provider)
      let account = try manager(context.source.freshAccount(accountName, of: wish.provider))
      context.source.noteHandOut(account, to: "exec " + Path.lastComponent(of: name))
      let assignment = Array((wish.variable + "=").utf8)
      environment.removeAll { $0.starts(with: assignment) }
      environment.append(assignment + account.credential.accessToken.revealBytes())
    }
    if let coreLimit = context.coreLimit { ProcessProtection.lift(coreLimit: coreLimit) }
    do throws(POSIXError) {
      // The command as it came, in whatever encoding.
      let command = Array(try Environment.arguments().suffix(arguments.count))
      try Launcher.replaceProcess(program, bytes: command, environment: environment)
    } catch {
      // Its interpreter is not there.
      if case .notFound = error { throw .failed(Message(error.message.text, status: .commandNotFound)) }
      throw .failed(Message(error.message.text, status: .notExecutable))
    }
  }

  /// The command with "--" before what is no provider; how it is called where that is not known.
  private static func separated(_ operands: [String], _ context: Context) -> Remedy {
    let known = context.source.knownProviders()
    let count = operands.prefix { word in
      word == "--trace" || known.contains(String(word.prefix { !":=".contains($0) }))
    }.count
    let command = ["credmgr", "exec"] + operands[..<count] + ["--"] + operands[count...]
    return count > 0 && count < operands.count && context.line.shown(command) != nil
      ? "\(run: command)" : "usage: credmgr exec ID -- COMMAND"
  }

  /// The file of a command; what there is to say without one has the status that it has with env(1).
  private static func program(_ name: String) throws(CommandError) -> String {
    do throws(POSIXError) {
      return try Launcher.find(name)
    } catch {
      let isThere = name.contains("/") && File.exists(name)
      let message = isThere ? POSIXError.permissionDenied(path: name).message : error.message
      throw .failed(Message(message.text, status: isThere ? .notExecutable : .commandNotFound))
    }
  }
}

/// `ID[:ACCOUNT][=VARIABLE]`: whose token goes into which variable.
struct EnvironmentWish: Equatable {
  let provider: String
  let account: String?
  let variable: String

  /// - Throws: `CommandError.failed` when the provider, the account or the variable cannot be one.
  init(_ text: String) throws(CommandError) {
    var rest = Substring(text)
    var variable: String?
    if let sign = rest.lastIndex(of: "=") {
      variable = String(rest[rest.index(after: sign)...])
      rest = rest[..<sign]
    }
    if let colon = rest.firstIndex(of: ":") {
      let name = String(rest[rest.index(after: colon)...])
      guard Accounts.isName(name) else { throw CommandError(CredentialError.malformedAccount(name)) }
      account = name
      rest = rest[..<colon]
    } else {
      account = nil
    }
    provider = String(rest)
    guard DescriptorLibrary.isIdentifier(provider) else {
      throw CommandError(CredentialError.provider(.malformedIdentifier(provider)))
    }
    self.variable = variable ?? Self.variable(for: provider)
    guard Self.isVariable(self.variable) else {
      throw .usage("\"\(self.variable)\" is no name for a variable: letters, digits and \"_\"")
    }
  }

  private static func variable(for provider: String) -> String {
    let letters = provider.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
    let name = String(letters) + "_TOKEN"
    return name.first?.isNumber == true ? "_" + name : name
  }

  private static func isVariable(_ text: String) -> Bool {
    guard let first = text.first, !first.isNumber else { return false }
    return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
  }
}

import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Command {
  static let exec = Command(
    name: "exec", operands: "ID[/FIELD][:ACCOUNT][=VARIABLE]… -- COMMAND [ARGUMENT]…", operandCount: 0...10_000,
    summary: "Run a command with tokens in its environment", options: [],
    notes: [
      "Without VARIABLE, credmgr sets the variables that the descriptor names: OPENAI_API_KEY for openai. If it names "
        + "none, the variable has the name of the provider: GITHUB_TOKEN for github, MY_GITLAB_TOKEN for my-gitlab.",
      "FIELD is a value that you typed at the login or that the provider sent, such as application_key. Without FIELD "
        + "and VARIABLE, credmgr sets one variable for each value of the login.",
      "The command replaces credmgr, so it receives all signals and sets the exit status. credmgr adds only these "
        + "variables.",
      "With \"--trace\" before \"--\", credmgr prints all HTTP requests and answers on standard error without secrets.",
      "The exit status is 127 if the command is not found and 126 if it cannot be run, as with env(1).",
    ],
    examples: [
      ("credmgr exec github -- gh repo list", "Run a command with GITHUB_TOKEN"),
      ("credmgr exec github:work=GH_TOKEN gitlab -- ./release", "Pass two tokens and name the first variable"),
    ], passesOptions: true, withoutJSON: "its output is that of the command"
  ) { invocation, context throws(CommandError) in
    guard let separator = invocation.operands.firstIndex(of: "--") else {
      if invocation.operands.contains("--json") { throw .unknownOption("--json", invocation.command) }
      throw .missingSeparator(invocation.operands)
    }
    let wishes = invocation.operands[..<separator].filter { $0 != "--trace" }
    let arguments = Array(invocation.operands[(separator + 1)...])
    guard !wishes.isEmpty, let name = arguments.first else {
      throw .usage(
        wishes.isEmpty ? "name a provider before \"--\"" : "name a command after \"--\"",
        hint: "usage: credmgr exec ID -- COMMAND")
    }
    let program = try program(name)
    let list = try wishes.map { wish throws(CommandError) in
      if wish.hasPrefix("-") { throw .unknownOption(wish, invocation.command) }
      try checkOrder(wish, context)
      try invocation.command.check(operand: wish)
      return try EnvironmentWish(wish)
    }
    try checkVariables(list.compactMap(\.variable))
    var added: [(variable: String, value: [UInt8])] = []
    for wish in list {
      let accountName = try context.account(wish.account, of: wish.provider)
      let account = try manager(context.source.handOut(accountName, of: wish.provider, by: .exec, to: .caller))
      let pairs = try values(wish, of: account, context)
      // One variable is the token; several ones are all that a signature needs.
      if wish.field == nil, pairs.count == 1, !account.credential.isBound {
        try context.warnAboutSignature(of: account)
      }
      added += pairs
      try checkVariables(added.map(\.variable))
      try context.noteHandOut(account, to: "exec " + Path.lastComponent(of: name))
    }
    try context.leaveNotices()
    var environment = Environment.entries()
    for (variable, value) in added {
      let assignment = Array((variable + "=").utf8)
      environment.removeAll { $0.starts(with: assignment) }
      environment.append(assignment + value)
    }
    if let coreLimit = context.coreLimit { ProcessProtection.lift(coreLimit: coreLimit) }
    do throws(POSIXError) {
      // Pass the command's original bytes in any encoding.
      let command = Array(try Environment.arguments().suffix(arguments.count))
      try Launcher.replaceProcess(program, command, environment: environment)
    } catch {
      // The script's interpreter does not exist.
      let isMissing = if case .notFound = error { true } else { false }
      throw .failed(error.message.text, status: isMissing ? .commandNotFound : .notExecutable)
    }
  }

  /// Throws for `VARIABLE=ID`, the order of env(1), if the second word certainly is a provider.
  private static func checkOrder(_ wish: String, _ context: Context) throws(CommandError) {
    let halves = wish.split(separator: "=", maxSplits: 1).map(String.init)
    guard halves.count == 2, SecretOption.isVariable(halves[0]),
      context.home.library.path(of: String(halves[1].prefix { !"/:".contains($0) })) != nil
    else { return }
    throw .usage(
      "the variable comes after the provider",
      hints: .correcting(wish, to: halves[1] + "=" + halves[0]) + ["use \"\(halves[1])=\(halves[0])\""])
  }

  private static func checkVariables(_ variables: [String]) throws(CommandError) {
    for (index, variable) in variables.enumerated() where variables[..<index].contains(variable) {
      throw .usage("two tokens use the variable \"\(variable)\"", hint: "name another variable: ID=VARIABLE")
    }
  }

  /// Returns the variables that one argument requests, with their values. A token in a named variable needs no
  /// descriptor.
  private static func values(
    _ wish: EnvironmentWish, of account: Account, _ context: Context
  ) throws(CommandError) -> [(variable: String, value: [UInt8])] {
    if let variable = wish.variable, wish.field == nil {
      return [(variable, account.credential.accessToken.revealBytes())]
    }
    let fields = try CredentialFields(of: account, by: .exec, context)
    var wanted = fields.assignments()
    if let field = wish.field {
      guard let variable = wish.variable ?? fields.variable(of: field) else {
        throw .usage(
          "name the variable for the field \(quoted(field))", hint: "use \"\(wish.provider)/\(field)=VARIABLE\"")
      }
      wanted = [(variable, field)]
    }
    var values: [(variable: String, value: [UInt8])] = []
    for (variable, field) in wanted { values.append((variable, try fields.value(field))) }
    return values
  }

  /// Returns a command's path; throws with the exit status of env(1).
  private static func program(_ name: String) throws(CommandError) -> String {
    do throws(POSIXError) { return try Launcher.find(name) } catch {
      let isThere = name.contains("/") && File.exists(name)
      let message = isThere ? POSIXError.permissionDenied(path: name).message : error.message
      throw .failed(message.text, status: isThere ? .notExecutable : .commandNotFound)
    }
  }
}

/// `ID[/FIELD][:ACCOUNT][=VARIABLE]`: the account whose token or other field `exec` puts into the variable.
struct EnvironmentWish: Equatable {
  let provider: String
  let field: String?
  let account: String?
  let variable: String?

  init(_ text: String) throws(CommandError) {
    let sign = text.lastIndex(of: "=") ?? text.endIndex
    let names = text[..<sign].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let parts = names[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    provider = parts[0]
    field = parts.count > 1 ? parts[1] : nil
    account = names.count > 1 ? names[1] : nil
    if let account, !Accounts.isName(account) { throw CommandError(.malformedAccount(account)) }
    if !DescriptorLibrary.isIdentifier(provider) { throw CommandError(.provider(.malformedIdentifier(provider))) }
    variable = sign < text.endIndex ? String(text[text.index(after: sign)...]) : nil
    guard let variable else { return }
    guard variable.first?.isNumber == false, variable.isASCIIAlphanumeric(or: "_") else {
      // The word may be a secret.
      throw .usage("invalid variable name: use letters, digits and \"_\"")
    }
  }
}

extension Context {
  /// Returns the command with "--" before the first word that is not a provider, or the syntax if that is unknown.
  func separated(_ operands: [String]) -> Remedy {
    let known = source.knownProviders()
    let count = operands.prefix { word in
      word == "--trace" || known.contains(String(word.prefix { !"/:=".contains($0) }))
    }.count
    let (wishes, words) = (operands[..<count], operands[count...])
    // Any other word may be a secret.
    guard count > 0, let name = words.first, (try? Launcher.find(name)) != nil,
      wishes.allSatisfy({ SecretOption.isVariable($0.drop { $0 != "=" }.dropFirst()) }),
      words.dropFirst().allSatisfy({ SecretOption.shown($0, among: []) == $0 })
    else { return "usage: credmgr exec ID -- COMMAND" }
    let command = ["credmgr", "exec"] + wishes + ["--"] + words
    return line.shown(command) == nil ? "usage: credmgr exec ID -- COMMAND" : "\(run: command)"
  }
}

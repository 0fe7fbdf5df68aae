import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrMessages
import CredmgrText

/// Computes completions from the same table as the help, so no command is missing. The placeholders there tell what to
/// complete: `ID` a provider, `ACCOUNT` or `NAME` one of its accounts, `FILE` a file, and lowercase words themselves.
struct Completion {
  struct Candidate: Equatable {
    let text: String
    let help: String

    init(_ text: String, _ help: String = "") { (self.text, self.help) = (text, help) }
  }

  enum Besides: String { case files, commands }

  private(set) var candidates: [Candidate] = []
  private(set) var besides: Besides?
  private let source: CredentialSource

  /// Completes the last of `words`, which may be empty. The words follow the program's name.
  init(_ words: [String], _ source: CredentialSource) {
    self.source = source
    let current = words.last ?? ""
    let commands = Command.all.map { Candidate($0.name, $0.summary) }
    if words.count <= 1 {
      candidates = commands + [Candidate("help", "Say more about a command")]
      if current.hasPrefix("-") { candidates = [Candidate("--help"), Candidate("--version")] }
    } else if words[0] == "help", words.count == 2 {
      candidates = commands
    } else if let command = Command.all.first(where: { $0.name == words[0] }) {
      complete(current, of: command, after: Array(words.dropFirst().dropLast()))
    }
    candidates = candidates.filter { $0.text.hasPrefix(current) }
  }

  private mutating func complete(_ current: String, of command: Command, after before: [String]) {
    let options = command.options + (command.passesOptions ? [] : Command.common)
    var operands: [String] = []
    var used: Set<String> = []
    var pending: Command.Option?
    for (index, word) in before.enumerated() {
      if pending != nil {
        pending = nil
      } else if word == "--" {
        // The words after this one are another command's arguments, or only look like options.
        if command.name == "exec" {
          besides = index == before.count - 1 ? .commands : .files
          return
        }
        operands += before[(index + 1)...]
        break
      } else if word.hasPrefix("-"), word != "-" {
        let name = word.prefix { $0 != "=" }
        let option = options.first { $0.name == name || $0.short == String(name) }
        if let option { used.insert(option.name) }
        if let option, option.value != nil, !word.contains("=") { pending = option }
      } else {
        operands.append(word)
      }
    }
    if let pending {
      offer(pending.value ?? "", of: command, after: operands, prefix: list(current, pending.value))
    } else if current.hasPrefix("--"), let sign = current.firstIndex(of: "=") {
      let name = String(current[..<sign])
      guard let value = options.first(where: { $0.name == name })?.value else { return }
      let typed = String(current[sign...].dropFirst())
      offer(value, of: command, after: operands, prefix: name + "=" + list(typed, value))
    } else if current.hasPrefix("-") {
      candidates =
        options.filter { $0.repeats || !used.contains($0.name) }.map { Candidate($0.name, $0.help) }
        + [Candidate("--help", "show the help of the command")]
    } else if let place = place(of: operands, in: command) {
      offer(place, of: command, after: operands)
      // `exec` accepts an account after a colon.
      if place.firstPlace(of: "[:ACCOUNT]") != nil, let colon = current.firstIndex(of: ":") {
        let provider = String(current[..<colon])
        candidates = accounts(of: provider).map { Candidate("\(provider):\($0.text)", $0.help) }
      }
    }
  }

  /// Returns the complete words of a list that is being typed; empty for other values.
  private func list(_ typed: String, _ place: String?) -> String {
    guard place == "PURPOSES", let comma = typed.lastIndex(of: ",") else { return "" }
    return String(typed[...comma])
  }

  private func place(of operands: [String], in command: Command) -> String? {
    if let operation = command.operations.first(where: { $0.name == operands.first }) {
      return operands.count == 1 ? operation.operand : nil
    }
    let places = command.operands.split(separator: " ").map(String.init)
    if operands.count < places.count { return places[operands.count] }
    return places.last { $0.hasSuffix("…") && places.count == 1 }
  }

  private mutating func offer(_ place: String, of command: Command, after operands: [String], prefix: String = "") {
    let place = place.drop { $0 == "[" }.prefix { $0 != "]" && $0 != "…" && $0 != "[" }
    for word in place.split(separator: "|") {
      let texts: [Candidate]
      switch word {
      case "ID": texts = command.name == "providers" ? known : providers
      case "SOURCE":
        texts = known
        besides = .files
      case "TOOL": texts = ImportSource.all.map { Candidate($0.name, $0.title) }
      case "ACCOUNT", "NAME": texts = accounts(of: operands.first)
      case "FILE": (texts, besides) = ([], .files)
      case "OPERATION": texts = command.operations.map { Candidate($0.name, $0.help) }
      case "GRANT": texts = grants(of: operands.first)
      case "METHOD": texts = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"].map { Candidate($0) }
      case "VAULT": texts = ((try? source.joinedVaults()) ?? []).map { Candidate($0) }
      case "PURPOSES":
        let sets = operands.first.flatMap { descriptor($0) }?.scopeSets ?? []
        texts = sets.map { Candidate($0.name, $0.scopes.joined(separator: " ")) }
      case "NAME=VALUE": texts = variables(of: operands.first)
      default:
        let isItself = word.utf8.allSatisfy { $0 == UInt8(ascii: "-") || (0x61...0x7A).contains($0) }
        texts = isItself ? [Candidate(String(word))] : []
      }
      candidates += texts.map { Candidate(prefix + $0.text, $0.help) }
    }
  }

  private var known: [Candidate] { titled(source.knownProviders()) }

  /// The added providers, or all of them before the first is added.
  private var providers: [Candidate] {
    let added = (try? source.accountsIfAny()?.addedProviders()) ?? []
    return added.isEmpty ? known : titled(added)
  }

  private func titled(_ providers: [String]) -> [Candidate] {
    providers.map { Candidate($0, descriptor($0)?.title ?? "") }
  }

  private func accounts(of provider: String?) -> [Candidate] {
    let accounts = (try? source.accountsIfAny()?.accounts(of: provider)) ?? []
    return accounts.map { Candidate($0.name, provider == nil ? $0.provider : $0.credential.identity ?? "") }
  }

  private func grants(of provider: String?) -> [Candidate] {
    let grants = provider.flatMap { descriptor($0)?.grants } ?? Grant.allCases
    return grants.map { Candidate($0.rawValue) }
  }

  private func variables(of provider: String?) -> [Candidate] {
    provider.flatMap { descriptor($0) }?.variables.map { Candidate($0.name + "=", $0.help ?? "") } ?? []
  }

  private func descriptor(_ identifier: String) -> Descriptor? {
    (try? source.home.library.load(identifier))?.descriptor
  }
}

extension Command {
  static let completion = Command(
    name: "completion", operands: "bash|zsh|fish", operandCount: 1...10_000,
    summary: "Print a shell completion script", options: [],
    notes: [
      "The script looks up commands, options, providers and accounts when you press Tab. It asks for no passphrase."
    ],
    examples: [
      ("eval \"$(credmgr completion bash)\"", "Add this to ~/.bashrc"),
      ("eval \"$(credmgr completion zsh)\"", "Add this to ~/.zshrc after compinit"),
      ("credmgr completion fish >~/.config/fish/completions/credmgr.fish", "Install it once for fish"),
    ], needsHome: false, passesOptions: true, withoutJSON: "its output is a script for a shell"
  ) { invocation, context throws(CommandError) in
    guard let first = invocation.operands.first else {
      throw .usage("too few arguments for \"credmgr completion\"", hint: "\(credmgr: "help", "completion")")
    }
    switch first {
    // The shell scripts call this with the words after the program's name.
    case "words":
      let source = CredentialSource(home: context.home, http: nil, clock: context.clock, random: SystemRandomSource())
      let completion = Completion(Array(invocation.operands.dropFirst()), source)
      let lines = completion.candidates.map { $0.text + ($0.help.isEmpty ? "" : "\t" + Message.visible($0.help)) }
      let besides = completion.besides.map { ["\t" + $0.rawValue] } ?? []
      // A name that contains a line break or tab cannot be typed either.
      let shown = (lines + besides).filter { !$0.dropFirst().contains { $0.isNewline } }
      try context.output(shown.map { $0 + "\n" }.joined())
    default:
      if invocation.operands.contains("--json") { throw .unknownOption("--json", invocation.command) }
      if invocation.operands.count > 1 { throw .usage("too many arguments for \"credmgr completion\"") }
      guard let script = CompletionScript.of[first] else {
        let near = didYouMean(nearMiss(first, among: CompletionScript.of.keys.sorted()))
        throw .usage("no completion for\(shown(first, or: " this"))\(near)", hint: "\(credmgr: "help", "completion")")
      }
      try context.output(script)
    }
  }
}

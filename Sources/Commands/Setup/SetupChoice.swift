import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

/// The choice of a provider at the terminal.
struct SetupChoice {
  private let context: Context
  private let entries: [ProviderEntry]

  init(_ context: Context) {
    self.context = context
    let library = context.home.library
    entries = context.source.knownProviders().map { identifier in
      ProviderEntry(identifier, try? library.load(identifier), isAdded: false)
    }
  }

  /// Whether a word leads to providers in a search.
  func finds(_ word: String) -> Bool { word.utf8.count > 1 && !matches(word).isEmpty }

  /// Whether a word leads to providers or servers.
  func knows(_ word: String) -> Bool { Server(word) != nil || Self.isKey(word) || finds(word) }

  /// Whether a provider's identifier is also an alias of other providers.
  func isAlias(_ identifier: String) -> Bool {
    entries.contains { $0.descriptor?.aliases.contains(identifier) == true }
  }

  /// A line of the list from which the user chooses.
  private enum Row {
    case provider(ProviderEntry)
    case key, address, file
  }

  /// Asks until the user names a provider, an issuer or a file. `given` is the first answer, if there is one.
  func source(given: String? = nil) throws(CommandError) -> String {
    var listed: [Row] = []
    if given == nil {
      listed = show(named(Self.common).map(Row.provider) + [.key, .address, .file])
      context.tell("type a number, or a word such as \"mail\" to search \(entries.count) providers")
    }
    var first = given
    while true {
      let question = "Set up what? (Enter lists all providers)"
      let answer = if let first { first } else { try Question.answer(question) }
      let word = site(answer) ?? answer
      first = nil
      if word.isEmpty {
        showAll()
        continue
      }
      if let number = Int(word), listed.indices.contains(number - 1) {
        switch listed[number - 1] {
        case .provider(let entry): return entry.identifier
        case .key: listed = showKeys()
        case .address: context.tell("type the URL of the issuer, of the MCP server or of the API")
        case .file: context.tell("type the path of the descriptor, with \"/\" or \".yaml\"")
        }
        continue
      }
      if Command.isURL(word) { return word }
      if let server = Server(word) {
        if server == .issuer { listed = show(entries.filter { $0.group == Self.identity }.map(Row.provider)) }
        let url = "the URL of \(server.name), such as \(server.example)"
        context.tell("type " + (server == .issuer && !listed.isEmpty ? "a number, or " : "") + url)
        continue
      }
      if Self.isKey(word) {
        listed = showKeys()
        continue
      }
      if let address = Self.address(word) { return address }
      if word != "-", Context.isDescriptorFile(word) {
        if isDescriptor(word) { return word }
        continue
      }
      let found = matches(word)
      if let entry = found.first, found.count == 1 { return entry.identifier }
      if found.isEmpty {
        // A host is an issuer without its scheme. A key with dots must not be looked up.
        if Self.isHost(word) { return "https://" + word }
        let near = nearMiss(word, among: entries.map(\.identifier))
        // The word may be a key.
        let isName = word.utf8.count <= 24 && SecretOption.shown(word, among: []) == word
        let shown = isName ? quoted(word) : "this"
        context.tell("no provider matches \(shown)\(didYouMean(near))")
        if !isName { tellOfKeys() }
        continue
      }
      listed = show(found.map(Row.provider))
      context.tell("type a number, or another word")
    }
  }

  private func tellOfKeys() {
    context.tell("if it is a key or a token, first name its provider; credmgr prompts for it later")
  }

  /// Whether a file is a descriptor. If it is not, says why, but not its name, which may be a key with a slash.
  private func isDescriptor(_ path: String) -> Bool {
    guard File.exists(path) else {
      context.tell("no file has this name")
      tellOfKeys()
      return false
    }
    do throws(CommandError) {
      _ = try Setup(context).addition(path)
      return true
    } catch {
      // The message shows lines of the file, so any other file may be private.
      if path.hasSuffix(".yaml"), let message = context.message(error) {
        StandardError.show(message)
      } else {
        context.tell("this file is not a descriptor")
      }
      return false
    }
  }

  private static let common = ["github", "gitlab", "google"]
  private static let commonKeys = [
    "openai", "anthropic", "gemini", "openrouter", "mistral", "hugging-face", "stripe-api", "cloudflare",
    "digitalocean", "sendgrid", "npm", "pypi",
  ]
  private static let identity = ProviderGroup.identity.rawValue

  private func named(_ identifiers: [String]) -> [ProviderEntry] {
    identifiers.compactMap { identifier in entries.first { $0.identifier == identifier } }
  }

  private func showKeys() -> [Row] {
    let rows = show(named(Self.commonKeys).map(Row.provider))
    context.tell("type a number, or the name of another service")
    return rows
  }

  private func show(_ rows: [Row]) -> [Row] {
    let width = "\(rows.count)".count
    for (index, row) in rows.enumerated() {
      let text: String
      switch row {
      case .provider(let entry):
        let kinds = entry.descriptor.map { " – " + $0.kinds.joined(separator: " or ") } ?? ""
        text = "\(entry.title) (\(entry.identifier))\(kinds)"
      case .key: text = "an API key of another service"
      case .address: text = "the URL of an issuer, an MCP server or an API"
      case .file: text = "the file of a descriptor"
      }
      let number = "\(index + 1)"
      let indent = String(repeating: " ", count: 2 + width - number.count)
      Terminal.writeError(indent + number + "  " + Message.visible(text) + "\n")
    }
    return rows
  }

  /// Returns the host of a URL without a path if it is the site of a provider; `nil` for any other word.
  func site(_ word: String) -> String? {
    guard Command.isURL(word), let host = word.pieces(separatedBy: "://").last else { return nil }
    let name = String(host.hasSuffix("/") ? host.dropLast() : host[...]).lowercased()
    return Self.isHost(name) && !name.contains("/") && finds(name) ? name : nil
  }

  /// A server that many people have, each at another address. Words for it name no provider.
  enum Server {
    case mcp, issuer, cluster

    /// Returns the server that a word means without naming one; `nil` for any other word.
    init?(_ word: String) {
      switch word.lowercased() {
      case "mcp": self = .mcp
      case "sso", "oidc", "openid": self = .issuer
      case "k8s", "kube", "kubernetes", "kubectl": self = .cluster
      default: return nil
      }
    }

    var name: String {
      switch self {
      case .mcp: "the MCP server"
      case .issuer: "the issuer"
      case .cluster: "the issuer that your cluster trusts"
      }
    }

    var example: String { self == .mcp ? "https://mcp.example.org/mcp" : "https://id.example.org" }
  }

  /// Whether all of several words only say what a provider issues, or the word is the usual one for it.
  static func isKey(_ word: String) -> Bool {
    let words = word.lowercased().split(separator: " ").map(String.init)
    return ["key", "apikey", "api-key", "token"].contains(word.lowercased())
      || words.count > 1 && words.allSatisfy(generic.contains)
  }

  /// Returns the URL that a host with a path means without its scheme; `nil` for any other word, and for a file.
  static func address(_ word: String) -> String? {
    let isFile = word.hasSuffix(".yaml") || !word.contains("/") || File.exists(word)
    return !isFile && isHost(word) ? "https://" + word : nil
  }

  static func isHost(_ word: String) -> Bool {
    let labels = word.prefix { !":/".contains($0) }.split(separator: ".", omittingEmptySubsequences: false)
    let isLowercase = !word.contains { $0.isUppercase }
    return isLowercase && labels.count > 1
      && labels.allSatisfy {
        $0.utf8.count < 33 && !$0.isEmpty && $0.utf8.allSatisfy { $0.isLetterOrDigit || $0 == 0x2D }
      }
      && labels[labels.count - 1].allSatisfy(\.isLetter)
  }

  /// Returns the provider with this identifier and those with this alias, which are easier to begin with; or else those
  /// with this title or alias, or those that contain the word, the best first.
  private func matches(_ word: String) -> [ProviderEntry] {
    let word = word.lowercased()
    // The redirects of most descriptors name this machine.
    if word.split(separator: ".").count == 4, word.utf8.allSatisfy({ $0 == 0x2E || $0.isDigit }) { return [] }
    let aliased = entries.filter { $0.descriptor?.aliases.contains(word) == true }
    if let exact = entries.first(where: { $0.identifier == word }) { return aliased + [exact] }
    let named = entries.filter { $0.title.lowercased() == word || $0.descriptor?.aliases.contains(word) == true }
    if !named.isEmpty { return named }
    let isGroup = ProviderGroup(rawValue: word) != nil
    let names = entries.filter { entry in
      !isGroup && [entry.identifier, entry.title.lowercased()].contains { $0.firstPlace(of: word) != nil }
    }
    var found = names.isEmpty ? entries.filter { $0.matches(word) } : names
    // Several words, of which some only say what a provider issues.
    let words = word.split(separator: " ").map(String.init).filter { !Self.generic.contains($0) }
    if found.isEmpty, !words.isEmpty, words.joined(separator: " ") != word {
      if words.count == 1 { return matches(words[0]) }
      found = entries.filter { entry in words.allSatisfy(entry.matches) }
    }
    return found.filter { $0.identifier.hasPrefix(word) } + found.filter { !$0.identifier.hasPrefix(word) }
  }

  private static let generic: Set = ["api", "key", "token", "login", "account", "access", "server", "credentials"]

  private func showAll() {
    let rows = ProviderGroup.allCases.compactMap { group -> (left: String, right: String)? in
      let names = entries.filter { $0.group == group.rawValue }.map(\.identifier)
      return names.isEmpty ? nil : (group.rawValue, Message.visible(names.joined(separator: ", ")))
    }
    Terminal.writeError(Layout.table(rows, width: Terminal.width))
  }
}

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

  /// Whether a provider's identifier is also an alias of other providers.
  func isAlias(_ identifier: String) -> Bool {
    entries.contains { $0.descriptor?.aliases.contains(identifier) == true }
  }

  /// Asks until the user names a provider, an issuer or a file. `given` is the first answer, if there is one.
  func source(given: String? = nil) throws(CommandError) -> String {
    if given == nil {
      context.tell(
        "type a provider or a word such as \"mail\", the URL of an issuer or an MCP server, or the path of a "
          + "descriptor")
    }
    var listed: [ProviderEntry] = []
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
      if let number = Int(word), listed.indices.contains(number - 1) { return listed[number - 1].identifier }
      if Command.isURL(word) { return word }
      if Self.isProtocol(word) {
        context.tell(Self.serverWanted)
        continue
      }
      if let address = Self.address(word) { return address }
      if word != "-" && Context.isDescriptorFile(word) { return word }
      let found = matches(word)
      if let entry = found.first, found.count == 1 { return entry.identifier }
      if found.isEmpty {
        // A host is an issuer without its scheme. A key with dots must not be looked up.
        if Self.isHost(word) { return "https://" + word }
        let near = nearMiss(word, among: entries.map(\.identifier))
        // A long word may be a key.
        let shown = word.utf8.count > 24 && !word.contains(" ") ? "this" : quoted(word)
        context.tell("no provider matches \(shown)\(didYouMean(near))")
        continue
      }
      listed = found
      let width = "\(found.count)".count
      for (index, entry) in found.enumerated() {
        let kinds = entry.descriptor.map { " – " + $0.kinds.joined(separator: " or ") } ?? ""
        let number = "\(index + 1)"
        let indent = String(repeating: " ", count: 2 + width - number.count)
        Terminal.writeError(
          indent + number + "  " + Message.visible("\(entry.title) (\(entry.identifier))\(kinds)") + "\n")
      }
      context.tell("type a number, or another word")
    }
  }

  /// Returns the host of a URL without a path if it is the site of a provider; `nil` for any other word.
  func site(_ word: String) -> String? {
    guard Command.isURL(word), let host = word.pieces(separatedBy: "://").last else { return nil }
    let name = String(host.hasSuffix("/") ? host.dropLast() : host[...]).lowercased()
    return Self.isHost(name) && !name.contains("/") && finds(name) ? name : nil
  }

  private static let protocolName = "mcp"

  /// Each MCP server is a provider of its own.
  private static let serverWanted = "type the URL of the MCP server, such as https://mcp.example.org/mcp"

  /// Whether a word means an MCP server without naming one.
  static func isProtocol(_ word: String) -> Bool { word.lowercased() == protocolName }

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

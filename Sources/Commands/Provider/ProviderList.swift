import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Command {
  /// Prints the providers whose identifier, title, aliases, hosts or group contain each word, or all of them.
  static func list(matching words: [String], _ context: Context) throws(CommandError) {
    let added = try manager(Set(context.source.accountsIfAny()?.addedProviders() ?? []))
    let library = context.home.library
    var rows: [JSONValue] = []
    var entries: [ProviderEntry] = []
    for identifier in context.source.knownProviders() {
      let loaded = try? library.load(identifier)
      let entry = ProviderEntry(identifier, loaded, isAdded: added.contains(identifier))
      guard words.allSatisfy(entry.matches) else { continue }
      entries.append(entry)
      let descriptor = loaded?.descriptor
      rows.append([
        "provider": .string(identifier), "title": .string(entry.title), "added": .boolean(entry.isAdded),
        "group": .optional(descriptor?.group?.rawValue),
        "kinds": .array(descriptor?.kinds.map(JSONValue.string) ?? []),
        "needs": .array(descriptor?.needs.map(JSONValue.string) ?? []),
        "grants": .array(descriptor?.grants.map { .string($0.rawValue) } ?? []),
        "file": .optional(library.path(of: identifier)), "verified": .string(entry.verification.text),
        "unverified": .integer(Int64(entry.unverifiedCount)),
      ])
    }
    let columns = Terminal.outputColumns
    try context.output(
      columns.map { ProviderEntry.table(entries, columns: $0, Style(1)) } ?? ProviderEntry.lines(entries),
      orJSON: .array(rows))
    if !words.isEmpty, entries.isEmpty {
      context.tell("no provider matches" + shown(words.joined(separator: " "), or: " this"))
    }
  }
}

/// One line of the list of providers.
struct ProviderEntry {
  let identifier: String
  let title: String
  let isAdded: Bool
  private let loaded: DescriptorLibrary.Loaded?  // `nil` if the descriptor has errors.
  var descriptor: Descriptor? { loaded?.descriptor }
  let unverifiedCount: Int

  init(_ identifier: String, _ loaded: DescriptorLibrary.Loaded?, isAdded: Bool) {
    self.identifier = identifier
    self.isAdded = isAdded
    self.loaded = loaded
    let faulty: Remedy = "(has errors: \(credmgr: "providers", identifier))"
    title = loaded?.descriptor.title ?? faulty.sentence() ?? ""
    unverifiedCount = loaded?.unverifiedCount ?? 0
  }

  var verification: Verification { descriptor?.verified ?? .unverified }

  /// Whether the entry contains the word. The name of a group counts only in names, and a short one, such as `ai`, only
  /// as a whole word.
  func matches(_ word: String) -> Bool {
    let word = word.lowercased()
    if ProviderGroup(rawValue: word) == nil { return contains(word) }
    return group == word
      || names.contains { name in
        let name = name.lowercased()
        return word.count > 3
          ? name.firstPlace(of: word) != nil
          : name.split { !$0.isLetter && !$0.isNumber }.contains { $0 == word }
      }
  }

  private var names: [String] { [identifier, title] + (descriptor?.aliases ?? []) }

  private func contains(_ word: String) -> Bool {
    var texts = names + [descriptor?.group?.rawValue ?? ""]
    texts += descriptor?.hosts.map(\.text) ?? []
    texts += descriptor?.endpoints.values.map(\.url.text) ?? []
    texts += descriptor?.variables.compactMap(\.defaultValue) ?? []
    // Google's scopes name Gmail, Drive and others.
    texts += descriptor?.scopeSets.flatMap { [$0.name] + $0.scopes } ?? []
    return texts.contains { $0.lowercased().firstPlace(of: word) != nil }
  }

  private var shownIdentifier: String { Message.visible(identifier) }
  private var name: String { Message.visible(title + (isAdded ? " (added)" : "")) }
  private var kinds: String { descriptor?.kinds.joined(separator: ", ") ?? "" }
  private var needs: String { descriptor?.needs.joined(separator: " or ") ?? "" }
  var group: String { descriptor?.group?.rawValue ?? ProviderGroup.other.rawValue }

  /// The verification in one word, for narrow tables.
  private var shortVerification: String {
    if descriptor == nil { return "" }
    if unverifiedCount > 0 { return "partly" }
    switch verification {
    case .documentation(let date), .live(let date): return date
    case .unverified: return "no"
    }
  }

  /// Formats one line per provider for other programs.
  static func lines(_ entries: [ProviderEntry]) -> String {
    Layout.grid(
      entries.map { entry in
        let facts = entry.unverifiedCount
        let partly = facts == 0 ? "" : ", \(facts) \(facts == 1 ? "fact" : "facts") unverified"
        let verified = entry.descriptor == nil ? "" : entry.verification.text + partly
        return [
          entry.shownIdentifier, entry.name, entry.kinds, entry.needs, entry.descriptor == nil ? "" : entry.group,
        ]
          + [verified]
      }
    ).map { "  " + $0 + "\n" }.joined()
  }

  /// Formats a table with a heading for each group, as wide as the terminal.
  static func table(_ entries: [ProviderEntry], columns: Int, _ style: Style) -> String {
    guard !entries.isEmpty else { return "" }
    let order = ProviderGroup.allCases.map(\.rawValue)
    let sorted = order.flatMap { group in entries.filter { $0.group == group } }
    let head = ["PROVIDER", "TITLE", "KIND", "TO BEGIN", "VERIFIED"]
    var rows = [head] + sorted.map { [$0.shownIdentifier, $0.name, $0.kinds, $0.needs, $0.shortVerification] }
    // A shortened identifier is useless.
    let isNarrow = columns < 70
    let count = columns < 56 ? 1 : isNarrow ? 2 : head.count
    rows = rows.map { Array($0.prefix(count)) }
    let lines = Layout.grid(rows, width: columns - 4, shortening: isNarrow ? Array(1..<count) : [1, 3, 2])
    var text = "    " + lines[0] + "\n"
    var group = ""
    for (entry, line) in zip(sorted, lines.dropFirst()) {
      if entry.group != group {
        group = entry.group
        text += "  " + style.bold(group) + "\n"
      }
      text += "    " + line + "\n"
    }
    return text
  }
}

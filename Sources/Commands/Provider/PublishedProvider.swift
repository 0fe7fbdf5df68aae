import CredmgrCredentialManager
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Command {
  /// Whether the source is the address of a descriptor, or `--update` asks for it again.
  static func isPublished(_ source: String, updates: Bool) -> Bool {
    updates || CredentialSource.isDescriptor(at: source)
  }

  /// Fetches a descriptor from its address, shows it or its changes, and asks whether to use it.
  static func published(
    at source: String, as name: String? = nil, updates: Bool = false, replaces: Bool = false, isAgreed: Bool = false,
    _ context: Context
  ) throws(CommandError) -> ProviderAddition {
    var (address, name) = (source, name)
    if !isURL(source) {
      if Context.isDescriptorFile(source) {
        throw .usage(
          "\"--update\" fetches a descriptor from its address, not from a file",
          hints: [Remedy(parts: [.without("--update", instead: ["--replace"])])])
      }
      let provider = try context.provider(source)
      guard let copy = context.source.fetchedCopy(of: provider) else {
        guard let known = context.source.knownMetadata(of: provider) else { throw notFetched(provider, context) }
        return try discoveredAgain(known, as: provider, isAgreed: isAgreed, context)
      }
      (address, name) = (copy.location, provider)
    }
    let found = try manager(context.source.fetch(address, as: name))
    let provider = found.addition.identifier
    let isAdded = try manager(context.source.accountsIfAny()?.registration(of: provider)) != nil
    if isAdded, !replaces, !updates { throw CommandError(.alreadyAdded(provider: provider)) }
    if updates {
      guard isAdded, let copy = context.source.fetchedCopy(of: provider) else { throw notFetched(provider, context) }
      let lines = changes(from: copy.text, to: found.copy.text)
      if lines.isEmpty {
        context.tell("the descriptor of \(context.titled(provider)) has not changed")
        throw .ended(.done)
      }
      if copy.isEdited { context.tell("warning: your file differs from the fetched file, and is replaced") }
      show(lines, as: "the descriptor at \(found.copy.location) has changed:")
    } else {
      show(found.copy.text.linesByScalars, as: "found this descriptor at \(found.copy.location):")
    }
    context.tell("its SHA-256 is \(found.copy.digest)")
    try confirmUse(
      updates ? "Use the new descriptor?" : "Add it as \"\(provider)\"?", isAgreed: isAgreed,
      refusal: updates ? "nothing was changed" : "nothing was added")
    return found.addition
  }

  /// Reads the metadata of a provider again, shows what changed, and asks whether to use it.
  private static func discoveredAgain(
    _ known: KnownMetadata, as provider: String, isAgreed: Bool, _ context: Context
  ) throws(CommandError) -> ProviderAddition {
    let found = try manager(context.source.discoverAgain(known, as: provider))
    let lines = changes(from: known.text, to: found.text)
    if lines.isEmpty {
      context.tell("the metadata of \(context.titled(provider)) has not changed")
      throw .ended(.done)
    }
    show(lines, as: "the descriptor from \(found.location) differs from your file:")
    found.tellOfProofKeys(context)
    try confirmUse("Use the new descriptor?", isAgreed: isAgreed, refusal: "nothing was changed")
    return found.addition
  }

  private static func confirmUse(_ question: String, isAgreed: Bool, refusal: String) throws(CommandError) {
    if isAgreed { return }
    guard Question.canAsk else {
      throw .usage("cannot ask whether to use this descriptor: no terminal", hint: "\(add: "--yes") to use it")
    }
    guard try Question.confirm(question) else { throw .usage(refusal) }
  }

  /// Returns the client that a new descriptor publishes, if the provider has the client of the old descriptor.
  static func newClient(of addition: ProviderAddition, _ context: Context) throws(CommandError) -> String? {
    let provider = addition.identifier
    let old = (try? context.home.library.load(provider))?.descriptor.client.identifier
    let registration = try manager(context.source.accountsIfAny()?.registration(of: provider))
    return old != nil && registration?.clientIdentifier == old ? addition.descriptor.client.identifier : nil
  }

  private static func notFetched(_ provider: String, _ context: Context) -> CommandError {
    .usage(
      "the descriptor of \(context.titled(provider)) was not fetched from an address",
      hint: "\(credmgr: "add-provider", "URL", "--replace") with its address")
  }

  private static func show(_ lines: [String], as title: String) {
    StandardError.tell(title)
    Terminal.writeError("\n" + lines.map { ($0.isEmpty ? "" : "  " + Message.visible($0)) + "\n" }.joined())
  }

  /// Returns the lines that were removed, marked with `-`, and added, marked with `+`, in their order.
  static func changes(from old: String, to new: String) -> [String] {
    var (old, new) = (old.linesByScalars[...], new.linesByScalars[...])
    while let line = old.first, line == new.first { (old, new) = (old.dropFirst(), new.dropFirst()) }
    while let line = old.last, line == new.last { (old, new) = (old.dropLast(), new.dropLast()) }
    let (before, after) = (Array(old), Array(new))
    // The number of common lines from each pair of places on; too many pairs would need too much memory.
    guard before.count * after.count <= 1_000_000 else { return before.map { "-" + $0 } + after.map { "+" + $0 } }
    var common = [[Int]](repeating: [Int](repeating: 0, count: after.count + 1), count: before.count + 1)
    for row in before.indices.reversed() {
      for column in after.indices.reversed() {
        common[row][column] =
          before[row] == after[column]
          ? common[row + 1][column + 1] + 1 : max(common[row + 1][column], common[row][column + 1])
      }
    }
    var (row, column) = (0, 0)
    var lines: [String] = []
    while row < before.count || column < after.count {
      if row < before.count, column < after.count, before[row] == after[column] {
        (row, column) = (row + 1, column + 1)
      } else if row < before.count, column == after.count || common[row + 1][column] >= common[row][column + 1] {
        lines.append("-" + before[row])
        row += 1
      } else {
        lines.append("+" + after[column])
        column += 1
      }
    }
    return lines
  }
}

import CredmgrYAML
import Testing

@testable import CredmgrDescriptors

/// The style of the shipped descriptors, so that each of them reads like the others.
@Suite struct DescriptorStyleTests {
  private static func path(_ identifier: String) -> String { PackageFiles.providers + "/" + identifier + ".yaml" }

  private func lines(_ identifier: String) throws -> [Substring] {
    let bytes = try #require(PackageFiles.read(Self.path(identifier)))
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
  }

  private func root(_ identifier: String) throws -> Node {
    let bytes = try #require(PackageFiles.read(Self.path(identifier)))
    var duplicates: [YAMLError] = []
    return DescriptorTree.expanded(
      try Node.parse(bytes: bytes, name: Self.path(identifier), duplicates: &duplicates))
  }

  @Test(arguments: PackageFiles.shipped) func eachSaysHowItWasVerifiedAndItsGroup(_ identifier: String) throws {
    let root = try root(identifier)
    #expect(root["verified"] != nil, "add \"verified: documentation YYYY-MM\" after \"title\"")
    #expect(root["group"] != nil, "add \"group\" after \"verified\"")
  }

  @Test(arguments: PackageFiles.shipped) func keysAreInTheOrderOfTheReference(_ identifier: String) throws {
    let keys = try #require(root(identifier).entries).map(\.key)
    let order = Descriptor.keys.description.keys.map(\.name)
    #expect(keys == order.filter(keys.contains), "the order of keys is: \(order.joined(separator: ", "))")
  }

  @Test(arguments: PackageFiles.shipped) func aliasesAreWordsInLowerCase(_ identifier: String) throws {
    let aliases = try PackageFiles.shippedLibrary.load(identifier).descriptor.aliases
    #expect(Set(aliases).count == aliases.count && !aliases.contains(identifier), "each name once")
    #expect(aliases.allSatisfy { $0 == $0.lowercased() && !$0.contains(" ") })
  }

  @Test(arguments: PackageFiles.shipped) func eachLinksToItsSource(_ identifier: String) throws {
    let lines = try lines(identifier)
    #expect(lines.first?.hasPrefix("# ") == true, "begin the file with a comment that names the provider")
    let links = lines.filter { $0.contains("#") && $0.contains("https://") }
    #expect(!links.isEmpty, "add a comment with the address of the provider's page")
  }

  /// Comments and empty lines have a wider limit, because a fact without a source is the greater fault.
  @Test(arguments: PackageFiles.shipped) func eachHas10To40Lines(_ identifier: String) throws {
    let lines = try lines(identifier)
    let keys = lines.map { $0.drop { $0 == " " } }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
    #expect(lines.count > 10)
    #expect(keys.count <= 40, "extend another descriptor, or say less")
    #expect(lines.count <= 94, "write shorter comments")
  }

  @Test(arguments: PackageFiles.shipped) func noKeyRepeatsADefault(_ identifier: String) throws {
    let root = try root(identifier)
    let whole = try #require(decoded(root))
    for path in leaves(of: root, below: []) where !["extends", "provider", "group"].contains(path[0]) {
      // The schema demands the hosts of git and docker in each file.
      if ["git", "docker", "kubectl"].contains(path[0]), path.last == "hosts" { continue }
      let isNeeded = decoded(without(path[...], in: root)) != whole
      #expect(isNeeded, "\(path.joined(separator: ".")) repeats a default or an inherited value")
    }
  }

  private func leaves(of node: Node, below path: [String]) -> [[String]] {
    guard let entries = node.entries, !entries.isEmpty, path.last != "parameters" else { return [path] }
    return entries.flatMap { leaves(of: $0.value, below: path + [$0.key]) }
  }

  private func without(_ path: ArraySlice<String>, in node: Node) -> Node {
    guard let key = path.first, let entries = node.entries else { return node }
    return Node(
      .mapping(
        entries.compactMap { entry in
          guard entry.key == key else { return entry }
          if path.count == 1 { return nil }
          var entry = entry
          entry.value = without(path.dropFirst(), in: entry.value)
          return entry
        }), at: node.place)
  }

  /// Decodes the file over its base; `nil` with a fault.
  private func decoded(_ root: Node) -> Descriptor? {
    var tree = root
    if let base = root["extends"]?.text {
      guard let below = try? PackageFiles.shippedLibrary.tree(of: base) else { return nil }
      tree = DescriptorTree.merged(root, over: DescriptorTree.inherited(below, by: root))
    }
    var decoder = DescriptorDecoder(DescriptorTree.completed(tree))
    guard let descriptor = decoder.descriptor(), decoder.findings.isEmpty else { return nil }
    return descriptor
  }
}

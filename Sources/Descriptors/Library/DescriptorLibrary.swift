import CredmgrText
import CredmgrYAML

/// Files named `<identifier>.yaml` in directories. Earlier directories take precedence. credmgr finds a descriptor by
/// its name alone, so that start-up time does not grow with their number.
package struct DescriptorLibrary: Sendable {
  /// Reads a file or throws. An unreadable file must not be skipped: the next file with its name may send credentials
  /// elsewhere.
  package typealias Reader = @Sendable (_ path: String) throws(UnreadableDescriptor) -> [UInt8]?

  /// Returns a library that searches these directories first.
  package func behind(_ directories: [String]) -> DescriptorLibrary {
    DescriptorLibrary(directories: directories + self.directories, read: read)
  }

  package struct Loaded: Sendable {
    @usableFromInline var shared: SharedDescriptor
    package let warnings: [Finding]
    package let path: String
    package let bases: [String]  // The nearest first.
    /// The contents of the file and its bases as they were read, in the same order.
    package let contents: [[UInt8]]
    let root: Node

    @inlinable
    package var descriptor: Descriptor {
      _read { yield shared.value }
      set { shared = SharedDescriptor(newValue) }
    }

    /// The number of comments in the file that say that a setting was not tried at the provider.
    package var unverifiedCount: Int { root.place.source.text.pieces(separatedBy: "# unverified").count - 1 }
  }

  package let directories: [String]
  private let read: Reader

  package init(directories: [String], read: @escaping Reader) {
    self.directories = directories
    self.read = read
  }

  /// Whether the text is a safe file name and argument: at most 64 lower-case letters, digits, `-`, `_` and `.`.
  package static func isIdentifier(_ text: String) -> Bool {
    guard let first = text.utf8.first, first != UInt8(ascii: "-"), first != UInt8(ascii: ".") else { return false }
    let isLower = { (byte: UInt8) in byte.isLetterOrDigit && !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }
    return text.utf8.count <= 64 && text.utf8.allSatisfy { isLower($0) || "-_.".utf8.contains($0) }
  }

  package func path(of identifier: String) -> String? {
    do throws(Obstacle) {
      return try find(identifier, after: nil)?.path
    } catch {
      return error.path
    }
  }

  package func load(_ identifier: String) throws(ProviderError) -> Loaded {
    guard Self.isIdentifier(identifier) else { throw .malformedIdentifier(identifier) }
    let file = try first(identifier)
    return try load(file.bytes, name: file.path, directory: file.directory)
  }

  package func check(_ bytes: [UInt8], name: String) -> (descriptor: Descriptor?, findings: [Finding]) {
    let checked = check(bytes, name: name, directory: nil)
    return (checked.descriptor, checked.findings)
  }

  /// Loads a descriptor; `directory` is the index of its directory, or `nil` for files from elsewhere.
  package func load(_ bytes: [UInt8], name: String, directory: Int? = nil) throws(ProviderError) -> Loaded {
    let checked = check(bytes, name: name, directory: directory)
    guard let descriptor = checked.descriptor, let root = checked.root,
      !checked.findings.contains(where: { $0.severity == .error })
    else { throw .invalid(checked.findings) }
    return Loaded(
      shared: SharedDescriptor(descriptor), warnings: checked.findings, path: name, bases: checked.bases.map(\.path),
      contents: [bytes] + checked.bases.map(\.bytes), root: root)
  }

  private typealias Checked = (descriptor: Descriptor?, findings: [Finding], bases: [File], root: Node?)

  private func check(_ bytes: [UInt8], name: String, directory: Int?) -> Checked {
    var findings: [Finding] = []
    var bases: [File] = []
    guard let tree = tree(bytes, name: name, directory: directory, chain: [], bases: &bases, findings: &findings) else {
      return (nil, findings, bases, nil)
    }
    let root = DescriptorTree.completed(tree)
    var decoder = DescriptorDecoder(root)
    let descriptor = decoder.descriptor()
    // A missing part may be in an unavailable base, which has to be fixed first.
    let isIncomplete = findings.contains { $0.problem.hidesBase }
    findings += decoder.findings.filter { !isIncomplete || !$0.problem.isOfWhatIsMissing }
    if let descriptor, Self.isIdentifier(descriptor.identifier), let place = root["provider"]?.place {
      let fileName = name.split(separator: "/").last.map(String.init) ?? name
      if fileName.hasSuffix(".yaml"), fileName != descriptor.identifier + ".yaml" {
        let problem = Finding.Problem.identifierIsNotFileName(identifier: descriptor.identifier, fileName: fileName)
        findings.append(Finding(problem, at: place, severity: directory == nil ? .warning : .error))
      }
    }
    return (
      descriptor, findings.sorted { ($0.place.line, $0.place.column) < ($1.place.line, $1.place.column) }, bases, root
    )
  }

  func tree(of identifier: String) throws(ProviderError) -> Node {
    guard Self.isIdentifier(identifier) else { throw .malformedIdentifier(identifier) }
    let file = try first(identifier)
    var findings: [Finding] = []
    var bases: [File] = []
    guard
      let root = tree(
        file.bytes, name: file.path, directory: file.directory, chain: [], bases: &bases, findings: &findings)
    else { throw .invalid(findings) }
    return DescriptorTree.completed(root)
  }

  private func tree(
    _ bytes: [UInt8], name: String, directory: Int?, chain: [String], bases: inout [File],
    findings: inout [Finding]
  ) -> Node? {
    var duplicates: [YAMLError] = []
    let parsed: Node
    do {
      parsed = try Node.parse(bytes: bytes, name: name, duplicates: &duplicates)
    } catch {
      findings.append(Finding(.yaml(error.reason), at: error.place))
      return nil
    }
    findings += duplicates.map { Finding(.yaml($0.reason), at: $0.place) }
    let root = DescriptorTree.expanded(parsed)
    guard let base = root["extends"], !base.isNull else { return root }
    func unextended(_ problem: Finding.Problem) -> Node {
      findings.append(Finding(problem, at: base.place))
      return root
    }
    guard let identifier = base.text, Self.isIdentifier(identifier) else {
      return unextended(.malformedName(base.text ?? ""))
    }
    guard !chain.contains(name) else { return unextended(.cyclicExtends(chain + [name])) }
    guard chain.count < Self.baseLimit else { return unextended(.tooManyBases(Self.baseLimit)) }
    // A file that extends its own identifier extends the one in the next directory, which lets users override shipped
    // descriptors.
    let isOverride = root["provider"]?.text == identifier
    let found: File?
    do throws(Obstacle) {
      found = try find(identifier, after: isOverride ? directory ?? -1 : nil, except: isOverride ? name : nil)
    } catch {
      return unextended(.unreadable(path: error.path, error.reason))
    }
    guard let file = found else { return unextended(.unknownBase(identifier)) }
    bases.append(file)
    guard
      let underneath = tree(
        file.bytes, name: file.path, directory: file.directory, chain: chain + [name], bases: &bases,
        findings: &findings)
    else { return root }
    return DescriptorTree.merged(root, over: DescriptorTree.inherited(underneath, by: root))
  }

  private static let baseLimit = 16

  private typealias File = (bytes: [UInt8], path: String, directory: Int)

  private struct Obstacle: Error {
    let path: String
    let reason: UnreadableDescriptor
  }

  private func first(_ identifier: String) throws(ProviderError) -> File {
    do throws(Obstacle) {
      if let file = try find(identifier, after: nil) { return file }
    } catch {
      throw .invalid([.unreadable(error.path, error.reason)])
    }
    throw .unknown(identifier: identifier, suggestion: nil)
  }

  private func find(
    _ identifier: String, after directory: Int?, except excluded: String? = nil
  ) throws(Obstacle) -> File? {
    for (index, folder) in directories.enumerated() where index > directory ?? -1 {
      let path = folder + "/" + identifier + ".yaml"
      if path == excluded { continue }
      do throws(UnreadableDescriptor) {
        if let bytes = try read(path) { return (bytes, path, index) }
      } catch {
        throw Obstacle(path: path, reason: error)
      }
    }
    return nil
  }
}

extension DescriptorLibrary.Loaded {
  /// The place that names a host for tokens or the client's secret: the template, or the default of the variable that
  /// supplies the host.
  package func place(ofHost host: String, _ hosts: (Template) -> [String]) -> Place? {
    for node in hostNodes {
      guard let text = node.text, let template = try? Template(parsing: text), hosts(template).contains(host) else {
        continue
      }
      if text.lowercased().firstPlace(of: host) != nil { return node.place }
      let defaults = template.names.compactMap { root["variables"]?[$0]?["default"] }
      let named = defaults.first { value in
        value.text.map { !$0.isEmpty && host.firstPlace(of: $0.lowercased()) != nil } ?? false
      }
      return named?.place ?? node.place
    }
    return nil
  }

  /// The place of a nested key's value, or `nil` if the descriptor does not have it.
  package func place(of keys: [String]) -> Place? {
    var node: Node? = root
    for key in keys { node = node?[key] }
    return node?.place
  }

  /// The templates with hosts, beginning with the endpoints, which also receive the secret.
  private var hostNodes: [Node] {
    func list(_ node: Node?) -> [Node] { node.map { $0.elements ?? [$0] } ?? [] }
    let endpoints = root["endpoints"]?.entries?.compactMap { $0.value["url"] } ?? []
    return endpoints + list(root["hosts"]) + list(root["git"]?["hosts"]) + list(root["kubectl"]?["hosts"])
      + list(root["docker"]?["hosts"])
  }
}

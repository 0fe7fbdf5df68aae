import Testing

@testable import CredmgrDescriptors

@Suite struct ExtendsTests {
  static let base = """
    provider: base
    title: Base
    grant: [authorization_code, client_credentials]
    variables:
      host: {default: base.example, format: hostname, help: the host}
      region: {default: eu}
    endpoints:
      authorization: https://{host}/authorize
      token: {url: "https://{host}/token", send: json, parameters: {audience: "{region}", scope: null}}
      refresh: https://{host}/refresh
      identity: https://{host}/me
    scope: {default: [a, b], separator: ","}
    extra_headers: {X-One: "1", X-Two: "2"}
    header_style: token
    pkce: none
    hosts: ["{host}"]
    """

  func load(_ child: String, _ more: [String: String] = [:]) throws -> Descriptor {
    var folder = ["base": Self.base, "child": "provider: child\nextends: base\n" + child]
    folder.merge(more) { _, new in new }
    let loaded = try MemoryLibrary(folder).library.load("child")
    #expect(loaded.warnings.isEmpty)
    #expect(loaded.path == "0/child.yaml")
    return loaded.descriptor
  }

  @Test func everythingIsInherited() throws {
    let child = try load("")
    var base = try MemoryLibrary(["base": Self.base]).library.load("base").descriptor
    #expect(child.title == "Base")
    base.identifier = "child"
    #expect(child == base)
  }

  @Test func mappingsMergeByKeyAndListsAsAWhole() throws {
    let child = try load(
      """
      title: Child
      variables: {host: {default: child.example}}
      grant: authorization_code
      scope: {default: [c]}
      extra_headers: {X-Two: two, X-Three: "3"}
      """)
    #expect(child.title == "Child")
    #expect(child.grants == [.authorizationCode])
    #expect(child.variable("host")?.defaultValue == "child.example")
    #expect(child.variable("host")?.format == .hostname)
    #expect(child.variable("host")?.help == "the host")
    #expect(child.scope == ScopeRules(requested: ["c"], separator: ",", grantedSeparator: ","))
    #expect(child.extraHeaders.map(\.name) == ["X-One", "X-Two", "X-Three"])
    #expect(child.extraHeaders.map(\.value.literal) == ["1", "two", "3"])
    #expect(child.pkce == .none)
  }

  @Test func shortAndLongFormsMerge() throws {
    let child = try load(
      """
      endpoints:
        token: https://child.example/token
        identity: {method: POST}
      scope: [c]
      header_style: {parameters: {who: me}}
      hosts: child.example
      """)
    let token = try #require(child.endpoints[.token])
    #expect(token.url.template.literal == "https://child.example/token")
    #expect(token.send == .json)
    #expect(token.parameters.map(\.name) == ["audience", "scope"])
    #expect(child.endpoints[.identity]?.method == "POST")
    #expect(child.endpoints[.identity]?.url.template.names == ["host"])
    #expect(child.scope.requested == ["c"])
    #expect(child.scope.separator == ",")
    #expect(child.headerStyle.location == .header(name: "Authorization", scheme: "token"))
    #expect(child.headerStyle.parameters.map(\.name) == ["who"])
    #expect(child.hosts.map(\.literal) == ["child.example"])
  }

  @Test func nullRemovesAKey() throws {
    let child = try load(
      """
      title: null
      pkce: ~
      header_style:
      extra_headers: {X-One: null}
      scope: {separator: null}
      endpoints: {identity: null, token: {parameters: null}}
      variables: {region: null}
      """)
    #expect(child.title == "child")
    #expect(child.pkce == .s256)
    #expect(child.headerStyle.location == .header(name: "Authorization", scheme: "Bearer"))
    #expect(child.extraHeaders.map(\.name) == ["X-Two"])
    #expect(child.scope.separator == " ")
    #expect(child.endpoints[.identity] == nil)
    #expect(child.variable("region") == nil)
    #expect(child.endpoints[.token]?.parameters == [])
  }

  @Test func nullRemovesAnEndpointOrAParameter() throws {
    let child = try load(
      "endpoints: {refresh: null, token: {parameters: {audience: null, scope: x}}}\nvariables: {region: null}\n")
    // Without `refresh`, the endpoint would inherit `token`.
    #expect(child.endpoints[.refresh] == nil)
    #expect(child.endpoints[.clientCredentials] != nil)
    #expect(
      child.endpoints[.token]?.parameters == [
        ParameterRule(name: "audience", value: nil), ParameterRule(name: "scope", value: Template(literal: "x")),
      ])
  }

  @Test func aChainOfThree() throws {
    let child = try load(
      "",
      [
        "child": "provider: child\nextends: middle\ntitle: Child\n",
        "middle": "provider: middle\nextends: base\npkce: plain\nstate: optional\n",
      ])
    #expect(child.title == "Child")
    #expect(child.pkce == .plain)
    #expect(child.state == .optional)
    #expect(child.identifier == "child")
  }

  @Test func findingsInABaseHaveTheirOwnPlace() throws {
    let marked = MarkedText(
      "provider: base\ngrant: implicit\nendpoints: {authorization: https://a.example}\n‸pkcee: none\n")
    let library = MemoryLibrary(["base": marked.text, "child": "provider: child\n\nextends: base\n"]).library
    let error = try #require(throws: ProviderError.self) { try library.load("child") }
    guard case .invalid(let findings) = error else { throw error }
    #expect(findings.map(\.problem) == [.unknownKey("pkcee", suggestion: "pkce")])
    #expect(findings.map(\.place.source.name) == ["0/base.yaml"])
    #expect(findings.map { .init(line: $0.place.line, column: $0.place.column) } == marked.marks)
  }

  // MARK: Cycles

  static let cycles: [[String: String]] = [
    ["child": "b", "b": "child"], ["child": "b", "b": "c", "c": "child"], ["child": "b", "b": "c", "c": "b"],
  ]

  @Test(arguments: cycles) func cyclesAreReported(_ bases: [String: String]) throws {
    var folder: [String: String] = [:]
    for (name, base) in bases {
      folder[name] = "provider: \(name)\nextends: \(base)\n" + sampleHead.dropFirst("provider: sample\n".count)
    }
    let error = try #require(throws: ProviderError.self) { try MemoryLibrary(folder).library.load("child") }
    guard case .invalid(let findings) = error, case .cyclicExtends(let chain)? = findings.first?.problem else {
      throw error
    }
    #expect(findings.count == 1)
    #expect(findings.first?.place.line == 2)
    #expect(chain.first == "0/child.yaml")
    #expect(Set(chain).count == chain.count - 1)
  }

  @Test func anOverlongChainIsReported() throws {
    var folder: [String: String] = ["b20": sampleHead.replacing("sample", with: "b20")]
    for number in 0..<20 { folder["b\(number)"] = "provider: b\(number)\nextends: b\(number + 1)\n" }
    let error = try #require(throws: ProviderError.self) { try MemoryLibrary(folder).library.load("b0") }
    guard case .invalid(let findings) = error else { throw error }
    #expect(findings.map(\.problem) == [.tooManyBases(16)])
    _ = try MemoryLibrary(folder).library.load("b4")
  }

  /// Keys that a base could supply are not reported as missing while the base is unavailable.
  @Test(arguments: [["child": "b", "b": "child"], ["child": "nobody"]])
  func aMissingBaseCausesNoOtherFindings(_ bases: [String: String]) throws {
    let folder = Dictionary(
      uniqueKeysWithValues: bases.map { name, base in
        (name, "provider: \(name)\nextends: \(base)\nextra_headers: { X-Region: \"{region}\" }\ngrantt: x\n")
      })
    let error = try #require(throws: ProviderError.self) { try MemoryLibrary(folder).library.load("child") }
    guard case .invalid(let findings) = error else { throw error }
    let own = findings.filter { $0.place.source.name == "0/child.yaml" }.map(\.problem)
    #expect(own.contains(.unknownKey("grantt", suggestion: "grant")))
    #expect(own.filter(\.hidesBase).count <= 1)
    #expect(findings.filter(\.problem.hidesBase).count == 1)
    #expect(!findings.contains { $0.problem.isOfWhatIsMissing })
  }

  @Test func aDescriptorKnowsItsFiles() throws {
    let library = MemoryLibrary(
      ["base": "provider: base\nextends: base\ntitle: Mine\n"],
      ["base": Self.base, "child": "provider: child\nextends: base\n"]
    ).library
    #expect(try library.load("child").bases == ["0/base.yaml", "1/base.yaml"])
  }

  @Test func chainsHaveALimit() throws {
    func chain(_ length: Int) -> [String: String] {
      var folder = [
        "p\(length)": "provider: p\(length)\ngrant: client_credentials\nendpoints: {token: https://a.example/t}\n"
      ]
      for index in 0..<length { folder["p\(index)"] = "provider: p\(index)\nextends: p\(index + 1)\n" }
      return folder
    }
    #expect(throws: Never.self) { try MemoryLibrary(chain(16)).library.load("p0") }
    #expect(throws: ProviderError.self) { try MemoryLibrary(chain(17)).library.load("p0") }
  }

  // MARK: Where values are from

  @Test func eachValueHasItsFileAndLine() throws {
    let library = MemoryLibrary(
      [
        "base":
          "provider: base\nextends: base\n\nscope: [z]\nendpoints: { identity: null }\nextra_headers: { X-One: null }\n"
      ], ["base": Self.base, "child": "provider: child\nextends: base\ntitle: Child\n"]
    ).library
    func origins(_ identifier: String) throws -> [String: DescriptorSetting] {
      Dictionary(uniqueKeysWithValues: try library.settings(of: identifier).map { ($0.key, $0) })
    }
    let base = try origins("base")
    #expect(base["scope.default"] == .init(key: "scope.default", value: "z", origin: .file("0/base.yaml", line: 4)))
    #expect(base["scope.separator"]?.origin == .file("1/base.yaml", line: 12))
    #expect(base["endpoints.identity"]?.value == "null")
    #expect(base["endpoints.identity"]?.origin == .file("0/base.yaml", line: 5))
    #expect(base["endpoints.token.url"]?.origin == .file("1/base.yaml", line: 9))
    #expect(base["extra_headers.X-One"] == nil)
    #expect(base["extends"] == nil)
    #expect(base["grant"]?.value == "authorization_code, client_credentials")
    #expect(base["state"]?.origin == .standard(specification: "RFC 6749, 10.12"))
    #expect(base["pkce"]?.origin == .file("1/base.yaml", line: 15))
    let child = try origins("child")
    #expect(child["title"]?.origin == .file("1/child.yaml", line: 3))
    #expect(child["scope.default"]?.origin == .file("0/base.yaml", line: 4))
    #expect(child["header_style.scheme"]?.value == "token")
    #expect(throws: ProviderError.unknown(identifier: "nobody", suggestion: nil)) { try library.settings(of: "nobody") }
  }

  /// Checks the shown defaults against the decoder's.
  @Test func shownDefaultsMatchTheDecoder() throws {
    let library = MemoryLibrary(["sample": sampleHead]).library
    let settings = try library.settings(of: "sample")
    func standard(_ key: String) -> String? {
      settings.first { if case .standard = $0.origin { $0.key == key } else { false } }?.value
    }
    let descriptor = try library.load("sample").descriptor
    #expect(standard("state") == descriptor.state.rawValue)
    #expect(standard("iss") == descriptor.issuerResponse.rawValue)
    #expect(standard("pkce") == descriptor.pkce.rawValue)
    #expect(standard("redirect") == descriptor.redirect.text)
    #expect(standard("header_style.scheme") == "Bearer")
    #expect(descriptor.headerStyle.location == .header(name: "Authorization", scheme: "Bearer"))
    #expect(standard("response_format") == descriptor.endpoints[.token]?.response.format?.rawValue)
    #expect(descriptor.scope.separator == " ")
    #expect(descriptor.client.authentication == nil)
  }

  // MARK: The path

  @Test func theFirstDirectoryTakesPrecedence() throws {
    let library = MemoryLibrary(
      ["mine": sampleHead.replacing("sample", with: "mine")], ["mine": "not even a descriptor", "base": Self.base]
    ).library
    #expect(library.path(of: "mine") == "0/mine.yaml")
    #expect(try library.load("mine").descriptor.identifier == "mine")
    #expect(library.path(of: "base") == "1/base.yaml")
    #expect(library.path(of: "nobody") == nil)
  }

  @Test func aFileMayOverrideALaterOne() throws {
    let library = MemoryLibrary(
      ["base": "provider: base\nextends: base\ntitle: Mine\n"],
      ["base": "provider: base\nextends: base\ntitle: The machine's\npkce: S256\nstate: optional\n"],
      ["base": Self.base]
    ).library
    let loaded = try library.load("base")
    #expect(loaded.path == "0/base.yaml")
    #expect(loaded.descriptor.title == "Mine")
    #expect(loaded.descriptor.state == .optional)
    #expect(loaded.descriptor.pkce == .s256)
  }

  @Test func aDescriptorExtendsTheUsersOverride() throws {
    let library = MemoryLibrary(
      ["base": "provider: base\nextends: base\ntitle: Mine\n"],
      ["base": Self.base, "child": "provider: child\nextends: base\n"]
    ).library
    #expect(try library.load("child").descriptor.title == "Mine")
  }

  @Test func aFileOutsideThePathExtendsOnesInIt() throws {
    let library = MemoryLibrary(["base": Self.base]).library
    let own = try library.load(Array("provider: base\nextends: base\ntitle: New\n".utf8), name: "somewhere/base.yaml")
    #expect(own.descriptor.title == "New")
    #expect(own.descriptor.pkce == .none)
    let other = try library.load(Array("provider: new\nextends: base\n".utf8), name: "<standard input>")
    #expect(other.descriptor.identifier == "new")
  }

  @Test(arguments: ["../base", "", "Base", ".base", "-base", "a/b", "a b", "a\u{0}", String(repeating: "x", count: 65)])
  func onlyIdentifiersAreLookedUp(_ text: String) {
    let library = DescriptorLibrary(directories: ["0"]) { _ in Array(sampleHead.utf8) }
    #expect(throws: ProviderError.malformedIdentifier(text)) { try library.load(text) }
    #expect(!DescriptorLibrary.isIdentifier(text))
  }

  @Test(arguments: [UnreadableDescriptor.permissionDenied, .notRegularFile, .tooLarge, .failed])
  func unreadableFilesAreNotSkipped(_ reason: UnreadableDescriptor) throws {
    let library = DescriptorLibrary(directories: ["0", "1"]) { path throws(UnreadableDescriptor) in
      if path == "0/sample.yaml" { throw reason }
      return path == "1/sample.yaml" ? Array(sampleHead.utf8) : nil
    }
    #expect(library.path(of: "sample") == "0/sample.yaml")
    let error = try #require(throws: ProviderError.self) { try library.load("sample") }
    guard case .invalid(let findings) = error else { throw error }
    #expect(findings.map(\.place.source.name) == ["0/sample.yaml"])
    let (_, child) = library.check(Array("provider: child\nextends: sample\n".utf8), name: "child.yaml")
    #expect(child.map(\.problem) == [.unreadable(path: "0/sample.yaml", reason)])
    #expect(child.map(\.place.line) == [2])
  }

  @Test func missingFilesAreUnknown() {
    #expect(throws: ProviderError.unknown(identifier: "nobody", suggestion: nil)) {
      try MemoryLibrary([:]).library.load("nobody")
    }
  }
}

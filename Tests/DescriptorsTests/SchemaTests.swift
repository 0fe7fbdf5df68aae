import Glibc
import Testing

@testable import Descriptors
import Text

/// `docs/descriptor.schema.json` is what comes of the decoder's own tables. `CREDMGR_RECORD=1` writes it, and fails.
@Suite struct SchemaTests {
  @Test func theSchemaIsThatOfTheDecoder() {
    Self.compare("/docs/descriptor.schema.json", DescriptorSchema.text)
  }

  /// The faulty descriptors of these tests whose fault a schema can see, for the judge.
  @Test func theFaultyDescriptorsAreThoseOfTheTests() {
    let all = FindingTests.keys + FindingTests.values + FindingTests.owned
    let seen = all.filter { faulty in faulty.problems.contains(where: Self.isSeen) }
    #expect(seen.count > 20)
    let items = seen.map { JSONText.list([.text($0.testDescription), .text(MarkedText($0.marked).text)]) }
    Self.compare("/Tests/Judge/descriptors/faulty.json", JSONText.list(items).written())
  }

  private static func isSeen(_ problem: Finding.Problem) -> Bool {
    switch problem {
    case .unknownKey, .missingKey, .wrongType, .unknownValue, .invalidDuration, .ownedParameter, .forbiddenHeader: true
    default: false
    }
  }

  private static func compare(_ path: String, _ text: String) {
    let path = PackageFiles.root + path
    let isThere = PackageFiles.read(path).map { String(decoding: $0, as: UTF8.self) == text } ?? false
    let records = unsafe getenv("CREDMGR_RECORD") != nil
    if !isThere, records {
      guard let file = unsafe fopen(path, "w") else { return }
      for byte in text.utf8 { unsafe putc(Int32(byte), file) }
      unsafe fclose(file)
    }
    #expect(isThere, "\(path) is not what the decoder knows")
  }
}

/// JSON that is written for people.
indirect enum JSONText {
  case text(String)
  case plain(String)
  case list([JSONText])
  case object([(String, JSONText)])

  func written(_ indentation: String = "") -> String {
    let inner = indentation + "  "
    switch self {
    case .text(let text): return Self.quoted(text)
    case .plain(let text): return text
    case .list(let items):
      let texts = items.map { $0.written(inner) }
      let line = "[" + texts.joined(separator: ", ") + "]"
      if line.utf8.count < 100, !line.contains("\n") { return line }
      return "[\n" + texts.map { inner + $0 }.joined(separator: ",\n") + "\n" + indentation + "]"
    case .object(let members):
      let texts = members.map { Self.quoted($0.0) + ": " + $0.1.written(inner) }
      let line = "{ " + texts.joined(separator: ", ") + " }"
      if line.utf8.count < 100, !line.contains("\n") { return members.isEmpty ? "{}" : line }
      return "{\n" + texts.map { inner + $0 }.joined(separator: ",\n") + "\n" + indentation + "}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case "\r": result += "\\r"
      default:
        if scalar.value < 0x20 || scalar.value == 0x7F {
          let digits = String(scalar.value, radix: 16)
          result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        } else {
          result.unicodeScalars.append(scalar)
        }
      }
    }
    return result + "\""
  }
}

/// The schema (JSON Schema, draft 2020-12), made of the decoder's tables: a key without a type here is not in it, and a test
/// of every shipped descriptor would miss it.
enum DescriptorSchema {
  static var text: String {
    JSONText.object([
      ("$schema", .text("https://json-schema.org/draft/2020-12/schema")),
      ("title", .text("A descriptor of credmgr")),
      ("description", .text("docs/descriptors.md says what each key means. null stands for a key that is not there.")),
      ("type", .text("object")),
      ("properties", properties(DescriptorDecoder.topKeys, top)),
      ("additionalProperties", .plain("false")),
      ("required", .list([.text("provider")])),
      (
        "anyOf",
        .list([
          .object([("required", .list([.text("extends")]))]),
          .object([
            ("required", texts(["grant", "endpoints"])),
            (
              "properties",
              .object([
                (
                  "endpoints",
                  .object([
                    ("type", .text("object")),
                    (
                      "properties",
                      .object(
                        EndpointKind.allCases.filter { $0.base == nil }.map { ($0.rawValue, reference("withURL")) })
                    ),
                  ])
                )
              ])
            ),
          ]),
        ])
      ),
      ("$defs", .object(definitions)),
    ]).written() + "\n"
  }

  // MARK: Pieces

  private static func texts(_ texts: [String]) -> JSONText { .list(texts.map(JSONText.text)) }

  private static func reference(_ name: String) -> JSONText { .object([("$ref", .text("#/$defs/" + name))]) }

  private static let text_ = reference("text")
  private static let texts_ = reference("texts")
  private static let duration = reference("duration")
  private static let boolean: JSONText = .object([("type", texts(["boolean", "null"]))])

  /// An object with these keys and no other; a key without a type is one that was forgotten.
  private static func properties(_ keys: [String], _ types: [String: JSONText]) -> JSONText {
    precondition(Set(keys) == Set(types.keys), "\(Set(keys).symmetricDifference(types.keys))")
    return .object(keys.map { key in (key, types[key] ?? .plain("false")) })
  }

  private static func object(_ keys: [String], _ types: [String: JSONText], required: [String] = []) -> JSONText {
    var members: [(String, JSONText)] = [
      ("type", texts(["object", "null"])), ("properties", properties(keys, types)),
      ("additionalProperties", .plain("false")),
    ]
    if !required.isEmpty { members.append(("required", texts(required))) }
    return .object(members)
  }

  private static func choice<Choice: CaseIterable & RawRepresentable>(_: Choice.Type) -> JSONText
  where Choice.RawValue == String {
    .object([("enum", .list(Choice.allCases.map { .text($0.rawValue) } + [.plain("null")]))])
  }

  private static func choiceOrTemplate<Choice: CaseIterable & RawRepresentable>(_ type: Choice.Type) -> JSONText
  where Choice.RawValue == String {
    either(choice(type), .object([("type", .text("string")), ("pattern", .text("[{]"))]))
  }

  private static func list(of values: [String]) -> JSONText {
    let one = JSONText.object([("enum", texts(values))])
    return .object([
      ("anyOf", .list([one, .object([("type", .text("array")), ("items", one)]), .object([("type", .text("null"))])]))
    ])
  }

  private static func either(_ one: JSONText, _ other: JSONText) -> JSONText {
    .object([("anyOf", .list([one, other]))])
  }

  /// Any letter in either case: JSON Schema's expressions have no switch for that.
  private static func anyCase(_ text: String) -> String {
    text.map { $0.isLetter ? "[\($0.uppercased())\($0)]" : "\($0)" }.joined()
  }

  private static func mapping(_ value: JSONText, names: JSONText? = nil) -> JSONText {
    var members: [(String, JSONText)] = [("type", texts(["object", "null"]))]
    if let names { members.append(("propertyNames", names)) }
    members.append(("additionalProperties", value))
    return .object(members)
  }

  // MARK: The tables

  private static var definitions: [(String, JSONText)] {
    let owned = DescriptorDecoder.ownedHeaders.sorted().map(anyCase).joined(separator: "|")
    return [
      ("text", .object([("type", texts(["string", "number", "boolean", "null"]))])),
      (
        "texts",
        either(
          text_,
          .object([
            ("type", .text("array")), ("items", .object([("type", texts(["string", "number", "boolean"]))])),
          ]))
      ),
      ("identifier", .object([("type", .text("string")), ("pattern", .text("^[a-z0-9_][a-z0-9._-]{0,63}$"))])),
      ("duration", .object([("type", texts(["string", "null"])), ("pattern", .text("^[0-9]+[smhd]$"))])),
      (
        "headers",
        mapping(reference("headerValue"), names: reference("headerName"))
      ),
      (
        "headerName",
        .object([
          ("type", texts(["string", "null"])), ("pattern", .text("^(?!(?:\(owned))$)[!#$%&'*+.^_`|~0-9A-Za-z-]+$")),
        ])
      ),
      (
        "headerValue",
        .object([
          ("type", texts(["string", "number", "boolean", "null"])), ("pattern", .text("^[^\\x00-\\x1f\\x7f]*$")),
        ])
      ),
      ("url", url(except: DescriptorDecoder.ownedParameters(at: .token))),
      ("parameters", mapping(text_, names: other(than: DescriptorDecoder.ownedParameters(at: .token)))),
      ("endpoint", either(reference("url"), object(DescriptorDecoder.endpointKeys, endpoint))),
      ("page", either(url(except: pageOwned), object(DescriptorDecoder.endpointKeys, page))),
      (
        "withURL", either(.object([("type", texts(["string", "null"]))]), .object([("required", texts(["url"]))]))
      ),
      ("response", object(DescriptorDecoder.responseKeys, response)),
      (
        "field",
        either(
          texts_,
          object(
            DescriptorDecoder.fieldKeys, ["path": texts_, "time": choice(TimeForm.self)], required: ["path"]))
      ),
      ("variable", object(DescriptorDecoder.variableKeys, variable)),
    ]
  }

  private static var top: [String: JSONText] {
    [
      "provider": reference("identifier"), "title": text_, "extends": reference("identifier"),
      "grant": list(of: Grant.allCases.map(\.rawValue)),
      "variables": mapping(
        reference("variable"), names: .object([("pattern", .text("^[A-Za-z0-9._-]+$"))])),
      "endpoints": object(
        EndpointKind.allCases.map(\.rawValue),
        Dictionary(
          uniqueKeysWithValues: EndpointKind.allCases.map {
            ($0.rawValue, reference($0 == .authorization ? "page" : "endpoint"))
          })),
      "response_format": choice(ResponseFormat.self), "response": reference("response"),
      "header_style": either(
        reference("headerValue"),
        object(
          DescriptorDecoder.headerStyleKeys,
          [
            "scheme": reference("headerValue"), "header": reference("headerName"), "query": text_,
            "parameters": reference("headers"),
          ])),
      "extra_headers": reference("headers"),
      "scope": either(
        texts_,
        object(
          DescriptorDecoder.scopeKeys, ["default": texts_, "separator": text_, "granted_separator": text_])),
      "redirect": text_, "state": choice(StateRule.self), "pkce": choice(PKCEMethod.self), "nonce": boolean,
      "issuer": text_, "iss": choice(StateRule.self),
      "client": object(
        DescriptorDecoder.clientKeys,
        ["authentication": choice(ClientAuthentication.self), "id": text_, "register": text_]),
      "assertion": object(
        DescriptorDecoder.assertionKeys,
        [
          "algorithm": choice(AssertionAlgorithm.self), "key": text_,
          "header": mapping(text_), "claims": mapping(text_), "lifetime": duration,
        ]),
      "expiry": object(DescriptorDecoder.expiryKeys, ["lifetime": duration, "margin": duration]),
      "device": object(
        DescriptorDecoder.deviceKeys,
        [
          "verification_uri_complete": text_, "interval": duration,
          "slow_down": .object([("type", texts(["string", "null"])), ("pattern", .text("^([0-9]+[smhd]|x[0-9.]+)$"))]),
        ]),
      "oauth1": object(
        DescriptorDecoder.oauth1Keys,
        [
          "signature_method": choiceOrTemplate(SignatureMethod.self),
          "transport": choiceOrTemplate(SignatureTransport.self), "realm": text_, "version": boolean,
          "callback": list(of: [EndpointKind.temporaryCredentials, .authorization].map(\.rawValue)),
          "callback_confirmed": choice(StateRule.self), "verifier": choice(StateRule.self),
        ]),
      "account": texts_, "hosts": texts_,
      "git": object(
        DescriptorDecoder.gitKeys, ["hosts": texts_, "username": text_, "ignore_username": boolean, "realms": texts_],
        required: ["hosts"]),
      "docker": object(DescriptorDecoder.dockerKeys, ["hosts": texts_, "username": text_], required: ["hosts"]),
    ]
  }

  private static var endpoint: [String: JSONText] {
    [
      "url": reference("url"), "method": .object([("enum", .list(texts: ["GET", "POST", "PUT", "PATCH", "DELETE"]))]),
      "send": choice(ParameterPlacement.self), "in_query": texts_, "verbatim": texts_,
      "parameters": reference("parameters"),
      "rename": mapping(other(than: DescriptorDecoder.ownedParameters(at: .token))),
      "authentication": choice(ClientAuthentication.self), "headers": reference("headers"),
      "response": reference("response"),
      "tokens": list(of: [ResponseField.accessToken, .refreshToken].map(\.rawValue)),
      "follows": list(of: [EndpointKind.token, .refresh].map(\.rawValue)),
    ]
  }

  /// The endpoint `authorization`, where other parameters are the engine's.
  private static var page: [String: JSONText] {
    endpoint.merging([
      "url": url(except: pageOwned), "parameters": mapping(text_, names: other(than: pageOwned)),
      "rename": mapping(other(than: pageOwned)),
    ]) { $1 }
  }

  private static var pageOwned: Set<String> { DescriptorDecoder.ownedParameters(at: .authorization) }

  private static func other(than names: Set<String>) -> JSONText {
    .object([("not", .object([("enum", texts(names.sorted()))]))])
  }

  private static func url(except names: Set<String>) -> JSONText {
    .object([
      ("type", texts(["string", "null"])),
      (
        "not",
        .object([
          ("type", .text("string")),
          ("pattern", .text("[?&](?:" + names.sorted().joined(separator: "|") + ")(?:[=&#]|$)")),
        ])
      ),
    ])
  }

  private static var response: [String: JSONText] {
    [
      "format": choice(ResponseFormat.self), "within": text_,
      "fields": object(
        ResponseField.allCases.map(\.rawValue),
        Dictionary(uniqueKeysWithValues: ResponseField.allCases.map { ($0.rawValue, reference("field")) })),
      "keep": either(texts_, mapping(texts_)),
      "errors": object(
        DescriptorDecoder.errorKeys,
        ["code": texts_, "description": texts_, "success": texts_, "meanings": mapping(text_)]),
      "active": either(
        text_, object(DescriptorDecoder.activeKeys, ["path": text_, "equals": texts_], required: ["path"])),
    ]
  }

  private static var variable: [String: JSONText] {
    [
      "default": text_, "format": choice(Variable.Format.self), "pattern": text_, "choices": texts_, "help": text_,
      "optional": boolean, "secret": boolean,
    ]
  }
}

extension JSONText {
  fileprivate static func list(texts: [String]) -> JSONText { .list(texts.map(JSONText.text) + [.plain("null")]) }
}

import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform

extension Command {
  static let providers = Command(
    name: "providers", operands: "[ID]", operandCount: 0...1, summary: "List the providers or show one",
    options: [
      Option("--all", "show every setting of the provider with its file and line"),
      Option("--search", value: "WORDS", "list only providers with each word in their name, hosts or group"), json,
    ],
    examples: [
      ("credmgr providers", "List all providers"),
      ("credmgr providers --search mail", "Find providers by a word"),
      ("credmgr providers gitlab", "Show what a provider requires and where to register a client"),
      ("credmgr providers gitlab --all", "Show every setting and its source"),
    ], needsHome: false
  ) { invocation, context throws(CommandError) in
    if let identifier = invocation.operands.first {
      if let word = invocation.value("--search") {
        throw .usage(
          "\"--search\" and a provider exclude each other",
          hint: "\(credmgr: "providers", "--search", "\(word) \(identifier)") to search for both words")
      }
      return try show(context.provider(identifier), context)
    }
    let words = invocation.value("--search")?.split { $0.isWhitespace }.map(String.init)
    if words?.isEmpty == true { throw .usage("\"--search\" requires a word") }
    try list(matching: words ?? [], context)
  }

  private static func show(_ identifier: String, _ context: Context) throws(CommandError) {
    let loaded = try context.load(identifier)
    let registration = try manager(context.source.accountsIfAny()?.registration(of: identifier))
    let descriptor = registration?.applied(to: loaded.descriptor) ?? loaded.descriptor
    let values = registration?.variables ?? [:]
    let secrets = descriptor.variables.filter(\.isSecret).map(\.name)
    let secretKeys = Set(secrets.map { "variables.\($0).default" })
    let settings = (try? context.home.library.settings(of: identifier)) ?? []
    let client = try? Client(
      descriptor: descriptor, identifier: registration?.clientIdentifier ?? "", secret: nil, variables: values)
    let redirects = descriptor.grants.contains(where: \.traits.redirects)
    let isSecret = !Set(secrets).isDisjoint(with: descriptor.redirect.template.names)
    let redirect: String? =
      switch isSecret || !redirects ? nil : try? client?.redirect() {
      case .loopback(let uri)?: uri.text
      case .elsewhere(let text)?, .outOfBand(let text)?: text
      case nil: nil
      }
    // Hide inherited endpoints that no grant uses.
    let used = descriptor.grants.flatMap(\.traits.endpoints)
    let unused = Grant.allCases.flatMap(\.traits.endpoints).filter { $0.leg.base != nil && !used.contains($0) }
    let endpoints = descriptor.endpoints.filter { !unused.contains($0.key) }
      .sorted { $0.key.rawValue < $1.key.rawValue }
    if context.isJSON {
      let variables = descriptor.variables.map { variable -> JSONValue in
        [
          "name": .string(variable.name), "help": .optional(variable.help),
          "default": variable.isSecret ? .null : .optional(variable.defaultValue),
          "value": variable.isSecret ? .null : .optional(values[variable.name]),
          "optional": .boolean(variable.isOptional), "secret": .boolean(variable.isSecret),
        ]
      }
      try context.output([
        "provider": .string(identifier), "title": .string(descriptor.title), "file": .string(loaded.path),
        "group": .optional(descriptor.group?.rawValue), "kinds": .array(descriptor.kinds.map(JSONValue.string)),
        "needs": .array(descriptor.needs.map(JSONValue.string)),
        "verified": .string((descriptor.verified ?? .unverified).text),
        "unverified": .integer(Int64(loaded.unverifiedCount)),
        "added": .boolean(registration != nil), "client_id": .optional(registration?.clientIdentifier),
        "grants": .array(descriptor.grants.map { .string($0.rawValue) }), "redirect_uri": .optional(redirect),
        "register": .optional(descriptor.client.register), "key_page": .optional(descriptor.key?.page),
        "aliases": .array(descriptor.aliases.map(JSONValue.string)), "variables": .array(variables),
        "endpoints": .object(endpoints.map { .init($0.key.rawValue, .string($0.value.url.text)) }),
        "hosts": .array(descriptor.hosts.map { .string($0.text) }),
        "scope": .array(descriptor.scope.requested.map(JSONValue.string)),
        "scope_sets": .object(
          descriptor.scopeSets.map { .init($0.name, .array($0.scopes.map(JSONValue.string))) }),
        "settings": .array(settings.map { value(of: $0, isSecret: secretKeys.contains($0.key), context) }),
      ])
      return
    }
    let shown = settings.map { setting in
      let value = secretKeys.contains(setting.key) ? "(a secret)" : setting.value
      return (left: setting.key, right: "\(value)  (\(origin(of: setting, context)))")
    }
    let anyPort = if case .loopback(let uri)? = try? client?.redirect(), uri.port == nil { ", any port" } else { "" }
    var lines: [(left: String, right: String)] = [
      ("provider", identifier), ("title", descriptor.title), ("aliases", descriptor.aliases.joined(separator: ", ")),
      ("group", descriptor.group?.rawValue ?? ""),
      ("kind", descriptor.kinds.joined(separator: ", ")), ("needs", descriptor.needs.joined(separator: " or ")),
      ("added", registration.map { addition(by: $0.clientIdentifier) } ?? "no"),
      ("register at", descriptor.client.register ?? ""), ("make a key at", descriptor.key?.page ?? ""),
      ("redirect URI", redirects ? redirect.map { $0 + anyPort } ?? "depends on the variables" : ""),
      ("grants", descriptor.grants.map(\.rawValue).joined(separator: ", ")),
      ("scopes", descriptor.scope.requested.joined(separator: " ")),
      (
        "purposes",
        descriptor.scopeSets.map { "\($0.name) (\($0.scopes.joined(separator: " ")))" }.joined(separator: ", ")
      ),
    ]
    for variable in descriptor.variables {
      let given = values[variable.name].map { variable.isSecret ? "(a secret)" : $0 }
      let value = given ?? variable.defaultValue.map { (variable.isSecret ? "(a secret)" : $0) + " (default)" }
      let state = value ?? (variable.isOptional ? "(none)" : "(requires a value)")
      lines.append(("variable " + variable.name, state + (variable.help.map { " – " + $0 } ?? "")))
    }
    lines.append(("hosts", descriptor.hosts.map(\.text).joined(separator: ", ")))
    for (kind, endpoint) in endpoints { lines.append(("endpoint " + kind.rawValue, endpoint.url.text)) }
    lines += [("file", loaded.path), ("verified", (descriptor.verified ?? .unverified).text)]
    if loaded.unverifiedCount > 0 {
      let settings = loaded.unverifiedCount == 1 ? "one setting is" : "\(loaded.unverifiedCount) settings are"
      lines.append(("unverified", "\(settings) not tried at the provider: \"# unverified\" in the file"))
    }
    let all = table(lines.filter { !$0.right.isEmpty })
    try context.output(context.line.invocation?.has("--all") == true ? all + "\n" + table(shown) : all)
  }

  /// A key needs no client.
  private static func addition(by client: String) -> String { client.isEmpty ? "yes" : "yes, client \"\(client)\"" }

  /// Formats rows that contain text from descriptors, which strangers may have written.
  private static func table(_ rows: [(left: String, right: String)]) -> String {
    Layout.table(rows.map { (left: Message.visible($0.left), right: Message.visible($0.right)) })
  }

  private typealias Provenance = (from: String, file: String?, line: Int?, specification: String?)

  private static func provenance(of setting: DescriptorSetting, _ context: Context) -> Provenance {
    switch setting.origin {
    case .standard(let specification): return ("default", nil, nil, specification)
    case .file(let path, let line):
      let folder = context.home.library.directories.firstIndex { path.hasPrefix($0 + "/") }
      return (folder == 0 ? "own" : folder == 1 ? "system" : "shipped", path, line, nil)
    }
  }

  private static func origin(of setting: DescriptorSetting, _ context: Context) -> String {
    let (from, file, line, specification) = provenance(of: setting, context)
    return from + ", " + (specification ?? "\(Path.lastComponent(of: file ?? "")):\(line ?? 0)")
  }

  private static func value(of setting: DescriptorSetting, isSecret: Bool, _ context: Context) -> JSONValue {
    let (from, file, line, specification) = provenance(of: setting, context)
    return [
      "key": .string(setting.key), "value": isSecret ? .null : .string(setting.value), "from": .string(from),
      "file": .optional(file), "line": line.map { .integer($0) } ?? .null, "specification": .optional(specification),
    ]
  }
}

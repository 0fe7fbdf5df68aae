import CredmgrCredentialManager
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrDescriptors

enum LoginDryRun {
  static func run(
    of descriptor: Descriptor, options wish: LoginOptions, _ invocation: Invocation, _ context: Context
  ) throws(CommandError) {
    let hasToken = invocation.has("--with-token")
    let result = try manager(context.source.plannedLogin(descriptor, wish, hasToken: hasToken))
    let (fields, page) = result.planned.typed
    if context.isJSON {
      let prompts = fields.map { field -> JSONValue in
        ["name": .string(field.name), "label": .string(field.label), "secret": .boolean(field.isSecret)]
      }
      try context.output([
        "provider": .string(descriptor.identifier), "grant": .string(result.planned.grant.rawValue),
        "client_id": .optional(result.clientIdentifier), "redirect_uri": .optional(result.planned.redirectURI),
        "prompts": .array(prompts), "requests": .array(result.planned.requests.map(json)),
      ])
      return
    }
    let typed = fields.map { "type    \($0.label)\($0.isSecret ? " (not shown)" : "")" }
    let prompt = ["prompt"] + typed + (page.map { ["page    " + $0] } ?? [])
    let steps = (fields.isEmpty ? [] : [prompt]) + result.planned.requests.map(lines)
    for (index, lines) in steps.enumerated() {
      try context.output("\(index + 1). " + lines.map { Message.visible($0) + "\n" }.joined(separator: "   "))
    }
    context.tell("nothing was sent or changed")
  }

  private static func lines(_ request: LoginRequests.Request) -> [String] {
    var remark = request.isInBrowser ? " (in the browser)" : ""
    if request.isLater { remark = " (when the token has expired)" }
    var lines = ["\(request.kind.rawValue)\(remark)", "\(request.method) \(request.url)"]
    lines += request.query.map { "query   \($0.name)=\($0.value)" }
    if let fragment = request.fragment { lines.append("fragment  " + fragment) }
    lines += request.fields.map { "header  \($0.name): \($0.value)" }
    switch request.body {
    case .none: break
    case .form(let pairs): lines += pairs.map { "form    \($0.name)=\($0.value)" }
    case .json(let value):
      // Formatted for reading; the real request contains no spaces.
      let text = value.formatted.split(separator: "\n")
      lines += zip(["json    "] + Array(repeating: "        ", count: text.count), text).map { $0 + $1 }
    }
    return lines
  }

  private static func json(_ request: LoginRequests.Request) -> JSONValue {
    func list(_ pairs: [(String, String)]) -> JSONValue {
      .array(pairs.map { ["name": .string($0.0), "value": .string($0.1)] })
    }
    let (type, body): (JSONValue, JSONValue) =
      switch request.body {
      case .none: (.null, .null)
      case .form(let pairs): (.string("form"), list(pairs.map { ($0.name, $0.value) }))
      case .json(let value): (.string("json"), value)
      }
    return [
      "leg": .string(request.kind.rawValue), "browser": .boolean(request.isInBrowser),
      "later": .boolean(request.isLater), "method": .string(request.method), "url": .string(request.url),
      "query": list(request.query.map { ($0.name, $0.value) }), "fragment": .optional(request.fragment),
      "headers": list(request.fields.map { ($0.name, $0.value) }), "body_type": type, "body": body,
    ]
  }
}

import CredmgrYAML

/// The tree of a descriptor before decoding: expands short forms and merges the descriptor over its base.
enum DescriptorTree {
  static func expanded(_ root: Node) -> Node { expanded(root, Descriptor.keys.description) }

  private static func expanded(_ node: Node, _ table: TableDescription) -> Node {
    guard let entries = node.entries else { return node }
    return Node(
      .mapping(
        entries.map { entry in
          // Everything under `response` is merged as written.
          guard entry.key != "response", let inner = table.shape(entry.key)?.table else { return entry }
          var entry = entry
          if let short = inner.short { entry.value = wrapped(entry.value, as: short) }
          entry.value = expanded(entry.value, inner)
          return entry
        }), at: node.place)
  }

  static func wrapped(_ node: Node, as key: String) -> Node {
    if node.entries != nil || node.isNull { return node }
    return Node(.mapping([Node.Entry(key: key, keyPlace: node.place, value: node)]), at: node.place)
  }

  /// Merges `top` over `base`: mappings key by key, everything else replaced. A null key removes the inherited one,
  /// except under `parameters` and `endpoints`, where `null` is a value.
  static func merged(_ top: Node, over base: Node, keepingNulls: Bool = false) -> Node {
    guard let upper = top.entries, let lower = base.entries else { return top }
    var entries: [Node.Entry] = []
    for entry in lower {
      guard let replacement = upper.first(where: { $0.key == entry.key }) else {
        entries.append(entry)
        continue
      }
      if replacement.value.isNull, !keepingNulls { continue }
      var result = replacement
      result.value = merged(
        replacement.value, over: entry.value,
        keepingNulls: ["parameters", "endpoints", "claims"].contains(replacement.key))
      entries.append(result)
    }
    for entry in upper where !lower.contains(where: { $0.key == entry.key }) {
      entries.append(entry)
    }
    return Node(.mapping(entries), at: top.place)
  }

  /// The part of a base that a descriptor inherits: without its aliases, without the issuer if the descriptor has
  /// another login page, and without the verification unless the descriptor only gives the base another name.
  static func inherited(_ base: Node, by top: Node) -> Node {
    let page = base["endpoints"]?["authorization"] == nil ? "token" : "authorization"
    let isElsewhere = top["endpoints"]?[page]?["url"] != nil
    let names = ["provider", "extends", "title", "aliases", "group"]
    let isSame = top.entries?.allSatisfy { names.contains($0.key) } ?? false
    return (["extends", "aliases"] + (isElsewhere ? ["issuer"] : []) + (isSame ? [] : ["verified"]))
      .reduce(base) { without($1, $0) }
  }

  /// Makes a variable `redirect_uri` the redirect, unless the merged descriptor has another one. Its format is
  /// `redirect`.
  static func completed(_ root: Node) -> Node {
    let name = "redirect_uri"
    guard var entries = root.entries, let variables = root["variables"], let variable = variables[name] else {
      return root
    }
    func text(_ key: String, _ value: String) -> Node {
      let scalar = Node(.scalar(value, plain: false), at: variable.place)
      return Node(.mapping([Node.Entry(key: key, keyPlace: variable.place, value: scalar)]), at: variable.place)
    }
    if root["redirect"] == nil { entries += text("redirect", "{\(name)}").entries ?? [] }
    let format = text("format", Variable.Format.redirect.rawValue)
    let typed = variable.isNull ? format : merged(variable, over: format)
    let own = Node(.mapping([Node.Entry(key: name, keyPlace: variable.place, value: typed)]), at: variable.place)
    for index in entries.indices where entries[index].key == "variables" {
      entries[index].value = merged(own, over: variables)
    }
    return Node(.mapping(entries), at: root.place)
  }

  static func without(_ key: String, _ node: Node) -> Node {
    guard let entries = node.entries else { return node }
    return Node(.mapping(entries.filter { $0.key != key }), at: node.place)
  }
}

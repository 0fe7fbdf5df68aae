import CredmgrText
import CredmgrYAML

/// Warns about keys without effect, but not in a base, which may serve descriptors with other grants and endpoints.
extension DescriptorDecoder {
  mutating func checkEffects(_ descriptor: Descriptor) {
    checkGrants(descriptor.grants)
    checkExchanges(descriptor.grants)
    checkElements(descriptor.endpoints)
    if !descriptor.grants.isEmpty, !descriptor.grants.contains(where: { descriptor.binding(of: $0).isUsableAlone }) {
      for entry in root.entries ?? [] where ["git", "docker", "kubectl"].contains(entry.key) && !entry.value.isNull {
        warn(.boundToken(entry.key), at: entry.keyPlace)
      }
    }
    if let rules = root["response"] {
      checkRules(
        rules, [.authorization] + EndpointKind.allCases.filter(\.leg.issuesToken), for: descriptor.grants)
    }
    if descriptor.issuer == nil, let entry = root.entries?.first(where: { $0.key == "iss" }), !entry.value.isNull {
      warn(.withoutKey("iss", needed: "issuer"), at: entry.keyPlace)
    }
    if descriptor.issuer == nil, let entry = root["endpoints"]?.entries?.first(where: { $0.key == "jwks" }),
      !entry.value.isNull
    {
      warn(.withoutKey("jwks", needed: "issuer"), at: entry.keyPlace)
    }
    if descriptor.getsSignedAnswers, descriptor.grants.contains(.authorizationCode),
      let node = root["endpoints"]?["authorization"]?["parameters"]?["response_mode"]
    {
      let hasKeys = descriptor.endpoints[.keySet] != nil || descriptor.idTokenAlgorithm?.isSymmetric == true
      if descriptor.issuer == nil { warn(.unverifiableAnswer(needed: "issuer"), at: node.place) }
      if !hasKeys { warn(.unverifiableAnswer(needed: "jwks"), at: node.place) }
    }
    for helper in ["git", "docker"] { checkEmpty("hosts", in: root[helper]) }
    for kind in EndpointKind.allCases {
      guard let node = root["endpoints"]?[kind.rawValue], let endpoint = descriptor.endpoints[kind] else { continue }
      if let rules = node["response"] { checkRules(rules, [kind], for: descriptor.grants) }
      checkEmpty("tokens", in: node)
      checkReader(of: "choose", in: node, [.authorization], [kind])
      if kind == .authorization {
        for entry in node.entries ?? [] where ["method", "headers", "authentication"].contains(entry.key) {
          warn(.sentByBrowser(entry.key), at: entry.keyPlace)
        }
      }
      checkReader(of: "tokens", in: node, [.revocation, .introspection], [kind])
      checkReader(of: "follows", in: node, [.tokenExchange, .identity], [kind])
      checkParameters(of: endpoint, node)
    }
    if descriptor.endpoints[.identity] == nil {
      let fields = kept.map(\.name) + variables.filter { $0.isAtLogin && !$0.isSecret }.map(\.name)
      for node in Self.elements(of: root["account"]) {
        guard let name = node.text, !fields.contains(name) else { continue }
        let isSecret = (descriptor.keptSecrets.map(\.name) + variables.filter(\.isSecret).map(\.name)).contains(name)
        warn(isSecret ? .shownSecret(name) : .accountWithoutSource(name), at: node.place)
      }
    }
    if let entry = root.entries?.first(where: { $0.key == "assertion" }), !entry.value.isNull,
      !descriptor.grants.contains(where: \.traits.signsJWT), !descriptor.signsRequests,
      !descriptor.endpoints.values.contains(where: { descriptor.sendsAssertion(to: $0) })
    {
      warn(.unusedAssertion, at: entry.keyPlace)
    }
    let nodes = [root["extra_headers"], root["extra_query"], root["header_style"]?["parameters"]]
    for entry in nodes.flatMap({ $0?.entries ?? [] }) {
      guard let text = entry.value.text, (try? Template(parsing: text))?.names.contains("assertion") == true else {
        continue
      }
      warn(.assertionInRequest, at: entry.value.place)
    }
    // With a key file, a default makes the file alone enough for a login.
    for variable in variables
    where variable.isAtLogin && variable.defaultValue != nil && descriptor.key?.file.isEmpty ?? true {
      guard let entry = root["variables"]?[variable.name]?.entries?.first(where: { $0.key == "at_login" }) else {
        continue
      }
      warn(.unpromptedVariable(variable.name), at: entry.keyPlace)
    }
    for node in Self.elements(of: root["account"]) where root["response_format"]?.text ?? "json" == "json" {
      if let text = node.text, text.utf8.contains(UInt8(ascii: "[")) { warn(.bracketInPath(text), at: node.place) }
    }
    for node in Self.elements(of: root["scope"]?["default"] ?? root["scope"]) {
      if let text = node.text, text.utf8.contains(UInt8(ascii: " ")), descriptor.scope.separator != " " {
        warn(.blankInScope(text), at: node.place)
      }
    }
  }

  mutating func warn(_ problem: Finding.Problem, at place: Place) {
    if place.source.name == root.place.source.name { add(problem, at: place, severity: .warning) }
  }

  // MARK: Grants

  private mutating func checkGrants(_ grants: [Grant]) {
    func having(_ condition: (Grant.Traits) -> Bool) -> [Grant] { Grant.allCases.filter { condition($0.traits) } }
    let asking = having { $0.responseType != nil }
    let keys =
      Grant.allCases.compactMap { grant in grant.traits.rulesKey.map { ($0, [grant]) } } + [
        ("redirect", having(\.redirects)), ("state", asking), ("nonce", asking), ("iss", asking),
        ("request_object", asking),
      ]
    for (name, owners) in keys { check(name, in: root, of: owners, grants) }
    let bases = EndpointKind.allCases.compactMap(\.leg.base)
    let required = Grant.allCases.flatMap(\.traits.endpoints)
    for kind in EndpointKind.allCases where required.contains(kind) && !bases.contains(kind) {
      check(kind.rawValue, in: root["endpoints"], of: having { $0.endpoints.contains(kind) }, grants)
    }
  }

  /// Refuses tokens of other issuers without a grant that exchanges them: they would be stored or sent as they are.
  private mutating func checkExchanges(_ grants: [Grant]) {
    let owners = Grant.allCases.filter { $0.traits.brought != nil }
    guard !grants.isEmpty, !owners.contains(where: grants.contains) else { return }
    for entry in root["variables"]?.entries ?? [] where entry.value["at_exchange"]?.boolean == true {
      let place = entry.value.entries?.first { $0.key == "at_exchange" }?.keyPlace
      add(.withoutGrant("at_exchange", owners), at: place ?? entry.keyPlace)
    }
  }

  /// Refuses a token of an element if the account keeps nothing that tells this element from others: a refresh would
  /// get the token of another one.
  private mutating func checkElements(_ endpoints: [EndpointKind: Endpoint]) {
    let kind = EndpointKind.allCases.first { kind in
      guard kind.leg.issuesToken, let rules = endpoints[kind]?.response, rules.element != nil else { return false }
      return rules.hasTokenOfElement && !rules.keep.contains { $0.isOfElement && !$0.isSecret }
    }
    guard let kind,
      let node = root["endpoints"]?[kind.rawValue]?["response"]?["element"] ?? root["response"]?["element"]
    else { return }
    add(.tokenOfElement, at: node.place)
  }

  private mutating func check(_ name: String, in node: Node?, of owners: [Grant], _ grants: [Grant]) {
    guard !grants.isEmpty, !owners.contains(where: grants.contains),
      let entry = node?.entries?.first(where: { $0.key == name }), !entry.value.isNull
    else { return }
    warn(.withoutGrant(name, owners), at: entry.keyPlace)
  }

  // MARK: Answers

  private mutating func checkRules(_ rules: Node, _ kinds: [EndpointKind], for grants: [Grant]) {
    checkReader(of: "active", in: rules, [.introspection], kinds)
    checkEmpty("equals", in: rules["active"])
    for field in ResponseField.allCases {
      checkReader(of: field.rawValue, in: rules["fields"], field.readers, kinds)
      let owners = Grant.allCases.filter { $0.traits.tokenField == field }
      if field != .accessToken, !owners.isEmpty { check(field.rawValue, in: rules["fields"], of: owners, grants) }
    }
    for entry in rules["errors"]?["meanings"]?.entries ?? [] {
      guard let meaning = entry.value.text, !Self.errorCodes.contains(meaning),
        let near = nearMiss(meaning, among: Self.errorCodes)
      else { continue }
      warn(.unknownValue(meaning, allowed: [], suggestion: near), at: entry.value.place)
    }
  }

  /// The error codes of RFC 6749 (4.1.2.1, 5.2), RFC 6750 (3.1), RFC 7009 (2.2.1) and RFC 8628 (3.5).
  private static let errorCodes = [
    "invalid_request", "unauthorized_client", "access_denied", "unsupported_response_type", "invalid_scope",
    "server_error", "temporarily_unavailable", "invalid_client", "invalid_grant", "unsupported_grant_type",
    "invalid_token", "insufficient_scope", "unsupported_token_type", "authorization_pending", "slow_down",
    "expired_token",
  ]

  private mutating func checkEmpty(_ name: String, in node: Node?) {
    guard let entry = node?.entries?.first(where: { $0.key == name }), entry.value.elements?.isEmpty == true else {
      return
    }
    warn(.emptyList(name), at: entry.keyPlace)
  }

  private mutating func checkReader(
    of name: String, in node: Node?, _ readers: [EndpointKind], _ kinds: [EndpointKind]
  ) {
    guard !readers.contains(where: kinds.contains), let entry = node?.entries?.first(where: { $0.key == name }) else {
      return
    }
    warn(.readElsewhere(name, readers), at: entry.keyPlace)
  }

  // MARK: Parameters

  private mutating func checkParameters(of endpoint: Endpoint, _ node: Node) {
    let known = Self.sentParameters.union(endpoint.parameters.map(\.name))
    for entry in node["rename"]?.entries ?? [] { checkSent(entry.key, known, at: entry.keyPlace) }
    for key in ["in_query", "verbatim"] {
      for element in Self.elements(of: node[key]) {
        if let name = element.text { checkSent(name, known.union(endpoint.rename.values), at: element.place) }
      }
    }
  }

  private mutating func checkSent(_ name: String, _ known: Set<String>, at place: Place) {
    if !known.contains(name) {
      warn(.unsentParameter(name, suggestion: nearMiss(name, among: known.sorted())), at: place)
    }
  }

  /// The parameters that the engine sends at some endpoint, without the signed ones.
  private static let sentParameters: Set<String> = [
    "response_type", "client_id", "client_secret", "redirect_uri", "scope", "state", "nonce", "code_challenge",
    "code_challenge_method", "dpop_jkt", "grant_type", "code", "code_verifier", "refresh_token", "device_code",
    "auth_req_id", "login_hint", "binding_message",
    "client_assertion",
    "client_assertion_type", "token", "token_type_hint", "subject_token", "subject_token_type", "oauth_token",
    "oauth_callback", "client_name", "application_type", "redirect_uris", "grant_types", "response_types",
    "token_endpoint_auth_method", "assertion", "authorization_details", "resource", "acr_values", "max_age",
  ]
}

extension Descriptor {
  fileprivate func sendsAssertion(to endpoint: Endpoint) -> Bool {
    let method = endpoint.authentication ?? client.authentication
    let templates = endpoint.parameters.compactMap(\.value) + endpoint.headers.map(\.value)
    return method == .privateKeyJWT || method == .clientSecretJWT
      || (templates + [endpoint.url.template]).contains { $0.names.contains("assertion") }
  }
}

import CredmgrYAML
import Synchronization

extension Endpoint {
  private static let tables = Mutex<[EndpointKind: Table<Endpoint>]>([:])

  /// Returns the keys of an endpoint: the same for each except for the parameters that the engine owns and the
  /// defaults. They are made when first used, because a descriptor has few endpoints.
  static func keys(of kind: EndpointKind) -> Table<Endpoint> {
    tables.withLock { tables in
      if let table = tables[kind] { return table }
      let table = table(of: kind)
      tables[kind] = table
      return table
    }
  }

  private static func table(of kind: EndpointKind) -> Table<Endpoint> {
    let owned = OwnedParameters.names(at: kind)
    // The browser opens the address, or the request must carry no secret.
    let isShown = kind == .authorization || kind == .endSession || kind.leg.isPublic
    return Table(kind == .authorization ? "page" : "endpoint", Endpoint(kind), short: "url") {
      Key(
        "url", at: \.url, as: .url(except: owned, isShown: isShown), type: "[URL template](#templates)",
        isRequired: true, change: .compared, means: "the address of the leg", for: "all")
      Key(
        "method", at: \.method, as: .word(among: ["GET", "POST", "PUT", "PATCH", "DELETE"]), default: "see above",
        means: "the method (RFC 9110, 9)", for: "`github` revokes by `DELETE`")
      Key(
        "send", at: \.send, as: .choice(), default: "`form`; `query` with GET and DELETE; `json` at `registration`",
        isAlwaysWritten: true,
        change: .compared,
        means: """
          the location of the parameters; `fragment` means after a `?` in the URL's fragment, for pages whose routes \
          begin with `#`
          """, for: "`oclc-today`: `query` with an empty POST; Notion: `json`; Apollo: `fragment`")
      Key(
        "in_query", at: \.inQuery, as: .texts, type: "list of parameters",
        means: "parameters sent in the query although the others are in a body", for: "Figma: `redirect_uri`")
      Key(
        "verbatim", at: \.verbatim, as: .texts, type: "list of parameters",
        means: """
          parameters sent unchanged: in a query, only characters that would end it are percent-encoded; in a JSON \
          body, the value is JSON instead of a text
          """, for: "Unsplash: `scope`; Workday: numbers")
      Key(
        "parameters", at: \.parameters,
        as: .parameters(except: owned.subtracting(OwnedParameters.droppable), isShown: isShown),
        type: "mapping of templates, or `null`",
        change: kind == .authorization ? .compared : .needsConsent,
        means: "parameters to add or replace; `null` drops one",
        for: "Google: `access_type: offline`; `l2p`: `grant_type: device`")
      Key(
        "choose", at: \.choosing,
        as: .parameters(except: owned, isShown: isShown, names: DescriptorDecoder.choosingNames),
        type: "mapping of templates",
        change: kind == .authorization ? .compared : .needsConsent,
        means: """
          `authorization`: parameters that are added while another account is logged in or after a login as the wrong \
          user, so the provider asks who logs in; `{identity}` is the identity of the account, and a parameter without \
          a value is left out
          """, for: "`github`: `prompt: select_account`, `login: \"{identity}\"`")
      Key(
        "rename", at: \.rename, as: .texts(valuesExcept: owned), type: "mapping of names",
        means: "standard names with the provider's names for them",
        for: "`l2p`: `device_code: code`; TikTok: `client_id: client_key`")
      Key(
        "authentication", at: \.authentication, as: .choice(), type: "see [`client.authentication`](#client)",
        default: "that of `client`", change: .compared, means: "the client's authentication at this leg",
        for: "`github`: `none` at `device_token`")
      Key(
        "headers", at: \.headers,
        as: .headers(DescriptorDecoder.endpointNames + DescriptorDecoder.requestNames, isShown: isShown),
        type: "mapping of templates", means: "headers of this leg", for: "`github`: `Accept` at `identity`")
      Key(
        "response", at: \.response, as: ResponseRules.keys.notation, default: "the descriptor's `response`",
        means: "rules for reading the answer: [Answers](#answers)", for: "`l2p`: `verification_url`")
      Key(
        "tokens", at: \.tokens, as: .choices(among: [.accessToken, .refreshToken]),
        default: "`revocation`: both, the refresh token first; `introspection`: `access_token`",
        means: "the tokens to send, one request each", for: "`l2p`: `refresh_token`")
      Key(
        "follows", at: \.followed, as: .choices(among: [.token, .clientCredentials, .refresh]), default: "`token`",
        means: """
          `token_exchange`, `identity`: whether it runs only after a login, or also after each refresh; `identity`: \
          with `client_credentials`, also after a login without a user
          """, for: "Bullhorn: `[token, refresh]`")
    } finish: { decoder, node, endpoint in
      decoder.checkOwned(endpoint, of: kind, at: node)
      if node["send"]?.text == nil { endpoint.send = Endpoint.placement(kind, endpoint.method) }
      if node["response"]?["format"]?.text == nil { endpoint.response.format = decoder.format(of: kind) }
    }
  }

  package init(_ kind: EndpointKind, _ url: URLTemplate) {
    self.init(kind)
    self.url = url
  }

  private init(_ kind: EndpointKind) {
    method = kind.leg.method
    send = Self.placement(kind, method)
    if kind == .revocation { tokens = [.refreshToken, .accessToken] }
    response.format = kind.format(among: nil)
  }

  private static func placement(_ kind: EndpointKind, _ method: String) -> ParameterPlacement {
    ["GET", "DELETE"].contains(method) ? .query : kind.leg.send
  }
}

extension Notation<[EndpointKind: Endpoint]> {
  static var endpoints: Self {
    let shape = { @Sendable (kind: EndpointKind) in Endpoint.keys(of: kind).notation.shape }
    let table = TableDescription(name: "endpoints", short: nil, shape: { EndpointKind(rawValue: $0).map(shape) }) {
      EndpointKind.allCases.map { KeyDescription(name: $0.rawValue, shape: shape($0), ownType: "URL, or mapping") }
    }
    return Notation(
      .table { table }, read: { $0.endpoints($1) },
      write: { endpoints in
        .mapping(
          EndpointKind.allCases.compactMap { kind in
            let table = Endpoint.keys(of: kind)
            let inherited = kind.leg.base.flatMap { endpoints[$0] }
            // Without an entry the endpoint would equal its base.
            guard let endpoint = endpoints[kind] else { return inherited.map { _ in (kind.rawValue, .null) } }
            let value = table.write(endpoint)
            guard let inherited else { return (kind.rawValue, value) }
            let base = DescriptorTree.without("parameters", table.write(inherited))
            return value == base ? nil : (kind.rawValue, value.replacing(base))
          })
      })
  }
}

extension ResponseRules {
  static let keys = Table("response", ResponseRules()) {
    Key(
      "format", at: \.format, as: .choice(), default: "see below", change: .harmless,
      means: "the format of this leg's answer",
      for: "a leg with its own format")
    Key(
      "within", at: \.within, as: .path, type: "path", default: "the answer itself",
      change: .compared, means: "the path of the object with the fields", for: "Withings: `body`")
    Key(
      "fields", at: \.fields, as: .fields, default: "each under its own name",
      means: "the paths of [fields](#fields) with other names",
      for: "`oclc-today`: `scope: [scopes, scope]`")
    Key(
      "keep", at: \.keep, as: .keep, type: "list, or mapping of name to path, paths or [mapping](#keys-of-keep)",
      means: """
        fields to store with the credential (Xero's tenant, Mailchimp's data center): templates can use them, and \
        `token --json` shows them; they come from legs with tokens, the redirect, or `identity`
        """, for: "`oclc`: `principalID`")
    Key(
      "element", at: \.element, as: ElementRules.keys.notation,
      means: "the element of a list that paths call `element`: [Keys of element](#keys-of-element)",
      for: "`docusign`: the account that is the default")
    Key(
      "errors", at: \.errors, as: ErrorRules.keys.notation, default: "RFC 6749, 5.2",
      means: "rules for recognizing a refusal, with any status: [Errors](#errors)", for: "`l2p`, `github`")
    Key(
      "active", at: \.active, as: .active, type: "path, mapping, or `status`", default: "`active` is `true`",
      means: "`introspection`: the sign that the token is valid (RFC 7662, 2.2)",
      for: "`l2p`: `{ path: state, equals: valid }`")
  } finish: { decoder, node, rules in
    decoder.checkShown(rules, node)
  }
}

extension FieldSource {
  static let keys = Table("field", FieldSource(paths: []), short: "path") {
    Key(
      "path", at: \.paths, as: .paths, type: "path, or list of paths", isRequired: true, isAlwaysWritten: true,
      means: "the path of the field; the first existing one counts", for: "–")
    Key(
      "time", at: \.time, as: .choice(), default: "numbers are seconds, everything else is a date",
      means: "the form of a duration or a moment", for: "Evernote: `milliseconds`")
  }
}

extension KeptField {
  static let keys = Table("kept", KeptField(), short: "path") {
    Key(
      "path", at: \.paths, as: .paths, type: "path, or list of paths", isRequired: true, isAlwaysWritten: true,
      means: "the path of the value; the first one that exists and is not empty counts", for: "–")
    Key(
      "pattern", at: \.pattern, as: .pattern, type: "regular expression",
      change: .compared, means: "a pattern that the whole value must match, or credmgr refuses the answer",
      for: "`salesforce`")
    Key(
      "after", at: \.after, as: .text, means: "the text before the value: credmgr keeps only the rest",
      for: "`salesforce`: `/id/`")
    Key(
      "before", at: \.before, as: .text, means: "the text after the value, which ends the value",
      for: "`salesforce`: `/`")
    Key(
      "secret", at: \.isSecret, as: .boolean,
      means: "whether the value is another token of the login: [Further tokens](#further-tokens)",
      for: "`slack`: the token of the user")
  }
}

extension ElementRules {
  static let keys = Table("element", ElementRules()) {
    Key(
      "of", at: \.list, as: .path, type: "path", default: "the answer itself", means: "the path of the list",
      for: "`docusign`: `accounts`")
    Key(
      "where", at: \.conditions, as: .parameters(isShown: true), type: "mapping of paths to templates",
      means: """
        values at paths of the element; a list at the path must contain the value, and a condition whose variables \
        have no value is left out
        """, for: "`docusign`: `is_default: \"true\"`")
    Key(
      "label", at: \.label, as: .paths, type: "path, or list of paths",
      means: "the text of an element in the question which one it is; the first existing one counts",
      for: "`xero`: `tenantName`")
  }
}

extension ErrorRules {
  static let keys = Table("errors", ErrorRules()) {
    Key(
      "code", at: \.code, as: .paths, type: "path, or list of paths", default: "`error`, `oauth_problem`",
      means: "the path of the error's code; the first one that exists and is not null counts",
      for: "`l2p`: `[error, status]`")
    Key(
      "description", at: \.description, as: .paths, type: "path, or list of paths",
      default: "`error_description`, `oauth_problem_advice`",
      means: "the path of the error's description", for: "`oclc-today`: `message`")
    Key(
      "success", at: \.success, as: .texts, means: "values of the code that mean success",
      for: "`l2p`: `ok`; Withings: `\"0\"`")
    Key(
      "meanings", at: \.meanings, as: .texts(), means: "the provider's codes with the RFC's codes for them",
      for: "`github`: `bad_refresh_token: invalid_grant`")
  }
}

extension Notation<[ResponseField: FieldSource]> {
  static var fields: Self {
    let names = ResponseField.allCases.map(\.rawValue)
    let shape = FieldSource.keys.notation.shape
    let table = TableDescription(
      name: "fields", short: nil, shape: { ResponseField(rawValue: $0).map { _ in shape } },
      rows: {
        ResponseField.allCases.map {
          KeyDescription(name: $0.rawValue, shape: shape, ownType: "path", change: $0.change)
        }
      })
    return Notation(
      .table { table },
      read: { decoder, node in
        guard let entries = decoder.entries(of: node) else { return nil }
        decoder.checkKeys(node, names)
        var fields: [ResponseField: FieldSource] = [:]
        for entry in entries {
          guard let field = ResponseField(rawValue: entry.key) else { continue }
          fields[field] = FieldSource.keys.read(&decoder, entry.value) ?? FieldSource(paths: [])
          // Providers that identify the sender of a response are always checked (RFC 9207, 2.4).
          if field == .issuer, fields[field]?.paths != [FieldPath(field.rawValue)] {
            decoder.add(.ownedParameter(entry.key), at: entry.keyPlace)
          }
        }
        return fields
      },
      write: { fields in
        .mapping(
          fields.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            ($0.key.rawValue, FieldSource.keys.write($0.value))
          })
      })
  }
}

extension ResponseField {
  fileprivate var change: ChangeRule {
    switch self {
    case .accessToken, .refreshToken, .idToken, .code, .state, .issuer, .deviceCode, .authReqID, .oauthToken,
      .oauthTokenSecret,
      .oauthSessionHandle:
      .compared
    case .expiresIn, .expiresAt, .refreshTokenExpiresIn, .refreshTokenExpiresAt, .scope, .interval,
      .authorizationDetails, .clientSecretExpiresAt:
      .harmless
    default: .needsConsent
    }
  }
}

extension Notation<[KeptField]> {
  static var keep: Self {
    Notation(
      .either(.texts, .mapping(of: KeptField.keys.notation.shape, names: nil)), read: { $0.keep($1) },
      write: { fields in
        .mapping(
          fields.map { field in
            let paths = Notation<[FieldPath]>.paths.write(field.paths)
            var bare = KeptField()
            (bare.name, bare.paths) = (field.name, field.paths)
            return (field.name, field == bare ? paths : KeptField.keys.write(field))
          })
      })
  }
}

struct ActiveField: Sendable {
  var path = FieldPath("")
  var values = ["true"]

  static let keys = Table("active", ActiveField(), short: "path") {
    Key(
      "path", at: \.path, as: .path, type: "path", isRequired: true, isAlwaysWritten: true,
      means: "the path of the field", for: "`l2p`: `state`")
    Key(
      "equals", at: \.values, as: .texts, default: "`true`", means: "the values that mean that the token is valid",
      for: "`l2p`: `valid`")
  }
}

extension Notation<ActiveRule> {
  static var active: Self {
    Notation(
      ActiveField.keys.notation.shape,
      read: { decoder, node in
        if node.text == "status" { return .status }
        guard let field = ActiveField.keys.read(&decoder, node), !field.path.text.isEmpty else { return nil }
        return .field(field.path, values: field.values)
      },
      write: { rule in
        switch rule {
        case .status: .text("status")
        case .field(let path, let values): ActiveField.keys.write(ActiveField(path: path, values: values))
        }
      })
  }
}

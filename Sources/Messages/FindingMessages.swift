import CredmgrDescriptors
import CredmgrHTTP
import CredmgrPlatform
import CredmgrText
import CredmgrXML
import CredmgrYAML

extension Finding {
  package var sentence: String {
    if let fault, fault.isTold { return fault.error.message.text }
    return switch problem {
    case .yaml(let reason): reason.sentence
    case .unknownKey(let key, let suggestion): "unknown key \(quoted(key))" + didYouMean(suggestion)
    case .futureDate(let date): "the date \(date) of \"verified\" is in the future"
    case .noSources: "no comment links to a page that shows the facts"
    case .unknownEndpoint(let name, let allowed): "unknown endpoint \(quoted(name)); allowed: \(Self.list(allowed))"
    case .missingKey(let key): "the key \(quoted(key)) is missing"
    case .wrongType(let expected): "expected \(expected)"
    case .unknownValue(let value, let allowed, let suggestion):
      "unknown value \(quoted(value))"
        + (suggestion == nil ? "; allowed: \(Self.list(allowed))" : didYouMean(suggestion))
    case .malformedName(let name):
      "invalid name \(quoted(name)): use letters, digits, \"-\", \"_\" and \".\"; some names are reserved"
    case .template(let error): error.sentence
    case .unknownTemplateName(let name, let suggestion):
      "the template uses \(quoted(name)), which is not defined" + didYouMean(suggestion)
    case .insecureURL(let url): "\(quoted(url)) must use https; http is only for addresses of this machine"
    case .invalidURL(let url): "\(quoted(url)) is not an absolute URL"
    case .invalidHost(let host): "\(quoted(host)) is not a host name with an optional port"
    case .subdomains(let host):
      "\(quoted(host)) matches several hosts; list each host of git and docker by its full name"
    case .controlCharacter: "the text contains a character that controls terminals"
    case .tooManyEntries(let limit): "more than \(limit) entries"
    case .headerInScheme(let text):
      "\(quoted(text)) is not a scheme: write only the word before the token, such as \"token\", and another header as "
        + "\"{ header: NAME }\""
    case .forbiddenHeader(let name): "the header \(quoted(name)) cannot be set"
    case .ownedParameter(let name):
      "cannot set the parameter \(quoted(name)), which protects the login; \"rename\" can give it another name"
    case .fixedParameter(let name):
      "cannot rename the parameter \(quoted(name)), which protects the login: servers would ignore it"
    case .shownSecret(let path):
      "cannot use the secret field \(quoted(path)) here, because credmgr shows this value to the user"
    case .computedRedirect: "a redirect can contain only names in braces, without functions or alternatives"
    case .unprotectedState(let state): state.sentence
    case .invalidDuration(let text): "invalid duration \(quoted(text)); use a form like 90s, 5m, 8h or 30d"
    case .invalidPattern(let text): "invalid regular expression \(quoted(text))"
    case .grantWithoutEndpoint(let grant, let endpoint):
      "the grant \(quoted(grant)) requires the endpoint \(quoted(endpoint))"
    case .unreadable(let path, let reason):
      "cannot read \(quoted(path)): \(reason.words)"
    case .unknownBase(let name): "cannot extend \(quoted(name)): descriptor not found"
    case .cyclicExtends(let chain):
      "\"extends\" forms a cycle: \(chain.map(Path.lastComponent).joined(separator: " → "))"
    case .tooManyBases(let limit): "more than \(limit) files extend each other"
    case .identifierIsNotFileName(let identifier, let fileName):
      "the provider \(quoted(identifier)) must be in a file of the same name, not in \(quoted(fileName))"
    case .invalidDefault(let variable):
      "the default of the variable \(quoted(variable)) is not one of its allowed values"
    case .secretInAddress(let name):
      "cannot use the secret \(quoted(name)) here: credmgr shows this value or sends it to other servers"
    case .foreignPage(let origin):
      "the page for the device code is at \(quoted(origin)); use the host of an endpoint or \"{verification_uri}\""
    case .keptVariable(let name):
      "cannot keep a field as \(quoted(name)): a variable of this name is part of a URL or a host, so the answer "
        + "would choose the host"
    case .keptSubdomains(let name):
      "cannot use \(quoted(name)) after \"*.\": its value comes from the provider's answer"
    case .keyFileHost(let name):
      "cannot read \(quoted(name)) from the key file: it is part of a host, which the file would choose"
    case .unboundedHost(let name):
      "the provider can set \(quoted(name)) to any host; add a \"pattern\" with the provider's domain under \"keep\""
    case .unusedVariable(let name): "the variable \(quoted(name)) is not used"
    case .withoutGrant(let key, let grants):
      "\(quoted(key)) has no effect without the grant " + grants.map(\.rawValue).joined(separator: " or ")
    case .boundToken(let key):
      "\(quoted(key)) has no effect: each request needs a signature, and other programs get only the token"
    case .readElsewhere(let key, let kinds):
      "\(quoted(key)) has no effect here, only at the endpoint " + kinds.map(\.rawValue).joined(separator: " or ")
    case .accountWithoutSource(let name):
      "\(quoted(name)) has no effect without the endpoint \"identity\" or a field of that name below \"keep\""
    case .emptyList(let key): "\(quoted(key)) is an empty list; leave it out to use the default"
    case .sentByBrowser(let key):
      "\(quoted(key)) has no effect here, because the browser sends this request, not credmgr"
    case .withoutKey(let key, let needed): "\(quoted(key)) has no effect without \(quoted(needed))"
    case .unverifiableAnswer(let needed):
      "a login cannot verify the signed answer that this \"response_mode\" requests without \(quoted(needed))"
    case .profile(let profile, let rule): "the profile \(quoted(profile.rawValue)) \(rule.sentence)"
    case .unusedAssertion:
      "\"assertion\" has no effect: no endpoint uses \"private_key_jwt\", \"client_secret_jwt\" or \"{assertion}\""
    case .tokenOfElement:
      "a token of \"element\" requires a unique value of \"element\" in \"keep\", so that a refresh finds the element "
        + "again"
    case .assertionInRequest:
      "\"{assertion}\" has no value here; with the grant \"jwt_bearer\" and no endpoint \"token\", "
        + "use \"{access_token}\""
    case .unpromptedVariable(let name):
      "\"at_login\" has no effect: a login does not prompt for \(quoted(name)), because the variable has a default"
    case .unsentParameter(let name, let suggestion):
      "no request has a parameter \(quoted(name))" + didYouMean(suggestion)
    case .bracketInPath(let path):
      "\(quoted(path)) is the name of a single field; use dots for nested fields, as in \"user.email\""
    case .blankInScope(let scope): "\(quoted(scope)) is a single scope with a space; use a list for several scopes"
    case .newSetting(let key, let value, let provider):
      "\(quoted(provider)) was added with another value of \(quoted(key)) than \(quoted(value)); "
        + "\"credmgr add-provider \(provider) --replace\" asks for consent"
    case .newHost(let host, let provider):
      "tokens of \(quoted(provider)) would go to the new host \(quoted(host)); "
        + "\"credmgr add-provider \(provider) --replace\" asks for consent"
    }
  }
}

extension Finding.Problem.UnprotectedState {
  fileprivate var sentence: String {
    switch self {
    case .scheme:
      "\"state\" must be \"required\" with an application's scheme in \"redirect\", because nothing else ties the "
        + "answer to the login"
    case .noProofKey: "without \"state\" and PKCE, any web page could inject a code into the login"
    case .implicit: "without \"state\", any web page could inject a token into the login"
    }
  }
}

extension Finding {
  /// The permission fault of the file or a parent directory, and whether to report it alone; `nil` without one.
  fileprivate var fault: (error: POSIXError, path: String, isTold: Bool)? {
    switch problem {
    case .unreadable(_, .closedFolder(let folder)): (.permissionDenied(path: folder), folder, true)
    case .unreadable(let path, .permissionDenied): (.permissionDenied(path: path), path, false)
    case .unreadable(_, .otherOwner(let path)): (.otherOwner(path: path), path, true)
    case .unreadable(_, .writableByOthers(let path, let mode)): (.writableByOthers(path: path, mode: mode), path, true)
    default: nil
    }
  }

  package var closedFolder: String? {
    if case .unreadable(_, .closedFolder(let folder)) = problem { folder } else { nil }
  }

  /// Whether the file itself is unreadable, as opposed to its content being wrong.
  package var isUnreadable: Bool { if case .unreadable = problem { true } else { false } }

  package var file: String { if case .unreadable(let path, _) = problem { path } else { place.source.name } }
}

package func didYouMean(_ suggestion: String?) -> String { suggestion.map { " (did you mean \(quoted($0))?)" } ?? "" }

extension YAMLError.Reason {
  var sentence: String {
    switch self {
    // The parser's own words for the most common mistakes lead nowhere.
    case .syntax("mapping values are not allowed in this context"), .syntax("did not find expected key"):
      "invalid YAML: this line is not indented as the keys around it, or a value with \": \" lacks quotes"
    case .syntax(let problem): "invalid YAML: \(problem)"
    case .notUTF8: "the file is not UTF-8"
    case .hiddenBreak(let scalar):
      "a line ends with \(scalar.value < 0x100 ? "U+00" : "U+")\(scalar.value < 0x10 ? "0" : "")"
        + "\(String(scalar.value, radix: 16, uppercase: true)), which editors do not show; use a line feed"
    case .empty: "the file is empty"
    case .severalDocuments: "a second document; a descriptor must be a single document"
    case .duplicateKey(let key, let firstLine): "duplicate key \(quoted(key)), first used on line \(firstLine)"
    case .keyNotScalar: "a key must be a string"
    case .unknownAlias(let name): "the alias \(quoted("*" + name)) has no preceding anchor"
    case .tooLarge(let bytes): "the file is larger than \(bytes / 1024) KiB"
    case .tooDeep(let depth): "mappings and lists are nested deeper than \(depth) levels"
    case .tooManyNodes(let nodes): "more than \(nodes) values, counting each use of an alias"
    }
  }
}

extension TemplateError {
  package var sentence: String {
    switch self {
    case .tooDeep(let depth): "functions are nested deeper than \(depth) levels"
    case .tooLong(let bytes): "the template or its value is longer than \(bytes / 1024) KiB"
    case .unbalancedBrace(let offset): "unbalanced brace at character \(offset + 1); double it for a literal brace"
    case .malformedPlace(let text):
      "invalid placeholder \(quoted("{" + text + "}")): use a name, a quoted text or a function"
    case .unknownFunction(let name):
      "unknown function \(quoted(name)); use one of "
        + "\(Template.Function.allCases.map(\.rawValue).joined(separator: ", "))"
    case .missing(let name): "\(quoted(name)) has no value"
    }
  }
}

extension UnreadableDescriptor {
  fileprivate var words: String {
    switch self {
    case .permissionDenied, .closedFolder: "permission denied"
    case .notRegularFile: "it is not a regular file"
    case .danglingLink: "it is a link to a missing file"
    case .tooLarge: "it is larger than 1 MiB"
    case .otherOwner: "it belongs to another user"
    case .writableByOthers: "other users can change it"
    case .failed: "system error"
    }
  }
}

extension ProviderError {
  /// Returns a name in quotes after a space; nothing for a text that may be a key.
  private static func shown(_ name: String) -> String {
    name.utf8.count > 32 ? "" : CredmgrMessages.shown(name)
  }

  /// The message. Findings of an invalid descriptor are reported one by one.
  package var message: Message {
    switch self {
    case .invalid(let findings):
      let count = findings.count { $0.severity == .error }
      let faults = findings.compactMap(\.fault)
      return Message(
        faults.first(where: \.isTold)?.error.message.text
          ?? "the descriptor \(quoted(findings.first?.place.source.name ?? "")) has "
          + "\(count == 1 ? "an error" : "\(count) errors")",
        hint: faults.first.map { .mending($0.error, at: $0.path) }, findings: findings)
    case .unknown(let identifier, let suggestion):
      return Message(
        "unknown provider" + Self.shown(identifier) + didYouMean(suggestion),
        hints: .correcting(identifier, to: suggestion) + ["\(credmgr: "providers") to see all providers"],
        status: .usage)
    case .malformedIdentifier(let text):
      return .usage(
        "invalid provider name\(Self.shown(text)): use lower-case letters, digits, \"-\", \"_\" and \".\"")
    case .missingVariable(let variable): return .missing([variable])
    case .invalidVariable(let variable, let value):
      return .usage(
        "invalid value\(variable.isSecret ? "" : " " + quoted(value)) for the variable \(quoted(variable.name))"
          + rule(variable)
      ).with(hints: variable.help.map { ["set \(quoted(variable.name)) to \($0)"] } ?? [])
    case .unknownVariable(let name, let known):
      let others = known.isEmpty ? "; the provider has no variables" : "; use \(listed(known))"
      return Message(
        "unknown variable \(quoted(name))" + didYouMean(nearMiss(name, among: known)) + others,
        hint: known.isEmpty ? "omit \"--set \(name)=…\"" : nil, status: .usage)
    }
  }

  private func rule(_ variable: Variable) -> String {
    if !variable.choices.isEmpty { return " (one of \(variable.choices.joined(separator: ", ")))" }
    if let pattern = variable.pattern { return " (it must match \(pattern))" }
    return variable.format.rule.map { " (\($0))" } ?? ""
  }
}

extension Variable.Format {
  /// The rule for a value; `nil` for any text.
  var rule: String? {
    switch self {
    case .text: nil
    case .hostname: "it must be a host name with an optional port"
    case .url: "it must be an https URL"
    case .redirect: "it must be a redirect URI or oob"
    case .integer: "it must be a whole number"
    }
  }
}

extension Finding {
  /// Returns as many values as fit beside the rest of a finding.
  fileprivate static func list(_ values: [String]) -> String {
    let all = values.joined(separator: ", ")
    if all.utf8.count <= 90 { return all }
    let count = values.indices.last { values[..<$0].joined(separator: ", ").utf8.count <= 76 } ?? 1
    return values[..<count].joined(separator: ", ") + ", and others"
  }
}

extension Variable { fileprivate var explanation: String { help.map { ": \($0)" } ?? "" } }

extension Message {
  package static func secretInArguments(_ variable: Variable) -> Message {
    .usage("cannot take the secret variable \(quoted(variable.name)) from the command line")
      .hint("write it to a file and use \"--set \(variable.name)=@FILE\", or \"@-\" for standard input")
  }

  package static func missing(_ variables: [Variable]) -> Message {
    Message(
      (variables.count == 1
        ? "the variable \(listed(variables.map(\.name))) has" : "the variables \(listed(variables.map(\.name))) have")
        + " no value",
      hint: "\(add: variables.flatMap { ["--set", "\($0.name)=\($0.isSecret ? "@FILE" : "VALUE")"] })"
        + "\(variables.count == 1 ? variables[0].explanation : "")", status: .usage)
  }
}

extension ProfileRule {
  fileprivate var sentence: String {
    switch self {
    case .proofKey: "requires \"pkce: S256\""
    case .issuer: "requires \"issuer\""
    case .issuerResponse: "requires \"iss: required\""
    case .binding:
      "requires "
        + TokenBindingRule.allCases.dropFirst().map { "\"token_binding: \($0.rawValue)\"" }.joined(separator: " or ")
    case .authentication:
      "requires \"private_key_jwt\", \"tls_client_auth\" or \"self_signed_tls_client_auth\" as client authentication"
    case .audience: "requires the issuer as the audience of assertions, which is the default"
    case .algorithm: "allows only PS256, ES256 and EdDSA for signed JWTs"
    case .header: "requires that a header carries the token"
    case .noImplicit: "does not allow the grant \"implicit\""
    case .pushedRequest: "requires the endpoint \"pushed_authorization_request\""
    case .signedRequest: "requires \"request_object: true\""
    case .requestLifetime: "allows a lifetime of at most one hour for signed requests"
    case .signedAnswer: "requires \"response_mode: jwt\" among the parameters of \"authorization\""
    case .keys: "requires the endpoint \"jwks\", whose keys sign the answer"
    }
  }
}

extension XMLError {
  var words: String {
    switch self {
    case .syntax: "it is not XML"
    case .documentType: "it has a document type, which credmgr never reads"
    case .tooLong(let bytes): "it is longer than \(bytes >> 20) MiB"
    case .tooManyAttributes(let limit): "an element and those around it have more than \(limit) attributes"
    case .tooDeep(let levels): "its elements have more than \(levels) levels"
    }
  }
}

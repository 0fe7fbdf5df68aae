import Descriptors
import HTTP
import Platform
import Text
import YAML

extension Finding {
  /// `file:line:column: error: sentence`, the source line, unless it has no text, and a caret below the place. Without
  /// `columns` the sentence is one line.
  func report(columns: Int? = nil) -> String {
    let name = Message.visible(place.source.name)
    let text = "\(name):\(place.line):\(place.column): \(severity.rawValue): \(Message.visible(sentence))"
    let head = (columns.map { Layout.wrapped(text, width: $0, indent: "  ", longestQuotation: .max) } ?? text) + "\n"
    let shownWidth = columns.map { max($0 - 4, Self.narrowest) } ?? Self.shownWidth
    let line = Array(Message.visible(String(place.source.line(place.line))).unicodeScalars)
    guard line.contains(where: { $0 != " " }) else { return head }
    // Of a line that no terminal could show, the part around the place.
    let column = min(max(place.column - 1, 0), line.count)
    let start = column > shownWidth / 2 && line.count > shownWidth ? column - shownWidth / 2 : 0
    let end = min(start + shownWidth, line.count)
    var shown = start > 0 ? "…" : ""
    let caret = String(repeating: " ", count: column - start + shown.count) + "^"
    shown.unicodeScalars.append(contentsOf: line[start..<end])
    if end < line.count { shown += "…" }
    return "\(head)  \(shown)\n  \(caret)\n"
  }

  private static let shownWidth = 160
  private static let narrowest = 20

  var sentence: String {
    if let fault, fault.isTold { return fault.error.message.text }
    return switch problem {
    case .yaml(let reason): reason.sentence
    case .unknownKey(let key, let suggestion): "unknown key \(quoted(key))" + didYouMean(suggestion)
    case .missingKey(let key): "the key \(quoted(key)) is missing"
    case .wrongType(let expected): "expected \(expected)"
    case .unknownValue(let value, let allowed, let suggestion):
      "unknown value \(quoted(value))"
        + (suggestion == nil ? "; known are \(allowed.joined(separator: ", "))" : didYouMean(suggestion))
    case .malformedName(let name):
      "\(quoted(name)) is no name: letters, digits, \"-\", \"_\" and \".\", and none that the engine uses itself"
    case .template(let error): error.sentence
    case .unknownTemplateName(let name, let suggestion):
      "the template names \(quoted(name)), which nothing defines" + didYouMean(suggestion)
    case .insecureURL(let url): "\(quoted(url)) is not https; http is for this machine's own addresses only"
    case .invalidURL(let url): "\(quoted(url)) is not an absolute URL"
    case .invalidHost(let host): "\(quoted(host)) is not a host name, with a port at most"
    case .subdomains(let host): "\(quoted(host)) is more than one host; git and docker ask for each by its whole name"
    case .controlCharacter: "the text has a character in it that a terminal would act on"
    case .tooManyEntries(let limit): "more than \(limit) entries"
    case .forbiddenHeader(let name): "the header \(quoted(name)) cannot be set"
    case .ownedParameter(let name):
      "the parameter \(quoted(name)) protects the login; it can be renamed below \"rename\", and not be set"
    case .fixedParameter(let name):
      "the parameter \(quoted(name)) protects the login, and a server that gets it under another name ignores it"
    case .shownSecret(let path):
      "the field \(quoted(path)) is a secret; an account's name, what is kept and what a person is told is shown"
    case .computedRedirect: "a redirect is one text, with a single name in each place: no function, and no alternative"
    case .unprotectedState(let state): state.sentence
    case .invalidDuration(let text): "\(quoted(text)) is no duration, such as 90s, 5m, 8h or 30d"
    case .invalidPattern(let text): "\(quoted(text)) is no regular expression"
    case .grantWithoutEndpoint(let grant, let endpoint):
      "the grant \(quoted(grant)) needs the endpoint \(quoted(endpoint))"
    case .unreadable(let path, let reason):
      "the file \(quoted(path)) cannot be read, and no other one is taken in its place: \(reason.words)"
    case .unknownBase(let name): "there is no descriptor \(quoted(name)) to extend"
    case .cyclicExtends(let chain): "\"extends\" comes back to itself: \(chain.joined(separator: " → "))"
    case .tooManyBases(let limit): "more than \(limit) files extend each other"
    case .identifierIsNotFileName(let identifier, let fileName):
      "the provider is \(quoted(identifier)), and the file \(quoted(fileName)); a descriptor is found by its "
        + "file's name"
    case .invalidDefault(let variable):
      "the default of the variable \(quoted(variable)) is not one of the values that it may have"
    case .secretInAddress(let name):
      "\(quoted(name)) is a secret, and what it stands in is shown or sent to others: the address of a page, a "
        + "redirect, an issuer, a host or a user name"
    case .foreignPage(let origin):
      "the page for a device's code is at \(quoted(origin)), where the descriptor has no endpoint; use an endpoint's "
        + "host or \"{verification_uri}\""
    case .keptVariable(let name):
      "\(quoted(name)) is also a variable that stands in a URL or a host, so the provider's answer would choose that "
        + "host; keep the field under another name"
    case .keptSubdomains(let name):
      "the provider's answer says what \(quoted(name)) is, so it cannot stand behind \"*.\""
    case .unboundedHost(let name):
      "\(quoted(name)) is any host that the provider says; give it a \"pattern\" below \"keep\" that has the "
        + "provider's own domain"
    case .unusedVariable(let name): "nothing uses the variable \(quoted(name))"
    case .withoutGrant(let key, let grants):
      "\(quoted(key)) has no effect without the grant " + grants.map(\.rawValue).joined(separator: " or ")
    case .readElsewhere(let key, let kinds):
      "\(quoted(key)) has no effect here; it is read at the endpoint " + kinds.map(\.rawValue).joined(separator: " or ")
    case .unsentParameter(let name, let suggestion):
      "no request has a parameter \(quoted(name))" + didYouMean(suggestion)
    case .bracketInPath(let path): "\(quoted(path)) names one field; dots lead into others, as in \"user.email\""
    case .blankInScope(let scope): "\(quoted(scope)) is one scope with a blank in it; write a list for several"
    case .newHost(let host, let provider):
      "tokens of \(quoted(provider)) would go to \(quoted(host)), and it was added without that; "
        + "\"credmgr add-provider \(provider) --replace\" asks first"
    }
  }
}

extension Finding.Problem.UnprotectedState {
  fileprivate var sentence: String {
    switch self {
    case .scheme:
      "\"state\" has to come back with the scheme of an application in \"redirect\", because nothing else ties the "
        + "answer to the login"
    case .noProofKey: "without a \"state\" and a proof key, a page that is visited then could bring a code of its own"
    case .implicit: "without a \"state\", a page that is visited then could bring a token of its own"
    }
  }
}

extension Finding {
  /// What the permissions of the file, or of a folder on the way to it, are at fault for, and whether only they are
  /// told.
  fileprivate var fault: (error: POSIXError, path: String, isTold: Bool)? {
    switch problem {
    case .unreadable(_, .closedFolder(let folder)): (.permissionDenied(path: folder), folder, true)
    case .unreadable(let path, .permissionDenied): (.permissionDenied(path: path), path, false)
    case .unreadable(_, .otherOwner(let path)): (.otherOwner(path: path), path, true)
    case .unreadable(_, .writableByOthers(let path, let mode)): (.writableByOthers(path: path, mode: mode), path, true)
    default: nil
    }
  }

  var closedFolder: String? { if case .unreadable(_, .closedFolder(let folder)) = problem { folder } else { nil } }

  /// Whether the file itself is at fault, and not what stands in it.
  var isUnreadable: Bool { if case .unreadable = problem { true } else { false } }

  var file: String { if case .unreadable(let path, _) = problem { path } else { place.source.name } }
}

package func didYouMean(_ suggestion: String?) -> String { suggestion.map { " (did you mean \(quoted($0))?)" } ?? "" }

extension YAMLError.Reason {
  var sentence: String {
    switch self {
    case .syntax(let problem): "this is not YAML: \(problem)"
    case .notUTF8: "the file is not UTF-8"
    case .empty: "the file is empty"
    case .severalDocuments: "a second document; a descriptor is one"
    case .duplicateKey(let key, let firstLine): "the key \(quoted(key)) stands on line \(firstLine) already"
    case .keyNotScalar: "a key has to be a text"
    case .unknownAlias(let name): "the alias \(quoted("*" + name)) has no anchor before it"
    case .tooLarge(let bytes): "the file is larger than \(bytes / 1024) KiB"
    case .tooDeep(let depth): "mappings and lists are nested deeper than \(depth)"
    case .tooManyNodes(let nodes): "more than \(nodes) values, aliases counted as often as they are used"
    }
  }
}

extension TemplateError {
  var sentence: String {
    switch self {
    case .tooDeep(let depth): "functions are nested deeper than \(depth)"
    case .tooLong(let bytes): "the template, or what is computed of it, is longer than \(bytes / 1024) KiB"
    case .unbalancedBrace(let offset): "the brace at character \(offset + 1) has no partner; two braces stand for one"
    case .malformedPlace(let text):
      "\(quoted("{" + text + "}")) is no place for a value: a name, a quoted text or a function"
    case .unknownFunction(let name):
      "unknown function \(quoted(name)); known are "
        + "\(Template.Function.allCases.map(\.rawValue).joined(separator: ", "))"
    case .missing(let name): "there is no value for \(quoted(name))"
    }
  }
}

extension UnreadableDescriptor {
  fileprivate var words: String {
    switch self {
    case .permissionDenied, .closedFolder: "permission denied"
    case .notRegularFile: "it is not an ordinary file"
    case .danglingLink: "it is a link to a file that is not there"
    case .tooLarge: "it is longer than 1 MiB"
    case .otherOwner: "another user owns it"
    case .writableByOthers: "other users can write it"
    case .failed: "the system failed"
    }
  }
}

extension ProviderError {
  /// What is wrong. The findings of an invalid descriptor are reported one by one beside it.
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
        "there is no provider \(quoted(identifier))" + didYouMean(suggestion),
        hints: .correcting(identifier, to: suggestion) + ["\(credmgr: "providers") to see them"], status: .usage)
    case .malformedIdentifier(let text):
      return .usage(
        "\(quoted(text)) is no identifier of a provider: lower-case letters, digits, \"-\", \"_\" and \".\"")
    case .missingVariable(let variable): return .missing([variable])
    case .invalidVariable(let variable, let value):
      return .usage(
        "\(variable.isSecret ? "what was given" : quoted(value)) is no value for the variable \(quoted(variable.name))"
          + rule(variable) + variable.explanation)
    case .unknownVariable(let name, let known):
      let others = known.isEmpty ? "; there is none" : "; there \(known.count == 1 ? "is" : "are") \(listed(known))"
      return Message(
        "there is no variable \(quoted(name))" + didYouMean(nearMiss(name, among: known)) + others,
        hint: known.isEmpty ? "leave \"--set \(name)=…\" out" : nil, status: .usage)
    }
  }

  private func rule(_ variable: Variable) -> String {
    if !variable.choices.isEmpty { return " (one of \(variable.choices.joined(separator: ", ")))" }
    if let pattern = variable.pattern { return " (it has to match \(pattern))" }
    return switch variable.format {
    case .text: ""
    case .hostname: " (it has to be the name of a host, with a port at most)"
    case .url: " (it has to be a URL with https)"
    case .redirect: " (it has to be a redirect URI, or oob)"
    case .integer: " (it has to be a whole number)"
    }
  }
}

extension Variable { fileprivate var explanation: String { help.map { ": \($0)" } ?? "" } }

extension Message {
  static func secretInArguments(_ variable: Variable) -> Message {
    .usage("the variable \(quoted(variable.name)) is a secret, which is not taken from the command line")
      .hint("write it into a file, and \"--set \(variable.name)=@FILE\"; \"@-\" is standard input")
  }

  static func missing(_ variables: [Variable]) -> Message {
    Message(
      (variables.count == 1
        ? "the variable \(listed(variables.map(\.name))) has" : "the variables \(listed(variables.map(\.name))) have")
        + " no value",
      hints: variables.map { variable in
        let option = ["--set", "\(variable.name)=\(variable.isSecret ? "@FILE" : "VALUE")"]
        // A command that lacks one of two values helps nobody.
        return variables.count > 1
          ? "add \(quoted(option.joined(separator: " ")))\(variable.explanation)"
          : "\(add: option)\(variable.explanation)"
      }, status: .usage)
  }
}

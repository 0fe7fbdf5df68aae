import CredmgrCredentialManager
import CredmgrHTTP

/// A message between git and its helpers (git-credential(1), INPUT/OUTPUT FORMAT).
struct GitCredential: Equatable {
  // These are arrays in the order of the few names, because creating dictionaries and sets takes a sixteenth of the
  // time of an answer.
  private var values = [String?](repeating: nil, count: names.count)
  private var lists = [[String]](repeating: [], count: listNames.count)

  private static let names = [
    "protocol", "host", "path", "username", "password", "password_expiry_utc", "oauth_refresh_token", "authtype",
    "credential", "ephemeral",
  ]
  private static let listNames = ["capability[]", "state[]", "wwwauth[]"]
  /// All other values must not contain control characters, which programs interpret differently.
  private static let secretNames = ["password", "oauth_refresh_token", "credential"]

  /// Reads git's input: lines of `name=value` until an empty line or the end. Ignores unknown names.
  ///
  /// - Throws: `CommandError.failed` for a line without `=` or too long, a NUL or CR, a control character outside
  ///   secrets, or a name with two values. Otherwise, git and credmgr could disagree about the host (CVE-2020-5260,
  ///   CVE-2024-50338, CVE-2024-52006).
  init(_ bytes: [UInt8]) throws(CommandError) {
    for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      if line.isEmpty { break }
      guard !line.contains(0), !line.contains(UInt8(ascii: "\r")) else { throw Self.controlCharacter }
      if line.count > 65_535 { throw .usage("invalid input from git: a line exceeds 64 KiB") }
      guard let sign = line.firstIndex(of: UInt8(ascii: "=")), sign > line.startIndex else {
        throw .usage("invalid input from git: a line has no \"=\"")
      }
      let name = String(decoding: line[..<sign], as: UTF8.self)
      let list = Self.listNames.firstIndex(of: name)
      guard list != nil || name == "url" || Self.names.contains(name) else { continue }
      let value = Array(line[line.index(after: sign)...])
      // The server wrote this value.
      let isServers = name == "wwwauth[]"
      let validated = String(validating: value, as: UTF8.self)
      guard let text = isServers ? String(decoding: value, as: UTF8.self) : validated else {
        throw .usage("invalid input from git: it is not UTF-8")
      }
      if let list {
        if !isServers, Self.hasControls(text) { throw Self.controlCharacter }
        // An empty element clears the list.
        lists[list] = text.isEmpty ? [] : lists[list] + [text]
      } else if name == "url" {
        try take(url: text)
      } else {
        try take(text, as: name)
      }
    }
    // The two together form the name of a record.
    for name in ["path", "username"] where (self[name]?.utf8.count ?? 0) > 4096 {
      throw .usage("invalid input from git: the \(name) exceeds 4 KiB")
    }
  }

  private mutating func take(_ text: String, as name: String) throws(CommandError) {
    if !Self.secretNames.contains(name), Self.hasControls(text) { throw Self.controlCharacter }
    guard let place = Self.names.firstIndex(of: name) else { return }
    let isOther = values[place] != nil && values[place] != text
    if isOther { throw .usage("invalid input from git: two values for \"\(name)\"") }
    values[place] = text
  }

  /// Replaces all values by the decoded parts of a URL, as git does.
  private mutating func take(url: String) throws(CommandError) {
    let invalid = CommandError.usage("invalid input from git: the value of \"url\" is not a URL")
    guard let separator = url.firstPlace(of: "://"), separator.lowerBound > url.startIndex else { throw invalid }
    (values, lists) = ([String?](repeating: nil, count: values.count), [[String]](repeating: [], count: lists.count))
    func take(_ part: Substring, as name: String) throws(CommandError) {
      guard let text = PercentEncoding.decode(String(part), plusAsSpace: false) else { throw invalid }
      // A password in a URL cannot contain control characters.
      if Self.hasControls(text) { throw Self.controlCharacter }
      try self.take(text, as: name)
    }
    try take(url[..<separator.lowerBound], as: "protocol")
    let rest = url[separator.upperBound...]
    var host = rest.prefix { !"/?#".contains($0) }
    let path = rest[host.endIndex...].drop { $0 == "/" }
    if let at = host.firstIndex(of: "@") {
      let parts = host[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      try take(parts[0], as: "username")
      if parts.count > 1 { try take(parts[1], as: "password") }
      host = host[host.index(after: at)...]
    }
    try take(host, as: "host")
    let length = path.count - path.reversed().prefix { $0 == "/" }.count
    if length > 0 { try take(path.prefix(length), as: "path") }
  }

  private static func hasControls(_ text: String) -> Bool { text.utf8.contains { $0 < 0x20 || $0 == 0x7F } }

  /// Returns a line for git. A line break in the value would start another line, which could name another host.
  static func line(_ name: String, _ value: String) throws(CommandError) -> String {
    guard value.utf8.allSatisfy({ $0 != 0 && $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }) else {
      throw .usage("cannot answer git: the \(name) contains a line break or a NUL")
    }
    return "\(name)=\(value)\n"
  }

  private static var controlCharacter: CommandError {
    .usage("invalid input from git: it contains a control character")
  }

  /// Returns a value; an empty value differs from `nil`.
  subscript(name: String) -> String? { Self.names.firstIndex(of: name).flatMap { values[$0] } }

  func list(_ name: String) -> [String] { Self.listNames.firstIndex(of: name + "[]").map { lists[$0] } ?? [] }

  /// Whether git supports a capability (git 2.46).
  func has(capability: String) -> Bool { list("capability").contains(capability) }

  /// The realms of the server's authentication schemes (RFC 9110, 11.6.1).
  var realms: [String] {
    list("wwwauth").compactMap { value in
      // Lowercase byte by byte, so indices match in both arrays.
      let bytes = Array(value.utf8)
      let folded = bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 }
      guard let end = folded.firstPlace(of: "realm=".utf8)?.upperBound else { return nil }
      let rest = bytes[end...]
      let realm =
        rest.first == UInt8(ascii: "\"")
        ? rest.dropFirst().prefix { $0 != UInt8(ascii: "\"") } : rest.prefix { !" ,".utf8.contains($0) }
      return String(decoding: realm, as: UTF8.self)
    }
  }

  /// Whether the server offers Bearer but not Basic.
  var needsBearer: Bool {
    let schemes = list("wwwauth").map { $0.prefix { $0 != " " }.lowercased() }
    return schemes.contains("bearer") && !schemes.contains("basic")
  }

  /// The host's URI; `nil` if the host is missing or ambiguous.
  ///
  /// git decodes URLs first, so the host of `https://good.example%2F.evil.example` would start like another one. A
  /// missing protocol or host would match every credential (CVE-2020-11008).
  var uri: URI? {
    guard let scheme = self["protocol"], let host = self["host"], !scheme.isEmpty, !host.isEmpty,
      host.isASCIIAlphanumeric(or: ".-_:[]")
    else { return nil }
    return try? URI(parsing: "\(scheme)://\(host)/")
  }

  /// Whether the text is one of git's words for false (git-config(1)).
  static func isFalse(_ text: String) -> Bool { ["false", "no", "off", "0", "never"].contains(text.lowercased()) }
}

extension String {
  func isASCIIAlphanumeric(or others: String) -> Bool {
    utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: others.utf8.contains(byte)
      }
    }
  }
}

extension GivenToken {
  private static let prefix = "credmgr.given="
  private static let bearerPrefix = "credmgr.bearer="

  init(_ account: Account, isPassword: Bool) {
    (provider, self.account, revision) = (account.provider, account.name, account.revision)
    self.isPassword = isPassword
  }

  /// Reads our state from those that git returns (git-credential(1), `state[]`); `nil` if it is missing.
  init?(gitStates states: [String]) {
    func given(_ prefix: String) -> Substring? {
      states.last { $0.hasPrefix(prefix) }?.dropFirst(prefix.count)
    }
    let bearer = given(Self.bearerPrefix)
    guard let state = bearer ?? given(Self.prefix) else { return nil }
    isPassword = bearer == nil
    let fields = state.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    guard fields.count == 3, let revision = Int64(fields[0]) else { return nil }
    (self.revision, provider, account) = (revision, String(fields[1]), String(fields[2]))
  }

  var gitState: String { "\(isPassword ? Self.prefix : Self.bearerPrefix)\(revision) \(provider) \(account)" }
}

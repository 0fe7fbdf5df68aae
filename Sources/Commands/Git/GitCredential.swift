import CredentialManager
import HTTP

/// What git and its helpers say to each other (git-credential(1), INPUT/OUTPUT FORMAT).
struct GitCredential: Equatable {
  // Arrays in the order of the names, which are few: to make the types of dictionaries and sets takes a sixteenth of
  // the time of an answer.
  private var values = [String?](repeating: nil, count: names.count)
  private var lists = [[String]](repeating: [], count: listNames.count)

  private static let names = [
    "protocol", "host", "path", "username", "password", "password_expiry_utc", "oauth_refresh_token", "authtype",
    "credential", "ephemeral",
  ]
  private static let listNames = ["capability[]", "state[]", "wwwauth[]"]
  /// All others may have no control character; nobody knows what another program takes it for.
  private static let secretNames = ["password", "oauth_refresh_token", "credential"]

  /// Reads what git writes: lines of `name=value`, until an empty one or the end. Unknown names are passed over.
  ///
  /// - Throws: `CommandError.failed` for a line without `=`, a NUL or a CR in any line, a control character in what is
  ///   no secret, a name that says two different things, and a line that is too long: what git and we take for
  ///   different hosts must not be one (CVE-2020-5260, CVE-2024-50338, CVE-2024-52006).
  init(_ bytes: [UInt8]) throws(CommandError) {
    for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      if line.isEmpty { break }
      guard !line.contains(0), !line.contains(UInt8(ascii: "\r")) else { throw Self.controlCharacter }
      if line.count > 65_535 { throw .usage("what git wrote has a line of more than 64 KiB") }
      guard let sign = line.firstIndex(of: UInt8(ascii: "=")), sign > line.startIndex else {
        throw .usage("what git wrote has a line without \"=\"")
      }
      let name = String(decoding: line[..<sign], as: UTF8.self)
      let list = Self.listNames.firstIndex(of: name)
      guard let place = list ?? Self.names.firstIndex(of: name) else { continue }
      let value = Array(line[line.index(after: sign)...])
      // It comes from the server as it is.
      let isServers = name == "wwwauth[]"
      let validated = String(validating: value, as: UTF8.self)
      guard let text = isServers ? String(decoding: value, as: UTF8.self) : validated else {
        throw .usage("what git wrote is not UTF-8")
      }
      let mayHaveControls = isServers || Self.secretNames.contains(name)
      if !mayHaveControls, value.contains(where: { $0 < 0x20 || $0 == 0x7F }) { throw Self.controlCharacter }
      if list != nil {
        // An empty element empties the list.
        lists[place] = text.isEmpty ? [] : lists[place] + [text]
      } else {
        let isOther = values[place] != nil && values[place] != text
        if isOther { throw .usage("what git wrote says \"\(name)\" twice") }
        values[place] = text
      }
    }
    // Together they name a record.
    for name in ["path", "username"] where (self[name]?.utf8.count ?? 0) > 4096 {
      throw .usage("what git wrote has a \(name) of more than 4 KiB")
    }
  }

  /// A line that git reads. A line break in the value would begin another one, which may name another host.
  static func line(_ name: String, _ value: String) throws(CommandError) -> String {
    guard value.utf8.allSatisfy({ $0 != 0 && $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }) else {
      throw .usage("git gets no answer, because the \(name) in it has a line break or a NUL")
    }
    return "\(name)=\(value)\n"
  }

  private static var controlCharacter: CommandError { .usage("what git wrote has a control character in it") }

  /// A value; an empty one is not the same as none.
  subscript(name: String) -> String? { Self.names.firstIndex(of: name).flatMap { values[$0] } }

  func list(_ name: String) -> [String] { Self.listNames.firstIndex(of: name + "[]").map { lists[$0] } ?? [] }

  /// Whether git knows what a capability is about (git 2.46).
  func has(capability: String) -> Bool { list("capability").contains(capability) }

  /// The realms of the authentication schemes that the server offers (RFC 9110, 11.6.1).
  var realms: [String] {
    list("wwwauth").compactMap { value in
      // Byte for byte, so that a place in the one is a place in the other; the name is written in any case.
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

  /// Whether the server offers Bearer and no Basic.
  var needsBearer: Bool {
    let schemes = list("wwwauth").map { $0.prefix { $0 != " " }.lowercased() }
    return schemes.contains("bearer") && !schemes.contains("basic")
  }

  /// The host, where there is one that can be told from all others; `nil` where there is none.
  ///
  /// git decodes what stands in a URL before it asks: in `https://good.example%2F.evil.example` the host would begin
  /// like another one's. Without a protocol or a host every credential would be meant (CVE-2020-11008).
  var uri: URI? {
    guard let scheme = self["protocol"], let host = self["host"], !scheme.isEmpty, !host.isEmpty,
      host.isASCIIAlphanumeric(or: ".-_:[]")
    else { return nil }
    return try? URI(parsing: "\(scheme)://\(host)/")
  }

  /// Whether git's words for a boolean (git-config(1)) say no.
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

  /// What git hands back (git-credential(1), `state[]`): ours among the states of several helpers.
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

import CredmgrText

/// The part of the grammar in RFC 3986, appendix A, that ``URI`` accepts.
enum URISyntax {
  static func parse(_ text: [UInt8]) throws(HTTPError.InvalidURI) -> URI {
    let colon = text.firstIndex(of: UInt8(ascii: ":"))
    guard let colon, isScheme(text[..<colon]) else {
      try check(text[...], allowing: { isQueryCharacter($0) || $0 == UInt8(ascii: "#") })
      throw .noScheme
    }
    let scheme = Octet.lowerCase(string(text[..<colon]))
    var rest = text[(colon + 1)...]
    let fragment = cutOff(&rest, at: UInt8(ascii: "#"))
    let query = cutOff(&rest, at: UInt8(ascii: "?"))
    var authority: ArraySlice<UInt8>?
    if rest.starts(with: "//".utf8) {
      let end = rest.dropFirst(2).firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
      authority = rest[(rest.startIndex + 2)..<end]
      rest = rest[end...]
    }
    try check(rest, allowing: isPathCharacter)
    if let query { try check(query, allowing: isQueryCharacter) }
    if let fragment { try check(fragment, allowing: isQueryCharacter) }
    let (host, port) = try hostAndPort(authority)
    if scheme == "http" || scheme == "https", host?.isEmpty ?? true { throw .noHost }
    return URI(
      scheme: scheme, host: host, port: port, path: string(rest), query: query.map(string),
      fragment: fragment.map(string))
  }

  private static func isScheme(_ text: ArraySlice<UInt8>) -> Bool {
    guard let first = text.first, first.isLetterOrDigit, !first.isDigit else { return false }
    return text.allSatisfy { $0.isLetterOrDigit || Octet.isOne(of: "+-.", $0) }
  }

  private static func cutOff(_ rest: inout ArraySlice<UInt8>, at mark: UInt8) -> ArraySlice<UInt8>? {
    guard let place = rest.firstIndex(of: mark) else { return nil }
    defer { rest = rest[..<place] }
    return rest[(place + 1)...]
  }

  private static func hostAndPort(_ authority: ArraySlice<UInt8>?) throws(HTTPError.InvalidURI) -> (String?, UInt16?) {
    guard let authority else { return (nil, nil) }
    if authority.contains(UInt8(ascii: "@")) { throw .userInformation }
    if let bad = authority.first(where: { $0 <= 0x20 || $0 >= 0x7F || $0 == UInt8(ascii: "\\") }) {
      throw .character(bad)
    }
    var host = authority
    var port: ArraySlice<UInt8>?
    if authority.first == UInt8(ascii: "[") {
      guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { throw .host }
      host = authority[...end]
      let rest = authority[(end + 1)...]
      if let colon = rest.first {
        guard colon == UInt8(ascii: ":") else { throw .host }
        port = rest.dropFirst()
      }
      guard ipv6(host.dropFirst().dropLast()) != nil else { throw .host }
    } else {
      port = cutOff(&host, at: UInt8(ascii: ":"))
      if host.isEmpty, port != nil { throw .noHost }
      guard host.isEmpty || isName(host) else { throw .host }
    }
    return (Octet.lowerCase(string(host)), try portNumber(port))
  }

  /// Returns the port number; `nil` for an empty port, which means the default (RFC 3986, section 3.2.3).
  private static func portNumber(_ text: ArraySlice<UInt8>?) throws(HTTPError.InvalidURI) -> UInt16? {
    guard let text, !text.isEmpty else { return nil }
    guard text.allSatisfy(\.isDigit), let number = UInt16(string(text)), number > 0 else { throw .port }
    return number
  }

  /// Whether the host is a name of letters, digits, `-` and `_`.
  ///
  /// A name must not end in a number, because resolvers read `127.1` and `0x7f000001` as addresses.
  private static func isName(_ host: ArraySlice<UInt8>) -> Bool {
    var labels = host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    if labels.last?.isEmpty ?? true { labels.removeLast() }
    guard let last = labels.last, labels.allSatisfy({ !$0.isEmpty }) else { return false }
    if last.allSatisfy(\.isDigit) || last.starts(with: "0x".utf8) || last.starts(with: "0X".utf8) {
      return ipv4(host) != nil
    }
    return labels.allSatisfy { label in label.allSatisfy { $0.isLetterOrDigit || Octet.isOne(of: "-_", $0) } }
  }

  static func address(_ host: ArraySlice<UInt8>) -> [UInt8]? {
    host.first == UInt8(ascii: "[") ? ipv6(host.dropFirst().dropLast()) : ipv4(host)
  }

  static func ipv4(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    let numbers = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let bytes = numbers.compactMap { digits -> UInt8? in
      let isNumber = digits.allSatisfy(\.isDigit) && (digits.count == 1 || digits.first != UInt8(ascii: "0"))
      return isNumber ? UInt8(string(digits)) : nil
    }
    return numbers.count == 4 && bytes.count == 4 ? bytes : nil
  }

  /// Returns the bytes of an IPv6 address without a zone (RFC 3986, 3.2.2); `nil` if the text is not one. The last two
  /// groups may be an IPv4 address.
  private static func ipv6(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    let colon = UInt8(ascii: ":")
    guard let gap = text.indices.dropLast().first(where: { text[$0] == colon && text[$0 + 1] == colon }) else {
      return bytes(ofGroups: text, endsAddress: true).flatMap { $0.count == 16 ? $0 : nil }
    }
    guard let before = bytes(ofGroups: text[..<gap], endsAddress: false),
      let after = bytes(ofGroups: text[(gap + 2)...], endsAddress: true), before.count + after.count <= 14
    else { return nil }
    return before + [UInt8](repeating: 0, count: 16 - before.count - after.count) + after
  }

  private static func bytes(ofGroups text: ArraySlice<UInt8>, endsAddress: Bool) -> [UInt8]? {
    if text.isEmpty { return [] }
    var groups = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    let end = endsAddress ? groups.last.flatMap(ipv4) : nil
    if end != nil { groups.removeLast() }
    var bytes: [UInt8] = []
    for group in groups {
      guard group.count <= 4, group.allSatisfy({ Octet.hexadecimal($0) != nil }),
        let number = UInt16(string(group), radix: 16)
      else { return nil }
      bytes += [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]
    }
    return bytes + (end ?? [])
  }

  private static func isPathCharacter(_ byte: UInt8) -> Bool {
    Octet.isUnreserved(byte) || Octet.isOne(of: "!$&'()*+,;=:@/%", byte)
  }

  /// Whether a query or a fragment may contain the byte, according to RFC 3986 or in browsers.
  static func isQueryCharacter(_ byte: UInt8) -> Bool { isPathCharacter(byte) || Octet.isOne(of: "?[]{}|^`", byte) }

  static func check(_ text: ArraySlice<UInt8>, allowing isAllowed: (UInt8) -> Bool) throws(HTTPError.InvalidURI) {
    for index in text.indices {
      guard isAllowed(text[index]) else { throw .character(text[index]) }
      guard text[index] == UInt8(ascii: "%") else { continue }
      let digits = text[(index + 1)...].prefix(2)
      guard digits.count == 2, digits.allSatisfy({ Octet.hexadecimal($0) != nil }) else {
        throw .percentEscape
      }
    }
  }

  /// Escapes a text for a fragment. Keeps existing escapes.
  static func escaping(_ text: [UInt8]) -> String {
    var result: [UInt8] = []
    for (index, byte) in text.enumerated() {
      let isBareSign =
        byte == UInt8(ascii: "%")
        && !(index + 2 < text.count && Octet.hexadecimal(text[index + 1]) != nil
          && Octet.hexadecimal(text[index + 2]) != nil)
      if isQueryCharacter(byte), !isBareSign {
        result.append(byte)
      } else {
        PercentEncoding.appendEscape(byte, to: &result)
      }
    }
    return string(result[...])
  }

  /// Returns the part of an invalid URI that an error may show: nothing after `?` or `#`, and nothing before `@`.
  static func withoutSecrets(_ text: String) -> String {
    let shown = text.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    guard let sign = shown.lastIndex(of: UInt8(ascii: "@")) else { return string(Array(shown)[...]) }
    return "…" + string(Array(shown[sign...])[...])
  }

  private static func string(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}

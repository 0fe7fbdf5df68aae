import CredmgrJSON

/// Makes another program's output harmless for a terminal, piece by piece: replaces control characters with U+FFFD,
/// except tabs and line ends.
package struct TerminalFilter {
  /// The beginning of an incomplete character, or a carriage return.
  private var pending: [UInt8] = []

  package init() {}

  package mutating func shown(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    pending += bytes
    let end = Self.completeCount(pending)
    defer { pending.removeFirst(end) }
    return Self.shown(pending[..<end])
  }

  /// Returns the bytes still held back when the input ends.
  package mutating func end() -> [UInt8] {
    defer { pending = [] }
    return Self.shown(pending[...])
  }

  private static func shown(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var shown = ""
    var scalars = String(decoding: bytes, as: UTF8.self).unicodeScalars[...]
    while let scalar = scalars.popFirst() {
      let isLineEnd = scalar == "\n" || scalar == "\r" && scalars.first == "\n"
      shown.unicodeScalars.append(!scalar.actsOnTerminals || isLineEnd || scalar == "\t" ? scalar : "\u{FFFD}")
    }
    return Array(shown.utf8)
  }

  /// The number of bytes that can be judged without the bytes that follow.
  private static func completeCount(_ bytes: [UInt8]) -> Int {
    if bytes.last == UInt8(ascii: "\r") { return bytes.count - 1 }
    let tail = bytes.suffix(3)
    guard let lead = tail.lastIndex(where: { $0 >= 0xC0 }) else { return bytes.count }
    let length = bytes[lead] >= 0xF0 ? 4 : bytes[lead] >= 0xE0 ? 3 : 2
    return bytes.count - lead < length ? lead : bytes.count
  }
}

/// The text without the passwords in its URLs, which precede the host (RFC 3986, section 3.2.1). A user name alone
/// stays, unless it is as long as a token.
package func withoutPasswords(_ text: String) -> String {
  guard text.utf8.contains(UInt8(ascii: "@")), text.firstPlace(of: "://") != nil else { return text }
  var pieces = text.pieces(separatedBy: "://").map(String.init)
  for index in pieces.indices.dropFirst() {
    let piece = pieces[index]
    let authority = piece.prefix { !$0.isWhitespace && !"/?#\"'<>".contains($0) }
    guard let at = authority.lastIndex(of: "@") else { continue }
    let user = authority[..<at]
    let name = user.prefix { $0 != ":" }
    guard name.count < user.count || name.count >= 20 else { continue }
    pieces[index] = (name.count < 20 ? name + (name.count < user.count ? ":…" : "") : "…") + piece[at...]
  }
  return pieces.joined(separator: "://")
}

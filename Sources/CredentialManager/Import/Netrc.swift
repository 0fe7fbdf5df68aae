import CredmgrCryptography
import CredmgrPlatform

extension ImportSource {
  /// `.netrc`, which curl, git and ftp read.
  static let netrc = ImportSource(
    name: "netrc", title: ".netrc",
    files: { places in [places.path("NETRC") ?? places.inHome(".netrc")].compactMap { $0 } },
    read: { text throws(ImportFault) in NetrcReader(text).entries() })
}

/// The words of a `.netrc` file. Blanks separate them; a word in quotation marks may contain blanks.
private struct NetrcReader {
  private struct Word {
    let text: String
    let range: Range<Int>
  }

  private var words: [Word] = []
  private let bytes: [UInt8]

  init(_ file: ImportText) {
    bytes = file.bytes
    var position = 0
    var isMacro = false
    while position < bytes.count {
      let start = position
      switch bytes[position] {
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): position += 1
      case UInt8(ascii: "\n"):
        position += 1
        // An empty line ends a macro.
        if isMacro, position < bytes.count, bytes[position] == UInt8(ascii: "\n") { isMacro = false }
      case _ where isMacro: skipLine(&position)
      // A password may begin with this character.
      case UInt8(ascii: "#") where words.last.map({ !Self.takesValue($0.text) }) ?? true: skipLine(&position)
      case UInt8(ascii: "\""):
        let text = quotedWord(&position)
        words.append(Word(text: text, range: start..<position))
      default:
        while position < bytes.count, !" \t\r\n".utf8.contains(bytes[position]) { position += 1 }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        words.append(Word(text: text, range: start..<position))
        if text == "macdef" {
          isMacro = true
          skipLine(&position)
        }
      }
    }
  }

  private static func takesValue(_ word: String) -> Bool { ["machine", "login", "password", "account"].contains(word) }

  private func skipLine(_ position: inout Int) {
    while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
  }

  private func quotedWord(_ position: inout Int) -> String {
    var text: [UInt8] = []
    position += 1
    while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
      var byte = bytes[position]
      if byte == UInt8(ascii: "\\"), position + 1 < bytes.count {
        position += 1
        byte = ["n": 0x0A, "r": 0x0D, "t": 0x09][String(UnicodeScalar(bytes[position]))] ?? bytes[position]
      }
      text.append(byte)
      position += 1
    }
    position = min(position + 1, bytes.count)
    return String(decoding: text, as: UTF8.self)
  }

  func entries() -> [ImportEntry] {
    var found: [ImportEntry] = []
    var index = 0
    while index < words.count {
      let start = index
      guard ["machine", "default"].contains(words[index].text) else {
        index += 1
        continue
      }
      let isDefault = words[index].text == "default"
      let machine = isDefault || index + 1 == words.count ? "" : words[index + 1].text
      index += isDefault ? 1 : 2
      var values: [String: String] = [:]
      while index + 1 < words.count, ["login", "password", "account"].contains(words[index].text) {
        values[words[index].text] = words[index + 1].text
        index += 2
      }
      guard let password = values["password"], !password.isEmpty else { continue }
      if isDefault {
        found.append(ImportEntry("default", unsupported: .everyHost, user: values["login"]))
        continue
      }
      let host = importedHost(machine)
      guard !host.isEmpty else { continue }
      if host.hasPrefix("ftp.") {
        found.append(ImportEntry(host, unsupported: .fileServer, host: host, user: values["login"]))
        continue
      }
      // A macro belongs to the machine above it.
      let isFollowedByMacro = index < words.count && words[index].text == "macdef"
      let removal = isFollowedByMacro ? .none : ImportEntry.Removal.cut(ranges(start..<min(index, words.count)))
      let name = values["login"].map { $0 + "@" + host } ?? host
      found.append(
        ImportEntry(
          name, host: host, user: values["login"], kind: .password, use: .git, held: .value(Secret(password)),
          removal: removal))
    }
    return found
  }

  /// The bytes of these words with the blanks after them, without comments in between.
  private func ranges(_ indices: Range<Int>) -> [Range<Int>] {
    indices.map { index in
      var start = words[index].range.lowerBound
      var indented = start
      while indented > 0, " \t".utf8.contains(bytes[indented - 1]) { indented -= 1 }
      if indented == 0 || bytes[indented - 1] == UInt8(ascii: "\n") { start = indented }
      var end = words[index].range.upperBound
      while end < bytes.count, " \t\r".utf8.contains(bytes[end]) { end += 1 }
      let isLineStart = start == 0 || bytes[start - 1] == UInt8(ascii: "\n") || index > indices.lowerBound
      if isLineStart, end < bytes.count, bytes[end] == UInt8(ascii: "\n") { end += 1 }
      return start..<end
    }
  }
}

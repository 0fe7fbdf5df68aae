import CredmgrCryptography
import CredmgrHTTP
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// A tool's file: UTF-8 text that no other user could have written.
package struct ImportText: Sendable {
  package let path: String
  package let bytes: [UInt8]

  static let limit = 1 << 20

  package init(path: String, _ bytes: [UInt8]) throws(ImportFault) {
    // A file in UTF-16 contains zeros.
    guard bytes.count <= Self.limit else { throw .file(.tooLarge(path: path, limit: Self.limit)) }
    guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else { throw .file(.notText(path: path)) }
    (self.path, self.bytes) = (path, bytes)
  }

  /// Reads a file; `nil` if it does not exist. A link may lead to another of the user's files.
  package static func load(_ path: String) throws(ImportFault) -> ImportText? {
    do throws(POSIXError) {
      try PrivateFile.checkOurs(path)
      return try ImportText(path: path, loading: File.read(path, limit: limit, ordinary: true))
    } catch .notFound {
      return nil
    } catch { throw .file(error) }
  }

  private init(path: String, loading bytes: [UInt8]) throws(POSIXError) {
    do throws(ImportFault) { try self.init(path: path, bytes) } catch { throw .notText(path: path) }
  }

  /// The lines with the ranges of their bytes, which include the line ends.
  var lines: [ImportLine] {
    var lines: [ImportLine] = []
    var start = 0
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
      var content = bytes[start..<end]
      while content.last == UInt8(ascii: "\n") || content.last == UInt8(ascii: "\r") { content.removeLast() }
      // A byte order mark is not part of the first line.
      if start == 0, content.starts(with: [0xEF, 0xBB, 0xBF]) { content = content.dropFirst(3) }
      lines.append(ImportLine(text: String(decoding: content, as: UTF8.self), range: start..<end))
      start = end
    }
    return lines
  }

  /// Returns the bytes without these ranges.
  func without(_ ranges: [Range<Int>]) -> [UInt8] {
    var rest = bytes
    for range in ranges.sorted(by: { $0.lowerBound > $1.lowerBound }) where range.upperBound <= rest.count {
      rest.removeSubrange(range)
    }
    return rest
  }
}

struct ImportLine {
  let text: String
  let range: Range<Int>

  var trimmed: Substring { text[...].trimmed }
}

extension StringProtocol {
  /// The text without blanks at both ends.
  var trimmed: SubSequence {
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    var text = drop(while: isBlank)
    while let last = text.last, isBlank(last) { text.removeLast() }
    return text
  }
}

/// A section and the settings of an INI file, as npm, pip and AWS write them.
struct ImportSettings {
  struct Setting {
    let section: String
    let key: String
    let value: String
    let line: Range<Int>
  }

  var settings: [Setting] = []

  init(_ text: ImportText) {
    var section = ""
    for line in text.lines {
      let content = line.trimmed
      guard let first = content.first, first != "#", first != ";" else { continue }
      if first == "[" {
        section = content.last == "]" ? String(content.dropFirst().dropLast().trimmed) : String(content)
        continue
      }
      // An indented line continues the value above.
      guard line.text.first.map({ $0 != " " && $0 != "\t" }) == true,
        let sign = content.firstIndex(where: { $0 == "=" || ($0 == ":" && !content.hasPrefix("//")) })
      else { continue }
      let key = String(content[..<sign].trimmed)
      let value = String(content[content.index(after: sign)...].trimmed)
      settings.append(Setting(section: section, key: key, value: value, line: line.range))
    }
  }

  var sections: [String] {
    settings.map(\.section).reduce(into: []) { names, name in if !names.contains(name) { names.append(name) } }
  }

  func setting(_ key: String, in section: String) -> Setting? {
    settings.last { $0.section == section && $0.key == key }
  }
}

/// The host of an address in another tool's file, in lowercase and without the default port; empty if it has none.
func importedHost(_ address: String) -> String {
  let text = address.firstPlace(of: "://") == nil ? "https://" + address : address
  guard let uri = try? URI(parsing: text), ["https", "http"].contains(uri.scheme) else { return "" }
  return HostPattern.authority(uri) ?? ""
}

/// Reads `name:password` in Base64, as HTTP's Basic and several tools store it.
func importedPair(_ text: String) -> (user: String, password: Secret)? {
  guard let bytes = Base64.decode(text), let pair = String(validating: bytes, as: UTF8.self),
    let colon = pair.firstIndex(of: ":")
  else { return nil }
  let password = pair[pair.index(after: colon)...]
  // docker fills up with zeros.
  return (String(pair[..<colon]), Secret(String(password.prefix { $0 != "\0" })))
}

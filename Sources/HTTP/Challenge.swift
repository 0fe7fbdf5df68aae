import CredmgrText

/// One challenge of a refusing server (RFC 9110, 11.6.1): a scheme with parameters.
package struct Challenge: Sendable, Equatable, Redacted {
  package let scheme: String  // In lower case.
  /// The parameters, with names in lower case. A single token instead of parameters (`Negotiate YII=`) is left out.
  package private(set) var parameters = FormParameters()

  package var description: String { scheme }

  fileprivate init(scheme: String) { self.scheme = scheme }

  fileprivate mutating func add(_ name: String, _ value: String) { parameters.append(name, value) }

  /// Returns the value of a parameter; `nil` if it is missing, or if it occurs more than once (RFC 9110, 11.2).
  package subscript(_ name: String) -> String? {
    let values = parameters.values(of: name)
    return values.count == 1 ? values[0] : nil
  }

  /// Reads all challenges in the values of `WWW-Authenticate`. Several may share a value, and a comma separates both
  /// challenges and parameters. Skips text that is neither.
  package static func all(in values: [String]) -> [Challenge] {
    values.flatMap { value in
      var reader = ChallengeReader(Array(value.utf8))
      return reader.challenges()
    }
  }
}

extension HTTPResponse {
  /// The challenges of `WWW-Authenticate` (RFC 9110, 11.6.1).
  package var challenges: [Challenge] { Challenge.all(in: fields.values("WWW-Authenticate")) }
}

/// Reads one value of `WWW-Authenticate`. Each step consumes at least one byte.
private struct ChallengeReader {
  private let bytes: [UInt8]
  private var index = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func challenges() -> [Challenge] {
    var found: [Challenge] = []
    while true {
      skip { Self.isBlank($0) || $0 == UInt8(ascii: ",") }
      guard index < bytes.count else { return found }
      let word = take(while: Octet.isTokenCharacter)
      if word.isEmpty {
        // Not a name: skip to the next element of the list.
        skipElement()
        continue
      }
      skip(while: Self.isBlank)
      if peek() == UInt8(ascii: "="), !found.isEmpty {
        index += 1
        skip(while: Self.isBlank)
        found[found.count - 1].add(Octet.lowerCase(word), value())
        continue
      }
      found.append(Challenge(scheme: Octet.lowerCase(word)))
      skipToken()
    }
  }

  private func peek() -> UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func skip(while isSkipped: (UInt8) -> Bool) {
    while let byte = peek(), isSkipped(byte) { index += 1 }
  }

  private mutating func take(while isTaken: (UInt8) -> Bool) -> String {
    let start = index
    skip(while: isTaken)
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  /// Returns a quoted text without its escapes (RFC 9110, 5.6.4), or else the text until a blank or a comma: many
  /// servers send an address without quotes.
  private mutating func value() -> String {
    guard peek() == UInt8(ascii: "\"") else { return take { !Self.isBlank($0) && $0 != UInt8(ascii: ",") } }
    index += 1
    var text: [UInt8] = []
    while let byte = peek() {
      index += 1
      if byte == UInt8(ascii: "\"") { break }
      if byte == UInt8(ascii: "\\"), let escaped = peek() {
        text.append(escaped)
        index += 1
      } else {
        text.append(byte)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Skips the single token after a scheme (RFC 9110, 11.2); does nothing before a parameter.
  private mutating func skipToken() {
    let start = index
    skip { Octet.isTokenCharacter($0) || $0 == UInt8(ascii: "/") }
    skip { $0 == UInt8(ascii: "=") }
    skip(while: Self.isBlank)
    if let byte = peek(), byte != UInt8(ascii: ",") { index = start }
  }

  private mutating func skipElement() {
    while let byte = peek(), byte != UInt8(ascii: ",") {
      if byte == UInt8(ascii: "\"") { _ = value() } else { index += 1 }
    }
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}

import Glibc

/// The text of a file as C has it, to be searched faster than by collections. A NUL ends it.
package struct FileText: Sendable {
  private let characters: [CChar]

  package init(_ bytes: [UInt8]) {
    characters = unsafe bytes.withUnsafeBytes { unsafe Array($0.bindMemory(to: CChar.self)) } + [0]
  }

  /// Whether a word is in the text (strstr(3)).
  package func mentions(_ word: String) -> Bool { unsafe strstr(characters, word) != nil }
}

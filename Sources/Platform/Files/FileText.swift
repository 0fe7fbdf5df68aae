import Glibc

/// A file's text as a C string, which can be searched faster than Swift's collections. A NUL ends it.
package struct FileText: Sendable {
  private let characters: [CChar]

  package init(_ bytes: [UInt8]) {
    characters = unsafe bytes.withUnsafeBytes { unsafe Array($0.bindMemory(to: CChar.self)) } + [0]
  }

  /// Whether a word is in the text (strstr(3)).
  package func mentions(_ word: String) -> Bool { unsafe strstr(characters, word) != nil }
}

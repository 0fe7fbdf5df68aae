import CSodium

/// Where random bytes come from: a parameter, so that a test can know them.
package protocol RandomSource: Sendable {
  /// Bytes that nobody can foresee.
  func bytes(_ count: Int) -> [UInt8]
}

/// The random bytes of the operating system.
package struct SystemRandomSource: RandomSource {
  /// The source of the operating system.
  package init() {}

  /// Bytes of the operating system's generator.
  package func bytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    unsafe randombytes_buf(&bytes, count)
    return bytes
  }
}

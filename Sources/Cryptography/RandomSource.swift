import CSodium

/// Where random bytes come from: a parameter, so that a test can know them.
public protocol RandomSource: Sendable {
  /// Bytes that nobody can foresee.
  func bytes(_ count: Int) -> [UInt8]
}

/// The random bytes of the operating system.
public struct SystemRandomSource: RandomSource {
  /// The source of the operating system.
  public init() {}

  /// Bytes of the operating system's generator.
  public func bytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    unsafe randombytes_buf(&bytes, count)
    return bytes
  }
}

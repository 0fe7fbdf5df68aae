import CredmgrCSodium

/// A source of random bytes; tests replace it to get known bytes.
package protocol RandomSource: Sendable { func bytes(_ count: Int) -> [UInt8] }

package struct SystemRandomSource: RandomSource {
  package init() {}

  package func bytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    unsafe randombytes_buf(&bytes, count)
    return bytes
  }
}

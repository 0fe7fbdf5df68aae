import CredmgrCSodium

/// Base64 (RFC 4648, 4 and 5) without tables indexed by secret bits. Decoding accepts canonical encodings only: no
/// blanks, no line ends, no wrong padding, no stray bits.
package enum Base64 {
  package static func encode(_ bytes: [UInt8]) -> String { encode(bytes, sodium_base64_VARIANT_ORIGINAL) }

  package static func decode(_ text: String) -> [UInt8]? { decode(text, sodium_base64_VARIANT_ORIGINAL) }

  /// Decodes text that may have line ends, and leaves no copy of it.
  static func decode(_ text: Secret) -> Secret? {
    var status: Int32 = -1
    let bytes = unsafe Secret(unsafeCapacity: text.count) { buffer in
      guard let output = buffer.baseAddress else { return 0 }
      var count = 0
      status = text.withBytes { text in
        unsafe text.withUnsafeBufferPointer { text in
          unsafe sodium_base642bin(
            output, buffer.count, UnsafeRawPointer(text.baseAddress)?.assumingMemoryBound(to: CChar.self),
            text.count, "\n", &count, nil, sodium_base64_VARIANT_ORIGINAL)
        }
      }
      return count
    }
    return status == 0 ? bytes : nil
  }

  /// Encodes with the URL alphabet and without padding.
  package static func encodeURL(_ bytes: [UInt8]) -> String { encode(bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING) }

  package static func decodeURL(_ text: String) -> [UInt8]? { decode(text, sodium_base64_VARIANT_URLSAFE_NO_PADDING) }

  private static func encode(_ bytes: [UInt8], _ variant: Int32) -> String {
    var characters = [CChar](repeating: 0, count: sodium_base64_encoded_len(bytes.count, variant))
    unsafe sodium_bin2base64(&characters, characters.count, bytes, bytes.count, variant)
    return text(characters)
  }

  private static func decode(_ text: String, _ variant: Int32) -> [UInt8]? {
    let characters = text.utf8.map { CChar(bitPattern: $0) }
    var bytes = [UInt8](repeating: 0, count: characters.count)
    var count = 0
    let status = unsafe sodium_base642bin(&bytes, bytes.count, characters, characters.count, nil, &count, nil, variant)
    return status == 0 ? Array(bytes.prefix(count)) : nil
  }
}

package enum Hexadecimal {
  package static func encode(_ bytes: [UInt8]) -> String {
    var characters = [CChar](repeating: 0, count: bytes.count * 2 + 1)
    unsafe sodium_bin2hex(&characters, characters.count, bytes, bytes.count)
    return text(characters)
  }

  /// The bytes written as pairs of hexadecimal digits in either case, or `nil` if the text is anything else.
  package static func decode(_ text: String) -> [UInt8]? {
    let characters = text.utf8.map { CChar(bitPattern: $0) }
    guard characters.count.isMultiple(of: 2) else { return nil }
    var bytes = [UInt8](repeating: 0, count: characters.count / 2)
    let status = unsafe sodium_hex2bin(&bytes, bytes.count, characters, characters.count, nil, nil, nil)
    return status == 0 ? bytes : nil
  }
}

/// The text before the terminating zero that libsodium writes. Creating the type of a lazy collection instead of an
/// array would take a tenth of the time of a `token` call.
private func text(_ characters: [CChar]) -> String {
  String(decoding: characters.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

import CredmgrCryptography

/// Writes integers with the most significant byte first, and texts and lists with their lengths before them.
struct FieldWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append(raw more: [UInt8]) { bytes += more }

  mutating func append(_ number: Int64) {
    bytes += stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
  }

  mutating func append(_ list: [UInt8]) {
    append(Int64(list.count))
    bytes += list
  }

  mutating func append(_ text: String) { append(Array(text.utf8)) }

  mutating func append(_ secret: Secret?) {
    append(Int64(secret == nil ? 0 : 1))
    if let secret { append(secret.revealBytes()) }
  }
}

/// Reads the output of `FieldWriter`; a result of `nil` means that bytes are missing or wrong.
struct FieldReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  var remainder: [UInt8] { Array(rest) }

  mutating func raw(_ count: Int) -> [UInt8]? {
    guard count >= 0, rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func number() -> Int64? { raw(8)?.reduce(0) { $0 << 8 | Int64($1) } }

  mutating func list() -> [UInt8]? { number().flatMap { Int(exactly: $0) }.flatMap { raw($0) } }

  mutating func text() -> String? { list().flatMap { String(validating: $0, as: UTF8.self) } }

  /// A secret that may be missing; `nil` outside means wrong bytes.
  mutating func secret() -> Secret?? {
    switch number() {
    case 0: .some(nil)
    case 1: list().map { .some(Secret(bytes: $0)) }
    default: nil
    }
  }

  mutating func items<Item>(_ read: (inout FieldReader) -> Item?) -> [Item]? {
    guard let count = number(), count >= 0 else { return nil }
    var items: [Item] = []
    for _ in 0..<count {
      guard let item = read(&self) else { return nil }
      items.append(item)
    }
    return items
  }
}

extension SealingKey {
  /// A new nonce and the sealed plaintext, whose last 16 bytes are the tag.
  func sealed(
    _ plaintext: Secret, _ context: FieldWriter, random: any RandomSource
  ) throws(CryptographyError) -> [UInt8] {
    let nonce = random.bytes(Self.nonceByteCount)
    return try nonce + seal(plaintext, associatedData: context.bytes, nonce: nonce)
  }

  /// The plaintext, or `nil` if the bytes were altered.
  func opened(_ sealed: [UInt8], _ context: FieldWriter) -> Secret? {
    try? open(
      Array(sealed.dropFirst(Self.nonceByteCount)), associatedData: context.bytes,
      nonce: Array(sealed.prefix(Self.nonceByteCount)))
  }
}

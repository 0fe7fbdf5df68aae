/// Writes integers with the most significant byte first, and names with their length before them.
struct BinaryWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ byte: UInt8) { bytes.append(byte) }

  mutating func append(raw more: [UInt8]) { bytes += more }

  mutating func append(_ number: UInt16) { bytes += [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)] }

  mutating func append(_ number: Int64) {
    bytes += stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
  }

  /// Appends a name of at most 65535 bytes; callers check names from outside.
  mutating func append(name: String) {
    append(UInt16(clamping: name.utf8.count))
    bytes += name.utf8.prefix(Int(UInt16.max))
  }

  mutating func append(blob: [UInt8]) {
    append(Int64(blob.count))
    bytes += blob
  }
}

/// Reads the output of `BinaryWriter`; a result of `nil` means that bytes are missing.
struct BinaryReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func byte() -> UInt8? { rest.popFirst() }

  mutating func raw(_ count: Int) -> [UInt8]? { piece(count).map { Array($0) } }

  mutating func number16() -> UInt16? { piece(2).map { $0.reduce(0) { $0 << 8 | UInt16($1) } } }

  mutating func number64() -> Int64? { piece(8).map { $0.reduce(0) { $0 << 8 | Int64($1) } } }

  mutating func name() -> String? {
    guard let count = number16(), let bytes = piece(Int(count)) else { return nil }
    // ASCII needs no validation, which takes longer than this check.
    if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
    return String(validating: bytes, as: UTF8.self)
  }

  private mutating func piece(_ count: Int) -> ArraySlice<UInt8>? {
    guard rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }
}

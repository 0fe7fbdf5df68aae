/// A parameter of a statement in PostgreSQL's binary form.
package enum SQLParameter: Sendable {
  case bytes([UInt8]?)
  case integer(Int64)
  case text(String)
  case byteLists([[UInt8]])
  case integers([Int64])

  /// The number of the type in `pg_type`, which never changes.
  var type: UInt32 {
    switch self {
    case .bytes: 17
    case .integer: 20
    case .text: 25
    case .byteLists: 1001
    case .integers: 1016
    }
  }

  var bytes: [UInt8]? {
    switch self {
    case .bytes(let bytes): bytes
    case .integer(let number): Self.big(number)
    case .text(let text): Array(text.utf8)
    case .byteLists(let lists): Self.array(of: 17, lists)
    case .integers(let numbers): Self.array(of: 20, numbers.map(Self.big))
    }
  }

  private static func big(_ number: some FixedWidthInteger) -> [UInt8] {
    stride(from: number.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
  }

  /// One dimension, no nulls, the type of the elements, their number, the first index, and each with its length.
  private static func array(of type: Int32, _ elements: [[UInt8]]) -> [UInt8] {
    var bytes = big(1 as Int32) + big(0 as Int32) + big(type) + big(Int32(elements.count)) + big(1 as Int32)
    bytes.reserveCapacity(bytes.count + elements.reduce(0) { $0 + 4 + $1.count })
    for element in elements {
      bytes += big(Int32(element.count))
      bytes += element
    }
    return bytes
  }
}

/// A row of a result, with each column in PostgreSQL's binary form.
package struct SQLRow: Sendable {
  let columns: [[UInt8]?]

  package func bytes(_ column: Int) -> [UInt8]? { columns.indices.contains(column) ? columns[column] : nil }

  /// An integer of any width, or a truth value.
  package func integer(_ column: Int) -> Int64? {
    guard let bytes = bytes(column), (1...8).contains(bytes.count) else { return nil }
    return bytes.dropFirst().reduce(Int64(Int8(bitPattern: bytes[0]))) { $0 << 8 | Int64($1) }
  }

  package func text(_ column: Int) -> String? { bytes(column).map { String(decoding: $0, as: UTF8.self) } }
}

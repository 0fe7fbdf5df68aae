import Glibc

/// The program at the other end of a loopback connection, and the user who runs it, if the machine lists that.
struct LoopbackPeer {
  let socket: Int32
  var encryption: (any LoopbackEncryption)?

  enum Owner: Equatable {
    case own
    case root
    case other(user: UInt32)
    case gone  // The program has closed its end, so no program waits for an answer.
    case unknown  // The machine does not list the program (WSL, some containers).
  }

  func owner() -> Owner {
    guard let ours = unsafe SocketAddress(getsockname, socket), let theirs = unsafe SocketAddress(getpeername, socket)
    else { return .gone }
    var owner = Owner.unknown
    // A connection that opens or closes during the read may hide a line. So read the table up to three times.
    for _ in 0..<3 {
      // Reading a table is slow, and most peers are in the first one.
      owner = Self.owner(of: theirs, to: ours, in: ["/proc/net/tcp", "/proc/net/tcp6"].lazy.map(Self.read))
      if case .other = owner { break }
    }
    guard case .other(let user) = owner else { return owner }
    if user == geteuid() { return .own }
    // A user namespace shows all users that it does not map as the same user.
    return user == 0 ? .root : Self.isKnown(user, in: Self.read("/proc/self/uid_map")) ? owner : .unknown
  }

  /// Returns the owner of the connection from the lines of proc_net(5).
  static func owner(of theirs: SocketAddress, to ours: SocketAddress, in tables: some Sequence<[UInt8]>) -> Owner {
    var (isListed, isConnected) = (false, false)
    for line in tables.lazy.flatMap({ $0.split(separator: UInt8(ascii: "\n")) }) {
      let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 10)
      guard fields.count > 9 else { continue }
      if ours.isWritten(as: fields[1]) {
        // This is our listener, or our end of a connection. State 1 is ESTABLISHED.
        isListed = true
        isConnected = isConnected || (theirs.isWritten(as: fields[2]) && fields[3].elementsEqual("01".utf8))
      }
      guard theirs.isWritten(as: fields[1]), ours.isWritten(as: fields[2]),
        let user = UInt32(String(decoding: fields[7], as: UTF8.self))
      else { continue }
      // A socket that its program has closed has inode 0 and shows root as its owner.
      return fields[9].elementsEqual("0".utf8) ? .gone : .other(user: user)
    }
    return isListed && !isConnected ? .gone : .unknown
  }

  /// Whether the user namespace maps the user (user_namespaces(7)); `true` if the map cannot be read.
  static func isKnown(_ user: UInt32, in map: [UInt8]) -> Bool {
    let ranges = map.split(separator: UInt8(ascii: "\n")).map { line in
      line.split(separator: UInt8(ascii: " ")).compactMap { UInt64(String(decoding: $0, as: UTF8.self)) }
    }
    return ranges.isEmpty || ranges.contains { $0.count == 3 && ($0[0]..<($0[0] + $0[2])).contains(UInt64(user)) }
  }

  /// Returns the content of a kernel file; empty if it cannot be read.
  private static func read(_ path: String) -> [UInt8] {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return [] }
    defer { LoopbackSocket.close(file) }
    var result: [UInt8] = []
    while case .bytes(let bytes) = LoopbackSocket.read(file) { result += bytes }
    return result
  }
}

/// A loopback address and a port, in the forms of the kernel's tables.
struct SocketAddress {
  let port: UInt16
  private let forms: [[UInt8]]

  /// - Parameter bytes: the 4 or 16 bytes of the address in network order.
  init(_ bytes: [UInt8], port: UInt16) {
    self.port = port
    let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
    // A program may use an IPv6 socket to reach an IPv4 address.
    let all = bytes.count == 4 ? [bytes, mapped + bytes] : [bytes]
    forms = all.map { Array((Self.words($0) + ":" + Self.hexadecimal(UInt32(port), digits: 4)).utf8) }
  }

  init?(
    _ ask: (_ socket: Int32, _ address: UnsafeMutablePointer<sockaddr>, _ length: UnsafeMutablePointer<socklen_t>) ->
      Int32, _ socket: Int32
  ) {
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let code = unsafe withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
      guard let base = bytes.baseAddress else { return -1 }
      return unsafe ask(socket, base.assumingMemoryBound(to: sockaddr.self), &length)
    }
    guard code == 0 else { return nil }
    // The structures of both families have the port at the same offset.
    let port = UInt16(bigEndian: address.sin6_port)
    let bytes = unsafe withUnsafeBytes(of: &address) { unsafe Array($0) }
    switch Int32(address.sin6_family) {
    case AF_INET: self.init(Array(bytes[4..<8]), port: port)
    case AF_INET6: self.init(Array(bytes[8..<24]), port: port)
    default: return nil
    }
  }

  func isWritten(as field: ArraySlice<UInt8>) -> Bool { forms.contains { $0.elementsEqual(field) } }

  /// Returns the bytes as the kernel writes them: each four as one number in the byte order of this machine.
  private static func words(_ bytes: [UInt8]) -> String {
    stride(from: 0, to: bytes.count, by: 4).map { start in
      let word = bytes[start..<(start + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      return hexadecimal(UInt32(bigEndian: word), digits: 8)
    }.joined()
  }

  private static func hexadecimal(_ value: UInt32, digits: Int) -> String {
    let text = String(value, radix: 16, uppercase: true)
    return String(repeating: "0", count: digits - text.count) + text
  }
}

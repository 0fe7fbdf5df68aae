import Glibc

/// The program at the other end of a connection on loopback, as far as the machine says whose it is.
struct LoopbackPeer {
  let socket: Int32

  enum Owner: Equatable {
    case own
    case root
    case other(user: UInt32)
    case gone  // The program has closed its end, so nobody waits for an answer.
    case unknown  // The machine does not list the program (WSL, some containers).
  }

  func owner() -> Owner {
    guard let ours = unsafe SocketAddress(getsockname, socket), let theirs = unsafe SocketAddress(getpeername, socket)
    else { return .gone }
    var owner = Owner.unknown
    // While connections come and go, a line may be missing; who has gone between two lines is found by the next look.
    for _ in 0..<3 {
      // The kernel takes long for each table. Most peers are in the first.
      owner = Self.owner(of: theirs, to: ours, in: ["/proc/net/tcp", "/proc/net/tcp6"].lazy.map(Self.read))
      if case .other = owner { break }
    }
    guard case .other(let user) = owner else { return owner }
    if user == geteuid() { return .own }
    // A user namespace shows all users of the machine that it does not know as one.
    return user == 0 ? .root : Self.isKnown(user, in: Self.read("/proc/self/uid_map")) ? owner : .unknown
  }

  /// The owner of the connection by the lines of proc_net(5), without a look at who we are.
  static func owner(of theirs: SocketAddress, to ours: SocketAddress, in tables: some Sequence<[UInt8]>) -> Owner {
    var (isListed, isConnected) = (false, false)
    for line in tables.lazy.flatMap({ $0.split(separator: UInt8(ascii: "\n")) }) {
      let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 10)
      guard fields.count > 9 else { continue }
      if ours.isWritten(as: fields[1]) {
        // Our listener, or our end of a connection; state 1 is ESTABLISHED.
        isListed = true
        isConnected = isConnected || (theirs.isWritten(as: fields[2]) && fields[3].elementsEqual("01".utf8))
      }
      guard theirs.isWritten(as: fields[1]), ours.isWritten(as: fields[2]),
        let user = UInt32(String(decoding: fields[7], as: UTF8.self))
      else { continue }
      // A socket that its program has closed has no inode any more, and seems to be root's.
      return fields[9].elementsEqual("0".utf8) ? .gone : .other(user: user)
    }
    return isListed && !isConnected ? .gone : .unknown
  }

  /// Whether a user namespace (user_namespaces(7)) knows the user; without a readable map, it does.
  static func isKnown(_ user: UInt32, in map: [UInt8]) -> Bool {
    let ranges = map.split(separator: UInt8(ascii: "\n")).map { line in
      line.split(separator: UInt8(ascii: " ")).compactMap { UInt64(String(decoding: $0, as: UTF8.self)) }
    }
    return ranges.isEmpty || ranges.contains { $0.count == 3 && ($0[0]..<($0[0] + $0[2])).contains(UInt64(user)) }
  }

  /// The whole of a file of the kernel; empty if it cannot be read.
  private static func read(_ path: String) -> [UInt8] {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return [] }
    defer { LoopbackSocket.close(file) }
    var result: [UInt8] = []
    while case .bytes(let bytes) = LoopbackSocket.read(file) { result += bytes }
    return result
  }
}

/// An address of loopback and a port, in the forms in which the kernel's tables have them.
struct SocketAddress {
  let port: UInt16
  private let forms: [[UInt8]]

  /// - Parameter bytes: 4 or 16, in the order of the network.
  init(_ bytes: [UInt8], port: UInt16) {
    self.port = port
    let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
    // A program may reach an address of IPv4 by a socket of IPv6.
    let all = bytes.count == 4 ? [bytes, mapped + bytes] : [bytes]
    forms = all.map { Array((Self.words($0) + ":" + Self.hexadecimal(UInt32(port), digits: 4)).utf8) }
  }

  init?(_ ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32, _ socket: Int32) {
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let code = unsafe withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
      guard let base = bytes.baseAddress else { return -1 }
      return unsafe ask(socket, base.assumingMemoryBound(to: sockaddr.self), &length)
    }
    guard code == 0 else { return nil }
    // The port is at the same place in the structures of both families.
    let port = UInt16(bigEndian: address.sin6_port)
    let bytes = unsafe withUnsafeBytes(of: &address) { unsafe Array($0) }
    switch Int32(address.sin6_family) {
    case AF_INET: self.init(Array(bytes[4..<8]), port: port)
    case AF_INET6: self.init(Array(bytes[8..<24]), port: port)
    default: return nil
    }
  }

  func isWritten(as field: ArraySlice<UInt8>) -> Bool { forms.contains { $0.elementsEqual(field) } }

  /// Each four bytes are written as a number of this machine.
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

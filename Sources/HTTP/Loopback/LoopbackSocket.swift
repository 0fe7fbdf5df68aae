import CredmgrCPOSIX
import Glibc
import CredmgrText

/// Non-blocking stream sockets on loopback addresses.
enum LoopbackSocket {
  enum Family: Equatable {
    case ipv4
    case ipv6
  }

  /// Listens on the loopback address. Returns `nil` if the machine has no such address. Port 0 means any free port.
  static func listen(_ family: Family, port: UInt16) throws(HTTPError) -> (socket: Int32, port: UInt16)? {
    let socket = Glibc.socket(
      family == .ipv4 ? AF_INET : AF_INET6,
      Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    if socket < 0 {
      if errno == EAFNOSUPPORT { return nil }
      throw .system(call: "socket", code: errno)
    }
    // Allows the port although an earlier login left it in TIME_WAIT. On Linux, two programs still cannot share it.
    enable(SO_REUSEADDR, level: SOL_SOCKET, of: socket)
    if family == .ipv6 { enable(IPV6_V6ONLY, level: Int32(IPPROTO_IPV6), of: socket) }
    if bind(socket, family, port: port) != 0 || Glibc.listen(socket, 64) != 0 {
      let code = errno
      close(socket)
      if code == EADDRNOTAVAIL { return nil }
      if code == EADDRINUSE || code == EACCES { throw .portUnavailable(port: port) }
      throw .system(call: "bind", code: code)
    }
    guard let address = unsafe SocketAddress(getsockname, socket) else {
      let code = errno
      close(socket)
      throw .system(call: "getsockname", code: code)
    }
    return (socket, address.port)
  }

  private static func enable(_ option: Int32, level: Int32, of socket: Int32) {
    var on: Int32 = 1
    unsafe setsockopt(socket, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  private static func bind(_ socket: Int32, _ family: Family, port: UInt16) -> Int32 {
    switch family {
    case .ipv4:
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
      return unsafe withUnsafeBytes(of: &address) { unsafe bind(socket, $0) }
    case .ipv6:
      var address = sockaddr_in6()
      address.sin6_family = sa_family_t(AF_INET6)
      address.sin6_port = port.bigEndian
      address.sin6_addr = in6addr_loopback
      return unsafe withUnsafeBytes(of: &address) { unsafe bind(socket, $0) }
    }
  }

  private static func bind(_ socket: Int32, _ address: UnsafeRawBufferPointer) -> Int32 {
    guard let base = address.baseAddress else { return -1 }
    return unsafe Glibc.bind(socket, base.assumingMemoryBound(to: sockaddr.self), socklen_t(address.count))
  }

  /// Returns the next client; `nil` if none is waiting, or if the client disconnected.
  static func accept(_ listener: Int32) -> Int32? {
    let socket = Glibc.accept(listener, nil, nil)
    if socket < 0 { return nil }
    // Swift does not import accept4(2). No other thread starts a program between these calls.
    if fcntl(socket, F_SETFD, FD_CLOEXEC) != 0 || credmgr_set_nonblocking(socket) != 0 {
      close(socket)
      return nil
    }
    return socket
  }

  enum Reading: Equatable {
    case bytes([UInt8])
    case nothing  // No bytes are available now.
    case end  // The other side has closed the connection, or it is broken.
  }

  static func read(_ descriptor: Int32) -> Reading {
    var count = 0
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 16 * 1024) { buffer, initialized in
      count = unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      initialized = max(count, 0)
    }
    if count > 0 { return .bytes(bytes) }
    return count < 0 && [EAGAIN, EINTR].contains(errno) ? .nothing : .end
  }

  static func write(_ socket: Int32, _ bytes: ArraySlice<UInt8>) -> Int? {
    let count = unsafe bytes.withUnsafeBytes { unsafe send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    if count >= 0 { return count }
    return [EAGAIN, EINTR].contains(errno) ? 0 : nil
  }

  static func endOutput(_ socket: Int32) { shutdown(socket, Int32(SHUT_WR)) }

  static func close(_ socket: Int32) { _ = Glibc.close(socket) }

  struct Watch {
    let descriptor: Int32
    let forWriting: Bool
  }

  /// Returns whether each descriptor is ready. Waits until one is, the time has passed, or a signal comes.
  static func wait(_ watches: [Watch], atMost time: Duration) throws(HTTPError) -> [Bool] {
    var entries = watches.map { pollfd(fd: $0.descriptor, events: Int16($0.forWriting ? POLLOUT : POLLIN), revents: 0) }
    let count = unsafe poll(&entries, nfds_t(entries.count), max(.zero, time).millisecondsRoundedUp)
    if count < 0 {
      if errno == EINTR { return watches.map { _ in false } }
      throw .system(call: "poll", code: errno)
    }
    return entries.map { $0.revents != 0 }
  }
}

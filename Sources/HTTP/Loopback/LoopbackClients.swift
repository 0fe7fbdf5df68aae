import CredmgrText

/// Sockets that listen on loopback, and their clients. Each client sends one request and gets one answer.
struct LoopbackClients: ~Copyable {
  private let listeners: [Int32]
  /// The listener whose connections are encrypted, and a function that returns the encryption of a new one.
  private let encrypted: (listener: Int32, session: () -> (any LoopbackEncryption)?)?
  private var connections: [LoopbackConnection] = []
  private let limit: Int  // The most clients at the same time. One more client closes the oldest connection.
  private let requestLimit: Int
  private(set) var hasRefusedLongRequest = false
  private var asking: Int32?  // The socket of the request that `answer` will answer.

  struct Reply {
    var bytes: [UInt8]?  // Head and body; `nil` closes the connection without an answer.
    var delay = Duration.zero  // The time before the answer is sent.
  }

  init(
    listeners: [Int32], limit: Int, requestLimit: Int = LoopbackRequest.limit,
    encrypted: (listener: Int32, session: () -> (any LoopbackEncryption)?)? = nil
  ) {
    self.listeners = listeners
    self.encrypted = encrypted
    self.limit = limit
    self.requestLimit = requestLimit
  }

  deinit {
    for connection in connections { connection.close() }
    for listener in listeners { LoopbackSocket.close(listener) }
  }

  /// Serves all clients that are ready, and returns whether `input` is ready. Calls `reply` for each complete request.
  /// If that returns `nil`, this method returns, and the caller answers the request later with `answer`.
  mutating func wait(
    atMost time: Duration, alsoFor input: Int32? = nil, reply: (LoopbackRequest, LoopbackPeer) -> Reply?
  ) throws(HTTPError) -> Bool {
    let now = MonotonicMoment.now()
    for index in connections.indices.reversed() where connections[index].isExpired(now) {
      connections.remove(at: index).close()
    }
    let isDue = connections.compactMap(\.answerTime).min().map { $0 - now }
    let watches =
      listeners.map { LoopbackSocket.Watch(descriptor: $0, forWriting: false) }
      + connections.map { LoopbackSocket.Watch(descriptor: $0.socket, forWriting: $0.state == .answering) }
      + (input.map { [LoopbackSocket.Watch(descriptor: $0, forWriting: false)] } ?? [])
    let ready = try LoopbackSocket.wait(watches, atMost: min(time, isDue ?? time))
    for index in connections.indices.reversed()
    where ready[listeners.count + index] || connections[index].answerTime != nil {
      if serve(index, reply) { return false }
    }
    for (index, listener) in listeners.enumerated() where ready[index] { accept(listener) }
    return input != nil && ready[ready.count - 1]
  }

  /// Answers the request for which `reply` returned `nil`. Before this returns, it sends a last answer completely.
  mutating func answer(_ bytes: [UInt8], isLast: Bool) {
    defer { asking = nil }
    guard let asking, let index = connections.firstIndex(where: { $0.socket == asking }) else { return }
    connections[index].answer(bytes)
    if isLast { connections.remove(at: index).finish() }
  }

  private mutating func accept(_ listener: Int32) {
    guard let socket = LoopbackSocket.accept(listener) else { return }
    if connections.count == limit { connections.removeFirst().close() }
    let session = encrypted?.listener == listener ? encrypted?.session() : nil
    // Without memory for the encryption, the connection must not become a plain one.
    if encrypted?.listener == listener, session == nil { return LoopbackSocket.close(socket) }
    connections.append(
      LoopbackConnection(
        socket: socket, now: MonotonicMoment.now(), requestLimit: requestLimit, encryption: session))
  }

  /// Serves one connection. Returns whether its request will be answered later, so that no other client is served now.
  private mutating func serve(_ index: Int, _ reply: (LoopbackRequest, LoopbackPeer) -> Reply?) -> Bool {
    switch connections[index].advance() {
    case .goOn: hasRefusedLongRequest = hasRefusedLongRequest || connections[index].wasTooLong
    case .closed: connections.remove(at: index).close()
    case .request(let request):
      let peer = LoopbackPeer(socket: connections[index].socket, encryption: connections[index].encryption)
      guard let reply = reply(request, peer) else {
        asking = connections[index].socket
        return true
      }
      guard let bytes = reply.bytes else {
        connections.remove(at: index).close()
        break
      }
      connections[index].answer(bytes, after: reply.delay)
    }
    return false
  }
}

import CredmgrText

/// One client of the loopback receiver, which sends one request and gets one answer.
struct LoopbackConnection {
  enum State: Equatable {
    case reading
    case waiting(until: MonotonicMoment)
    case answering
    case ending  // The answer is sent. Closing now, with unread bytes, would discard the answer.
  }

  enum Step: Equatable {
    case goOn
    case request(LoopbackRequest)
    case closed
  }

  let socket: Int32
  let encryption: (any LoopbackEncryption)?
  private(set) var state = State.reading
  private var deadline: MonotonicMoment
  private var input: [UInt8] = []
  private var output: ArraySlice<UInt8> = []
  private let requestLimit: Int
  private(set) var wasTooLong = false  // Whether the request was refused for its length.

  /// The time for a whole request. A browser on the same machine needs milliseconds.
  static let requestTime = Duration.seconds(5)
  private static let sendingTime = Duration.seconds(2)

  init(
    socket: Int32, now: MonotonicMoment, requestLimit: Int = LoopbackRequest.limit,
    encryption: (any LoopbackEncryption)? = nil
  ) {
    self.socket = socket
    self.encryption = encryption
    self.requestLimit = requestLimit
    deadline = now + Self.requestTime
  }

  /// Whether the client took too long. A client that sent a part of a request gets an answer that says so.
  mutating func isExpired(_ now: MonotonicMoment) -> Bool {
    if now < deadline { return false }
    guard state == .reading, !input.isEmpty else { return true }
    answer(PageDocument.refusal(status: 408))
    return false
  }

  mutating func answer(_ bytes: [UInt8], after delay: Duration = .zero) {
    let time = MonotonicMoment.now() + delay
    state = delay > .zero ? .waiting(until: time) : .answering
    output = (encryption?.seal(bytes) ?? bytes)[...]
    input = []
    deadline = time + Self.sendingTime
  }

  var answerTime: MonotonicMoment? { if case .waiting(let time) = state { time } else { nil } }

  mutating func advance() -> Step {
    switch state {
    case .reading: return read()
    case .waiting(let time):
      if MonotonicMoment.now() < time { return LoopbackSocket.read(socket) == .end ? .closed : .goOn }
      state = .answering
      return .goOn
    case .answering:
      guard let count = LoopbackSocket.write(socket, output) else { return .closed }
      output = output.dropFirst(count)
      if output.isEmpty {
        LoopbackSocket.endOutput(socket)
        state = .ending
      }
      return .goOn
    case .ending: return LoopbackSocket.read(socket) == .end ? .closed : .goOn
    }
  }

  private mutating func read() -> Step {
    switch LoopbackSocket.read(socket) {
    case .nothing: return .goOn
    case .end: return .closed
    case .bytes(let bytes):
      guard let content = content(of: bytes) else { return .closed }
      input += content
      switch LoopbackRequest.parse(input, limit: requestLimit) {
      case .incomplete: return .goOn
      case .complete(let request): return .request(request)
      case .refused(let status):
        wasTooLong = status == 413 || status == 431
        answer(PageDocument.refusal(status: status))
        return .goOn
      }
    }
  }

  /// Returns what received bytes say, and replies to those of a handshake; `nil` if the connection has ended.
  private func content(of bytes: [UInt8]) -> [UInt8]? {
    guard let encryption else { return bytes }
    let (content, reply) = encryption.receive(bytes)
    // The reply fits the empty buffer of a new socket.
    let isSent = reply.isEmpty || LoopbackSocket.write(socket, reply[...]) == reply.count
    return isSent ? content : nil
  }

  /// Sends the rest of the answer within the time limit, and closes. The request must have been read completely.
  consuming func finish() {
    while state == .answering {
      let rest = deadline - MonotonicMoment.now()
      let watch = LoopbackSocket.Watch(descriptor: socket, forWriting: true)
      if rest <= .zero || (try? LoopbackSocket.wait([watch], atMost: rest)) == nil || advance() == .closed {
        break
      }
    }
    close()
  }

  func close() { LoopbackSocket.close(socket) }
}

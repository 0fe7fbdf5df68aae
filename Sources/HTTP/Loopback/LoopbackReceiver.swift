import CredmgrText

/// Waits on a loopback address for the redirect that ends an authorization (RFC 8252, section 7.3). A request that does
/// not fit gets a status of the 400s, and changes nothing.
package struct LoopbackReceiver: ~Copyable {
  /// The raw values stand in the redirect URI.
  package enum Interface: String, Sendable {
    case ipv4 = "127.0.0.1"
    case ipv6 = "[::1]"
    case localhost  // Both addresses, as far as the machine has them.
  }

  package enum Received: Sendable, Equatable {
    /// With a request: its parameters, without those of the redirect's own query. It wants a reply.
    case callback(FormParameters)
    /// The same, with what came in the query although the answer comes in the fragment. It can only be an error.
    case besideFragment(FormParameters)
    case intruder(user: UInt32)  // A program of another user came to an address of the login, and was refused.
    case reopened  // The person's browser opened the login page a second time, and was refused.
    case taken  // The login page was opened a second time, and who opened it first is not known.
    case line(String)  // With a line on the other descriptor, without its end and the blanks around it; never empty.
  }

  package let port: UInt16
  private var endpoint: LoopbackEndpoint
  /// Where the browser is led to, and who was led there.
  private var lead: (location: String, opener: LoopbackPeer.Owner?)?
  private var clients: LoopbackClients
  private var line: [UInt8] = []

  static let connectionLimit = 16  // How many clients are served at once; the oldest goes when there is one more.

  /// Listens at once: what comes before ``receive(within:alsoReading:isCancelled:)`` waits.
  /// `path` is that of the redirect URI as written; the parameters of its query, if it has one, must come back.
  /// With `relay`, a request without parameters gets a page that posts the fragment to us, and this value with it.
  package init(interface: Interface, port: UInt16?, path: String, relay: String? = nil) throws(HTTPError) {
    let listeners: [Int32]
    (listeners, self.port) = try Self.listen(interface, port)
    clients = LoopbackClients(listeners: listeners, limit: Self.connectionLimit)
    endpoint = LoopbackEndpoint(host: interface.rawValue, port: self.port, path: path, relay: relay)
  }

  /// Leads one browser to the page at `uri`; returns the address that leads it. All users of a machine can read a
  /// browser's arguments, but only the first program of ours gets the page's address. `name` must be a new random one.
  /// With `needsOrigin`, a form that does not say where it is from is no answer.
  package mutating func lead(to uri: URI, name: String, needsOrigin: Bool) -> String {
    let path = "/start/" + name
    (endpoint.provider, endpoint.start, endpoint.needsOrigin) = (uri.origin, path, needsOrigin)
    lead = (uri.text.harmlessAddress, nil)
    return "http://\(endpoint.authorities[0])\(path)"
  }

  private static func listen(_ interface: Interface, _ port: UInt16?) throws(HTTPError) -> ([Int32], UInt16) {
    let families: [LoopbackSocket.Family] =
      interface == .ipv4 ? [.ipv4] : interface == .ipv6 ? [.ipv6] : [.ipv4, .ipv6]
    var attempts = 16
    while true {
      attempts -= 1
      var sockets: [Int32] = []
      var chosen = port ?? 0
      do throws(HTTPError) {
        for family in families {
          guard let (socket, port) = try LoopbackSocket.listen(family, port: chosen) else { continue }
          sockets.append(socket)
          chosen = port
        }
        if sockets.isEmpty { throw .portUnavailable(port: chosen) }
        return (sockets, chosen)
      } catch {
        for socket in sockets { LoopbackSocket.close(socket) }
        // The free port of one address is taken on the other: another program would get half of the requests there.
        if port == nil, !sockets.isEmpty, attempts > 0 { continue }
        throw error
      }
    }
  }

  /// Waits for a redirect. May be called again, and goes on where it was.
  /// On `descriptor` the person may paste the redirect URI instead. Its end is no reason to stop.
  package mutating func receive(
    within time: Duration, alsoReading descriptor: Int32? = nil, isCancelled: () -> Bool = { false }
  ) throws(HTTPError) -> Received {
    let end = Duration.sinceBoot() + time
    let (endpoint, lead) = (endpoint, lead)
    var opener = lead?.opener
    defer { self.lead?.opener = opener }
    var input = descriptor
    while true {
      if isCancelled() { throw .interrupted }
      if let line = nextLine() { return .line(line) }
      let now = Duration.sinceBoot()
      if now >= end { throw .receiverTimedOut }
      var found: Received?
      let isInputReady = try clients.wait(atMost: min(end - now, .milliseconds(200)), alsoFor: input) { request, peer in
        let answer = endpoint.answer(request)
        if case .refusal(let status) = answer {
          return LoopbackClients.Reply(bytes: PageDocument.refusal(status: status))
        }
        let owner = peer.owner()
        switch (answer, owner) {
        case (_, .gone): return LoopbackClients.Reply(bytes: nil)
        case (_, .other(let user)):
          found = .intruder(user: user)
          return LoopbackClients.Reply(bytes: PageDocument.refusal(status: 403))
        case (.relay(let value), _):
          return LoopbackClients.Reply(bytes: PageDocument.response(status: 200, .relay, relay: value))
        case (.start, _):
          guard let first = opener else {
            opener = owner
            return LoopbackClients.Reply(bytes: PageDocument.redirection(to: lead?.location ?? ""))
          }
          found = first == .own && owner == .own ? .reopened : .taken
        case (.parameters(let parameters), _): found = .callback(parameters)
        case (.besideFragment(let parameters), _): found = .besideFragment(parameters)
        case (.refusal, _): break
        }
        return nil
      }
      if let found {
        let isTaken = found == .taken
        if isTaken || found == .reopened {
          clients.answer(PageDocument.response(status: 410, .opened), isLast: isTaken)
        }
        return found
      }
      if let open = input, isInputReady, !readLine(open) { input = nil }
    }
  }

  /// Answers the request that was received last. The whole page of an awaited one is sent before this returns.
  package mutating func reply(_ page: Page, isAwaited: Bool) {
    clients.answer(PageDocument.response(status: isAwaited ? 200 : 400, page), isLast: isAwaited)
  }

  /// False at the end of the input; what stands there without an end of line counts as a line.
  private mutating func readLine(_ input: Int32) -> Bool {
    switch LoopbackSocket.read(input) {
    case .nothing: return true
    case .bytes(let bytes):
      line += bytes
      // No URL is that long. It goes, and its end will be no URL either.
      if line.count > LoopbackRequest.limit { line = [] }
      return true
    case .end:
      line.append(UInt8(ascii: "\n"))
      return false
    }
  }

  private mutating func nextLine() -> String? {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
    while let end = line.firstIndex(of: UInt8(ascii: "\n")) {
      let text = line[..<end].drop(while: isBlank)
      line.removeSubrange(...end)
      if let last = text.lastIndex(where: { !isBlank($0) }) {
        return String(decoding: text[...last], as: UTF8.self)
      }
    }
    return nil
  }
}

import CredmgrText

/// Waits on a loopback address for the redirect that ends an authorization (RFC 8252, section 7.3).
///
/// A request that does not belong to the login gets a 4xx status and changes nothing.
package struct LoopbackReceiver: ~Copyable {
  /// The raw values are hosts of redirect URIs.
  package enum Interface: String, Sendable {
    case ipv4 = "127.0.0.1"
    case ipv6 = "[::1]"
    case localhost  // The IPv4 and the IPv6 address, if the machine has both.
  }

  package enum Received: Sendable, Equatable {
    /// The parameters of the redirect, without those of the redirect URI's own query. The request needs a reply.
    case callback(FormParameters)
    /// Parameters of a query, although the answer should come in the fragment. They can only be an error.
    case besideFragment(FormParameters)
    case intruder(user: UInt32)  // A program of another user requested an address of the login, and was refused.
    case tooLong  // A request was longer than the limit, and was refused. It may be the answer.
    case reopened  // The user's browser opened the login page a second time, and was refused.
    case taken  // The login page was opened a second time, and the first program is unknown.
    case line(String)  // A line from the other file descriptor, without blanks around it; never empty.
  }

  package let port: UInt16
  private var endpoint: LoopbackEndpoint
  /// The page to which the browser is redirected, and the owner of the program that requested it first.
  private var lead: (location: String, opener: LoopbackPeer.Owner?)?
  private var hasToldLongRequest = false
  private var clients: LoopbackClients
  private var line: [UInt8] = []

  static let connectionLimit = 16  // One more client closes the oldest connection.

  /// Listens immediately. Earlier requests wait for ``receive(within:alsoReading:isCancelled:)``.
  ///
  /// - Parameters:
  ///   - path: the path of the redirect URI as written. A redirect must repeat the parameters of its query.
  ///   - relay: the value that a page posts together with the fragment. A request without parameters gets that page.
  package init(interface: Interface, port: UInt16?, path: String, relay: String? = nil) throws(HTTPError) {
    let listeners: [Int32]
    (listeners, self.port) = try Self.listen(interface, port)
    clients = LoopbackClients(listeners: listeners, limit: Self.connectionLimit)
    endpoint = LoopbackEndpoint(host: interface.rawValue, port: self.port, path: path, relay: relay)
  }

  /// Redirects one browser to the page at `uri`, and returns the local address to open.
  ///
  /// All users of a machine can read a browser's arguments, so only the first program of this user gets the page's
  /// address.
  ///
  /// - Parameters:
  ///   - name: a new random name for the local address.
  ///   - needsOrigin: whether to refuse a form without an `Origin` field.
  package mutating func lead(to uri: URI, name: String, needsOrigin: Bool) -> String {
    let path = "/start/" + name
    (endpoint.provider, endpoint.start, endpoint.needsOrigin) = (uri.origin, path, needsOrigin)
    lead = (uri.text.harmlessAddress, nil)
    return "http://\(endpoint.authorities[0])\(path)"
  }

  /// Waits until a browser got the page's address. Returns whether a program of this user got it.
  package mutating func leads(within time: Duration, isCancelled: () -> Bool = { false }) throws(HTTPError) -> Bool {
    let end = MonotonicMoment.now() + time
    while lead?.opener == nil, MonotonicMoment.now() < end {
      do throws(HTTPError) {
        _ = try receive(within: min(end - MonotonicMoment.now(), .milliseconds(200)), isCancelled: isCancelled)
      } catch .receiverTimedOut {
        continue
      }
    }
    return lead?.opener != nil
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
        // Another program uses this port on the other address, and would get some of the requests.
        if port == nil, !sockets.isEmpty, attempts > 0 { continue }
        throw error
      }
    }
  }

  /// Waits for a redirect. A further call continues the wait.
  ///
  /// The user may paste the redirect URI on `descriptor` instead. The wait continues when that input ends.
  package mutating func receive(
    within time: Duration, alsoReading descriptor: Int32? = nil, isCancelled: () -> Bool = { false }
  ) throws(HTTPError) -> Received {
    let end = MonotonicMoment.now() + time
    let (endpoint, lead) = (endpoint, lead)
    var opener = lead?.opener
    defer { self.lead?.opener = opener }
    var input = descriptor
    while true {
      if isCancelled() { throw .interrupted }
      if let line = nextLine() { return .line(line) }
      let now = MonotonicMoment.now()
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
      if clients.hasRefusedLongRequest, !hasToldLongRequest {
        hasToldLongRequest = true
        return .tooLong
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

  /// Answers the last request. If it was the awaited one, sends the whole page before returning.
  package mutating func reply(_ page: Page, isAwaited: Bool) {
    clients.answer(PageDocument.response(status: isAwaited ? 200 : 400, page), isLast: isAwaited)
  }

  /// Reads from the input, and returns whether more can follow. The last line may lack a line end.
  private mutating func readLine(_ input: Int32) -> Bool {
    switch LoopbackSocket.read(input) {
    case .nothing: return true
    case .bytes(let bytes):
      line += bytes
      // No URL is that long, so skip the line.
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

import HTTP
import Platform

/// The body of a request that comes from a file or from standard input, and says how far it is.
final class RequestBody: HTTPBodySource {
  private let file: FileBody
  private let progress: TransferProgress
  var length: Int64 { file.length }

  init(_ file: FileBody, _ progress: TransferProgress) {
    self.file = file
    self.progress = progress
  }

  func read(atMost count: Int) throws(HTTPError) -> [UInt8] {
    do throws(POSIXError) {
      let piece = try file.read(atMost: count)
      progress.sent(piece.count, of: length)
      return piece
    } catch {
      guard case .system(let call, _, let code) = error else { throw .system(call: "read", code: 0) }
      throw .system(call: call, code: code)
    }
  }

  func rewind() {
    file.rewind()
    progress.restart()
  }
}

/// Tells a person at a terminal how far a long transfer is: one line on standard error, which is gone at the end.
///
/// Nothing is told in the first second, nor where the answer is written to the terminal itself.
final class TransferProgress {
  private let clock: any WallClock
  private let isShown: Bool
  private let started: Double
  private var lastShown = 0.0
  private var sentBytes: Int64 = 0
  private var receivedBytes: Int64 = 0
  private var expectedBytes: Int64?

  init(_ clock: any WallClock, isShown: Bool = Terminal.isTerminal(2) && !Terminal.isTerminal(1)) {
    self.clock = clock
    self.isShown = isShown
    started = isShown ? clock.monotonic() : 0
  }

  func sent(_ count: Int, of length: Int64) {
    sentBytes += Int64(count)
    show("sent", sentBytes, of: length)
  }

  func begins(_ head: HTTPResponse) {
    // With a content coding, the length is not that of what is written.
    expectedBytes = head.fields["Content-Encoding"] == nil ? head.fields["Content-Length"].flatMap { Int64($0) } : nil
  }

  func received(_ count: Int) {
    receivedBytes += Int64(count)
    show("received", receivedBytes, of: expectedBytes)
  }

  func restart() {
    sentBytes = 0
    receivedBytes = 0
  }

  /// Takes the line away.
  func end() {
    if lastShown > 0 { Terminal.writeError("\r\u{1B}[K") }
    lastShown = 0
  }

  private func show(_ verb: String, _ count: Int64, of length: Int64?) {
    guard isShown else { return }
    let now = clock.monotonic()
    guard now - started >= 1, now - lastShown >= 0.2 else { return }
    lastShown = now
    Terminal.writeError("\rcredmgr: " + Self.sentence(verb, count, of: length) + "\u{1B}[K")
  }

  static func sentence(_ verb: String, _ count: Int64, of length: Int64?) -> String {
    func megabytes(_ count: Int64) -> String { "\(count / 1_000_000).\(count / 100_000 % 10) MB" }
    guard let length, length > 0 else { return "\(verb) \(megabytes(count))" }
    return "\(verb) \(megabytes(count)) of \(megabytes(length)) (\(min(count * 100 / length, 100)) %)"
  }
}

import CredmgrHTTP
import CredmgrPlatform
import CredmgrText

final class RequestBody: HTTPBodySource {
  private let file: FileBody
  private let progress: TransferProgress
  var length: Int64 { file.length }

  init(_ file: FileBody, _ progress: TransferProgress) {
    self.file = file
    self.progress = progress
    progress.begin(of: file.length)
  }

  func read(atMost count: Int) throws(HTTPError) -> [UInt8] {
    do throws(POSIXError) {
      let piece = try file.read(atMost: count)
      progress.advance("sent", by: piece.count)
      return piece
    } catch {
      guard case .system(let call, _, let code) = error else { throw .system(call: "read", code: 0) }
      throw .system(call: call, code: code)
    }
  }

  func rewind() {
    file.rewind()
    progress.begin(of: length)
  }
}

/// Shows the progress of a transfer at a terminal, as one line on standard error, after the first second. Skipped if
/// the answer itself goes to the terminal.
final class TransferProgress {
  private let clock: any WallClock
  private let isShown: Bool
  private let started: MonotonicMoment
  private var lastShown: MonotonicMoment?
  private var count: Int64 = 0
  private var length: Int64?

  init(_ clock: any WallClock) {
    self.clock = clock
    isShown = Terminal.isTerminal(2) && !Terminal.isTerminal(1)
    started = clock.monotonic()
  }

  func begin(of length: Int64?) {
    count = 0
    self.length = length
  }

  func advance(_ verb: String, by bytes: Int) {
    count += Int64(bytes)
    guard isShown else { return }
    let now = clock.monotonic()
    guard now - started >= .seconds(1), lastShown.map({ now - $0 >= .milliseconds(200) }) ?? true else { return }
    lastShown = now
    Terminal.writeError("\rcredmgr: " + Self.sentence(verb, count, of: length) + "\u{1B}[K")
  }

  func end() {
    if lastShown != nil { Terminal.writeError("\r\u{1B}[K") }
    lastShown = nil
  }

  private static func sentence(_ verb: String, _ count: Int64, of length: Int64?) -> String {
    func megabytes(_ count: Int64) -> String { "\(count / 1_000_000).\(count / 100_000 % 10) MB" }
    guard let length, length > 0 else { return "\(verb) \(megabytes(count))" }
    return "\(verb) \(megabytes(count)) of \(megabytes(length)) (\(min(count * 100 / length, 100)) %)"
  }
}

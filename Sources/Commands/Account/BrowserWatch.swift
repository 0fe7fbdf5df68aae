import Platform

/// A browser that was started, for as long as its end means that it has failed.
struct BrowserWatch {
  /// How it goes.
  enum State {
    /// It runs.
    case waits
    /// It ended with this status.
    case ended(command: String, status: Int32)
    /// Its end is of no interest any more, or cannot be seen.
    case over
  }

  private let command: String
  private let program: Launcher.Launched
  private let end: Double

  /// - Parameter end: until when, in seconds of the monotonic clock.
  init(_ command: String, _ program: Launcher.Launched, until end: Double) {
    self.command = command
    self.program = program
    self.end = end
  }

  /// Asks the system, and reaps a browser that has ended.
  func poll(_ now: Double) -> State {
    if now > end { return .over }
    do throws(POSIXError) {
      return try program.status(within: 0).map { .ended(command: command, status: $0) } ?? .waits
    } catch {
      return .over
    }
  }
}

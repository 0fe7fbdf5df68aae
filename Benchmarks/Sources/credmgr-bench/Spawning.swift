import Glibc

/// Times of many processes at once.
///
/// They are started from here and not from Python: who starts 64 processes one after the other is one of those that share the cores,
/// and is to take as little of them as can be.
enum Spawning {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// JSON: the median milliseconds of one process, and of that many at once, from the start of the first to the end of the last.
  static func report(processes: Int, rounds: Int, command: [String]) throws -> String {
    var one: [Double] = []
    var all: [Double] = []
    // In turn, so that what else the machine does meets both alike.
    for round in 0..<rounds {
      for _ in 0..<10 { one.append(try time(1, command)) }
      let wall = try time(processes, command)
      if round > 0 { all.append(wall) }
    }
    return "{\"single\": \(median(one)), \"wall\": \(median(all))}"
  }

  private static func median(_ times: [Double]) -> Double { times.sorted()[times.count / 2] }

  private static func time(_ processes: Int, _ command: [String]) throws -> Double {
    let start = now()
    for _ in 0..<processes { try spawn(command) }
    for _ in 0..<processes {
      var status: Int32 = 0
      guard unsafe wait(&status) > 0, status == 0 else { throw Failure(description: "one of many failed: \(status)") }
    }
    return now() - start
  }

  private static func spawn(_ command: [String]) throws {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    for stream: Int32 in 0...2 {
      unsafe posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", stream == 0 ? O_RDONLY : O_WRONLY, 0)
    }
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe command.map { unsafe strdup($0) }
    defer { unsafe arguments.forEach { unsafe free($0) } }
    unsafe arguments.append(nil)
    var process: pid_t = 0
    let code = unsafe posix_spawn(&process, command[0], &actions, nil, arguments, environ)
    if code != 0 { throw Failure(description: "\(command[0]) cannot be started: \(code)") }
  }

  /// Milliseconds of a clock that nobody sets.
  private static func now() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) * 1e3 + Double(time.tv_nsec) / 1e6
  }
}

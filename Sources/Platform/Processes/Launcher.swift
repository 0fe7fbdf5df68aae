import CredmgrCPOSIX
import Glibc
import CredmgrText

/// Starts other programs without a shell, so that arguments arrive unchanged.
package enum Launcher {
  /// The file of a command in `PATH`; a name with a slash is already a file.
  package static func find(_ command: String, path: String? = Environment.value("PATH")) throws(POSIXError) -> String {
    if command.utf8.contains(UInt8(ascii: "/")) {
      if File.isExecutable(command) { return command }
      throw .commandNotFound(command)
    }
    if !command.isEmpty {
      for folder in (path ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":") {
        let file = Path.joining(String(folder), command)
        if File.isExecutable(file) { return file }
      }
    }
    throw .commandNotFound(command)
  }

  package struct Completion: Sendable, Equatable {
    /// The exit status, or 128 plus the number of the signal that ended the program.
    package let status: Int32
    package let output: [UInt8]
  }

  package enum StandardErrors: Sendable {
    case shown
    case silenced
    case withOutput
  }

  /// Runs a program to its end. After `timeout` this also kills its child processes, for which readers of our standard
  /// error would otherwise wait.
  package static func run(
    _ command: String, _ arguments: [String], input: [UInt8] = [], environment: [String: String] = Environment.all(),
    timeout: Duration = .seconds(60), limit: Int = 1 << 20, errors: StandardErrors = .shown
  ) throws(POSIXError) -> Completion {
    let file = try find(command)
    // Uses a file in memory instead of a pipe, so that reading the output cannot block on the input or fail with it.
    let memory = try Descriptor.inMemory(input)
    var ends: [Int32] = [-1, -1]
    if unsafe pipe(&ends) != 0 { throw Descriptor.failure("pipe", nil) }
    let reading = Descriptor(owning: ends[0])
    let child: pid_t
    do {
      let writing = Descriptor(owning: ends[1])
      for end in ends where fcntl(end, F_SETFD, FD_CLOEXEC) != 0 {
        throw Descriptor.failure("fcntl", nil)
      }
      let error =
        switch errors {
        case .shown: STDERR_FILENO
        case .silenced: -1 as Int32
        case .withOutput: writing.number
        }
      child = try spawn(
        file, [command] + arguments, environment: environment, input: memory.number, output: writing.number,
        error: error,
        ownSession: false)
    }
    do throws(POSIXError) {
      let end = SystemClock().monotonic() + timeout
      let output = try read(reading, until: end, limit: limit)
      // The program may have closed its output and still run.
      return Completion(status: try status(of: child, until: end), output: output)
    } catch {
      let family = [child] + descendants(of: child)
      for process in family { kill(process, SIGTERM) }
      // Programs that ignore SIGTERM get half a second.
      let hasEnded = try status(of: child, within: .milliseconds(500)) != nil
      // The remaining processes are the same ones, because the kernel does not reuse process numbers that quickly.
      for process in hasEnded ? family.dropFirst() : family[...] where kill(process, 0) == 0 { kill(process, SIGKILL) }
      if !hasEnded { _ = try status(of: child, within: nil) }
      throw error
    }
  }

  /// Starts a program that outlives us, in its own session and without our streams.
  package static func launch(
    _ command: String, _ arguments: [String], environment: [String: String] = Environment.all()
  ) throws(POSIXError) -> Launched {
    Launched(
      process: try spawn(
        try find(command, path: environment["PATH"]), [command] + arguments, environment: environment, input: -1,
        output: -1,
        error: -1, ownSession: true))
  }

  package struct Launched: Sendable {
    fileprivate let process: pid_t

    /// The exit status, or `nil` if the program still runs after that time. Do not call this again after it returned a
    /// status.
    package func status(within time: Duration) throws(POSIXError) -> Int32? {
      try Launcher.status(of: process, within: time)
    }
  }

  /// Replaces this process with a program (execve(2)). `arguments` begins with the program's name. A file without `#!`
  /// is a shell script, as for execvp(3).
  package static func replaceProcess(
    _ path: String, _ arguments: [[UInt8]], environment: [[UInt8]] = Environment.entries()
  ) throws(POSIXError) -> Never {
    let list = try CStringList(bytes: arguments)
    let variables = try CStringList(bytes: environment)
    let script = try CStringList(bytes: [Array("sh".utf8), Array(path.utf8)] + arguments.dropFirst())
    Signals.restoreDefaults()
    unsafe execve(path, list.base, variables.base)
    if errno == ENOEXEC { unsafe execve("/bin/sh", script.base, variables.base) }
    throw Descriptor.failure("execve", path)
  }

  private static func spawn(
    _ file: String, _ arguments: [String], environment: [String: String], input: Int32, output: Int32,
    error: Int32, ownSession: Bool
  ) throws(POSIXError) -> pid_t {
    let list = try CStringList(arguments)
    let variables = try CStringList(environment: environment)
    var child: pid_t = 0
    let code = unsafe credmgr_spawn(&child, file, list.base, variables.base, input, output, error, ownSession ? 1 : 0)
    if code == ENOENT { throw .commandNotFound(arguments.first ?? file) }
    if code != 0 { throw .system(call: "posix_spawn", path: file, code: code) }
    return child
  }

  private static func read(_ pipe: borrowing Descriptor, until end: MonotonicMoment, limit: Int) throws(POSIXError)
    -> [UInt8]
  {
    var output: [UInt8] = []
    while true {
      let rest = end - SystemClock().monotonic()
      if rest <= .zero { throw .timedOut }
      if Signals.isInterrupted { throw .interrupted }
      var waiting = pollfd(fd: pipe.number, events: Int16(POLLIN), revents: 0)
      let count = unsafe poll(&waiting, 1, min(rest, .milliseconds(200)).millisecondsRoundedUp)
      if count < 0, errno != EINTR { throw Descriptor.failure("poll", nil) }
      guard count > 0 else { continue }
      let piece = try pipe.readSome(nil, atMost: 16 * 1024)
      if piece.isEmpty { return output }
      output += piece
      if output.count > limit { throw .tooLarge(path: "-", limit: limit) }
    }
  }

  /// All descendants of a process; empty if the system does not list them.
  private static func descendants(of ancestor: pid_t) -> [pid_t] {
    var children: [pid_t: [pid_t]] = [:]
    for process in ((try? File.names(in: "/proc")) ?? []).compactMap({ pid_t($0) }) {
      if let parent = ParentProcess.parent(of: process) { children[parent, default: []].append(process) }
    }
    var found: [pid_t] = []
    var next = children[ancestor] ?? []
    while let process = next.popLast() {
      found.append(process)
      next += children[process] ?? []
    }
    return found
  }

  private static func status(of child: pid_t, until end: MonotonicMoment) throws(POSIXError) -> Int32 {
    while true {
      if Signals.isInterrupted { throw .interrupted }
      let rest = end - SystemClock().monotonic()
      if let status = try status(of: child, within: min(rest, .milliseconds(200))) { return status }
      if rest <= .zero { throw .timedOut }
    }
  }

  private static func status(of child: pid_t, within time: Duration?) throws(POSIXError) -> Int32? {
    let clock = SystemClock()
    let end = time.map { clock.monotonic() + $0 }
    // Most programs end immediately.
    var pause = timespec(tv_sec: 0, tv_nsec: 100_000)
    while true {
      var status: Int32 = 0
      let ended = unsafe waitpid(child, &status, WNOHANG)
      if ended == child { return credmgr_wait_exit_status(status) }
      if ended < 0, errno != EINTR { throw Descriptor.failure("waitpid", nil) }
      if let end, clock.monotonic() >= end { return nil }
      unsafe nanosleep(&pause, nil)
      pause.tv_nsec = min(pause.tv_nsec * 2, 10_000_000)
    }
  }
}

extension Launcher {
  /// Makes standard input begin with these bytes again, for a program that replaces this one after it has read them.
  package static func replaceStandardInput(with bytes: [UInt8]) throws(POSIXError) {
    let memory = try Descriptor.inMemory(bytes)
    if dup2(memory.number, 0) < 0 { throw Descriptor.failure("dup2", nil) }
  }
}

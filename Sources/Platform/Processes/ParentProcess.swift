import Glibc

package enum ParentProcess {
  /// The arguments of the processes above this one, the nearest first; empty if the system does not tell.
  package static func argumentsOfAncestors(limit: Int = 8) -> [[String]] {
    var found: [[String]] = []
    var process = getppid()
    while process > 1, found.count < limit {
      guard let bytes = try? File.read("/proc/\(process)/cmdline", limit: 1 << 16) else { break }
      found.append(bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) })
      guard let parent = parent(of: process) else { break }
      process = parent
    }
    return found
  }

  static func parent(of process: pid_t) -> pid_t? { fields(of: process)?.dropFirst().first.flatMap { pid_t($0) } }

  /// Whether a process has ended or has another parent. A busy system that cannot say so changes nothing.
  static func hasLost(
    _ process: pid_t, parent: pid_t, read: (String) throws(POSIXError) -> [UInt8] = status
  ) -> Bool {
    do throws(POSIXError) {
      let found = fields(in: try read("/proc/\(process)/stat"))?.dropFirst().first.flatMap { pid_t($0) }
      return found.map { $0 != parent } ?? false
    } catch .notFound, .system(_, _, ESRCH) {
      return true
    } catch {
      return false
    }
  }

  private static func status(_ path: String) throws(POSIXError) -> [UInt8] { try File.read(path, limit: 4096) }

  /// The first 15 bytes of the parent program's name (proc(5), `comm`), or `nil` if the system does not tell.
  package static var name: String? { name(of: getppid()) }

  fileprivate static func name(of process: pid_t) -> String? {
    guard let bytes = try? File.read("/proc/\(process)/comm", limit: 64) else { return nil }
    let name = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    return name.isEmpty ? nil : name
  }

  /// The identity of the parent process, or `nil` if the system does not tell.
  package static var identity: ProcessIdentity? {
    let process = getppid()
    guard process > 1, let start = fields(of: process)?.dropFirst(19).first else { return nil }
    return ProcessIdentity(number: process, start: start, program: Path.resolved("/proc/\(process)/exe") ?? "")
  }

  /// The fields of proc(5), `stat`, for a process, beginning with the third.
  private static func fields(of process: pid_t) -> [String]? {
    (try? status("/proc/\(process)/stat")).flatMap(fields)
  }

  private static func fields(in status: [UInt8]) -> [String]? {
    // The name in parentheses may contain any character.
    guard let end = status.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    return String(decoding: status[(end + 1)...], as: UTF8.self).split(separator: " ").map(String.init)
  }
}

/// A program in a process, distinct from earlier programs in that process and from all processes with the same number
/// since boot.
package struct ProcessIdentity: Sendable, Equatable {
  package let number: Int32
  /// The start time in ticks since boot (proc(5), `starttime`).
  package let start: String
  /// The program, because a wrapper replaces itself with another program, whose first request is then a new one.
  package let program: String

  package init(number: Int32, start: String, program: String) {
    self.number = number
    self.start = start
    self.program = program
  }
}

/// The number of this process.
package var ownProcess: Int32 { getpid() }

/// The parent processes that wait for the result of this one. If one of them is killed, its children get no signal.
package struct WaitingPrograms: Sendable {
  /// This process, its parent, and so on, as they were at the beginning.
  private let processes: [pid_t]

  /// Takes the parent processes up to the last one whose name fits. Between them, only shells may have other names.
  /// Always takes the direct parent.
  package init(named fits: (String) -> Bool) {
    var (found, end) = ([getpid(), getppid()], 2)
    while let last = found.last, last > 1, found.count < 16, let name = ParentProcess.name(of: last),
      fits(name) || name.hasSuffix("sh")
    {
      if fits(name) { end = found.count }
      guard let parent = ParentProcess.parent(of: last) else { break }
      found.append(parent)
    }
    processes = Array(found.prefix(end))
  }

  package var haveEnded: Bool {
    getppid() != processes[1]
      || zip(processes.dropFirst(), processes.dropFirst(2)).contains { ParentProcess.hasLost($0, parent: $1) }
  }
}

import Glibc

/// The process that started this one.
public enum ParentProcess {
  /// The arguments of the processes above this one, the nearest first, as they say themselves; none where the system does not
  /// tell.
  public static func argumentsOfAncestors(limit: Int = 8) -> [[String]] {
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

  /// The process that started another one, or took its place; nil where the system does not tell.
  static func parent(of process: pid_t) -> pid_t? {
    // The name in brackets may hold anything (proc(5), `stat`); behind it stand the state and the parent.
    guard let status = try? File.read("/proc/\(process)/stat", limit: 4096),
      let end = status.lastIndex(of: UInt8(ascii: ")")),
      let parent = String(decoding: status[end...], as: UTF8.self).split(separator: " ").dropFirst(2).first
    else { return nil }
    return pid_t(parent)
  }

  /// The first 15 bytes of its program's name (proc(5), `comm`), as it says itself; nil where the system does not tell.
  public static var name: String? {
    guard let bytes = try? File.read("/proc/\(getppid())/comm", limit: 64) else { return nil }
    let name = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    return name.isEmpty ? nil : name
  }

  /// The number of the process, and what tells this run of its program from all others: when the process was made, and where
  /// its program and its stack lie in memory (proc(5), `starttime`, `startcode`, `endcode`, `startstack`), which changes when
  /// another program takes its place. nil where the system does not tell.
  public static var run: (number: Int32, run: String)? {
    let process = getppid()
    guard process > 1, let status = try? File.read("/proc/\(process)/stat", limit: 4096),
      let end = status.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    let fields = String(decoding: status[(end + 1)...], as: UTF8.self).split(separator: " ")
    // The first of these is the third of all. To whom the system does not tell, it says 0 or 1.
    guard fields.count > 25, let stack = UInt64(fields[25]), stack > 1 else { return nil }
    return (process, "\(process).\(fields[19]).\(fields[23]).\(fields[24]).\(fields[25])")
  }
}

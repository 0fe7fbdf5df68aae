import Glibc

/// For how long the process has been there.
public enum ProcessAge {
  /// Seconds since the process was made (proc(5), `starttime`), 0.01 at most too few; nil where the system does not tell. A
  /// program that took another one's place goes on counting, but for one that has waited for children: a shell runs several
  /// commands, and the last one often in its own place. Then nobody knows when that began.
  public static var seconds: Double? {
    guard
      let bytes = try? File.read("/proc/self/stat", limit: 4096),
      // The name before it may hold blanks and brackets.
      let end = bytes.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    let fields = String(decoding: bytes[(end + 1)...], as: UTF8.self).split(separator: " ")
    // The first of these is the third of all. `cminflt`, the page faults of children that were waited for, is the 11th, and
    // what is looked for is the 22nd.
    guard fields.count > 19, fields[8] == "0", let ticks = Double(fields[19]) else { return nil }
    let perSecond = Double(sysconf(Int32(_SC_CLK_TCK)))
    guard perSecond > 0 else { return nil }
    return max(SystemClock().monotonic() - (ticks + 1) / perSecond, 0)
  }
}

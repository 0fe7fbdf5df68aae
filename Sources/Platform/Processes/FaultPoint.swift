#if FAULT_POINTS
  import Glibc
#endif

/// Named places at which a test can end the program like a power cut. Other builds contain neither the calls nor the
/// names.
public enum FaultPoint {
  #if FAULT_POINTS
    /// Kills the process (SIGKILL) if the variable `CREDMGR_FAULT` equals the name, or with `NAME:3` at the third call.
    /// With `NAME=stop` it stops the process (SIGSTOP), so that a test can change files before it continues.
    package static func reach(_ name: StaticString) {
      guard let fault = Environment.value("CREDMGR_FAULT"), !fault.isEmpty else { return }
      let signal = fault.hasSuffix("=stop") ? SIGSTOP : SIGKILL
      let point = fault.split(separator: "=")[0].split(separator: ":")
      guard point[0] == "\(name)" else { return }
      let times = point.count > 1 ? Int(point[1]) ?? 1 : 1
      // The variable itself is the counter.
      let rest = times > 1 ? "\(name):\(times - 1)" + (signal == SIGSTOP ? "=stop" : "") : ""
      unsafe setenv("CREDMGR_FAULT", rest, 1)
      if times == 1 { kill(getpid(), signal) }
    }
    /// The seconds by which the clock runs ahead (`CREDMGR_CLOCK_OFFSET`), so that tests do not have to wait.
    static var clockOffset: Int64 { Environment.value("CREDMGR_CLOCK_OFFSET").flatMap { Int64($0) } ?? 0 }
    /// Whether new passphrases use minimal costs (`CREDMGR_CHEAP_PASSPHRASES`), for tests of everything else.
    package static var cheapensPassphrases: Bool { Environment.value("CREDMGR_CHEAP_PASSPHRASES") != nil }
  #else
    /// Does nothing. It is public because the compiler inlines no `package` function in another module, so the names
    /// would stay in the program.
    @inlinable public static func reach(_ name: StaticString) {}
    static var clockOffset: Int64 { 0 }
    /// Always `false`.
    @inlinable public static var cheapensPassphrases: Bool { false }
  #endif
}

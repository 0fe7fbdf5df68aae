#if FAULT_POINTS
  import Glibc
#endif

/// Named places at which a test can end the program, as a power cut would. In other builds a call does nothing, and its
/// name is not in the program.
package enum FaultPoint {
  #if FAULT_POINTS
    /// Ends the process (SIGKILL) if the variable `CREDMGR_FAULT` has this name as its value; with `NAME:3` at the
    /// third time. With `NAME=stop` it stops it (SIGSTOP), so that a test can change the world before it goes on.
    package static func reach(_ name: StaticString) {
      guard let fault = Environment.value("CREDMGR_FAULT"), !fault.isEmpty else { return }
      let signal = fault.hasSuffix("=stop") ? SIGSTOP : SIGKILL
      let point = fault.split(separator: "=")[0].split(separator: ":")
      guard point[0] == "\(name)" else { return }
      let times = point.count > 1 ? Int(point[1]) ?? 1 : 1
      // The variable itself counts: there is nowhere else to.
      let rest = times > 1 ? "\(name):\(times - 1)" + (signal == SIGSTOP ? "=stop" : "") : ""
      unsafe setenv("CREDMGR_FAULT", rest, 1)
      if times == 1 { kill(getpid(), signal) }
    }
    /// Seconds by which the wall clock is ahead of the machine's (`CREDMGR_CLOCK_OFFSET`), so that no test has to wait.
    static var clockOffset: Int64 { Environment.value("CREDMGR_CLOCK_OFFSET").flatMap { Int64($0) } ?? 0 }
    /// Whether a new passphrase costs next to nothing (`CREDMGR_CHEAP_PASSPHRASES`), for the tests of everything else.
    package static var cheapensPassphrases: Bool { Environment.value("CREDMGR_CHEAP_PASSPHRASES") != nil }
  #else
    @inlinable package static func reach(_ name: StaticString) {}
    static var clockOffset: Int64 { 0 }
    @inlinable package static var cheapensPassphrases: Bool { false }
  #endif
}

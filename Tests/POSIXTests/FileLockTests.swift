import Glibc
import Testing

@testable import POSIX

struct FileLockTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Starts a process that holds the lock, and returns when it does.
  private func startHolder(_ script: String) throws {
    _ = try Launcher.start(
      "flock", ["-F", folder("lock"), "sh", "-c", "cd '\(folder.path)'; echo $$ > pid; : > held; \(script)"])
    try folder.awaitFile("held")
  }

  @Test func waitsForAnotherProcess() throws {
    try startHolder("while [ ! -e release ]; do sleep 0.01; done; : > released")
    var waits = 0
    let lock = try FileLock.acquire(folder("lock"), seconds: 30) { _ throws(POSIXError) in
      if waits == 0 { try File.create(folder("release"), []) }
      waits += 1
      return .goOn
    }
    let isHeld = lock != nil
    #expect(isHeld)
    #expect(waits > 0)
    #expect(File.exists(folder("released")))
    // The other side agrees that it is ours.
    #expect(try Launcher.run("flock", ["-n", folder("lock"), "true"]).status == 1)
    _ = consume lock
    #expect(try Launcher.run("flock", ["-n", folder("lock"), "true"]).status == 0)
  }

  @Test func diesWithItsProcess() throws {
    try startHolder("exec sleep 600")
    let pid = try #require(pid_t(try folder.text("pid").filter(\.isNumber)))
    let lock = try FileLock.acquire(folder("lock"), seconds: 30) { _ in
      kill(pid, SIGKILL)
      return .goOn
    }
    let isHeld = lock != nil
    #expect(isHeld)
  }

  @Test func givesUpAndTimesOut() throws {
    let lock = try FileLock.acquire(folder("lock"), seconds: 0)
    let isHeld = lock != nil
    #expect(isHeld)
    #expect(try permissions(folder("lock")) == 0o600)
    let second = try FileLock.acquire(folder("lock"), seconds: 30) { _ in .giveUp }
    let isSecond = second != nil
    #expect(!isSecond)
    #expect(throws: POSIXError.timedOut) { _ = try FileLock.acquire(folder("lock"), seconds: 0) }
    #expect(throws: POSIXError.interrupted) {
      _ = try FileLock.acquire(folder("lock"), seconds: 30) { _ throws(POSIXError) in throw .interrupted }
    }
    _ = consume lock
    // A program that another test is starting may have a copy of the file for a moment.
    let third = try FileLock.acquire(folder("lock"), seconds: 5)
    let isThird = third != nil
    #expect(isThird)
  }

  @Test func refusesWhatIsNoLockFile() throws {
    try folder.write("target", "")
    try #require(unsafe symlink(folder("target"), folder("link")) == 0)
    #expect(throws: POSIXError.symbolicLink(path: folder("link"))) {
      _ = try FileLock.acquire(folder("link"), seconds: 0)
    }
    #expect(throws: POSIXError.notRegularFile(path: folder.path)) {
      _ = try FileLock.acquire(folder.path, seconds: 0)
    }
    #expect(throws: POSIXError.notFound(path: folder("no/lock"))) {
      _ = try FileLock.acquire(folder("no/lock"), seconds: 0)
    }
  }

  /// Many processes add to one number; without the lock some of the additions would be lost.
  @Test func excludesManyProcesses() throws {
    try folder.write("number", "0")
    let script = """
      for i in 1 2 3 4 5 6 7 8; do
        flock '\(folder("lock"))' sh -c 'read n < "$0"; echo $((n+1)) > "$0"' '\(folder("number"))' &
      done; wait; : > '\(folder("end"))'
      """
    _ = try Launcher.start("sh", ["-c", script])
    for _ in 0..<20 {
      let lock = try FileLock.acquire(folder("lock"), seconds: 30)
      let isHeld = lock != nil
      #expect(isHeld)
      let number = try #require(Int(try folder.text("number").filter(\.isNumber)))
      try folder.write("number", "\(number + 1)\n")
      _ = consume lock
    }
    try folder.awaitFile("end")
    #expect(try folder.text("number") == "28\n")
  }
}

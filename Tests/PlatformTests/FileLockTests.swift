import Glibc
import Testing

@testable import CredmgrPlatform

struct FileLockTests {
  private let folder: TemporaryFolder
  private let place: LockPlace

  init() throws {
    folder = try TemporaryFolder()
    try folder.write("file", "")
    place = LockPlace(path: folder("file"), byte: 1 << 62)
  }

  /// A foreign program that takes the lock in its own way.
  private func holding(_ script: String) -> [String] {
    [
      "-c",
      """
      import fcntl, os, sys, time
      os.chdir(sys.argv[1])
      file = open("file", "r+")
      fcntl.lockf(file, fcntl.LOCK_EX | int(sys.argv[2]), 1, 1 << 62)
      \(script)
      """, folder.path,
    ]
  }

  /// Starts a process and returns once it holds the lock.
  private func startHolder(_ script: String) throws {
    let noted = "open('pid', 'w').write(str(os.getpid()))\nopen('held', 'w').close()\n" + script
    _ = try Launcher.launch("python3", holding(noted) + ["0"])
    try folder.awaitFile("held")
  }

  private func lock(
    _ place: LockPlace, timeout: Duration = .zero, onWait: (Duration) throws(POSIXError) -> Bool = { _ in true }
  ) throws -> FileLock {
    guard let lock = try FileLock.acquire(place, timeout: timeout, onWait: onWait) else { throw POSIXError.endOfInput }
    return lock
  }

  private func isFreeForOthers() throws -> Bool {
    try Launcher.run("python3", holding("") + ["\(LOCK_NB)"]).status == 0
  }

  @Test func waitsForAnotherProcess() throws {
    try startHolder("while not os.path.exists('release'): time.sleep(0.01)\nopen('released', 'w').close()")
    #expect(try FileLock.isHeld(place))
    var waits = 0
    let lock = try lock(place, timeout: .seconds(30)) { _ throws(POSIXError) in
      if waits == 0 { try File.replace(folder("release"), []) }
      waits += 1
      return true
    }
    #expect(waits > 0)
    #expect(File.exists(folder("released")))
    // The other process also finds it locked.
    #expect(try !isFreeForOthers())
    _ = consume lock
    #expect(try isFreeForOthers())
    #expect(try !FileLock.isHeld(place))
  }

  @Test func endsWithItsProcess() throws {
    try startHolder("time.sleep(600)")
    let pid = try #require(pid_t(try folder.text("pid")))
    _ = try lock(place, timeout: .seconds(30)) { _ in
      kill(pid, SIGKILL)
      return true
    }
  }

  @Test func givesUpAndTimesOut() throws {
    let first = try lock(place)
    let second = try FileLock.acquire(place, timeout: .seconds(30)) { _ in false }
    let isSecond = second != nil
    #expect(!isSecond)
    #expect(try FileLock.isHeld(place))
    #expect(throws: POSIXError.timedOut) { _ = try FileLock.acquire(place, timeout: .zero) }
    #expect(throws: POSIXError.interrupted) {
      _ = try FileLock.acquire(place, timeout: .seconds(30)) { _ throws(POSIXError) in throw .interrupted }
    }
    // Another byte is another lock.
    _ = try lock(LockPlace(path: place.path, byte: place.byte + 1))
    _ = consume first
    _ = try lock(place)
  }

  /// A process that waits for a replaced file continues with the new file.
  @Test func followsAReplacedFile() throws {
    let first = try lock(place)
    try PrivateFile.replace(place.path, [])
    #expect(try !FileLock.isHeld(place))
    let second = try lock(place)
    _ = consume first
    #expect(try FileLock.isHeld(place))
    _ = consume second
  }

  /// fcntl(2): closing a file drops the process's classic locks on it, such as SQLite's.
  @Test func keepsOtherLocksOfTheProcess() throws {
    let file = try Descriptor(opening: place.path, O_RDWR)
    var range = flock()
    range.l_type = Int16(F_WRLCK)
    range.l_start = 1 << 30
    range.l_len = 512
    try #require(unsafe fcntl(file.number, F_SETLK, &range) == 0)
    for _ in 0..<3 {
      _ = try lock(place)
      _ = try FileLock.isHeld(place)
    }
    #expect(try FileLock.isHeld(LockPlace(path: place.path, byte: 1 << 30)))
  }

  @Test func rejectsOtherKinds() throws {
    try #require(unsafe symlink(folder("file"), folder("link")) == 0)
    func acquire(_ path: String) throws { _ = try lock(LockPlace(path: path, byte: 0)) }
    #expect(throws: POSIXError.symbolicLink(path: folder("link"))) { try acquire(folder("link")) }
    #expect(throws: POSIXError.notRegularFile(path: folder.path)) { try acquire(folder.path) }
    #expect(throws: POSIXError.notFound(path: folder("no"))) { try acquire(folder("no")) }
  }

  /// Many processes increment one number; without the lock some increments would be lost.
  @Test func excludesManyProcesses() throws {
    try folder.write("number", "0")
    let script = """
      for _ in range(4):
        if os.fork() == 0:
          file = open("file", "r+")
          for _ in range(4):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, 1 << 62)
            number = int(open("number").read())
            open("number", "w").write(str(number + 1))
            fcntl.lockf(file, fcntl.LOCK_UN, 1, 1 << 62)
          os._exit(0)
      fcntl.lockf(file, fcntl.LOCK_UN, 1, 1 << 62)
      for _ in range(4): os.wait()
      open("end", "w").close()
      """
    _ = try Launcher.launch("python3", holding(script) + ["0"])
    for _ in 0..<20 {
      let lock = try lock(place, timeout: .seconds(30))
      let number = try #require(Int(try folder.text("number")))
      try folder.write("number", "\(number + 1)")
      _ = consume lock
    }
    try folder.awaitFile("end")
    #expect(try folder.text("number") == "36")
  }
}

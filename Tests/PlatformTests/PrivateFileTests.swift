import Glibc
import Testing

@testable import CredmgrPlatform

struct PrivateFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test func createsReadsReplaces() throws {
    let path = folder("key")
    try PrivateFile.create(path, [1, 2, 3])
    #expect(try PrivateFile.read(path, limit: 3) == [1, 2, 3])
    #expect(try permissions(path) == 0o600)
    #expect(throws: POSIXError.exists(path: path)) { try PrivateFile.create(path, [9]) }
    #expect(try PrivateFile.read(path, limit: 100) == [1, 2, 3])
    try PrivateFile.replace(path, [4])
    #expect(try PrivateFile.read(path, limit: 100) == [4])
    #expect(try permissions(path) == 0o600)
    // No temporary file remains.
    #expect(try File.names(in: folder.path) == ["key"])
  }

  /// Writing a file removes those left by killed processes, but not those being written or a user's own.
  @Test func removesAbandonedFiles() throws {
    let abandoned = ".credmgr-0000000000abc.tmp"
    let held = ".credmgr-3w5e11264sgsf.tmp"
    let others = [
      ".credmgr-000000000abc.tmp", ".credmgr-00000000-0abc.tmp", ".credmgr-0000000000ABC.tmp", ".credmgr-.tmp",
      "credmgr-0000000000abc.tmp", "key.2026.tmp", "key.abc123.tmp", "key.old.tmp", "key.tmp",
    ]
    for name in [abandoned, held] + others {
      _ = try Descriptor(opening: folder(name), O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    }
    let link = ".credmgr-00000000000ln.tmp"
    try #require(unsafe symlink(folder("key.old.tmp"), folder(link)) == 0)
    let holder = try Descriptor(opening: folder(held), O_RDONLY)
    try #require(flock(holder.number, LOCK_EX) == 0)
    try PrivateFile.create(folder("key"), [1])
    try PrivateFile.replace(folder("key"), [2])
    #expect(try File.names(in: folder.path).sorted() == (others + [held, link, "key"]).sorted())
    // A process started by another test may briefly have the file open as well.
    try #require(flock(holder.number, LOCK_UN) == 0)
    _ = consume holder
    try File.replace(folder("another"), [])
    #expect(try File.names(in: folder.path).sorted() == (others + [link, "key", "another"]).sorted())
  }

  /// A killed process left a second name of the vault. fcntl(2): closing it would drop SQLite's locks on the vault.
  @Test func aSecondNameIsRemovedWithoutBeingOpened() throws {
    try PrivateFile.create(folder("vault.db"), [1])
    #expect(try FileStatus(path: folder("vault.db"), following: false)?.links == 1)
    let second = folder(".credmgr-0000000000abc.tmp")
    try #require(unsafe link(folder("vault.db"), second) == 0)
    let holder = try Descriptor(opening: folder("vault.db"), O_RDWR)
    var range = flock()
    range.l_type = Int16(F_WRLCK)
    range.l_len = 1
    try #require(unsafe fcntl(holder.number, F_SETLK, &range) == 0)
    try PrivateFile.replace(folder("vault.key.new"), [2])
    #expect(!File.exists(second))
    #expect(try FileLock.isHeld(LockPlace(path: folder("vault.db"), byte: 0)))
    _ = consume holder
  }

  @Test(arguments: [0, 1, 65535, 65536, 65537, 1_000_000]) func sizes(count: Int) throws {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    try PrivateFile.create(folder("a"), bytes)
    #expect(try PrivateFile.read(folder("a"), limit: count) == bytes)
    #expect(try File.read(folder("a"), limit: count) == bytes)
    if count > 0 {
      #expect(throws: POSIXError.tooLarge(path: folder("a"), limit: count - 1)) {
        try PrivateFile.read(folder("a"), limit: count - 1)
      }
    }
  }

  @Test(arguments: [0o640, 0o604, 0o620, 0o601, 0o677] as [UInt32]) func rejectsFilesThatOthersMayUse(mode: UInt32)
    throws
  {
    try folder.write("a", "secret", mode: mode)
    let error = POSIXError.readableByOthers(path: folder("a"), mode: mode)
    #expect(throws: error) { try PrivateFile.read(folder("a"), limit: 100) }
    #expect(throws: error) { try PrivateFile.check(folder("a")) }
  }

  @Test func rejectsOtherKinds() throws {
    try folder.write("a", "secret")
    try #require(unsafe symlink(folder("a"), folder("link")) == 0)
    try #require(unsafe mkfifo(folder("pipe"), 0o600) == 0)
    for (name, error) in [
      ("link", .symbolicLink(path: folder("link"))), ("pipe", .notRegularFile(path: folder("pipe"))),
      ("b", .notFound(path: folder("b"))), ("a/b", .notFound(path: folder("a/b"))),
    ] as [(String, POSIXError)] {
      #expect(throws: error) { try PrivateFile.check(folder(name)) }
      #expect(throws: error) { try PrivateFile.read(folder(name), limit: 1) }
    }
    #expect(throws: POSIXError.notRegularFile(path: folder.path)) { try PrivateFile.check(folder.path) }
    let path = folder("a\0b")
    #expect(throws: POSIXError.system(call: "stat", path: path, code: EINVAL)) { try PrivateFile.check(path) }
    #expect(throws: POSIXError.system(call: "open", path: path, code: EINVAL)) { try PrivateFile.read(path, limit: 1) }
  }

  @Test func rejectsOtherOwners() throws {
    var path = "/etc/passwd"
    if geteuid() == 0 {
      path = folder("a")
      try folder.write("a", "secret")
      try #require(unsafe chown(path, 1, 1) == 0)
    }
    #expect(throws: POSIXError.otherOwner(path: path)) { try PrivateFile.check(path) }
  }

  /// In the namespace that knows all users, 65534 is an ordinary user: `nobody`.
  private static let canGiveAway =
    geteuid() == 0
    && (try? File.read("/proc/self/uid_map", limit: 4096)).map {
      String(decoding: $0, as: UTF8.self).split(whereSeparator: \.isWhitespace) == ["0", "0", "4294967295"]
    } == true

  /// A parent directory, the file itself, a link to it, and a link on the way to the link's target.
  @Test(.enabled(if: canGiveAway), arguments: [1, 65534] as [UInt32], ["a", "a/b", "file", "link", "a/middle"])
  func rejectsFilesThatOthersCouldReplace(_ owner: UInt32, _ name: String) throws {
    try File.createDirectory(folder("a/b"))
    try folder.write("a/b/x", "")
    try folder.write("file", "")
    try #require(unsafe symlink("../a/b/x", folder("a/middle")) == 0)
    try #require(unsafe symlink(folder("a/middle"), folder("link")) == 0)
    for path in ["link", "file", "a/b/x"] { try PrivateFile.checkOurs(folder(path)) }
    try #require(unsafe lchown(folder(name), owner, owner) == 0)
    #expect(throws: POSIXError.otherOwner(path: folder(name))) {
      try PrivateFile.checkOurs(folder(name == "file" ? "file" : "link"))
    }
  }

  @Test func circularLinks() throws {
    try #require(unsafe symlink("b", folder("a")) == 0)
    try #require(unsafe symlink("a", folder("b")) == 0)
    #expect(throws: POSIXError.self) { try PrivateFile.checkParents(of: folder("a")) }
  }

  @Test func linkThroughAPublicDirectory() throws {
    try File.createDirectory(folder("open"))
    try #require(unsafe chmod(folder("open"), 0o777) == 0)
    try folder.write("file", "")
    try #require(unsafe symlink(folder("file"), folder("open/middle")) == 0)
    try #require(unsafe symlink(folder("open/middle"), folder("link")) == 0)
    #expect(throws: POSIXError.writableByOthers(path: folder("open"), mode: 0o777)) {
      try PrivateFile.checkOurs(folder("link"))
    }
  }

  @Test func replacesALinkInsteadOfItsTarget() throws {
    try folder.write("target", "old")
    try #require(unsafe symlink(folder("target"), folder("link")) == 0)
    try PrivateFile.replace(folder("link"), Array("new".utf8))
    #expect(try folder.text("target") == "old")
    #expect(try folder.text("link") == "new")
    #expect(try FileStatus(path: folder("link"), following: false)?.isRegularFile == true)
    try #require(unsafe symlink(folder("nowhere"), folder("dangling")) == 0)
    #expect(throws: POSIXError.exists(path: folder("dangling"))) { try PrivateFile.create(folder("dangling"), [1]) }
  }

  @Test func createsDirectories() throws {
    try PrivateFile.createDirectory(folder("a/b/c"))
    for name in ["a", "a/b", "a/b/c"] { #expect(try permissions(folder(name)) == 0o700) }
    try PrivateFile.createDirectory(folder("a/b/c/"))
    try #require(unsafe chmod(folder("a/b/c"), 0o750) == 0)
    #expect(throws: POSIXError.readableByOthers(path: folder("a/b/c"), mode: 0o750)) {
      try PrivateFile.createDirectory(folder("a/b/c"))
    }
    try #require(unsafe chmod(folder("a"), 0o777) == 0)
    #expect(throws: POSIXError.writableByOthers(path: folder("a"), mode: 0o777)) {
      try PrivateFile.createDirectory(folder("a/new"))
    }
    try #require(unsafe chmod(folder("a"), 0o1777) == 0)
    try PrivateFile.createDirectory(folder("a/new"))
    try #require(unsafe symlink(folder("a/b"), folder("link")) == 0)
    #expect(throws: POSIXError.symbolicLink(path: folder("link"))) { try PrivateFile.createDirectory(folder("link")) }
    // A user may put links on the way to the directory.
    try PrivateFile.createDirectory(folder("link/d"))
    #expect(throws: POSIXError.system(call: "mkdir", path: "/proc/self/nowhere", code: ENOENT)) {
      try PrivateFile.createDirectory("/proc/self/nowhere")
    }
    try folder.write("file", "")
    #expect(throws: POSIXError.notDirectory(path: folder("file"))) { try PrivateFile.createDirectory(folder("file")) }
    #expect(throws: POSIXError.notDirectory(path: folder("file"))) { try PrivateFile.createDirectory(folder("file/x")) }
  }

  @Test func aMissingDirectoryIsAnError() {
    #expect(throws: POSIXError.self) { try PrivateFile.replace(folder("no/such"), [1]) }
    #expect(throws: POSIXError.self) { try PrivateFile.create(folder("no/such"), [1]) }
  }
}

struct FileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// A pipe without a writer blocks only for a limited time; a written one is read to its end.
  @Test func pipes() throws {
    let path = folder("pipe")
    try #require(unsafe mkfifo(path, 0o600) == 0)
    #expect(throws: POSIXError.noWriter(path: path)) { try File.read(path, limit: 10, patience: .milliseconds(50)) }
    do {
      let writer = try Descriptor(opening: path, O_RDWR)
      #expect(throws: POSIXError.timedOut) { try File.read(path, limit: 10, patience: .milliseconds(50)) }
      #expect(close(writer.released()) == 0)
    }
    #expect(try File.read("/dev/null", limit: 10, patience: .seconds(30)) == [])
    _ = try Launcher.launch("sh", ["-c", "printf secret > \"$0\"", path])
    #expect(try File.read(path, limit: 10, patience: .seconds(30)) == Array("secret".utf8))
    _ = try Launcher.launch("sh", ["-c", "printf secret > \"$0\"", path])
    #expect(throws: POSIXError.tooLarge(path: path, limit: 5)) { try File.read(path, limit: 5, patience: .seconds(30)) }
  }

  @Test func ordinaryFiles() throws {
    try File.createDirectory(folder("x/y"))
    try File.createDirectory(folder("x/y"))
    try File.replace(folder("x/b"), [1])
    try File.replace(folder("x/a"), [])
    #expect(try File.names(in: folder("x")) == ["a", "b", "y"])
    #expect(File.exists(folder("x/a")) && !File.exists(folder("x/c")))
    #expect(File.isDirectory(folder("x")) && !File.isDirectory(folder("x/a")))
    #expect(try File.remove(folder("x/a")))
    #expect(try !File.remove(folder("x/a")))
    #expect(throws: POSIXError.notFound(path: folder("x/a"))) { try File.read(folder("x/a"), limit: 1) }
    #expect(throws: POSIXError.notRegularFile(path: folder("x"))) { try File.read(folder("x"), limit: 1) }
    #expect(throws: POSIXError.notFound(path: folder("z"))) { try File.names(in: folder("z")) }
    #expect(throws: POSIXError.tooLarge(path: folder("x/b"), limit: 0)) { try File.read(folder("x/b"), limit: 0) }
    #expect(throws: POSIXError.tooLarge(path: "/dev/zero", limit: 70000)) { try File.read("/dev/zero", limit: 70000) }
  }

  @Test func executables() throws {
    try folder.write("a", "", mode: 0o600)
    try folder.write("b", "", mode: 0o700)
    #expect(!File.isExecutable(folder("a")))
    #expect(File.isExecutable(folder("b")))
    #expect(!File.isExecutable(folder.path))
  }
}

struct PathTests {
  @Test(arguments: [("a", "b", "a/b"), ("a/", "b", "a/b"), ("a", "/b", "/b"), ("", "b", "b"), ("/", "b", "/b")])
  func joinsPaths(folder: String, child: String, expected: String) { #expect(Path.joining(folder, child) == expected) }

  @Test(
    arguments: [
      ("/a/b", "/a", "b"), ("/a/b/", "/a", "b"), ("/a//b", "/a", "b"), ("/a", "/", "a"), ("a/b", "a", "b"),
      ("a", nil, "a"),
      ("/", nil, "/"), ("", nil, ""), ("//a", "/", "a"),
    ] as [(String, String?, String)])
  func splitsPaths(path: String, folder: String?, last: String) {
    #expect(Path.directory(of: path) == folder)
    #expect(Path.lastComponent(of: path) == last)
  }

  @Test func ownPlaces() throws {
    #expect(try Path.executable().hasPrefix("/"))
    #expect(File.exists(try Path.executable()))
    #expect(File.isDirectory(try Path.currentDirectory()))
  }

  @Test func environment() {
    #expect(unsafe setenv("POSIX_TESTS_A", "x=y", 1) == 0)
    #expect(Environment.value("POSIX_TESTS_A") == "x=y")
    #expect(Environment.all()["POSIX_TESTS_A"] == "x=y")
    #expect(Environment.value("POSIX_TESTS_B") == nil)
  }
}

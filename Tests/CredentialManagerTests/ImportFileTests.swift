import CredmgrPlatform
import Testing

@testable import CredmgrCredentialManager

/// Uses real files.
@Suite struct ImportFileTests {
  private let folder: String

  init() throws {
    folder = "/tmp/credmgr-import.\(UInt64.random(in: 0 ... .max))"
    try PrivateFile.createDirectory(folder)
  }

  private func write(_ name: String, _ bytes: [UInt8]) throws -> String {
    let path = folder + "/" + name
    try PrivateFile.replace(path, bytes)
    return path
  }

  private var places: ImportPlaces {
    ImportPlaces(environment: { _ in nil }, home: folder, directory: folder, run: ImportReaderTests.noProgram)
  }

  private func run(_ arguments: String...) throws { _ = try Launcher.run(arguments[0], Array(arguments.dropFirst())) }

  @Test func aMissingFileHasNoEntries() throws { #expect(try ImportSource.netrc.entries(folder + "/none") == []) }

  @Test func aFileThatOthersCanWriteIsRefused() throws {
    let path = try write(".netrc", Array("machine a.example login x password y\n".utf8))
    try run("chmod", "0666", path)
    #expect(throws: ImportFault.file(.writableByOthers(path: path, mode: 0o666))) {
      try ImportSource.netrc.entries(path)
    }
  }

  @Test func aLinkToAnotherUsersFileIsRefused() throws {
    let target = try write("target", Array("machine a.example login x password y\n".utf8))
    guard (try? run("chown", "12345", target)) != nil, File.isOwn(target) == false else { return }
    let path = folder + "/.netrc"
    try run("ln", "-s", target, path)
    #expect(throws: ImportFault.file(.otherOwner(path: path))) { try ImportSource.netrc.entries(path) }
  }

  @Test func otherFilesAreRefused() throws {
    let huge = try write("huge", [UInt8](repeating: UInt8(ascii: "x"), count: ImportText.limit + 1))
    #expect(throws: ImportFault.file(.tooLarge(path: huge, limit: ImportText.limit))) {
      try ImportSource.netrc.entries(huge)
    }
    let wide = try write("utf16", [0xFF, 0xFE, 0x6D, 0x00])
    #expect(throws: ImportFault.file(.notText(path: wide))) { try ImportSource.netrc.entries(wide) }
    let directory = folder + "/directory"
    try PrivateFile.createDirectory(directory)
    #expect(throws: ImportFault.file(.notRegularFile(path: directory))) { try ImportSource.netrc.entries(directory) }
  }

  @Test func oneBadFileDoesNotHideTheOthers() throws {
    _ = try write(".netrc", Array("machine a.example login x password y\n".utf8))
    _ = try write(".git-credentials", [0xFF])
    let found = ImportedEntries([.gitCredentialStore, .netrc], places)
    #expect(found.entries.map(\.name) == ["x@a.example"])
    #expect(found.troubles.map(\.source) == ["git-store"])
  }

  @Test func removingKeepsEverythingElse() throws {
    let path = try write(".git-credentials", Array("# mine\nhttps://a:1@x.example\nhttps://b:2@x.example\n".utf8))
    let entries = try ImportSource.gitCredentialStore.entries(path)
    var copy: String?
    try entries[0].remove(places) {
      copy = (try? File.read(path + ".credmgr-copy", limit: 1000)).map { String(decoding: $0, as: UTF8.self) }
      return true
    }
    #expect(copy == "# mine\nhttps://a:1@x.example\nhttps://b:2@x.example\n")
    #expect(String(decoding: try File.read(path, limit: 1000), as: UTF8.self) == "# mine\nhttps://b:2@x.example\n")
    #expect(!File.exists(path + ".credmgr-copy"))
    // The second entry was read at its old position.
    try entries[1].remove(places) { true }
    #expect(String(decoding: try File.read(path, limit: 1000), as: UTF8.self) == "# mine\n")
    #expect(throws: ImportFault.changed(path: path)) { try entries[1].remove(places) { true } }
  }

  @Test func anotherFileWithTheNameOfTheCopyStays() throws {
    let path = try write(".netrc", Array("machine a.example login x password y\n".utf8))
    let other = try write(".netrc.credmgr-copy", Array("mine\n".utf8))
    let entry = try #require(try ImportSource.netrc.entries(path).first)
    try entry.remove(places) { File.exists(other + ".2") }
    #expect(String(decoding: try File.read(other, limit: 1000), as: UTF8.self) == "mine\n")
    #expect(!File.exists(other + ".2"))
  }

  @Test func aFileIsRestoredIfTheVaultDoesNotWork() throws {
    let path = try write(".netrc", Array("machine a.example login x password y\n".utf8))
    let entry = try #require(try ImportSource.netrc.entries(path).first)
    #expect(throws: ImportFault.notWorking(place: path)) { try entry.remove(places) { false } }
    #expect(try ImportSource.netrc.entries(path).count == 1)
    #expect(!File.exists(path + ".credmgr-copy"))
  }

  @Test func dockerKeepsUnknownMembers() throws {
    let text =
      #"{"auths": {"x.example": {"auth": "YWRhOnB3"}, "y.example": {"auth": "YWRhOnB3", "new": 1.50}}, "z": [1]}"#
    let path = try write("config.json", Array(text.utf8))
    for name in ["ada@x.example", "ada@y.example"] {
      let entry = try #require(try ImportSource.docker.entries(path).first { $0.name == name })
      try entry.remove(places) { true }
    }
    let rest = String(decoding: try File.read(path, limit: 1000), as: UTF8.self).filter { !$0.isWhitespace }
    #expect(rest == #"{"auths":{"y.example":{"new":1.50}},"z":[1]}"#)
  }

  /// The token is on another line than its key.
  @Test func aFileInAnotherStyleIsNotChanged() throws {
    let text = "x.example:\n  user: ada\n  oauth_token:\n    gho_1\n"
    let path = try write("hosts.yml", Array(text.utf8))
    let entry = try #require(try ImportSource.gitHubCLI.entries(path).first)
    #expect(throws: ImportFault.notRemovable(place: path)) { try entry.remove(places) { true } }
    #expect(String(decoding: try File.read(path, limit: 1000), as: UTF8.self) == text)
  }
}

import HTTP
import Platform
import Testing

@testable import CredentialManager
import Text

/// The index of hosts as a file, looked into without reading all of it.
struct HostIndexTests {
  private static func file(_ lines: [String]) -> HostIndexFile? {
    HostIndexFile(Array((["credmgr hosts 4"] + lines).map { $0 + "\n" }.joined().utf8))
  }

  private static let index = file([
    "source\t\t-\t/no/folder", "source\tgit\t-\t/no/file", "host\tgit.example\tgit\tada",
    "host\tgit.example.org\tother\tocto\tany-username", "host\tgit.example\tlater\tada",
    "host\tlast.example\tlast\tada",
  ])

  @Test(arguments: [
    ("git.example", "git", "ada", false), ("GIT.Example.org", "other", "octo", true),
    ("last.example", "last", "ada", false),
  ])
  func found(_ host: String, _ provider: String, _ username: String, _ ignores: Bool) throws {
    let entry = try #require(Self.index?.provider(for: host))
    #expect(entry.provider == provider)
    #expect(entry.username == username)
    #expect(entry.ignoresUsername == ignores)
  }

  @Test(arguments: [
    "example", "git", "it.example", "git.example.or", "", "git.example\tgit", "x\nhost\tgit.example", "ada",
  ])
  func notFound(_ host: String) throws {
    let index = try #require(Self.index)
    #expect(index.provider(for: host) == nil)
  }

  @Test func aUsualPathIsLeftOutAndLookedAtAllTheSame() throws {
    var index = HostIndex()
    index.sources = [.init("/dev"), .init("/dev/null.yaml", of: "null"), .init("/no/other.yaml", of: "other")]
    index.entries = [.init(host: "a.example", provider: "null", username: "ada", ignoresUsername: false)]
    let bytes = try #require(index.bytes)
    #expect(String(decoding: bytes, as: UTF8.self).hasSuffix("source\tnull\t-\t\nsource\tother\t-\t/no/other.yaml\n"))
    #expect(try #require(HostIndexFile(bytes)).isUnchanged(for: "null"))
    // There is such a file now: the folder's name and the provider's make its path.
    index.sources[0] = .init("/etc/ssl")
    index.sources[1] = .init("/etc/ssl/null.yaml", of: "null")
    let written = String(decoding: try #require(index.bytes), as: UTF8.self)
    let moved = written.exchanging("source\tnull\t-\t\n", for: "source\tnull\t1:2:3:4:5:6:7\t\n")
    #expect(try #require(HostIndexFile(Array(moved.utf8))).isUnchanged(for: "null") == false)
  }

  @Test func whatWasNotWrittenByUsIsNone() {
    for text in ["", "credmgr hosts 4", "credmgr hosts 3\n", "credmgr hosts 4\nhost\tgit.example\tgit\tada"] {
      #expect(HostIndexFile(Array(text.utf8)) == nil, "\(text)")
    }
    for line in ["host\tgit.example", "user\tgit.example\tgit\tada", "source\tgit\tx\t/no/file", "source\tgit\t-"] {
      #expect(Self.file([line])?.isUnchanged == false, "\(line)")
    }
  }

  @Test func onlyTheFilesOfTheProviderAreLookedAt() throws {
    let lines = [
      "source\t\t-\t/no/folder", "source\ta\t-\t/no/file", "source\tab\t1:2:3:4:5:6:7\t/no/other",
      "source\tb\t-\t/no/file", "source\tb\t-\t/", "host\ta.example\ta\tada",
    ]
    let file = try #require(Self.file(lines))
    #expect(file.isUnchanged(for: "a"))
    #expect(!file.isUnchanged(for: "ab"))
    #expect(!file.isUnchanged(for: "b"))
    #expect(!file.isUnchanged(for: "none"))
    #expect(!file.isUnchanged)
    // A folder that came since then may have another descriptor of that name.
    let later = try #require(Self.file(["source\t\t-\t/"] + lines.dropFirst()))
    #expect(!later.isUnchanged(for: "a"))
  }

  @Test func itReadsWhatWasWritten() throws {
    var index = HostIndex()
    index.sources = [HostIndex.Source("/"), HostIndex.Source("/no/file", of: "git")]
    index.entries = [
      .init(host: "git.example", provider: "git", username: "", ignoresUsername: true),
      .init(host: "code.example", provider: "git", username: "ada", ignoresUsername: false),
    ]
    let bytes = try #require(index.bytes)
    let file = try #require(HostIndexFile(bytes))
    #expect(file.entries == index.entries)
    #expect(file.isUnchanged)
    #expect(file.isUnchanged(for: "git"))
    for entry in index.entries { #expect(file.provider(for: entry.host) == entry) }
  }
}

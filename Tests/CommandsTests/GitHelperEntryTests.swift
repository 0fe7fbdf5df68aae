import Testing

@testable import CredmgrCommands

/// Tests which helpers git passes credmgr's answers to.
@Suite struct GitHelperEntryTests {
  private static func entry(_ pattern: String?, _ value: String) -> GitHelperEntry {
    GitHelperEntry(
      scope: "global", origin: "/config", key: "credential.\(pattern.map { $0 + "." } ?? "")helper", value: value)
  }

  @Test(arguments: [
    ("https://forge.example", true, true), ("https://forge.example:443/", true, true), ("forge.example", true, true),
    ("https://*.example", true, true), ("https://FORGE.example", true, true),
    ("https://forge.example/team", false, true), ("https://ada@forge.example", false, true),
    ("https://ada@forge.example/team", false, true), ("http://forge.example", false, false),
    ("https://forge.example:8443", false, false), ("https://a.forge.example", false, false),
    ("https://*.forge.example", false, false), ("https://other.example", false, false),
  ]) func aPatternIsForAHostOrForPartOfIt(_ pattern: String, _ isWhole: Bool, _ isPart: Bool) {
    #expect(Self.entry(pattern, "store").applies(to: "forge.example") == isWhole)
    #expect(Self.entry(pattern, "store").concerns("forge.example") == isPart)
  }

  /// People write `!` by hand.
  @Test(
    arguments: [
      ("!/opt/credmgr git-credential --timeout 8h", "/opt/credmgr"), ("! /opt/credmgr git-credential", "/opt/credmgr"),
      ("/opt/credmgr git-credential", "/opt/credmgr"), ("!test -e x; credmgr git-credential", nil),
      ("!sh git-credential", "/usr/bin/sh"),
    ] as [(String, String?)]) func theProgramThatGitRuns(_ value: String, _ expected: String?)
  {
    let program = Self.entry(nil, value).program
    #expect(program == expected || expected == "/usr/bin/sh" && program == "/bin/sh")
  }

  /// The output of `git config`, and its format before git 2.26.
  @Test func anEntryHasItsFile() {
    let parts = [
      ("system", "file:/etc/gitconfig"), ("global", "file:/home/ada/.gitconfig"), ("local", "file:.git/config"),
      ("command", "command line:"),
    ]
    for hasScopes in [true, false] {
      let output = parts.map { scope, origin in
        (hasScopes ? scope + "\0" : "") + origin + "\0credential.helper\nstore\0"
      }.joined()
      let entries = GitHelperEntry.entries(output, hasScopes: hasScopes)
      #expect(entries.map(\.scope) == parts.map(\.0) && entries.allSatisfy { $0.value == "store" })
    }
  }

  @Test func anEmptyEntryRemovesEarlierHelpers() {
    let host = "https://forge.example"
    let ours = "/usr/bin/credmgr git-credential"
    let before = [Self.entry(nil, "store"), Self.entry(nil, ours), Self.entry(host + "/team", "libsecret")]
    let order = [Self.entry(host, ""), Self.entry(host, ours)]
    #expect(GitHelperEntry.told(before, at: "forge.example").map(\.value) == ["store", ours, "libsecret"])
    #expect(GitHelperEntry.told(before + order, at: "forge.example").map(\.value) == [ours])
    #expect(GitHelperEntry.told(before + order, at: "other.example").map(\.value) == ["store", ours])
    let later = before + order + [Self.entry(nil, "store")]
    #expect(GitHelperEntry.told(later, at: "forge.example").map(\.value) == [ours, "store"])
    // An empty entry for a path removes helpers only there.
    let path = [Self.entry(nil, "store"), Self.entry(host + "/team", ""), Self.entry(nil, ours)]
    #expect(GitHelperEntry.told(path, at: "forge.example").map(\.value) == ["store", ours])
  }
}

import CredmgrPlatform
import CredmgrDescriptors
import Testing

@testable import CredmgrCredentialManager

struct AccountRulesTests {
  private static let home = "/home/ada"

  private let fixture: Fixture

  init() throws { fixture = try Fixture() }

  private func rules(_ text: String) throws -> AccountRules {
    let path = fixture.source.home.accountRules
    try File.createDirectory(fixture.source.home.configuration)
    try File.replace(path, Array(text.utf8))
    return try AccountRules(path: path, home: Self.home)
  }

  private static let text = """
    # mine
    rules:
      - provider: github
        for: https://github.com/acme/secret
        account: vault
      - { provider: github, for: "git@github.com:acme", account: work }
      - provider: github
        in: ~/work
        account: work
      - provider: gitlab
        for: https://gitlab.com/acme
        in: /srv/acme/
        account: both

    """

  @Test(
    arguments: [
      ("github", "https://github.com/acme/secret.git", "/", "vault"),
      ("github", "https://github.com/acme/tools", "/", "work"),
      ("github", "https://github.com/ada/notes", "/home/ada/work/notes", "work"),
      ("github", "https://github.com/ada/notes", "/home/ada/work", "work"),
      ("github", "https://github.com/ada/notes", "/home/ada/workshop", nil),
      ("gitlab", "https://gitlab.com/acme/a", "/srv/acme/x", "both"),
      ("gitlab", "https://gitlab.com/acme/a", "/srv", nil), ("gitlab", "https://gitlab.com/a", "/srv/acme", nil),
      ("other", "https://github.com/acme/tools", "/home/ada/work", nil),
    ])
  func theFirstThatMatchesCounts(_ provider: String, _ remote: String, _ folder: String, _ account: String?) throws {
    let rules = try self.rules(Self.text)
    let address = try #require(RemoteAddress(remote))
    #expect(rules.first(for: [provider], remotes: { [address] }, folders: { [folder] })?.account == account)
  }

  /// Without a rule for the provider, credmgr does not examine the repository.
  @Test func unneededContextIsNotExamined() throws {
    let none = try AccountRules(path: fixture.source.home.accountRules, home: nil)
    #expect(none.rules.isEmpty)
    let folders = try self.rules("rules: [{provider: github, in: /a, account: b}]")
    var asked: [String] = []
    func asking<Answer>(_ what: String) -> [Answer] {
      asked.append(what)
      return []
    }
    for (rules, provider) in [(none, "github"), (folders, "gitlab"), (folders, "github")] {
      _ = rules.first(for: [provider], remotes: { asking("remotes") }, folders: { asking("folders") })
    }
    #expect(asked == ["folders"])
  }

  @Test(arguments: ["", "# nothing\n", "rules:\n", "rules: []\n"]) func noRules(_ text: String) throws {
    #expect(try self.rules(text).rules.isEmpty)
  }

  /// Reports every fault of the file at its place.
  @Test(
    arguments: [
      ("rules: 1\n", ["1:8"]), ("[]\n", ["1:1"]), ("rule: []\n", ["1:1", "1:1"]), ("rules: [1]\n", ["1:9"]),
      ("rules:\n  - provider: github\n    account: a\n    four: x\n", ["4:5", "2:5"]),
      ("rules:\n  - { provider: Git Hub, account: a, in: work }\n", ["2:17", "2:42"]),
      ("rules:\n  - { account: a, for: /srv }\n  - { provider: p, for: https://h }\n", ["2:5", "2:24", "3:5"]),
      ("rules:\n  - { provider: p, account: [], for: https://h, for: x }\n", ["2:49"]), ("rules: [\n", ["2:1"]),
    ])
  func errorsHaveAPlace(_ text: String, _ places: [String]) throws {
    do {
      _ = try self.rules(text)
      Issue.record("no error")
    } catch CredentialError.malformedRules(let findings) {
      #expect(findings.map { "\($0.place.line):\($0.place.column)" } == places)
    }
  }

  // MARK: Adding

  @Test func theFirstRuleCreatesTheFile() throws {
    let rules = try AccountRules(path: fixture.source.home.accountRules, home: nil)
    let text = try rules.adding(
      provider: "github", account: "ada: #1", remote: "https://github.com/acme", folder: nil, home: nil)
    #expect(
      text == """
        # Rules that choose an account. The first matching rule applies.
        rules:
          - provider: github
            account: "ada: #1"
            for: https://github.com/acme

        """)
    #expect(try self.rules(text).rules.first?.account == "ada: #1")
  }

  /// Existing lines and comments stay, and a rule goes before wider ones. Texts that other YAML parsers read as a
  /// boolean are quoted and found again.
  @Test(arguments: ["yes", "No", "on", "OFF", "y", "n", "null", "True", "a: b", "- x", "~", "12", "a\"b\\"])
  func ambiguousTextsAreQuoted(_ account: String) throws {
    let text = try self.rules("").adding(provider: "p", account: account, remote: nil, folder: "/x", home: nil)
    #expect(text.contains("account: \""))
    #expect(try self.rules(text).rules.map(\.account) == [account])
  }

  @Test func aNarrowerRulePrecedesTheWiderOne() throws {
    let before =
      "rules:\n  # all of it\n  - provider: github\n    for: https://github.com/acme\n    account: work # the firm\n"
    let rules = try self.rules(before)
    let narrower = try rules.adding(
      provider: "github", account: "x", remote: "https://github.com/acme/x", folder: nil, home: nil)
    #expect(
      narrower == "rules:\n  # all of it\n  - provider: github\n    account: x\n    for: https://github.com/acme/x\n"
        + "  - provider: github\n    for: https://github.com/acme\n    account: work # the firm\n")
    let other = try rules.adding(provider: "github", account: "yd", remote: nil, folder: "~/y", home: Self.home)
    #expect(other == before + "  - provider: github\n    account: yd\n    in: ~/y\n")
    let same = try rules.adding(
      provider: "github", account: "home", remote: "git@github.com:acme", folder: nil, home: nil)
    #expect(same == before.replacing("account: work", with: "account: home"))
    for text in [narrower, other, same] { #expect(try self.rules(text).rules.isEmpty == false) }
  }

  /// Another provider's rule for the same place, or an earlier wider rule, would hide the new one.
  @Test func aRulePrecedesThoseThatCoverIt() throws {
    let text = "rules:\n  - { provider: a, account: x, in: /w }\n  # two\n  - { provider: b, account: y, in: /w }\n"
    let edited = try self.rules(text).adding(provider: "b", account: "z", remote: nil, folder: "/w", home: nil)
    #expect(
      edited
        == "rules:\n  - provider: b\n    account: z\n    in: \"/w\"\n  - { provider: a, account: x, in: /w }\n  # two\n"
    )
    #expect(try self.rules(edited).rules.map(\.account) == ["z", "x"])
  }

  @Test func removing() throws {
    let rules = try self.rules(Self.text)
    let without = { (indices: [Int]) in try rules.removing(indices.map { rules.rules[$0] }, home: Self.home) }
    #expect(
      try without([0, 2, 3])
        == "# mine\nrules:\n  - { provider: github, for: \"git@github.com:acme\", account: work }\n")
    #expect(try without([0, 1, 2, 3]) == "# mine\n")
    #expect(try self.rules(without([1])).rules.map(\.account) == ["vault", "work", "both"])
    let flow = try self.rules("rules: [{provider: p, in: /a, account: b}]\n")
    #expect(throws: CredentialError.uneditableRules(flow.path)) { try flow.removing(flow.rules, home: nil) }
  }

  @Test(arguments: ["# mine\nrules: []\n", "# mine\nrules:\n", "rules: null\n# mine"])
  func aRuleIsAddedToAFileWithoutRules(_ text: String) throws {
    let edited = try self.rules(text).adding(provider: "p", account: "c", remote: nil, folder: "/x", home: nil)
    #expect(edited.contains("# mine\n"))
    #expect(try self.rules(edited).rules.map(\.account) == ["c"])
  }

  @Test func rulesInFlowStyleAreNotEdited() throws {
    let ended = "---\nrules:\n  - provider: p\n    in: /a\n    account: b\n...\n"
    for text in ["rules: [{provider: p, in: /a, account: b}]\n", ended] {
      let rules = try self.rules(text)
      #expect(throws: CredentialError.uneditableRules(rules.path)) {
        try rules.adding(provider: "p", account: "c", remote: nil, folder: "/x", home: nil)
      }
    }
  }
}
